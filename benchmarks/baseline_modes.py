"""FINC and the baselines of its paper, each ending in tested modes: which planted kinds does each find, and how fast?

Every method proposes directions in one feature space, and everything after that is the same (docs/method.md). Sets and
measures are those of `planted_modes.py`, where its docstring defines them; beside its Gaussian clusters and real sets
there are the demo's digits, half of the generated ones colored: ten novel kinds, and ten under-represented gray ones.

- *seconds*: of the whole comparison, both roles, sketches included, one thread, on a machine with other work.
- *shares*: how many planted kinds Rarity and FLD find with other shares of novel samples, and with the directions of
  kernel means as they are, rather than at right angles to the mean of the other set.
- *KEN*: correlation of φ(x)·v with the exact eigenfunction over all samples of both sets, of ten modes of either role.
"""

import time
import warnings
from functools import partial

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record
from planted_modes import (
    CENTER,
    RHO,
    SHARE,
    SMALL_CLASSES_SHARE,
    Reported,
    Sets,
    gaussian_sets,
    judge,
    real_sets,
    shown,
)

import finc_eval as fe
from finc_eval.comparison import baseline_directions as expansions
from finc_eval.comparison.baseline_directions import ken_expansion, unit_vectors
from finc_eval.comparison.inputs import Sketching, open_sides
from finc_eval.demo.planted import planted_sets

SEEDS, MODES, FEATURES = 5, 10, 2000
SHARES = (0.1, 0.2, 0.3, 0.5)
METHODS = {
    "FINC": {"method": "finc"},
    "FINC, unrotated": {"method": "finc", "rotation": None},
    "KEN": {"method": "ken"},
    "Rarity + clustering": {"method": "rarity"},
    "FLD + clustering": {"method": "fld"},
}
DIGITS = "colored digits"


def digit_sets(seed):
    """The demo's digits as pixels: kinds 0 to 9 are colored, 10 to 19 gray."""
    made = planted_sets(seed)
    pixels = (one.images.reshape(len(one.images), -1).astype(np.float32) / 255 for one in made)
    kinds = (np.array([int(kind[-1]) + 10 * kind.startswith("grey") for kind in one.kinds]) for one in made)
    return Sets(*pixels, *kinds, {"novel": tuple(range(10)), "over": (), "under": tuple(range(10, 20))})


def sources():
    """What to compare on: (name, seed → sets)."""
    yield DIGITS, digit_sets
    yield "Gaussian clusters, center", partial(gaussian_sets, CENTER)
    for name, load, share in (("UCF101", ucf101, SMALL_CLASSES_SHARE), ("Tiny-ImageNet", tiny_imagenet, SHARE)):
        if (real := load()) is not None:
            yield name, partial(real_sets, *real, share)


def measured(sets, seed, **how):
    """The measures of one method on one pair of sets, and its seconds."""
    start = time.perf_counter()
    found = fe.compare(sets.gen, sets.ref, rho=RHO, features=FEATURES, modes=MODES, seed=seed, **how)
    seconds = time.perf_counter() - start
    reported = {
        "over": [Reported(mode.top_gen, mode.excess) for mode in found.modes],
        "under": [Reported(mode.top_ref, mode.excess) for mode in found.under_represented],
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(Mean of empty slice|invalid value)", RuntimeWarning)  # no kind of this sort
        return {
            **judge(sets, reported),
            "seconds": seconds,
            "stability": np.mean([m.stability for m in found.all_modes]),
        }


def by_sort(runs):
    return " / ".join(
        "–" if np.isnan(runs[0][s]) else f"{np.mean([r[s] for r in runs]):.2f}" for s in ("novel", "over", "under")
    )


def row(name, method, runs):
    def column(key, digits=2):
        return shown([run[key] for run in runs], digits)

    return {
        "set": name,
        "method": method,
        "recall": column("recall"),
        "of novel / over / under": by_sort(runs),
        "purity": column("purity"),
        "stability": column("stability"),
        "seconds": f"{np.median([run['seconds'] for run in runs]):.1f}",
    }


def compare_methods():
    rows = []
    for name, make in sources():
        for method, how in METHODS.items():
            rows.append(row(name, method, [measured(make(seed), seed, **how) for seed in range(SEEDS)]))
            print(rows[-1], flush=True)
    notes = (
        f"{SEEDS} seeds, mean ± half of the 95 % interval (t), median of seconds; r = {FEATURES}, {MODES} modes a role"
    )
    record("baseline_modes", rows, notes=notes)


def as_they_are(vectors, mean):
    return unit_vectors(vectors, None)


def compare_shares(seeds=3):
    rows = []
    for name, make in sources():
        for method in ("rarity", "fld"):
            for right_angles in (True, False):
                expansions.unit_vectors = unit_vectors if right_angles else as_they_are
                cells = {}
                for share in SHARES:
                    runs = [measured(make(seed), seed, method=method, novel=share) for seed in range(seeds)]
                    cells[f"novel {share:g}"] = f"{np.mean([run['recall'] for run in runs]):.2f}"
                rows.append(
                    {"set": name, "method": method, "at right angles": "yes" if right_angles else "no", **cells}
                )
                print(rows[-1], flush=True)
    expansions.unit_vectors = unit_vectors
    record("baseline_modes_shares", rows, notes=f"recall, mean of {seeds} seeds; r = {FEATURES}, {MODES} modes a role")


def reproduction(sets, seed, features):
    """Correlations of projected with exact eigenfunctions, the modes of both roles one after the other."""
    how = Sketching(features=features, seed=seed)
    sides, _ = open_sides({"gen": sets.gen, "ref": sets.ref}, ["ref"], how)
    phi, found = sides["gen"].sketch.feature_map, []
    samples = torch.from_numpy(np.concatenate([sets.gen, sets.ref]))
    for first, second in (("gen", "ref"), ("ref", "gen")):
        exact = ken_expansion(sides[first].embeddings, sides[second].embeddings, phi=phi, rho=RHO, count=MODES)
        scores = phi.exact(samples.double(), exact.samples) @ exact.coefficients
        projected = phi(samples) @ unit_vectors(exact.directions(phi), None)
        found += [np.corrcoef(a, b)[0, 1] for a, b in zip(scores.T.numpy(), projected.T.numpy(), strict=True)]
    return found


def compare_with_exact(seeds=3):
    rows = []
    for name, make in sources():
        for features in (1000, 2000, 4000):
            found = np.array([reproduction(make(seed), seed, features) for seed in range(seeds)])
            first = found[:, [0, MODES]]
            rows.append(
                {
                    "set": name,
                    "r": features,
                    "first mode": f"{first.mean():.3f}",
                    "mean": f"{found.mean():.3f}",
                    "least": f"{found.min():.3f}",
                }
            )
            print(rows[-1], flush=True)
    record("baseline_modes_ken", rows, notes=f"{MODES} modes of either role, {seeds} seeds")


if __name__ == "__main__":
    torch.set_num_threads(1)
    compare_methods()
    compare_with_exact()
    compare_shares()
