"""‖E φ(x) − E φ(y)‖² from a noisy mean of the reference and samples of a generator: estimate, variance, intervals.

Notation: μ̃ = p + e is the released mean, p that of the m private records, e ~ N(0, s²I_A); q, S are mean and covariance
of φ over n generated samples; Δ² is the squared distance of the two populations. About their populations p and q have
covariances S_P/m and S/n, so d = μ̃ − q has the mean δ, ‖δ‖² = Δ², and the covariance Σ = s²I + S_P/m + S/n. Everything
below follows from that, and from the moments of a normal d: E‖d‖² = Δ² + tr Σ, var ‖d‖² = 4 δᵀΣδ + 2 tr Σ².
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from math import sqrt

import torch
from scipy.optimize import brentq
from scipy.stats import ncx2, norm

from finc_eval.numerics.inference import normal_quantile
from finc_eval.numerics.moments import Moments


@dataclass(frozen=True, eq=False)
class NoisyMean:
    """A released mean of features.

    Attributes:
        mean: μ̃, shape (A,), float64.
        noise: s, the standard deviation of the noise on every entry.
        sampling: an estimate of tr(S_P)/m, how far the records' mean is from their population's; it may be negative.
    """

    mean: torch.Tensor
    noise: float
    sampling: float


@dataclass(frozen=True, eq=False)
class SampleMean:
    """Mean and covariance of the features of generated samples.

    Attributes:
        n: how many samples, 2 at least.
        mean: q, shape (A,), float64.
        covariance: S, shape (A, A), with n − 1 in the denominator.
    """

    n: int
    mean: torch.Tensor
    covariance: torch.Tensor

    @property
    def own(self) -> torch.Tensor:
        """S/n, the covariance of q."""
        return self.covariance / self.n


def sample_mean(batches: Iterable[torch.Tensor]) -> SampleMean:
    """Mean and covariance of features that come in batches (b, A), in one pass: memory of A² and a batch."""
    rest = iter(batches)
    first = next(rest)
    moments = Moments(first.shape[1], "float64", first.device)
    for features in chain([first], rest):
        moments.update(features)
    mean, n = moments.mean(), moments.n
    return SampleMean(n, mean, (moments.mean_square() - torch.outer(mean, mean)) * (n / (n - 1)))


def sampling_variance(mean: torch.Tensor, noise: float, square: float, m: int) -> float:
    """An unbiased estimate of tr(S_P)/m from a release: (E‖φ‖² − ‖μ̃‖² + A s²)/(m − 1).

    Args:
        mean: μ̃, shape (A,).
        noise: s.
        square: the mean of ‖φ‖² over the records, or an unbiased estimate of it.
        m: how many records, 2 at least.
    """
    return (square - float(mean @ mean) + len(mean) * noise**2) / (m - 1)


def squared_distance(ref: NoisyMean, gen: SampleMean) -> float:
    """Δ², unbiased: ‖d‖² − A s² − tr(S)/n − tr(S_P)/m. Negative values belong to it, or it would not be unbiased."""
    d = ref.mean - gen.mean
    return float(d @ d) - _expected(ref, gen)


def variance(ref: NoisyMean, gen: SampleMean) -> float:
    """Of `squared_distance`, over noise, records and generated samples: 4 δᵀΣδ + 2 tr Σ².

    δᵀΣδ is dᵀΣd less what the fluctuation of d adds to it, tr Σ². S_P is unknown save for its trace: S stands in.
    """
    along, squared, _ = _fluctuation(ref, gen)
    return 4 * max(along, 0.0) + 2 * squared


def interval(ref: NoisyMean, gen: SampleMean, level: float) -> tuple[float, float]:
    """The x that the estimate does not contradict: (Δ̂² − x)² ≤ z² (4κ max(x, 0) + 2 tr Σ²), as Wilson's for a share.

    κ = δᵀΣδ/Δ² is the variance of d along δ. The estimate ∓ z standard errors would be short where the estimate is
    small by chance, as its variance is then taken for small, too, and would miss above (docs/private_reference.md).
    Where δ is hardly known, κ is drawn to what it is on average over the fluctuation of d, tr Σ²/tr Σ.
    """
    z, value = normal_quantile(level), squared_distance(ref, gen)
    along, squared, trace = _fluctuation(ref, gen)
    unsure = sqrt(2 * squared)
    kappa = (max(along, 0.0) + unsure * squared / trace) / (max(value, 0.0) + unsure)
    middle = value + 2 * kappa * z**2
    half = sqrt(max(middle**2 - value**2 + (z * unsure) ** 2, 0.0))
    # Below zero, where no Δ² is but estimates are, the variance is that of zero, and the ends are straight.
    low, high = (value + sign * z * unsure for sign in (-1, 1))
    return (low if low < 0 else middle - half), (high if high < 0 else middle + half)


def noise_interval(ref: NoisyMean, gen: SampleMean, level: float) -> tuple[float, float]:
    """What Δ² may be if the noise alone is uncertain, exactly: ‖d‖²/s² is noncentral χ² with A degrees of freedom.

    It holds for the two sets at hand, whose expected excess over their populations is subtracted as in the estimate.
    """
    d, s2 = ref.mean - gen.mean, ref.noise**2
    low, high = noncentrality_interval(float(d @ d) / s2, len(ref.mean), level)
    sets = _expected(ref, gen) - len(ref.mean) * s2
    return s2 * low - sets, s2 * high - sets


def noncentrality_interval(x: float, degrees: int, level: float) -> tuple[float, float]:
    """The noncentralities under which a noncentral χ² value x is in neither tail of probability (1 − level)/2."""
    tail = (1 - level) / 2

    def where(probability: float) -> float:
        """The noncentrality with P(χ² ≤ x) = probability, which falls with it; 0 where even that of 0 is below."""
        if ncx2.cdf(x, degrees, 0.0) <= probability:
            return 0.0
        most = max(x, 1.0)
        while ncx2.cdf(x, degrees, most) > probability:
            most *= 2
        return float(brentq(lambda place: ncx2.cdf(x, degrees, place) - probability, 0.0, most, rtol=1e-10))

    return where(1 - tail), where(tail)


def difference(ref: NoisyMean, one: SampleMean, other: SampleMean) -> float:
    """Δ²(one) − Δ²(other): the square of the noise, and what the reference's sampling adds, are in both and cancel."""
    return squared_distance(ref, one) - squared_distance(ref, other)


def difference_variance(ref: NoisyMean, one: SampleMean, other: SampleMean) -> float:
    """Of `difference`, over noise, records and two independent sets of generated samples.

    With g = q₁ − q₂ and Cᵢ = Sᵢ/nᵢ it is 4 gᵀ(s²I + S_P/m)g + Σᵢ (4 δᵢᵀCᵢδᵢ + 2 tr Cᵢ²); of the noise only what lies
    along g is left, 4 s²‖g‖².
    """
    gap = one.mean - other.mean
    shared = _reference(ref, (one, other))
    total = 4 * float(gap @ shared @ gap)
    for gen in (one, other):
        d, own = ref.mean - gen.mean, gen.own
        # dᵀCd holds tr C(s²I + S_P/m) too much, which gᵀ(…)g has already, and tr C².
        along = float(d @ own @ d) - float((own * (shared + own)).sum())
        total += 4 * max(along, 0.0) + 2 * float(own.square().sum())
    return total


def two_sided(value: float, standard_error: float) -> float:
    """The p-value of a normal estimate of something that is 0."""
    return 2 * float(norm.sf(abs(value) / standard_error)) if standard_error > 0 else float(value == 0)


def smallest_detected(ref: NoisyMean, level: float) -> float:
    """The Δ² which the noise alone hides at this level: z √(2A) s²."""
    return normal_quantile(level) * sqrt(2 * len(ref.mean)) * ref.noise**2


def part(ref: NoisyMean, gen: SampleMean, entries: torch.Tensor) -> tuple[NoisyMean, SampleMean]:
    """Both for some entries of φ alone. Estimates of parts add to that of the whole.

    What the records' sampling adds is known in total only; the parts share it as the generated samples' do, which is
    right for a generator that equals the reference.
    """
    covariance = gen.covariance[entries][:, entries]
    whole = float(gen.covariance.trace())
    share = float(covariance.trace()) / whole if whole > 0 else len(covariance) / len(gen.mean)
    return (
        NoisyMean(ref.mean[entries], ref.noise, ref.sampling * share),
        SampleMean(gen.n, gen.mean[entries], covariance),
    )


def _expected(ref: NoisyMean, gen: SampleMean) -> float:
    """E‖d‖² − Δ² = tr Σ."""
    return len(ref.mean) * ref.noise**2 + float(gen.covariance.trace()) / gen.n + ref.sampling


def _fluctuation(ref: NoisyMean, gen: SampleMean) -> tuple[float, float, float]:
    """An unbiased estimate of δᵀΣδ, tr Σ² and tr Σ."""
    d, total = ref.mean - gen.mean, _reference(ref, (gen,)) + gen.own
    squared = float(total.square().sum())
    return float(d @ total @ d) - squared, squared, float(total.trace())


def _reference(ref: NoisyMean, gens: tuple[SampleMean, ...]) -> torch.Tensor:
    """s²I + S_P/m, with the generators' covariances, scaled to the known trace, in place of S_P."""
    identity = torch.eye(len(ref.mean), dtype=ref.mean.dtype)
    shapes = [
        gen.covariance / trace if (trace := float(gen.covariance.trace())) > 0 else identity / len(identity)
        for gen in gens
    ]
    shape = torch.stack(shapes).mean(0) if len(shapes) > 1 else shapes[0]
    return ref.noise**2 * identity + max(ref.sampling, 0.0) * shape
