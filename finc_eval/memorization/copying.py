"""Copying in the samples: is a generated set nearer to its training set than fresh samples are?

Seven measures, each beside what fresh real samples read in place of the generated ones, with a one-sided p-value of "no
nearer than those". Quality enters most of them, too: bad samples are far from everything, which hides copies among
them. The calibrated distance looks at the nearest samples alone, and is the one that sees a few copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from scipy.stats import hypergeom, rankdata

from finc_eval.baselines.fld import Gap, likelihood_gap
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.embeddings.neighbors import nearest
from finc_eval.memorization.power import calibrated
from finc_eval.memorization.tails import tail_p_value
from finc_eval.metrics.frechet import frechet_distance
from finc_eval.metrics.gaussian import GaussianStatistics, from_embeddings
from finc_eval.numerics.inference import normal_interval, normal_quantile, student_quantile, wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from finc_eval.memorization.distances import Played

MeasureName = Literal["authpct", "c_t", "dcr", "nndr", "calibrated", "mifid", "fld_gap"]

LOWEST = 0.01
"""Generated samples whose calibrated distance is below that of so many fresh ones are listed as suspicious."""

FEWEST = 20
"""Samples of each set that a cell needs for a rank test by normal approximation, as in the authors' code."""

THRESHOLD = 0.1
"""Mean cosine distance below which MiFID divides by it; made for Inception's features."""

TINY = 1e-15
"""Added to the distance that MiFID divides by, as the authors do."""

BLOCKS = 5
"""Of MiFID's jackknife: each costs one more Fréchet distance."""

MOST = 10_000
"""Samples that MiFID is computed of, at most."""


@dataclass(frozen=True)
class Measure:
    """One measure of copying.

    Attributes:
        name: which.
        value: of the generated set.
        interval: of it, at the level of the audit, by itself.
        control: what fresh samples read; None where it is known and needs none.
        control_interval: of that.
        null: what it is for a generator that knows only the distribution, where that is known.
        copies_lower: whether copies lower it, or raise it.
        p_value: of "no nearer to the training samples than fresh ones are", one-sided, by itself.
        adjusted: the same by Holm, among all measures of the audit.
    """

    name: MeasureName
    value: float
    interval: tuple[float, float]
    control: float
    control_interval: tuple[float, float]
    null: float | None
    copies_lower: bool
    p_value: float
    adjusted: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """The measure as plain JSON types."""
        return {
            "name": self.name,
            "value": self.value,
            "interval": list(self.interval),
            "control": self.control,
            "control_interval": list(self.control_interval),
            "null": self.null,
            "copies": "lower" if self.copies_lower else "raise",
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted,
        }


@dataclass(frozen=True, eq=False)
class Closeness:
    """How near samples are to the training set, each beside its surroundings.

    Attributes:
        distances: to the nearest training sample, shape (n,).
        authentic: whether that training sample has a nearer neighbor in its own set, shape (n,).
        ratios: nearest over second nearest distance, shape (n,); 0 of copies.
        calibrated: the nearest over the mean of the k nearest, shape (n,); 0 of copies.
    """

    distances: NDArray[np.float64]
    authentic: NDArray[np.bool_]
    ratios: NDArray[np.float64]
    calibrated: NDArray[np.float64]

    @classmethod
    def of(cls, distances: NDArray[np.float64], spacings: NDArray[np.float64]) -> Closeness:
        """From the distances to the k nearest training samples, (n, k), and the spacing of the nearest, (n,)."""
        first, second = distances[:, 0], distances[:, 1]
        ratios = np.divide(first, second, out=np.zeros(len(first)), where=second > 0)
        return cls(first, first > spacings, ratios, calibrated(distances))


def authpct(gen: Closeness, fresh: Closeness, level: float) -> Measure:
    """How many of a hundred are authentic (Alaa et al., ICML 2022); Fisher's exact test against fresh samples."""
    found, control = int(gen.authentic.sum()), int(fresh.authentic.sum())
    n, m = len(gen.authentic), len(fresh.authentic)
    return Measure(
        "authpct",
        100 * found / n,
        _scaled(wilson(found / n, n, level), 100),
        100 * control / m,
        _scaled(wilson(control / m, m, level), 100),
        None,
        True,
        float(hypergeom.cdf(found, n + m, found + control, n)),
    )


def nndr(gen: Closeness, fresh: Closeness, level: float) -> Measure:
    """The median ratio of nearest to second nearest distance; Mann and Whitney's test against fresh samples."""
    return Measure(
        "nndr",
        float(np.median(gen.ratios)),
        median_interval(gen.ratios, level),
        float(np.median(fresh.ratios)),
        median_interval(fresh.ratios, level),
        None,
        True,
        NormalDist().cdf(_mann_whitney(gen.ratios, fresh.ratios)),
    )


def lowest_threshold(fresh: Closeness) -> float:
    """The calibrated distance that a share `LOWEST` of fresh samples is below, or one sample."""
    return float(np.sort(fresh.calibrated)[max(int(LOWEST * len(fresh.calibrated)), 1) - 1])


def calibrated_tail(gen: Closeness, fresh: Closeness, level: float) -> Measure:
    """The share of samples as near as the nearest hundredth of fresh ones; the exact test of `tails`."""
    threshold = lowest_threshold(fresh)
    shares = [float((one.calibrated <= threshold).mean()) for one in (gen, fresh)]
    return Measure(
        "calibrated",
        shares[0],
        wilson(shares[0], len(gen.calibrated), level),
        shares[1],
        wilson(shares[1], len(fresh.calibrated), level),
        shares[1],
        False,
        tail_p_value(gen.calibrated, fresh.calibrated),
    )


def dcr(gen: Played, control: Played, level: float) -> Measure:
    """The share of samples whose nearest real sample is a training one, as if there were as many held out.

    With n members and m non-members, fresh samples are nearest to a member with probability q = n/(n + m). So odds are
    divided by n/m. The nearest samples of many are the same few, so that shares vary more than those of independent
    samples: with c_j samples nearest to the j-th real one, by q(1 − q) Σ c_j² / (Σ c_j)², the permutation variance.
    """
    share, effective, q = _nearest_share(gen)
    control_share, control_effective, control_q = _nearest_share(control)
    z = (share - q) / sqrt(q * (1 - q) / effective)
    return Measure(
        "dcr",
        _balanced(share, q),
        _both(share, effective, q, level),
        _balanced(control_share, control_q),
        _both(control_share, control_effective, control_q, level),
        0.5,
        False,
        NormalDist().cdf(-z),
    )


@dataclass(frozen=True)
class CellTest:
    """Mann and Whitney's test of distances to the training set, in the cells of a partition (Meehan et al. 2020).

    Attributes:
        by_cell: Z of each cell, below 0 where generated samples are nearer than fresh ones; None of too few samples.
        value: C_T, their mean weighted by the fresh samples in each.
        deviation: of C_T where nothing is copied: less than 1 unless there is one cell.
    """

    by_cell: tuple[float | None, ...]
    value: float
    deviation: float


def cell_test(
    distances: NDArray[np.float64],
    cells: NDArray[np.int64],
    fresh_distances: NDArray[np.float64],
    fresh_cells: NDArray[np.int64],
) -> CellTest:
    """C_T of distances to the nearest training sample, shape (n,), of samples in cells 0, 1, …, shape (n,)."""
    found: list[float | None] = []
    weights = []
    for cell in range(int(max(cells.max(), fresh_cells.max())) + 1):
        x, y = distances[cells == cell], fresh_distances[fresh_cells == cell]
        enough = min(len(x), len(y)) >= FEWEST
        found.append(_mann_whitney(x, y) if enough else None)
        weights.append(float(len(y)) if enough else 0.0)
    if not any(weights):
        return CellTest(tuple(found), _mann_whitney(distances, fresh_distances), 1.0)
    shares = np.array(weights) / sum(weights)
    value = sum(share * z for share, z in zip(shares, found, strict=True) if z is not None)
    return CellTest(tuple(found), float(value), float(np.linalg.norm(shares)))


def c_t(gen: CellTest, control: CellTest, level: float) -> Measure:
    """C_T as a measure: far below 0 where samples are copied, far above it where they are far from all real ones."""
    intervals = [normal_interval(test.value, test.deviation, level) for test in (gen, control)]
    p = NormalDist().cdf(gen.value / gen.deviation)
    return Measure("c_t", gen.value, intervals[0], control.value, intervals[1], 0.0, True, p)


def mifid(gen: Embeddings, train: Embeddings, fresh: Embeddings, level: float, seed: int) -> Measure:
    """MiFID (Bai et al. 2021): FID over the mean cosine distance to the nearest training sample, where that is small.

    The distance is from each generated sample to the training samples. (Others take that from each training sample, and
    a collapsed generator that copies a few goes unpunished.) Angles above 90° count as far here, where the authors take
    |cos|; for their features, which are none below zero, it is the same. Both sets are brought to one size, as FID
    depends on it. The interval is by jackknife of FID and the error of the mean distance; the p-value compares the
    distances.
    """
    rng = np.random.default_rng(seed)
    n = min(gen.n, fresh.n, MOST)
    reference, directions = from_embeddings(train), Directions(train)
    found = []
    for one in (gen, fresh):
        rows = rng.permutation(one.n)[:n]
        fid, error = _frechet(one, rows, reference)
        angles = nearest(Directions(Subset(one, np.sort(rows))), directions, 1).distances[:, 0] ** 2 / 2
        found.append((fid, error, float(angles.mean()), float(angles.var(ddof=1)) / n))
    values, intervals = [], []
    for fid, error, distance, variance in found:
        value = fid / (distance + TINY) if distance < THRESHOLD else fid
        relative = student_quantile(BLOCKS - 1, level) * error / (fid + TINY)
        if distance < THRESHOLD:
            relative = hypot(relative, normal_quantile(level) * sqrt(variance) / (distance + TINY))
        values.append(value)
        intervals.append((max(value * (1 - relative), 0.0), value * (1 + relative)))
    difference, error = found[0][2] - found[1][2], sqrt(found[0][3] + found[1][3])
    p = NormalDist().cdf(difference / error) if error else float(difference >= 0)
    return Measure("mifid", values[0], intervals[0], values[1], intervals[1], None, False, p)


def _frechet(samples: Embeddings, rows: NDArray[np.int64], reference: GaussianStatistics) -> tuple[float, float]:
    """The Fréchet distance of some samples, in random order, and its error by a jackknife over blocks of them."""
    value, *without = (
        frechet_distance(from_embeddings(samples, kept), reference).value
        for kept in (rows, *(np.delete(rows, slice(block, None, BLOCKS)) for block in range(BLOCKS)))
    )
    return value, sqrt((BLOCKS - 1) * float(np.var(without)))


class Directions(Subset):
    """Embeddings brought to length 1: half their squared distance is the cosine distance."""

    def __init__(self, source: Embeddings) -> None:
        super().__init__(source, np.arange(source.n))

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """These rows, of length 1."""
        return torch.nn.functional.normalize(super().rows_at(indices), dim=1)


def fld_gap(gen: Embeddings, fresh: Embeddings, train: Embeddings, test: Embeddings, level: float) -> Measure:
    """FLD's gap (Jiralerspong et al. 2023), of as many generated as fresh samples: below that of fresh ones for copies.

    Likelihoods of training samples under a mixture that was fitted to them are too high for fresh samples, too, so that
    the control is below 0 as well.
    """
    found, control = (likelihood_gap(one, train, test) for one in (gen, fresh))
    error = sqrt(found.standard_error**2 + control.standard_error**2)
    p = NormalDist().cdf((found.value - control.value) / error)
    return Measure("fld_gap", found.value, _around(found, level), control.value, _around(control, level), None, True, p)


def median_interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The interval of a median by order statistics, about."""
    n, ascending = len(values), np.sort(values)
    half = normal_quantile(level) * sqrt(n) / 2
    low, high = int(n / 2 - half), int(n / 2 + half)
    return float(ascending[max(low, 0)]), float(ascending[min(high, n - 1)])


def _mann_whitney(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Z of the number of pairs in which x is the larger, corrected for ties; 0 where all are equal."""
    n, m = len(x), len(y)
    values = np.concatenate([x, y])
    _, tied = np.unique(values, return_counts=True)
    ties = float((tied.astype(np.float64) ** 3 - tied).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    larger = float(rankdata(values)[:n].sum()) - n * (n + 1) / 2
    return (larger - n * m / 2) / sqrt(variance) if variance > 0 else 0.0


def _nearest_share(played: Played) -> tuple[float, float, float]:
    """The share nearest to members, ties counted half; of how many independent samples it is worth; q."""
    to_members, to_others = played.to_train.distances[:, 0], played.to_others.distances[:, 0]
    n, m = len(played.members.distances), len(played.others.distances)
    ours = to_members < to_others
    tied = to_members == to_others
    share = float(ours.mean() + tied.mean() / 2)
    owner = np.where(ours | tied, played.to_train.indices[:, 0], n + played.to_others.indices[:, 0])
    counts = np.bincount(owner)
    return share, float(counts.sum() ** 2 / (counts.astype(np.float64) ** 2).sum()), n / (n + m)


def _balanced(share: float, q: float) -> float:
    """A share as it would be with as many members as non-members."""
    ours, others = share / q, (1 - share) / (1 - q)
    return ours / (ours + others)


def _both(share: float, effective: float, q: float, level: float) -> tuple[float, float]:
    low, high = wilson(share, max(round(effective), 1), level)
    return _balanced(low, q), _balanced(high, q)


def _around(gap: Gap, level: float) -> tuple[float, float]:
    return normal_interval(gap.value, gap.standard_error, level)


def _scaled(interval: tuple[float, float], factor: float) -> tuple[float, float]:
    return interval[0] * factor, interval[1] * factor
