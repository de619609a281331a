"""The Fréchet distance of two sets of embeddings (FID, FD-DINOv2, sFID, FVD), its bias, its interval and its floor.

FD = ‖μ₁ − μ₂‖² + tr Σ₁ + tr Σ₂ − 2 tr (Σ₁^½ Σ₂ Σ₁^½)^½ (Dowson and Landau 1982; Heusel et al. 2017, arXiv 1706.08500).
Which of the named ones it is depends on the extractor alone: sFID is that of the ADM evaluator's spatial outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import Embeddings, as_embeddings
from finc_eval.metrics.gaussian import (
    GaussianStatistics,
    MomentBlocks,
    blocks_of_embeddings,
    blocks_of_sketches,
    check_pair,
    from_embeddings,
    gaussian_statistics,
    opened,
)
from finc_eval.numerics.inference import student_quantile
from finc_eval.sketches.sketch import Sketch

INFINITY_SIZES = 15
INFINITY_SMALLEST = 5000
"""Sizes of FD-infinity and the smallest of them, as Chong and Forsyth take of 50 000 samples."""

FEWEST_CLIPS = 256
"""Below it FVD is refused: a set against itself then reads a third of the total variance of the embeddings (measured
for a spectrum 1/k in 400 dimensions; 1.2 times the variance at 16 clips, 0.04 at 2048)."""

USUAL_CLIPS = 2048
"""Clips per set of the published FVDs."""


@dataclass(frozen=True)
class FrechetDistance:
    """A Fréchet distance.

    Attributes:
        value: the distance, in squared units of the embedding; lower is closer, 0 for equal Gaussians.
        mean_term: ‖μ₁ − μ₂‖².
        covariance_term: the rest.
        slack: how far below zero rounding took the value before it was set to zero; 0 when it did not.
        n_gen, n_ref: samples per set; None where a file does not say.
        warnings: what a reader should know before trusting the number.
    """

    value: float
    mean_term: float
    covariance_term: float
    slack: float
    n_gen: int | None
    n_ref: int | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class FrechetInterval:
    """A Fréchet distance with what the jackknife over blocks of samples says of it.

    Attributes:
        value: the distance of all samples.
        bias: how much higher than for infinite sets the jackknife estimates it to be.
        corrected: value − bias.
        standard_error: of the corrected distance.
        low, high: the interval around it, never below zero.
        level: its confidence.
        blocks: how many blocks each set was cut into.
        covers: whose sampling the interval covers: "both sets", or "the generated set" alone where the reference is
            known by its statistics only.
    """

    value: float
    bias: float
    corrected: float
    standard_error: float
    low: float
    high: float
    level: float
    blocks: int
    covers: str


@dataclass(frozen=True)
class FrechetInfinity:
    """The Fréchet distance of infinitely many generated samples, extrapolated.

    Attributes:
        value: the intercept; it may be slightly negative.
        slope: by how much the distance grows with 1/N.
        sizes, distances: what the line was fitted to.
        seed: of the subsets.
        warnings: what a reader should know before trusting the number.
    """

    value: float
    slope: float
    sizes: tuple[int, ...]
    distances: tuple[float, ...]
    seed: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class SameSetFloor:
    """What a perfect generator would read: the distance between two disjoint random parts of the reference.

    Attributes:
        value: scaled to the sizes of the two sets compared, as the bias goes with 1/n + 1/m.
        measured: the distance of the two parts as it came out.
        sizes: samples in the two parts.
        seed: of the split.
    """

    value: float
    measured: float
    sizes: tuple[int, int]
    seed: int


def frechet_distance(gen: object, ref: object, *, device: str | torch.device | None = None) -> FrechetDistance:
    """The Fréchet distance of two sets.

    With FᵀF = Σ the trace of the square root is the sum of the singular values of F₁F₂ᵀ, which are the square roots of
    the eigenvalues of the symmetric F₁Σ₂F₁ᵀ, and more exact where those are small. A set of n ≤ d samples is its own
    F, so that a covariance without full rank needs no offset.

    Args:
        gen: the generated set: embeddings, a sketch, statistics, or a path of them (`gaussian_statistics`).
        ref: the reference set, likewise.
        device: where embeddings are summed; a GPU if there is one.

    Raises:
        FincEvalError: when the sets are of different spaces, have fewer than two samples, or are not finite.
    """
    x = gaussian_statistics(gen, "the generated set", device=device)
    y = gaussian_statistics(ref, "the reference", device=device)
    check_pair(x, y)
    return _distance(x, y)


def fvd(gen: object, ref: object, *, device: str | torch.device | None = None) -> FrechetDistance:
    """The Fréchet video distance (Unterthiner et al. 2018, arXiv 1812.01717): `frechet_distance` of embedded clips.

    Raises:
        FincEvalError: also for fewer than 256 clips a set, of which the number would say nothing.
    """
    x = gaussian_statistics(gen, "the generated set", device=device)
    y = gaussian_statistics(ref, "the reference", device=device)
    check_pair(x, y)
    warnings = []
    for name, n in ((x.name, x.n), (y.name, y.n)):
        if n is not None and n < FEWEST_CLIPS:
            raise FincEvalError(
                f"FVD of {n} clips ({name}) would be mostly the error of the covariance: give at least "
                f"{FEWEST_CLIPS}, {USUAL_CLIPS} to compare with published numbers"
            )
        if n is not None and n < USUAL_CLIPS:
            warnings.append(f"{name} has {n} clips: published FVDs have {USUAL_CLIPS}, and fewer read higher")
    found = _distance(x, y)
    return replace(found, warnings=(*warnings, *found.warnings))


def frechet_interval(
    gen: object,
    ref: object,
    *,
    blocks: int = 10,
    level: float = 0.95,
    device: str | torch.device | None = None,
) -> FrechetInterval:
    """The bias and an interval of the Fréchet distance, by the delete-a-block jackknife (Quenouille; Tukey).

    Each set is cut into blocks of samples, kept as moments, and the distance is computed again without each: no sample
    is read twice. The bias comes from how the distance grows with fewer samples, the error from how it varies; degrees
    of freedom after Welch and Satterthwaite. It covers the sampling of the sets, not the choice of the extractor nor
    the training of the generator, and expects n well above d: where the covariance has not full rank, the bias is
    not of order 1/n and only part of it is found.

    Args:
        gen: embeddings or a cache of the generated set, or the sketches of its disjoint shards, which are the blocks.
        ref: likewise; or statistics or one sketch, then taken as exact.
        blocks: how many; each costs one more distance per set.
        level: confidence, in (0, 1).
        device: where embeddings are summed; a GPU if there is one.

    Raises:
        FincEvalError: when a set is too small for the blocks, or as of `frechet_distance`.
    """
    if not 0 < level < 1:
        raise FincEvalError(f"the level of an interval must be in (0, 1), got {level}")
    if blocks < 2:
        raise FincEvalError(f"the jackknife needs two blocks at least, got {blocks}")
    x, y = _blocks(gen, "the generated set", blocks, device), _blocks(ref, "the reference", blocks, device)
    if not isinstance(x, MomentBlocks):
        raise FincEvalError(
            f"{x.name} came as statistics of all its samples: an interval needs embeddings, or the sketches of shards"
        )
    whole_x = x.statistics()
    whole_y = (y.statistics() if isinstance(y, MomentBlocks) else y).to(whole_x.mean.device)
    check_pair(whole_x, whole_y)
    value = _distance(whole_x, whole_y).value
    without = [[_distance(x.statistics(k), whole_y).value for k in range(len(x.parts))]]
    if isinstance(y, MomentBlocks):
        without.append([_distance(whole_x, y.statistics(k)).value for k in range(len(y.parts))])
    bias = sum((len(values) - 1) * (float(np.mean(values)) - value) for values in without)
    variances = [(len(values) - 1) * float(np.var(values)) for values in without]
    error = sum(variances) ** 0.5
    spread = sum(variance**2 / (len(values) - 1) for variance, values in zip(variances, without, strict=True))
    half = student_quantile(sum(variances) ** 2 / spread, level) * error if error else 0.0
    corrected = value - bias
    return FrechetInterval(
        value=value,
        bias=bias,
        corrected=corrected,
        standard_error=error,
        low=max(0.0, corrected - half),
        high=max(0.0, corrected + half),
        level=level,
        blocks=len(x.parts),
        covers="both sets" if isinstance(y, MomentBlocks) else "the generated set",
    )


def fd_infinity(
    gen: object,
    ref: object,
    *,
    sizes: int = INFINITY_SIZES,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> FrechetInfinity:
    """FD-infinity: the intercept of a line through distances of random subsets against 1/N.

    As Chong and Forsyth (CVPR 2020, arXiv 1911.07023): `sizes` numbers of samples from min(5000, n/10) to all, evenly
    spaced, a fresh subset of the generated set for each, the reference whole. What the reference's own finite size
    adds stays in.

    Args:
        gen: embeddings or a cache of the generated set.
        ref: the reference, as of `frechet_distance`.
        sizes: how many subsets.
        seed: of the subsets.
        device: where embeddings are summed; a GPU if there is one.

    Raises:
        FincEvalError: when there are too few samples, or as of `frechet_distance`.
    """
    x = as_embeddings(gen, "the generated set")
    y = gaussian_statistics(ref, "the reference", device=device).to(usable_device(device))
    check_pair(x, y)
    smallest = min(INFINITY_SMALLEST, x.n // 10)
    if sizes < 2 or smallest < 2 or x.n - smallest < sizes:
        raise FincEvalError(
            f"FD-infinity of {sizes} sizes needs two sizes and {max(20, 2 * sizes)} samples at least, "
            f"{x.name} has {x.n}: embed more, or take the corrected distance of frechet_interval"
        )
    numbers = np.linspace(smallest, x.n, sizes).astype(np.int64)
    rng = np.random.default_rng(seed)
    distances = []
    for number in numbers:
        subset = rng.choice(x.n, number, replace=False)
        distances.append(_distance(from_embeddings(x, subset, device=device), y).value)
    slope, intercept = np.polyfit(1 / numbers, distances, 1)
    warnings = _warnings(y)
    if smallest <= x.dim:
        warnings.append(
            f"the smallest subset has {smallest} samples in {x.dim} dimensions: below that number the distance is not "
            "linear in 1/N, and the extrapolation overshoots or falls short"
        )
    return FrechetInfinity(
        float(intercept), float(slope), tuple(map(int, numbers)), tuple(distances), seed, tuple(warnings)
    )


def same_set_floor(ref: object, n_gen: int, *, seed: int = 0, device: str | torch.device | None = None) -> SameSetFloor:
    """The distance that samples of the reference itself would read in place of n_gen generated ones.

    The reference is split at random, n_gen samples (half of them all at most) against the rest. Both parts being
    smaller than the sets compared, the distance is scaled by the ratio of 1/n + 1/m, exact for the mean term and for
    the covariance where n is well above d.

    Args:
        ref: embeddings or a cache.
        n_gen: samples of the generated set.
        seed: of the split.
        device: where embeddings are summed; a GPU if there is one.

    Raises:
        FincEvalError: when either part would have fewer than two samples.
    """
    y = as_embeddings(ref, "the reference")
    part = min(n_gen, y.n // 2)
    if part < 2:
        raise FincEvalError(f"{y.name} has {y.n} samples for a floor at {n_gen}: both parts need two at least")
    order = np.random.default_rng(seed).permutation(y.n)
    first, second = (from_embeddings(y, order[which], device=device) for which in (slice(part), slice(part, None)))
    measured = _distance(first, second).value
    wanted, had = 1 / n_gen + 1 / y.n, 1 / part + 1 / (y.n - part)
    return SameSetFloor(measured * wanted / had, measured, (part, y.n - part), seed)


def _distance(x: GaussianStatistics, y: GaussianStatistics) -> FrechetDistance:
    y = y.to(x.mean.device)
    warnings = tuple(_warnings(x) + _warnings(y))
    if torch.equal(x.mean, y.mean) and torch.equal(x.covariance, y.covariance):
        return FrechetDistance(0.0, 0.0, 0.0, 0.0, x.n, y.n, warnings)
    mean_term = float((x.mean - y.mean).square().sum())
    common = float(torch.linalg.svdvals(x.root @ y.root.T).sum())
    covariance_term = float(x.covariance.trace() + y.covariance.trace()) - 2 * common
    value = mean_term + covariance_term
    return FrechetDistance(max(value, 0.0), mean_term, covariance_term, max(-value, 0.0), x.n, y.n, warnings)


def _warnings(statistics: GaussianStatistics) -> list[str]:
    name, n, dim = statistics.name, statistics.n, statistics.dim
    found = []
    if not statistics.covariance.any():
        found.append(f"all samples of {name} have the same embedding: look at them before trusting a distance")
    elif n is None:
        found.append(f"{name} does not say of how many samples it is, so its share of the bias is unknown")
    elif n <= dim:
        found.append(
            f"{name} has {n} samples in {dim} dimensions: its covariance has not full rank, and the distance reads "
            f"too high by an amount that depends on n; give more than {dim}, or compare at equal n only"
        )
    return found


def _blocks(
    source: object, name: str, count: int, device: str | torch.device | None
) -> MomentBlocks | GaussianStatistics:
    if isinstance(source, Sequence) and source and all(isinstance(part, Sketch) for part in source):
        if len(source) < 2:
            raise FincEvalError(f"{name} came as one sketch: the jackknife needs those of two shards at least")
        return blocks_of_sketches(source, name)
    found = opened(source, name)
    return blocks_of_embeddings(found, count, device=device) if isinstance(found, Embeddings) else found
