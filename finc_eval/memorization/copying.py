"""Measures of copying: whether a generated set is nearer to its training set than fresh samples are.

Each measure comes with the value that samples which cannot be copies give instead of the generated samples, and a
p-value of "no nearer than fresh samples". Quality also enters most measures: bad samples are far from everything, which
hides copies among them. The calibrated distance looks at the nearest samples alone, and is the one that sees a few
copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.baselines.fld import negative_likelihoods
from finc_eval.comparison.fits import constant_features
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.error_source import GEN, REF, ErrorSource
from finc_eval.estimates.estimate import Estimate, difference, mean_of
from finc_eval.measures.authenticity import Authenticity
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.gaussians.gaussian import from_embeddings
from finc_eval.memorization.attacks import draw_samples
from finc_eval.memorization.distances import SetDistances
from finc_eval.memorization.tails import calibrated_distances, tail_p_value
from finc_eval.numerics.inference import clopper_pearson, normal_quantile, upper_tail, wilson

TailName = Literal["calibrated", "hash", "views"]  # names of the measures that look at the nearest samples alone

MeasureName = Literal["authpct", "c_t", "dcr", "nndr", "calibrated", "hash", "views", "mifid", "fld_gap"]

AGAINST_HOLDOUT: tuple[MeasureName, ...] = ("dcr", "fld_gap")
"""Measures that compare the training set with the holdout. All others look at the training set alone."""

SUSPICIOUS_SHARE = 0.01  # share of fresh samples that are as near to the training set as a suspicious sample

MIN_CELL_SAMPLES = 20
"""Samples of each set that a cell needs for a rank test by normal approximation, as in the authors' code."""

MIFID_EPSILON = 1e-15  # added to the distance that MiFID divides by, as the authors do
MIFID_BLOCKS = 5  # blocks of MiFID's jackknife: each costs one more Fréchet distance

MAX_FLD_SAMPLES = 5000
"""Maximum number of samples of each set for FLD's gap: its fit passes over all pairs a dozen times."""


@dataclass(frozen=True)
class CopyingMeasure(Record):
    """One measure of copying.

    Attributes:
        name: name of the measure.
        value: value of the generated set.
        interval: interval of that value, at the confidence of the audit for this measure alone. Uncertain is which
            samples were generated, and which held out; the training set is given. For FLD's gap, the generated set is
            given, and training and fresh samples are uncertain. For the DCR share, it is which real samples were
            trained on. MiFID has its bias.
        control: value of fresh samples, or of training samples for a measure that compares training set and holdout.
        control_interval: interval of the control.
        null: value of a generator that knows only the distribution; None if it is not known.
        copies_lower: whether copies lower the value; else they raise it.
        p_value: one-sided p-value of "no nearer to the training samples than fresh samples", for this measure alone.
        adjusted: the same, adjusted for everything that the audit may find (Holm).
        against_holdout: p-value of "the most suspicious samples are as often nearer to the holdout", for a measure of
            single samples that finds copying; None for all others.
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
    against_holdout: float | None = None


@dataclass(frozen=True, eq=False)
class Closeness:
    """Closeness of samples to the training set, relative to their surroundings."""

    authenticity: Authenticity  # distances to the nearest training sample, and spacings of that sample, shape (n,)
    ratios: NDArray[np.float64]  # nearest over second nearest distance, shape (n,); 0 for copies
    calibrated: NDArray[np.float64]  # nearest distance over the mean of the k nearest, shape (n,); 0 for copies

    @classmethod
    def of(cls, distances: NDArray[np.float64], spacings: NDArray[np.float64]) -> Closeness:
        """Compute it from the distances to the k nearest training samples, (n, k), and the nearest's spacing, (n,)."""
        first, second = distances[:, 0], distances[:, 1]
        ratios = np.divide(first, second, out=np.zeros(len(first)), where=second > 0)
        return cls(Authenticity(first, spacings), ratios, calibrated_distances(distances))


def authpct(gen: Closeness, fresh: Closeness, confidence: float) -> CopyingMeasure:
    """Compare AuthPct (Alaa et al., ICML 2022) with AuthPct of fresh samples, by Fisher's exact test."""
    ours, theirs = gen.authenticity, fresh.authenticity
    from scipy.stats import hypergeom  # slow to import, and reports of other results load this module

    n, m = len(ours.distances), len(theirs.distances)
    authentic, control = (int(pairs.authentic.sum()) for pairs in (ours, theirs))
    return CopyingMeasure(
        "authpct",
        *(ours.percent, ours.interval(confidence)),
        *(theirs.percent, theirs.interval(confidence)),
        null=None,
        copies_lower=True,
        p_value=float(hypergeom.cdf(authentic, n + m, authentic + control, n)),
    )


def nndr(gen: Closeness, fresh: Closeness, confidence: float) -> CopyingMeasure:
    """Compare the median ratio of nearest to second nearest distance, by Mann and Whitney's test."""
    return CopyingMeasure(
        "nndr",
        *(float(np.median(gen.ratios)), median_interval(gen.ratios, confidence)),
        *(float(np.median(fresh.ratios)), median_interval(fresh.ratios, confidence)),
        null=None,
        copies_lower=True,
        p_value=upper_tail(-_mann_whitney(gen.ratios, fresh.ratios).value),
    )


def suspicious_threshold(fresh: NDArray[np.float64]) -> float:
    """Return the calibrated distance that a share `SUSPICIOUS_SHARE` of fresh samples (n,) reach, or one sample."""
    return float(np.sort(fresh)[max(int(SUSPICIOUS_SHARE * len(fresh)), 1) - 1])


def tail(name: TailName, gen: NDArray[np.float64], fresh: NDArray[np.float64], confidence: float) -> CopyingMeasure:
    """Compare the share of samples as near as the nearest hundredth of fresh samples, by the exact test of `tails`.

    The shares are small, and the threshold is a fresh sample itself: of as few as this one, Wilson's interval of the
    control would miss the share in 17 of 100 cases. Intervals are exact (Clopper and Pearson).
    """
    threshold = suspicious_threshold(fresh)
    (share, interval), (control, control_interval) = (
        _share_of(int((distances <= threshold).sum()), len(distances), confidence) for distances in (gen, fresh)
    )
    return CopyingMeasure(
        name,
        *(share, interval),
        *(control, control_interval),
        null=control,
        copies_lower=False,
        p_value=tail_p_value(gen, fresh),
    )


def _share_of(count: int, n: int, confidence: float) -> tuple[float, tuple[float, float]]:
    low, high = clopper_pearson(count, n, confidence)
    return count / n, (float(low), float(high))


def dcr(gen: SetDistances, control: SetDistances, confidence: float) -> CopyingMeasure:
    """Compute the share of samples whose nearest real sample is a training one, as if as many were held out.

    With n members and m non-members, fresh samples are nearest to a member with probability q = n/(n + m). So odds are
    divided by n/m. The nearest samples of many are the same few, so that shares vary more than shares of independent
    samples: with c_j samples nearest to the j-th real one, by q(1 − q) Σ c_j² / (Σ c_j)², the permutation variance. So
    the interval is Wilson's, of as many samples as are independent.
    """
    share, effective, q = _nearest_share(gen)
    return CopyingMeasure(
        "dcr",
        *_balanced(share, effective, q, confidence),
        *_balanced(*_nearest_share(control), confidence),
        null=0.5,
        copies_lower=False,
        p_value=upper_tail((share - q) / sqrt(q * (1 - q) / effective)),
    )


@dataclass(frozen=True)
class CellTest:
    """Mann and Whitney's test of distances to the training set, in the cells of a partition (Meehan et al. 2020)."""

    # Z of each cell, below 0 if generated samples are nearer than fresh samples; None with too few samples
    by_cell: tuple[float | None, ...]
    value: float  # C_T, the mean of Z weighted by the number of fresh samples in each cell
    deviation: float  # standard deviation of C_T if nothing is copied: less than 1 unless there is one cell
    estimate: Estimate  # C_T with its error, whatever is copied; at least the deviation


def cell_test(
    distances: NDArray[np.float64],
    cells: NDArray[np.int64],
    fresh_distances: NDArray[np.float64],
    fresh_cells: NDArray[np.int64],
) -> CellTest:
    """Compute C_T from distances to the nearest training sample, shape (n,), and cells 0, 1, … of shape (n,)."""
    tests: list[Estimate | None] = []
    weights = []
    for cell in range(int(max(cells.max(), fresh_cells.max())) + 1):
        x, y = distances[cells == cell], fresh_distances[fresh_cells == cell]
        enough = min(len(x), len(y)) >= MIN_CELL_SAMPLES
        tests.append(_mann_whitney(x, y) if enough else None)
        weights.append(float(len(y)) if enough else 0.0)
    by_cell = tuple(None if test is None else test.value for test in tests)
    if not any(weights):
        whole = _mann_whitney(distances, fresh_distances)
        return CellTest(by_cell, whole.value, 1.0, Estimate.of(whole.value, whole.sources, least=1.0))
    shares = np.array(weights) / sum(weights)
    deviation = float(np.linalg.norm(shares))
    of_cells = [test.times(share) for test, share in zip(tests, shares.tolist(), strict=True) if test is not None]
    # The cells share no sample.
    sources = [source for of_cell in of_cells for source in of_cell.sources]
    value = float(sum(of_cell.value for of_cell in of_cells))
    return CellTest(by_cell, value, deviation, Estimate.of(value, sources, least=deviation**2))


def c_t(gen: CellTest, control: CellTest, confidence: float) -> CopyingMeasure:
    """Return C_T as a measure: far below 0 if samples are copied, far above 0 if they are far from all real samples.

    The p-value knows the deviation if nothing is copied. A mix of copies and of samples that are far away varies more.
    """
    return CopyingMeasure(
        "c_t",
        *(gen.value, gen.estimate.interval_at(confidence)),
        *(control.value, control.estimate.interval_at(confidence)),
        null=0.0,
        copies_lower=True,
        p_value=upper_tail(-gen.value / gen.deviation),
    )


def mifid(
    gen: Embeddings, train: Embeddings, fresh: Embeddings, confidence: float, seed: int, run: Run | None = None
) -> CopyingMeasure:
    """Compute MiFID (Bai et al. 2021): FID, divided by a mean cosine distance where that is small.

    The distance is from each generated sample to the nearest training sample. (torchmetrics takes the distance from
    each training sample to the generated samples, so that a collapsed generator goes unpunished.) Angles above 90°
    count as far here, where the authors take |cos|; for their features, which are not negative, it is the same. Both
    sets are brought to one size, as FID depends on it. The interval is by jackknife of FID and the error of the mean
    distance; the p-value compares the distances.
    """
    run, rng = Run.of(run), np.random.default_rng(seed)
    # 10_000: maximum number of samples that MiFID is computed from.
    n = min(gen.n, fresh.n, 10_000)
    reference, directions = from_embeddings(train, run=run), UnitRows(train)
    values: list[tuple[float, tuple[float, float]]] = []
    distances: list[Estimate] = []
    for embeddings in (gen, fresh):
        rows = rng.permutation(embeddings.n)[:n]
        # The distance to the training samples, and without each block of the generated samples.
        fid, *without = (
            frechet_distance(from_embeddings(Subset(embeddings, np.sort(kept)), run=run), reference).value
            for kept in (rows, *(np.delete(rows, slice(block, None, MIFID_BLOCKS)) for block in range(MIFID_BLOCKS)))
        )
        nearest_rows = nearest(UnitRows(Subset(embeddings, np.sort(rows))), directions, 1, device=run.torch_device)
        distance = Estimate.of_mean(nearest_rows.distances[:, 0] ** 2 / 2)
        found = Estimate.of_blocks(fid, without)
        # 0.1: mean cosine distance below which MiFID divides by it; made for Inception's features.
        if distance.value < 0.1:
            found = _ratio(found, distance)
        low, high = found.interval_at(confidence)
        values.append((found.value, (max(low, 0.0), high)))
        distances.append(distance)
    return CopyingMeasure(
        "mifid",
        *values[0],
        *values[1],
        null=None,
        copies_lower=False,
        p_value=difference(distances[1], distances[0], is_paired=False).upper_p,
    )


def _ratio(fid: Estimate, distance: Estimate) -> Estimate:
    """Estimate FID over a mean distance, as if the errors of both were independent."""
    by = distance.value + MIFID_EPSILON
    value = fid.value / by
    return Estimate.of(value, (*fid.times(1 / by).sources, *distance.times(-value / by).sources))


class UnitRows(Subset):
    """Embeddings brought to length 1: half their squared distance is the cosine distance."""

    def __init__(self, source: Embeddings) -> None:
        super().__init__(source, np.arange(source.n))

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows, of length 1."""
        return torch.nn.functional.normalize(super().rows_at(indices), dim=1)


def fld_gap(
    gen: Embeddings,
    train: tuple[Embeddings, Embeddings],
    fresh: Embeddings,
    confidence: float,
    seed: int,
    run: Run | None = None,
) -> CopyingMeasure:
    """Compute FLD's gap (Jiralerspong et al. 2023), the mean over both halves of the training set; copies lower it.

    In the control, the other half stands in for as many generated samples: it is of the training set's distribution,
    whatever the fresh samples are. Likelihoods of samples under a mixture that was fitted to them are too high, so that
    the control is below 0 as well.
    """
    rng = np.random.default_rng(seed)
    test = draw_samples(fresh, MAX_FLD_SAMPLES, rng)
    varying = np.flatnonzero(~constant_features(test))
    n = min(gen.n, *(half.n for half in train), MAX_FLD_SAMPLES)
    unseen, samples, again, *halves = (
        Subset(draw_samples(embeddings, most, rng), np.arange(min(embeddings.n, most)), varying)
        for embeddings, most in ((test, test.n), *((embeddings, n) for embeddings in (gen, gen, *train)))
    )

    def mean_gap(centers: Sequence[Embeddings]) -> Estimate:
        likelihoods = [
            negative_likelihoods(center, half, unseen, Run.of(run))
            for center, half in zip(centers, halves, strict=True)
        ]
        seen, of_unseen = [values for values, _ in likelihoods], np.mean([values for _, values in likelihoods], axis=0)
        # Both halves are held against the same unseen samples.
        of_seen = mean_of([Estimate.of_mean(gaps) for gaps in seen])
        return difference(of_seen, Estimate.of_mean(of_unseen), is_paired=False).times(100.0)

    gap, control = mean_gap((samples, again)), mean_gap(halves[::-1])
    return CopyingMeasure(
        "fld_gap",
        *(gap.value, gap.interval_at(confidence)),
        *(control.value, control.interval_at(confidence)),
        null=None,
        copies_lower=True,
        p_value=difference(control, gap, is_paired=False).upper_p,
    )


def median_interval(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Return the approximate interval of the median of numbers (n,), by order statistics.

    The ranks of its ends are binomial, whatever the law of the numbers: it needs no error of the median.
    """
    n, ascending = len(values), np.sort(values)
    half = normal_quantile(confidence) * sqrt(n) / 2
    low, high = int(n / 2 - half), int(n / 2 + half)
    return float(ascending[max(low, 0)]), float(ascending[min(high, n - 1)])


def _mann_whitney(x: NDArray[np.float64], y: NDArray[np.float64]) -> Estimate:
    """Estimate Z of the number of pairs in which x is the larger; 0 without error if all are equal.

    Z is corrected for ties. Its error, about 1 for samples of one law, is that of the share of pairs: the influence of
    each sample is its place in the other set (DeLong et al. 1988). A set of one sample has no such error.
    """
    from scipy.stats import rankdata  # slow to import, and reports of other results load this module

    n, m = len(x), len(y)
    values = np.concatenate([x, y])
    _, tied = np.unique(values, return_counts=True)
    ties = float((tied.astype(np.float64) ** 3 - tied).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    if variance <= 0:
        return Estimate.of(0.0, ())
    ranks = rankdata(values)
    # The number of samples of the other set that are smaller.
    above, below = ranks[:n] - rankdata(x), ranks[n:] - rankdata(y)
    slopes = [(count * places / sqrt(variance), name) for count, places, name in ((n, above, GEN), (m, below, REF))]
    sources = [ErrorSource.of_samples(slope, None, name=name) for slope, name in slopes] if min(n, m) > 1 else []
    return Estimate.of((float(above.sum()) - n * m / 2) / sqrt(variance), sources)


def _nearest_share(measured: SetDistances) -> tuple[float, float, float]:
    """Return the share nearest to members, ties counted half; the equivalent number of independent samples; and q."""
    to_members, to_non_members = measured.to_train.distances[:, 0], measured.to_non_members.distances[:, 0]
    n, m = len(measured.members.distances), len(measured.non_members.distances)
    nearer = to_members < to_non_members
    tied = to_members == to_non_members
    share = float(nearer.mean() + tied.mean() / 2)
    owner = np.where(nearer | tied, measured.to_train.indices[:, 0], n + measured.to_non_members.indices[:, 0])
    counts = np.bincount(owner)
    return share, float(counts.sum() ** 2 / (counts.astype(np.float64) ** 2).sum()), n / (n + m)


def _balanced(share: float, effective: float, q: float, confidence: float) -> tuple[float, tuple[float, float]]:
    """Return the share, and its interval, as they would be with as many members as non-members."""

    def balance(share: float) -> float:
        members, non_members = share / q, (1 - share) / (1 - q)
        return members / (members + non_members)

    low, high = wilson(share, max(round(effective), 1), confidence)
    return balance(share), (balance(low), balance(high))
