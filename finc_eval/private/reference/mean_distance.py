"""‖E φ(x) − E φ(y)‖² from a noisy mean of the reference and samples of a generator: estimate, variance, intervals.

Notation: μ̃ = p + e is the released mean, where p is the mean of the m private records and e ~ N(0, s²I_A) the noise. q
and S are mean and covariance of φ over n generated samples. Δ² is the squared distance of the two populations. Around
their populations, p and q have the covariances S_P/m and S/n. So d = μ̃ − q has a mean δ with ‖δ‖² = Δ², and the
covariance Σ = s²I + S_P/m + S/n. Everything below follows from that and from the moments of a normal d:
E‖d‖² = Δ² + tr Σ and var ‖d‖² = 4 δᵀΣδ + 2 tr Σ².
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt

import torch
from scipy.optimize import brentq

from finc_eval.estimates.error_source import GEN, REF, ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.numerics.inference import normal_quantile
from finc_eval.numerics.moments import Moments


@dataclass(frozen=True, eq=False)
class NoisyMean:
    """A released mean of features."""

    mean: torch.Tensor  # μ̃, shape (A,), float64
    noise: float  # s, standard deviation of the noise on every entry
    # estimate of tr(S_P)/m, the expected squared distance of the records' mean from their population's. It may be
    # negative.
    sampling: float


@dataclass(frozen=True, eq=False)
class SampleMean:
    """Mean and covariance of the features of generated samples."""

    n: int  # number of samples, at least 2
    mean: torch.Tensor  # q, shape (A,), float64
    covariance: torch.Tensor  # S, shape (A, A), with n − 1 in the denominator


def sample_mean(batches: Iterable[torch.Tensor]) -> SampleMean:
    """Compute mean and covariance of features from batches (b, A), in one pass and with memory for A² numbers."""
    rest = iter(batches)
    first = next(rest)
    moments = Moments(first.shape[1], "float64", first.device)
    for features in chain([first], rest):
        moments.update(features)
    mean, n = moments.mean(), moments.n
    return SampleMean(n, mean, (moments.mean_square() - torch.outer(mean, mean)) * (n / (n - 1)))


def sampling_variance(mean: torch.Tensor, noise: float, square: float, m: int) -> float:
    """Estimate tr(S_P)/m from a release, without bias: (E‖φ‖² − ‖μ̃‖² + A s²)/(m − 1).

    μ̃ has shape (A,), s is its noise, and `square` the mean of ‖φ‖² over m ≥ 2 records.
    """
    return (square - float(mean @ mean) + len(mean) * noise**2) / (m - 1)


def squared_distance(ref: NoisyMean, gen: SampleMean) -> float:
    """Estimate Δ² without bias: ‖d‖² − A s² − tr(S)/n − tr(S_P)/m. Cutting off negative values would bias it."""
    d = ref.mean - gen.mean
    return float(d @ d) - _expect(ref, gen)


def variance(ref: NoisyMean, gen: SampleMean) -> float:
    """Estimate the variance of `squared_distance` over noise, records and generated samples: 4 δᵀΣδ + 2 tr Σ².

    δᵀΣδ is estimated by dᵀΣd − tr Σ², as the fluctuation of d adds tr Σ² on average. Of S_P only the trace is known, so
    S takes its place.
    """
    along, squared, _ = _fluctuation(ref, gen)
    return 4 * max(along, 0.0) + 2 * squared


def interval(ref: NoisyMean, gen: SampleMean, confidence: float) -> tuple[float, float]:
    """Return all x that the estimate does not contradict: (Δ̂² − x)² ≤ z² (4κ max(x, 0) + 2 tr Σ²).

    The idea is Wilson's interval of a share. It is not that of an `Estimate`, whose error does not depend on the truth.
    κ = δᵀΣδ/Δ² is the variance of d along δ. The estimate ∓ z standard errors would be too short: when the estimate is
    small by chance, its variance is underestimated as well, and the interval ends below the truth. When δ is hardly
    known, κ is shrunk to its average over the fluctuation of d, tr Σ²/tr Σ.
    """
    z, value = normal_quantile(confidence), squared_distance(ref, gen)
    kappa, unsure = _growth(ref, gen, value)
    middle = value + 2 * kappa * z**2
    half = sqrt(max(middle**2 - value**2 + (z * unsure) ** 2, 0.0))
    # Estimates may be below zero, Δ² cannot: there the variance is the one at zero, and the ends are linear.
    low, high = (value + sign * z * unsure for sign in (-1, 1))
    return (low if low < 0 else middle - half), (high if high < 0 else middle + half)


def detected_beyond(ref: NoisyMean, gen: SampleMean, margin: float, beyond: float, power: float) -> float:
    """Return the Δ² whose interval surely lies above a margin, with the probability of the normal quantile `power`.

    `beyond` is the normal quantile of the interval's lower end. The least Δ̂² of such an interval is margin +
    beyond·√(4κ·margin + 2 tr Σ²), and the Δ² that exceeds it has the standard deviation √(4κΔ² + 2 tr Σ²).
    """
    kappa, unsure = _growth(ref, gen, squared_distance(ref, gen))
    least = margin + beyond * sqrt(4 * kappa * margin + unsure**2)
    middle = least + 2 * kappa * power**2
    return middle + sqrt(max(middle**2 - least**2 + (power * unsure) ** 2, 0.0))


def _growth(ref: NoisyMean, gen: SampleMean, value: float) -> tuple[float, float]:
    """Return κ, by whose fourfold the variance of an estimate grows with Δ², and the deviation √(2 tr Σ²) at 0."""
    along, squared, trace = _fluctuation(ref, gen)
    unsure = sqrt(2 * squared)
    return (max(along, 0.0) + unsure * squared / trace) / (max(value, 0.0) + unsure), unsure


def largest_by_chance(ref: NoisyMean, gen: SampleMean, confidence: float) -> float:
    """Return how far from 0 as many samples of the records' own law get, with this confidence: z √(2 tr Σ²).

    The covariance of the generated samples takes the place of theirs.
    """
    _, squared, _ = _fluctuation(ref, gen)
    return normal_quantile(confidence) * sqrt(2 * squared)


def noise_interval(ref: NoisyMean, gen: SampleMean, confidence: float) -> tuple[float, float]:
    """Return the exact interval of Δ² when the noise alone is uncertain.

    ‖d‖²/s² is noncentral χ² with A degrees of freedom. The interval is about the two sets at hand; their expected
    excess over their populations is subtracted as in the estimate.
    """
    d, s2 = ref.mean - gen.mean, ref.noise**2
    low, high = noncentrality_interval(float(d @ d) / s2, len(ref.mean), confidence)
    sets = _expect(ref, gen) - len(ref.mean) * s2
    return s2 * low - sets, s2 * high - sets


def noncentrality_interval(x: float, degrees: int, confidence: float) -> tuple[float, float]:
    """Return the interval of the noncentrality of a noncentral χ² distribution from one value x of it."""
    from scipy.stats import ncx2  # slow to import, and reports of other results load this module

    tail = (1 - confidence) / 2

    def noncentrality(probability: float) -> float:
        """Solve P(χ² ≤ x) = probability, which falls with the noncentrality; 0 if it is smaller even at 0."""
        if ncx2.cdf(x, degrees, 0.0) <= probability:
            return 0.0
        most = max(x, 1.0)
        while ncx2.cdf(x, degrees, most) > probability:
            most *= 2
        return float(brentq(lambda shift: ncx2.cdf(x, degrees, shift) - probability, 0.0, most, rtol=1e-10))

    return noncentrality(1 - tail), noncentrality(tail)


def compared(ref: NoisyMean, gens: Sequence[SampleMean]) -> tuple[Estimate, ...]:
    """Estimate Δ² of independent generators, with errors for comparing them with each other (`apart`).

    Given the samples, the reference's error e moves Δ̂ᵢ² − Δ̂ⱼ² by 2 (dᵢ − dⱼ)ᵀe alone: of the noise, which all share,
    what lies between the generators is left, and ‖e‖² cancels. So the shared parts of i are a root of the matrix
    4 (dᵢ − d̄)ᵀ(s²I + S_P/m)(dⱼ − d̄), where d̄ is the mean of all dᵢ. With Cᵢ = Sᵢ/nᵢ, its own variance is
    4 δᵢᵀCᵢδᵢ + 2 tr Cᵢ². The error of Δ̂ᵢ² itself is larger (`variance`).
    """
    shared = _reference(ref, gens)
    means = torch.stack([gen.mean for gen in gens])
    gaps = means.mean(0) - means
    values, vectors = torch.linalg.eigh(4 * gaps @ shared @ gaps.T)
    parts = (vectors * values.clamp_min(0).sqrt()).numpy()
    found = []
    for gen, part_of_gen in zip(gens, parts, strict=True):
        d, sampling = ref.mean - gen.mean, gen.covariance / gen.n
        # dᵀCd exceeds δᵀCδ by tr C(s²I + S_P/m), which the shared parts already contain, and by tr C².
        along = float(d @ sampling @ d) - float((sampling * (shared + sampling)).sum())
        own = 4 * max(along, 0.0) + 2 * float(sampling.square().sum())
        sources = (ErrorSource.of_variance(GEN, own), ErrorSource(REF, part_of_gen))
        found.append(Estimate.of(squared_distance(ref, gen), sources))
    return tuple(found)


def apart(first: Estimate, other: Estimate) -> Estimate:
    """Return the difference of two estimates of `compared`: what both share of the reference's error cancels.

    Its variance is known from the release and the samples, so that its law is normal, and not Student's.
    """
    both = zip(first.sources, other.sources, strict=True)
    gap = sum(source.minus(another).variance for source, another in both if source.name == REF)
    own = first.variance_of(GEN) + other.variance_of(GEN)
    sources = (ErrorSource.of_variance(GEN, own), ErrorSource.of_variance(REF, gap))
    return Estimate.of(first.value - other.value, sources)


def difference(ref: NoisyMean, first: SampleMean, other: SampleMean) -> Estimate:
    """Estimate Δ²(first) − Δ²(other). The squared noise and the reference's sampling are in both and cancel.

    With g = q₁ − q₂ its variance is 4 gᵀ(s²I + S_P/m)g + Σᵢ (4 δᵢᵀCᵢδᵢ + 2 tr Cᵢ²): only the noise along g is left.
    """
    return apart(*compared(ref, (first, other)))


def error_unchanged(ref: NoisyMean, gen: SampleMean, n: int) -> float:
    """Return the standard error of `difference` for another sample of the same law, of n samples.

    With R = s²I + S_P/m, the mean of gᵀRg over both samples is tr R(C₁ + C₂).
    """
    gaps = 4 * float((_reference(ref, (gen,)) * gen.covariance).sum())
    pair = (gen, replace(gen, n=n))
    return sqrt(sum(compared(ref, (each,))[0].variance_of(GEN) + gaps / each.n for each in pair))


def smallest_detected(ref: NoisyMean, confidence: float) -> float:
    """Return the Δ² below which the noise alone hides any difference: z √(2A) s²."""
    return normal_quantile(confidence) * sqrt(2 * len(ref.mean)) * ref.noise**2


def part(ref: NoisyMean, gen: SampleMean, entries: torch.Tensor) -> tuple[NoisyMean, SampleMean]:
    """Restrict both to some entries of φ. The estimates of all parts add to the estimate of the whole.

    The effect of the records' sampling is known in total only. It is divided among the parts in proportion to the
    effect of the generated samples, which is right for a generator that equals the reference.
    """
    covariance = gen.covariance[entries][:, entries]
    whole = float(gen.covariance.trace())
    share = float(covariance.trace()) / whole if whole > 0 else len(covariance) / len(gen.mean)
    return (
        NoisyMean(ref.mean[entries], ref.noise, ref.sampling * share),
        SampleMean(gen.n, gen.mean[entries], covariance),
    )


def _expect(ref: NoisyMean, gen: SampleMean) -> float:
    """Return E‖d‖² − Δ² = tr Σ."""
    return len(ref.mean) * ref.noise**2 + float(gen.covariance.trace()) / gen.n + ref.sampling


def _fluctuation(ref: NoisyMean, gen: SampleMean) -> tuple[float, float, float]:
    """Return an unbiased estimate of δᵀΣδ, then tr Σ² and tr Σ."""
    d, total = ref.mean - gen.mean, _reference(ref, (gen,)) + gen.covariance / gen.n
    squared = float(total.square().sum())
    return float(d @ total @ d) - squared, squared, float(total.trace())


def _reference(ref: NoisyMean, gens: Sequence[SampleMean]) -> torch.Tensor:
    """Estimate s²I + S_P/m: the generators' covariances, scaled to the known trace, take the place of S_P."""
    identity = torch.eye(len(ref.mean), dtype=ref.mean.dtype)
    shapes = [
        gen.covariance / trace if (trace := float(gen.covariance.trace())) > 0 else identity / len(identity)
        for gen in gens
    ]
    shape = torch.stack(shapes).mean(0) if len(shapes) > 1 else shapes[0]
    return ref.noise**2 * identity + max(ref.sampling, 0.0) * shape
