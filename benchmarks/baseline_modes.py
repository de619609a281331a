"""FINC and the baselines of its paper, each ending in tested modes: which planted kinds does each find, and how fast?

Every method proposes directions in one feature space, and everything after that is the same (docs/method.md). Sets and
measures are those of `planted_modes.py`, whose docstring defines them. The demo's digits are compared as well: half of
the generated ones are colored, so ten colored kinds are novel and ten gray ones under-represented.

- *seconds*: time of the whole comparison, both roles, sketches included, in one thread, on a machine with other work.
- *shares*: planted kinds that Rarity and FLD find with other shares of novel samples, and without the projection of
  kernel means to right angles with the mean of the other set.
- *KEN*: correlation of φ(x)·v with the exact eigenfunction over all samples of both sets, for ten modes of either role.
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
from finc_eval.comparison import fits
from finc_eval.comparison.fits import ken_expansion, unit_vectors
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.settings import Finc, Fld, Ken, Rarity, Settings
from finc_eval.core.run import Run
from finc_eval.demo.planted import planted_sets

SEEDS, MODES, FEATURES = 5, 10, 2000
SHARES = (0.1, 0.2, 0.3, 0.5)
METHODS = {
    "FINC": Finc(clusters=False),
    "FINC, unrotated": Finc(rotation=None, clusters=False),
    "KEN": Ken(),
    "Rarity + clustering": Rarity(),
    "FLD + clustering": Fld(),
}
DIGITS = "colored digits"


def digit_sets(seed):
    """Return the demo's digits as pixels: kinds 0 to 9 are colored, 10 to 19 gray."""
    made = planted_sets(seed)
    pixels = (one.images.reshape(len(one.images), -1).astype(np.float32) / 255 for one in made)
    kinds = (np.array([int(kind[-1]) + 10 * kind.startswith("grey") for kind in one.kinds]) for one in made)
    return Sets(*pixels, *kinds, {"novel": tuple(range(10)), "over": (), "under": tuple(range(10, 20))})


def sources():
    """Yield the sets to compare on, as (name, seed → sets)."""
    yield DIGITS, digit_sets
    yield "Gaussian clusters, center", partial(gaussian_sets, CENTER)
    for name, load, share in (("UCF101", ucf101, SMALL_CLASSES_SHARE), ("Tiny-ImageNet", tiny_imagenet, SHARE)):
        if (real := load()) is not None:
            yield name, partial(real_sets, *real, share)


def measured(sets, seed, method):
    """Return the measures of one method on one pair of sets, and its seconds."""
    start = time.perf_counter()
    found = fe.compare(sets.gen, sets.ref, method=method, rho=RHO, features=FEATURES, modes=MODES, seed=seed)
    seconds = time.perf_counter() - start
    reported = {
        "over": [Reported(mode.top_gen, mode.excess) for mode in sorted(found.over, key=by_excess)],
        "under": [Reported(mode.top_ref, mode.excess) for mode in sorted(found.under, key=by_excess)],
    }
    with warnings.catch_warnings():  # some sorts have no kinds
        warnings.filterwarnings("ignore", "(Mean of empty slice|invalid value)", RuntimeWarning)
        return {
            **judge(sets, reported),
            "seconds": seconds,
            "stability": np.mean([m.stability for m in found.directions if m.stability is not None]),
        }


def by_excess(mode):
    return -mode.excess


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


def run_methods():
    rows = []
    for name, make in sources():
        for label, method in METHODS.items():
            rows.append(row(name, label, [measured(make(seed), seed, method) for seed in range(SEEDS)]))
            print(rows[-1], flush=True)
    notes = (
        f"{SEEDS} seeds, mean ± half of the 95 % interval (t), median of seconds; r = {FEATURES}, {MODES} modes a role"
    )
    record("baseline_modes", rows, notes=notes)


def without_projection(vectors, mean):
    return unit_vectors(vectors, None)


def run_shares(seeds=3):
    rows = []
    for name, make in sources():
        for method in (Rarity, Fld):
            for right_angles in (True, False):
                fits.unit_vectors = unit_vectors if right_angles else without_projection
                cells = {}
                for share in SHARES:
                    runs = [measured(make(seed), seed, method(novel=share)) for seed in range(seeds)]
                    cells[f"novel {share:g}"] = f"{np.mean([run['recall'] for run in runs]):.2f}"
                rows.append(
                    {"set": name, "method": method().name, "at right angles": "yes" if right_angles else "no", **cells}
                )
                print(rows[-1], flush=True)
    fits.unit_vectors = unit_vectors
    record("baseline_modes_shares", rows, notes=f"recall, mean of {seeds} seeds; r = {FEATURES}, {MODES} modes a role")


def reproduction(sets, seed, features):
    """Return correlations of projected with exact eigenfunctions, for the modes of one role after the other."""
    opened = sketch_sets({"gen": sets.gen, "ref": sets.ref}, Settings(features=features, seed=seed), Run()).sets
    phi, found = opened["gen"].sketch.feature_map, []
    samples = torch.from_numpy(np.concatenate([sets.gen, sets.ref]))
    for first, second in (("gen", "ref"), ("ref", "gen")):
        exact = ken_expansion(opened[first].embeddings, opened[second].embeddings, phi=phi, rho=RHO, count=MODES)
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
    run_methods()
    compare_with_exact()
    run_shares()
