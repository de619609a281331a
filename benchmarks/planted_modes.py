"""Which planted kinds does each method find? Unrotated FINC, rotated FINC and exact KEN on the same sets.

Two sets of samples of known kinds. *Novel* kinds are in the generated set only, *over*-represented ones have three
times their reference share there, *under*-represented ones a third. What the first two gain the under-represented
lose, so that all other kinds keep their shares and nothing but what was planted differs. Numbers of samples are fixed,
not drawn.

Generated sets: Gaussian clusters, d = 128. *Separation* is the root mean square distance between two centers, in units
of that between a sample and its center. Sizes and spreads vary from kind to kind. One factor at a time leaves the
center. Real sets: UCF101 and Tiny-ImageNet (`_real.py`), random classes in each part. All methods see the same sets
and use the same σ, seed by seed.

With P kinds planted in a role (over: novel and over-represented; under), the first P modes of that role count. The
*share* of a kind in a mode is its share of the mode's min(50, available) best samples. They are taken from the set that
has more, at the tail with more excess, and *available* is the number of samples of the kind in that set.

- recall: planted kinds whose share in one of these modes is 0.8 or more, over planted kinds; both roles together.
- purity: the largest share of one planted kind, averaged over the first P modes of both roles. A mode that a method
  does not report counts as 0.
- error of the excess: |estimated excess − true excess|, mean over the kinds found, where the true excess is share_gen −
  ρ·share_ref (under: the reverse). The estimate is the one of the first mode with the kind: cross-fitted for rotated
  FINC, the eigenvalue for the other two. Each method is judged on what it finds. An excess of masses falls short of
  one of shares where kinds are loose (docs/method.md), for every method.
- excess / truth: mean ratio of the estimate to the truth. Shares are measured by `inference_shares.py`.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record
from scipy import stats

import finc_eval as fe
from finc_eval.baselines.ken import ken
from finc_eval.comparison.settings import Finc
from finc_eval.numerics.kernels import gaussian_kernel

SEEDS = 10
MODES, FEATURES, RHO = 10, 1000, 1.0
BEST, FOUND = 50, 0.8
SORTS = ("novel", "over", "under")
METHODS = ("rotated FINC", "unrotated FINC", "exact KEN")

DIM, SHARED = 128, 15
SHARE = 0.03
"""Mean share of novel and over-represented kinds in gen."""
SIZES, SPREADS = 1.6, 1.3
"""Kinds of one sort differ in size, and all in spread, by up to this factor from their mean, both ways."""
SMALL_CLASSES_SHARE = 0.05
"""In place of SHARE for UCF101, where classes of some 130 samples keep sets below 700: 0.03 would be 20 samples."""


@dataclass(frozen=True)
class Setting:
    separation: float = 1.0
    n: int = 2000
    planted: int = 2


CENTER = Setting()
GENERATED = {
    "center: separation 1, n = m = 2000, 2 of each sort": CENTER,
    "separation 0.6": replace(CENTER, separation=0.6),
    "separation 2": replace(CENTER, separation=2.0),
    "n = m = 1000": replace(CENTER, n=1000),
    "n = m = 4000": replace(CENTER, n=4000),
    "1 of each sort": replace(CENTER, planted=1),
    "4 of each sort": replace(CENTER, planted=4),
}


@dataclass(frozen=True)
class Sets:
    """Two sets, the kind of each sample, and the planted kinds by sort."""

    gen: np.ndarray
    ref: np.ndarray
    gen_kinds: np.ndarray
    ref_kinds: np.ndarray
    planted: dict[str, tuple[int, ...]]

    def of_role(self, role):
        """Return the kinds of the set that has more and of the other, and the kinds planted in the role."""
        if role == "over":
            return self.gen_kinds, self.ref_kinds, self.planted["novel"] + self.planted["over"]
        return self.ref_kinds, self.gen_kinds, self.planted["under"]


@dataclass(frozen=True)
class Reported:
    """One mode of any method: indices of its best samples in the set that has more, and its excess of mass, or λ."""

    best: np.ndarray
    excess: float


def shares(planted, shared, share, unevenness, rng):
    """Return the shares of all kinds in gen and in ref, in the order novel, over, under, shared."""
    novel, over, under, rest = (
        unevenness ** rng.uniform(-1, 1, count) for count in (planted, planted, planted, shared)
    )
    novel, over = share * novel / novel.mean(), share * over / over.mean()
    under *= (1.5 * novel.sum() + over.sum()) / under.sum()
    rest *= (1 - over.sum() / 3 - under.sum()) / rest.sum()
    return np.concatenate([novel, over, under / 3, rest]), np.concatenate([0 * novel, over / 3, under, rest])


def sorts(planted):
    """Return the novel, over- and under-represented kinds, in the order of `shares`."""
    return {sort: tuple(range(i * planted, (i + 1) * planted)) for i, sort in enumerate(SORTS)}


def gaussian_sets(setting, seed):
    rng = np.random.default_rng(seed)
    parts = shares(setting.planted, SHARED, SHARE, SIZES, rng)
    count = len(parts[0])
    centers = rng.standard_normal((count, DIM)) * setting.separation / 2**0.5
    spreads = SPREADS ** rng.uniform(-1, 1, (count, 1))
    kinds = [np.repeat(np.arange(count), np.rint(setting.n * part).astype(int)) for part in parts]
    rows = [centers[own] + spreads[own] * rng.standard_normal((len(own), DIM)) for own in kinds]
    return Sets(*(part.astype(np.float32) for part in rows), *kinds, sorts(setting.planted))


def real_sets(embeddings, labels, share, seed):
    """Return sets with random classes in the planted parts, as large as the classes allow, at most as in the center."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(labels))
    rows = [rng.permutation(np.flatnonzero(labels == name)) for name in classes]
    parts = shares(CENTER.planted, len(classes) - 3 * CENTER.planted, share, 1.0, rng)
    # One sample fewer than there are, as both counts are rounded.
    n = min(CENTER.n, *((len(own) - 1) / both for own, both in zip(rows, sum(parts), strict=True)))
    counts = [np.rint(n * part).astype(int) for part in parts]
    gen = np.concatenate([own[:count] for own, count in zip(rows, counts[0], strict=True)])
    ref = np.concatenate([own[len(own) - count :] for own, count in zip(rows, counts[1], strict=True)])
    kinds = (np.repeat(np.arange(len(classes)), count) for count in counts)
    return Sets(embeddings[gen], embeddings[ref], *kinds, sorts(CENTER.planted))


def by_finc(sets, seed, rotation):
    """Return modes of both roles, and σ."""
    found = fe.compare(
        sets.gen, sets.ref, method=Finc(rotation, clusters=False), rho=RHO, features=FEATURES, modes=MODES, seed=seed
    )
    estimate = (lambda mode: mode.excess) if rotation else (lambda mode: mode.fitted_excess)
    over = [Reported(mode.top_gen, estimate(mode)) for mode in sorted(found.over, key=estimate, reverse=True)]
    under = [Reported(mode.top_ref, estimate(mode)) for mode in sorted(found.under, key=estimate, reverse=True)]
    return {"over": over, "under": under}, found.settings.sigma


def by_ken(sets, sigma):
    """Return modes of both roles."""
    gen, ref = torch.from_numpy(sets.gen), torch.from_numpy(sets.ref)
    kernel = partial(gaussian_kernel, sigma=sigma)
    return {
        "over": ken_modes(ken(gen, ref, kernel, rho=RHO, count=MODES)),
        "under": ken_modes(ken(ref, gen, kernel, rho=RHO, count=MODES)),
    }


def ken_modes(modes):
    """Return each mode's best samples of x at the tail with more excess."""

    def excess(sign):
        x, y = ((sign * scores).clamp_min(0).square().mean(0) for scores in (modes.scores_x, modes.scores_y))
        return x - RHO * y

    oriented = modes.scores_x * torch.where(excess(1) >= excess(-1), 1, -1)
    best, order = (tensor[:BEST].T for tensor in oriented.sort(dim=0, descending=True))
    found = zip(best, order, modes.eigenvalues, strict=True)
    return [Reported(rows[scores > 0].numpy(), float(value)) for scores, rows, value in found]


def judge(sets, reported):
    """Return the measures of one method on one pair of sets; those of the excess are nan if nothing is found."""
    found, purities, estimates = {}, [], []
    for role, modes in reported.items():
        more, less, kinds = sets.of_role(role)
        first = modes[: len(kinds)]
        share = np.array([[share_of(kind, mode, more) for kind in kinds] for mode in first]).reshape(-1, len(kinds))
        purities += [*share.max(1), *[0.0] * (len(kinds) - len(first))]
        for kind, column in zip(kinds, share.T, strict=True):
            pure = np.flatnonzero(column >= FOUND)
            found[kind] = len(pure) > 0
            if found[kind]:
                mode, truth = first[pure[0]], np.mean(more == kind) - RHO * np.mean(less == kind)
                estimates.append((mode.excess, truth))
    excess, truth = np.array(estimates or [(np.nan, np.nan)]).T
    return {
        "recall": np.mean(list(found.values())),
        "purity": np.mean(purities),
        "error": np.mean(np.abs(excess - truth)),
        "ratio": np.mean(excess / truth),
        **{sort: np.mean([found[kind] for kind in kinds]) for sort, kinds in sets.planted.items()},
    }


def share_of(kind, mode, kinds):
    """Return the share of this kind among the mode's min(50, available) best samples."""
    looked_at = min(BEST, int((kinds == kind).sum()))
    return float((kinds[mode.best[:looked_at]] == kind).sum() / looked_at)


def measures(sets, seed):
    """Run every method on one pair of sets, and return {method: measures}."""
    rotated, sigma = by_finc(sets, seed, "varimax")
    unrotated, _ = by_finc(sets, seed, None)
    found = (rotated, unrotated, by_ken(sets, sigma))
    return {name: judge(sets, modes) for name, modes in zip(METHODS, found, strict=True)}


def interval(values):
    """Return the mean and the half-width of its 95 % interval (t distribution) over the seeds that have a value."""
    values = np.array([value for value in values if not np.isnan(value)])
    if len(values) < 2:
        return (float(values.mean()) if len(values) else np.nan), np.nan
    return float(values.mean()), float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def shown(values, digits=2):
    mean, half = interval(values)
    if np.isnan(mean):
        return ""
    return f"{mean:.{digits}f}" if np.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(setting, runs):
    """Return one row per method, from {method: measures} of every seed."""
    rows = []
    for method in METHODS:
        values = {key: np.array([run[method][key] for run in runs]) for key in runs[0][method]}
        ahead = {key: np.array([run[METHODS[0]][key] for run in runs]) - values[key] for key in ("recall", "purity")}
        other = method != METHODS[0]
        rows.append(
            {
                "setting": setting,
                "method": method,
                "recall": shown(values["recall"]),
                "of novel / over / under": " / ".join(f"{values[sort].mean():.2f}" for sort in SORTS),
                "purity": shown(values["purity"]),
                "error of the excess": shown(values["error"], 4),
                "excess / truth": shown(values["ratio"]),
                "recall, rotated − it": shown(ahead["recall"]) if other else "",
                "purity, rotated − it": shown(ahead["purity"]) if other else "",
            }
        )
    return rows


def settings():
    """Yield the sets to compare on, as (name, seed → sets)."""
    yield from ((name, partial(gaussian_sets, setting)) for name, setting in GENERATED.items())
    for name, load, share in (("UCF101", ucf101, SMALL_CLASSES_SHARE), ("Tiny-ImageNet", tiny_imagenet, SHARE)):
        if (real := load()) is not None:
            yield f"{name}, 2 of each sort", partial(real_sets, *real, share)


def main(seeds=SEEDS):
    rows = []
    for name, make in settings():
        rows += table(name, [measures(make(seed), seed) for seed in range(seeds)])
        print(*rows[-len(METHODS) :], sep="\n", flush=True)
    record(
        "planted_modes",
        rows,
        notes=f"{seeds} seeds, mean ± half of the 95 % interval (t); r = {FEATURES}, {MODES} modes a role, "
        f"rho = {RHO:g}; rotated − it: rotated FINC minus the method of the row, mean paired difference",
    )


if __name__ == "__main__":
    main()
