"""Exact test of whether scores reach further down than fresh samples, which sees a few copies; and its power.

Below the k-th smallest of m fresh scores lies a Beta(k, m − k + 1) distributed share of their distribution, so of N
other fresh scores a beta-binomial number. No density is estimated and no mean is compared: a hundredth of copies does
not move a mean.

The power is the probability that copies, planted on purpose, would have been seen. The imagined generator is fresh
except for a share of copies of training samples: exact, with noise on the embedding, or altered pictures. The noise is
a fraction of each training sample's own distance to its nearest neighbor in the training set, so that the same fraction
is as near everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln

from finc_eval.core.device import Device
from finc_eval.core.record import Record
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.attack_statistics import threshold_ranks
from finc_eval.numerics.families import bonferroni


def counts_below(scores: ArrayLike, fresh: ArrayLike) -> NDArray[np.int64]:
    """Count the scores strictly below each threshold; a score that ties with a fresh one says nothing."""
    ascending = np.sort(np.asarray(fresh, np.float64))
    thresholds = ascending[[rank - 1 for rank in threshold_ranks(len(ascending))]]
    below: NDArray[np.int64] = np.searchsorted(np.sort(scores), thresholds, side="left")
    return below


def threshold_parts(m: int) -> NDArray[np.float64]:
    """Return the part of α that each threshold may spend, shape (t,): as 1, 1/2, 1/3, … are to each other.

    Few copies are seen at the first thresholds alone. Equal parts need 12 exact copies among 1000 samples to see them
    where these parts need 10, and at the last thresholds these need 2 % more copies.
    """
    parts = 1 / np.arange(1, len(threshold_ranks(m)) + 1)
    shared: NDArray[np.float64] = parts / parts.sum()
    return shared


def tail_p_value(scores: ArrayLike, fresh: ArrayLike) -> float:
    """Return the p-value of "the scores are fresh", small if more of them are low, adjusted for all thresholds.

    Scores (N,) and fresh scores (m,) are of one distribution under the null hypothesis; low scores are suspicious.
    """
    n, m = np.size(scores), np.size(fresh)
    thresholds = threshold_ranks(m)
    counts = counts_below(scores, fresh)
    p_values = [survival(n, m, k)[count] for k, count in zip(thresholds, counts, strict=True)]
    return float(bonferroni(p_values, part=threshold_parts(m)).min())


def least_copies(scores: ArrayLike, fresh: ArrayLike, alpha: float) -> int:
    """Return a lower bound of the number of scores that are not fresh, which holds with probability 1 − α.

    If s scores are low for another reason, those below a threshold are s and a beta-binomial number of the others. The
    bound is 1 + the largest s at which the observed count would be rejected.
    """
    n, m = np.size(scores), np.size(fresh)
    thresholds = threshold_ranks(m)
    limits, bounds = alpha * threshold_parts(m), []
    for k, count, limit in zip(thresholds, counts_below(scores, fresh).tolist(), limits, strict=True):
        low, high = 0, count  # `high` is never too improbable
        while low < high:
            middle = (low + high) // 2
            if survival(n - middle, m, k)[count - middle] <= limit:
                low = middle + 1
            else:
                high = middle
        bounds.append(low)
    return max(bounds)


def critical_counts(n: int, m: int, alpha: float) -> NDArray[np.int64]:
    """Return the least count below each threshold whose p-value is at most `alpha`; n + 1 if none is."""
    thresholds = threshold_ranks(m)
    limits = alpha * threshold_parts(m)
    return np.array([int((survival(n, m, k) > limit).sum()) for k, limit in zip(thresholds, limits, strict=True)])


def survival(n: int, m: int, k: int) -> NDArray[np.float64]:
    """Return P(at least c of n fresh scores lie below the k-th smallest of m others) for c = 0 … n: shape (n + 1,)."""
    c = np.arange(n + 1)
    binomial = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    mass = np.exp(binomial + betaln(c + k, n - c + m - k + 1) - betaln(k, m - k + 1))
    above: NDArray[np.float64] = np.minimum(mass[::-1].cumsum()[::-1], 1.0)
    return above


EXACT = "exact"  # name of copies to which nothing is done

COPY_NOISES = {EXACT: 0.0, "noise 0.25": 0.25, "noise 0.5": 0.5}
"""Lengths of the noise on a copy, in distances of its original to the nearest other training sample."""

POWER_REPEATS = 4000  # number of imagined generators for each power, which is then known to ±0.016 at worst


@dataclass(frozen=True)
class Power(Record):
    """Probability that copies would have been seen.

    Attributes:
        test: test of single samples: by calibrated distance of embeddings, or by hash.
        kind: what is done to the copies: "exact", noise on their embeddings in distances of the original to the nearest
            other training sample, or an alteration of the picture.
        share: share of the generated samples that are such copies.
        copies: number of such copies.
        probability: probability that the test finds them, if all other samples are fresh.
    """

    test: Literal["calibrated", "hash"]
    kind: str
    share: float
    copies: int
    probability: float


def plant_copies(
    train: Embeddings, spacings: NDArray[np.float64], noise: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Copy some training samples, none a duplicate, with noise of a relative length: (copies, d)."""
    single = np.flatnonzero(spacings > 0)
    # 500: number of copies whose scores are computed, for each noise.
    chosen = np.sort(rng.choice(single, min(500, len(single)), replace=False))
    rows = train.rows_at(chosen).cpu().numpy()
    if noise == 0:
        return rows
    direction = rng.standard_normal(rows.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    moved: NDArray[np.float32] = (rows + noise * spacings[chosen, None] * direction).astype(np.float32)
    return moved


def calibrated_distances(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Carlini's calibrated distance, the nearest over the mean of the k nearest: (n, k) ascending → (n,).

    A sample in a dense place is near to many training samples, a copy is near to one and has 0 (Carlini et al., USENIX
    Security 2023, section 4.2; their factor α only moves the threshold).
    """
    mean = distances.mean(1)
    relative: NDArray[np.float64] = np.divide(distances[:, 0], mean, out=np.zeros(len(mean)), where=mean > 0)
    return relative


def power_table(
    train: Embeddings,
    spacings: NDArray[np.float64],
    fresh: NDArray[np.float64],
    n: int,
    *,
    neighbors: int,
    alpha: float,
    seed: int,
    device: Device = None,
) -> tuple[Power, ...]:
    """Compute the power of the calibrated distance (fresh: (n,)) against exact and noisy copies, by share."""
    rng = np.random.default_rng(seed)
    table = []
    for kind, noise in COPY_NOISES.items():
        copies = plant_copies(train, spacings, noise, rng)
        if len(copies):
            scores = calibrated_distances(nearest(copies, train, neighbors, device=device).distances)
            table += powers("calibrated", kind, scores, fresh, n, alpha, rng)
    return tuple(table)


def powers(
    test: Literal["calibrated", "hash"],
    kind: str,
    scores: NDArray[np.float64],
    fresh: NDArray[np.float64],
    n: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[Power]:
    """Compute the power against copies of one kind, from scores (c,) and fresh scores (n,), by share."""
    ascending = np.sort(fresh)
    # The place of a copy's score among fresh scores, in [0, 1].
    places = np.searchsorted(ascending, scores, side="left") / len(ascending)
    # Shares of planted copies that the power is computed for.
    counts = {share: round(share * n) for share in (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25)}
    return [
        Power(test, kind, share, count, detection_probability(places, count, n, len(fresh), alpha, rng))
        for share, count in counts.items()
        if count
    ]


def detection_probability(
    places: NDArray[np.float64], copies: int, n: int, m: int, alpha: float, rng: np.random.Generator
) -> float:
    """Return the probability that the tail test of n scores, some of copies, against m fresh scores finds the copies.

    Fresh scores enter by their places in their distribution, which are uniform: the thresholds are order statistics of
    m of them, and the counts between thresholds multinomial. `places` are the shares of fresh scores below the score of
    each copy, (p,).
    """
    steps = np.diff(threshold_ranks(m), prepend=0, append=m + 1)
    gaps = rng.standard_gamma(steps, (POWER_REPEATS, len(steps)))
    gaps /= gaps.sum(1, keepdims=True)
    thresholds = gaps.cumsum(1)[:, :-1]
    below = np.searchsorted(np.sort(places), thresholds, side="left") / len(places)
    shares = np.diff(below, axis=1, prepend=0, append=1).clip(min=0)
    counts = (rng.multinomial(n - copies, gaps) + rng.multinomial(copies, shares)).cumsum(1)[:, :-1]
    return float((counts >= critical_counts(n, m, alpha)).any(1).mean())
