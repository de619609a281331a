"""The Fréchet distance of two sets of embeddings (FID, FD-DINOv2, sFID, FVD) with its bias, interval and floor.

FD = ‖μ₁ − μ₂‖² + tr Σ₁ + tr Σ₂ − 2 tr (Σ₁^½ Σ₂ Σ₁^½)^½ (Dowson and Landau 1982; Heusel et al. 2017, arXiv 1706.08500).
The named distances differ in their extractor only. sFID uses the spatial outputs of the ADM evaluator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_seed
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE, check_alike, extractor_of
from finc_eval.embeddings.repeats import same_embedding
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.measures.gaussians.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.gaussians.gaussian import (
    GaussianStatistics,
    blocks_of_sketches,
    frechet_terms,
    from_embeddings,
    symmetric,
)
from finc_eval.measures.gaussians.opened import gaussian_statistics, open_set
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Estimator, Metric, MetricInputs, biased_floor
from finc_eval.measures.score import Score
from finc_eval.sketches.sketch import Sketch

MIN_CLIPS = 256
"""Minimum number of clips for FVD. With fewer, a set against itself gets more than a third of the total variance of
the embeddings (measured for a spectrum 1/k in 400 dimensions; 1.2 times the variance at 16 clips, 0.04 at 2048)."""

USUAL_CLIPS = 2048  # number of clips per set in published FVDs
SPATIAL = "spatial"  # output of inception-fid that sFID takes


@dataclass(frozen=True)
class FrechetDistance:
    """A Fréchet distance."""

    value: float  # distance, in squared units of the embedding; lower is closer, 0 for equal Gaussians
    mean_term: float  # ‖μ₁ − μ₂‖²
    covariance_term: float  # the other three terms
    slack: float  # amount by which rounding took the value below zero before it was set to zero; otherwise 0
    warnings: tuple[str, ...] = ()  # what to know before trusting the number


@dataclass(frozen=True)
class FrechetInterval:
    """A Fréchet distance with its bias and interval."""

    value: float  # distance of all samples
    bias: float  # estimate of how much higher it is than for infinite sets
    corrected: float  # value − bias, never below zero
    standard_error: float  # standard error of the corrected distance
    low: float  # lower end of the interval around the corrected distance, never below zero
    high: float  # upper end of the interval
    # sampling that the interval covers: "both sets", or "the generated set" if only the statistics of the reference are
    # known
    covers: str


def frechet_distance(gen: object, ref: object, *, run: Run | None = None) -> FrechetDistance:
    """Compute the Fréchet distance of two sets.

    With FᵀF = Σ, the trace of the square root is the sum of the singular values of F₁F₂ᵀ. They are the square roots of
    the eigenvalues of the symmetric F₁Σ₂F₁ᵀ, and more exact if these are small. A set of n ≤ d samples is its own
    F, so a covariance without full rank needs no offset.
    """
    return distance_of_gaussians(*_gaussians(gen, ref, run))


def fvd(gen: object, ref: object, *, run: Run | None = None) -> FrechetDistance:
    """Compute the Fréchet video distance (Unterthiner et al. 2018, arXiv 1812.01717) between embedded clips."""
    return _video_distance(*_gaussians(gen, ref, run))


def _video_distance(x: GaussianStatistics, y: GaussianStatistics) -> FrechetDistance:
    warnings = []
    for name, n in ((x.name, x.n), (y.name, y.n)):
        if n is not None and n < MIN_CLIPS:
            raise DataError(
                f"FVD of {n} clips ({name}) would be mostly the error of the covariance: give at least "
                f"{MIN_CLIPS}, {USUAL_CLIPS} to compare with published numbers"
            )
        if n is not None and n < USUAL_CLIPS:
            warnings.append(f"{name} has {n} clips: published FVDs have {USUAL_CLIPS}, and fewer give a higher value")
    distance = distance_of_gaussians(x, y)
    return replace(distance, warnings=(*warnings, *distance.warnings))


def frechet_interval(gen: object, ref: object, *, run: Run | None = None) -> FrechetInterval:
    """Estimate the bias and an interval of the Fréchet distance.

    The bias comes from the distances without each of ten blocks of a set, the error from the influence of each sample
    (`estimate_frechet`); samples of a group count as one. The interval covers the sampling of the sets, but neither the
    choice of the extractor nor the training of the generator. It expects n above d: if the covariance lacks full rank,
    the bias is not of order 1/n and only part of it is found. `benchmarks/frechet_intervals.py` has the coverage.
    The sketches of the disjoint shards of a set are its blocks, and its units. A reference of statistics or one sketch
    is exact.
    """
    x = _sampled(gen, "the generated set", run)
    if x.source is None:
        raise IncompatibleError(
            f"{x.statistics.name} came as statistics of all its samples: an interval needs embeddings, or the sketches "
            "of shards"
        )
    y = _sampled(ref, "the reference", run)
    value = distance_of_gaussians(x.statistics, y.statistics).value
    estimate = estimate_frechet(x, y, value=value, run=run)
    return FrechetInterval(
        value=value,
        bias=value - estimate.value,
        corrected=max(estimate.value, 0.0),
        standard_error=estimate.standard_error,
        low=estimate.interval[0],
        high=estimate.interval[1],
        covers="the generated set" if y.source is None else "both sets",
    )


def same_set_floor(ref: object, n_gen: int, *, seed: int = 0, run: Run | None = None) -> float:
    """Compute the distance that samples of the reference itself would have instead of n_gen generated samples.

    It is exact for the mean term, and for the covariance if n is well above d; see `biased_floor`. A distance of at
    most d samples falls more slowly than 1/n: 200 samples of a law of 512 dimensions with the spectrum 1/k had 3.02,
    their floor was 2.18 by 1/n, and is 3.26 by the power that halves show (means of 4).
    """
    reference = as_embeddings(ref, "the reference")
    is_inverse = min(n_gen, reference.n) > reference.dim

    def distance(x: Embeddings, y: Embeddings) -> float:
        return distance_of_gaussians(from_embeddings(x, run=run), from_embeddings(y, run=run)).value

    return biased_floor(distance, reference, n_gen, least=2, seed=seed, is_inverse=is_inverse)


def _gaussians(gen: object, ref: object, run: Run | None) -> tuple[GaussianStatistics, GaussianStatistics]:
    x = gaussian_statistics(gen, "the generated set", run=run)
    y = gaussian_statistics(ref, "the reference", run=run)
    check_alike(x.name, x, y.name, y)
    return x, y


def distance_of_gaussians(x: GaussianStatistics, y: GaussianStatistics) -> FrechetDistance:
    """Compute the Fréchet distance of two Gaussians of one embedding space."""
    y = y.to(x.mean.device)
    warnings = (*size_warnings(x), *size_warnings(y))
    if torch.equal(x.mean, y.mean) and torch.equal(x.covariance, y.covariance):
        return FrechetDistance(0.0, 0.0, 0.0, 0.0, warnings)
    mean_term, covariance_term = frechet_terms(x.mean, x.trace, y, _common_trace(x, y))
    value = mean_term + covariance_term
    return FrechetDistance(max(value, 0.0), mean_term, covariance_term, max(-value, 0.0), warnings)


def _common_trace(x: GaussianStatistics, y: GaussianStatistics) -> torch.Tensor:
    """Return tr (Σ₁^½ Σ₂ Σ₁^½)^½, from eigenvalues if all are exact, which takes a third of the time."""
    if x.has_full_rank and y.has_full_rank:
        values: torch.Tensor = torch.linalg.eigvalsh(symmetric(y.root @ x.covariance @ y.root.T))
        # 1e-8: least eigenvalue, in parts of the largest, whose square root is exact to eleven digits of the largest
        # root.
        if values[0] > 1e-8 * values[-1]:
            return values.sqrt().sum()
    singular: torch.Tensor = torch.linalg.svdvals(x.root @ y.root.T)
    return singular.sum()


def size_warnings(statistics: GaussianStatistics) -> list[str]:
    """Return what to know about a set before trusting its Fréchet distances."""
    name, n, dim = statistics.name, statistics.n, statistics.dim
    warnings = []
    if statistics.is_constant:
        warnings.append(same_embedding(name))
    elif n is None:
        warnings.append(f"{name} does not state its number of samples, so its share of the bias is unknown")
    elif n <= dim:
        warnings.append(
            f"{name} has {plural(n, 'sample')} in {plural(dim, 'dimension')}: its covariance "
            "lacks full rank, and the distance is too high by an amount that "
            f"depends on n; give more than {dim}, or compare at equal n only"
        )
    return warnings


def _sampled(source: object, name: str, run: Run | None) -> FrechetSet:
    """Open a set with what its error comes from, such as the sketches of shards."""
    if isinstance(source, Sequence) and source and all(isinstance(part, Sketch) for part in source):
        if len(source) < 2:
            raise IncompatibleError(f"{name} came as one sketch: the jackknife needs sketches of at least two shards")
        return FrechetSet.of(blocks_of_sketches(source, name))
    return FrechetSet.of(open_set(source, name), run)


def _frechet(inputs: MetricInputs, ddof: int = 1) -> list[Score]:
    """Return the distance; with `ddof` 0, covariances are divided by n, as StyleGAN's code does, and not by n − 1."""
    if ddof not in (0, 1):
        raise UsageError(f"ddof must be 0 or 1, got {ddof!r}")
    x, y = _gaussians(inputs.gen, inputs.ref, inputs.run)
    score = _with_interval(inputs, x, y, distance_of_gaussians(x, y))
    if ddof == 1:
        return [score]
    value = distance_of_gaussians(x.divided_by_n(), y.divided_by_n()).value
    return [replace(score, value=value, signature=inputs.signature(ddof=0))]


def _fvd(inputs: MetricInputs) -> list[Score]:
    x, y = _gaussians(inputs.gen, inputs.ref, inputs.run)
    return [_with_interval(inputs, x, y, _video_distance(x, y))]


def not_fid(metric: str, space: str) -> list[str]:
    """Say that a Fréchet distance is not FID, if its embeddings are not those of the network that FID is by."""
    fid, extractor = METRICS[0], extractor_of(space)
    if metric != "fd" or extractor == fid.extractor:
        return []
    by = "these embeddings" if space.startswith(ARRAY_SPACE) else extractor
    return [f"the Fréchet distance of {by}, not FID, which is by {fid.extractor}: ask for fid"]


def _with_interval(
    inputs: MetricInputs, x: GaussianStatistics, y: GaussianStatistics, distance: FrechetDistance
) -> Score:
    """Return a Fréchet distance with its interval and its floor, if there are enough samples.

    If the covariances lack full rank, only a part of the bias is found. With n = d/2 samples the interval of 95 % held
    the distance in 0 and 25 % of repetitions, with n just above d in 90 % and more (60 repetitions, d = 100, spectrum
    1/k).
    """
    gen, ref, notes = inputs.gen, inputs.ref, [*distance.warnings, *not_fid(inputs.name, inputs.gen.space)]
    interval = floor = unbiased = None
    if isinstance(gen, Embeddings) and isinstance(ref, Embeddings):
        if min(gen.n, ref.n) >= MIN_INTERVAL_SAMPLES:
            floor = same_set_floor(ref, gen.n, run=inputs.run)
        if has_full_rank(gen, ref):
            sets = (
                FrechetSet(moments, embeddings, units_of(embeddings)) for moments, embeddings in ((x, gen), (y, ref))
            )
            estimate = estimate_frechet(*sets, value=distance.value, run=inputs.run)
            interval, unbiased = estimate.interval, max(estimate.value, 0.0)
            notes.append("the interval is around the unbiased value, the distance of infinitely many samples")
        else:
            notes.append(_say_too_few(gen))
    return Score(
        inputs.name,
        distance.value,
        inputs.signature(),
        unbiased=unbiased,
        interval=interval,
        floor=floor,
        higher_is_better=False,
        notes=tuple(notes),
    )


def _estimator(ref: Embeddings, run: Run) -> Estimator:
    known: FrechetSet | None = None

    def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
        nonlocal known
        if not has_full_rank(gen, ref):
            raise DataError(_say_too_few(gen))
        known = known or FrechetSet.of(ref, run)
        set_of_gen = FrechetSet.of(gen, run)
        return estimate_frechet(set_of_gen if units is None else replace(set_of_gen, units=units), known, run=run)

    return estimate


def has_full_rank(gen: Embeddings, ref: Embeddings) -> bool:
    """Return whether both sets have samples enough for the bias and the error of a Fréchet distance."""
    return min(gen.n, ref.n) >= max(ref.dim + 1, MIN_INTERVAL_SAMPLES)


def _say_too_few(gen: Embeddings) -> str:
    needed = max(gen.dim + 1, MIN_INTERVAL_SAMPLES)
    return f"no interval: in {gen.dim} dimensions that takes {needed} samples of each set"


SUBSET_SIZES = 15
MAX_SMALLEST_SUBSET = 5000
"""Number of subset sizes, and the smallest of them, that Chong and Forsyth take for 50 000 samples."""


@dataclass(frozen=True)
class FrechetInfinity:
    """The Fréchet distance of infinitely many generated samples, extrapolated."""

    value: float  # intercept of the line; it may be slightly negative
    slope: float  # growth of the distance with 1/N
    sizes: tuple[int, ...]  # sizes of the subsets that the line was fitted to
    distances: tuple[float, ...]  # distances of these subsets
    seed: int  # random seed of the subsets
    warnings: tuple[str, ...] = ()  # what to know before trusting the number


def fd_infinity(gen: object, ref: object, *, seed: int = 0, run: Run | None = None) -> FrechetInfinity:
    """Compute FD-infinity: the intercept of a line through the distances of random subsets against 1/N.

    It is the distance of infinitely many samples (Chong and Forsyth, CVPR 2020, arXiv 1911.07023).
    There are 15 subset sizes, evenly spaced from min(5000, n/10) to all samples, each with a fresh subset of the
    generated set. The reference is used whole, so the bias from its own finite size remains.
    """
    x = as_embeddings(gen, "the generated set")
    y = gaussian_statistics(ref, "the reference", run=run).to(Run.of(run).torch_device)
    check_alike(x.name, x, y.name, y)
    smallest = min(MAX_SMALLEST_SUBSET, x.n // 10)
    if smallest < 2 or x.n - smallest < SUBSET_SIZES:
        raise DataError(
            f"FD-infinity of {SUBSET_SIZES} sizes needs at least {2 * SUBSET_SIZES} samples, {x.name} has {x.n}: embed "
            "more, or take the corrected distance of frechet_interval"
        )
    numbers = np.linspace(smallest, x.n, SUBSET_SIZES).astype(np.int64)
    rng = np.random.default_rng(check_seed(seed))
    distances = []
    for number in numbers:
        subset = rng.choice(x.n, number, replace=False)
        distances.append(distance_of_gaussians(from_embeddings(Subset(x, np.sort(subset)), run=run), y).value)
    slope, intercept = np.polyfit(1 / numbers, distances, 1)
    warnings = size_warnings(y)
    if smallest <= x.dim:
        warnings.append(
            f"the smallest subset has {smallest} samples in {x.dim} dimensions: below that number the distance is not "
            "linear in 1/N, and the extrapolation overshoots or falls short"
        )
    return FrechetInfinity(
        float(intercept), float(slope), tuple(map(int, numbers)), tuple(distances), seed, tuple(warnings)
    )


def _fd_infinity(inputs: MetricInputs) -> list[Score]:
    extrapolated = fd_infinity(inputs.gen, inputs.ref, run=inputs.run)
    signature = inputs.signature(sizes=len(extrapolated.sizes), seed=extrapolated.seed)
    notes = (*extrapolated.warnings, "no interval: the unbiased value of fd, which has one, is the same distance")
    return [Score(inputs.name, extrapolated.value, signature, higher_is_better=False, notes=notes)]


_POSITIVE = (0.0, inf)

METRICS = (
    Metric("fid", "Fréchet inception distance", _frechet, "inception-fid", estimator=_estimator, bounds=_POSITIVE),
    Metric("sfid", "Fréchet distance of spatial features: where things are", _frechet, "inception-fid", SPATIAL),
    Metric(
        "fd_dinov2",
        "Fréchet distance of DINOv2 ViT-L/14",
        _frechet,
        "dinov2-vitl14",
        estimator=_estimator,
        bounds=_POSITIVE,
    ),
    Metric("fd", "Fréchet distance in any embedding space", _frechet, estimator=_estimator, bounds=_POSITIVE),
    Metric("fvd", "Fréchet video distance", _fvd, "i3d-rgb-k400", "logits"),
    Metric("fvmd", "Fréchet distance of motion: the histograms of FVMD, of optical flow", _frechet, "motion", "fvmd"),
    Metric("fd_infinity", "Fréchet distance, extrapolated to infinitely many samples", _fd_infinity),
)
