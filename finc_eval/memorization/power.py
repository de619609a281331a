"""How many copies would have been seen? The power of the tail test against copies that are planted on purpose.

A generator is imagined that is fresh but for a share of copies of training samples, exact ones or with noise. The noise
is a part of each training sample's own distance to its nearest neighbor in the training set, so that the same part is
as near everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from finc_eval.embeddings.neighbors import nearest
from finc_eval.memorization.tails import critical_counts, ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from finc_eval.embeddings.base import Embeddings

SHARES = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25)

NOISE = (0.0, 0.25, 0.5)
"""Length of the noise on a copy, in distances of its original to the nearest other training sample."""

PLANTED = 500
"""Copies whose scores are computed, of each noise."""

REPEATS = 4000
"""Imagined generators of each kind; the power is known to ±0.016 at worst."""


@dataclass(frozen=True)
class Power:
    """How probably copies would have been seen.

    Attributes:
        noise: on each copy, in distances of its original to the nearest other training sample; 0 of exact ones.
        share: of the generated samples that are such copies.
        copies: how many that is.
        probability: that the tail test passes at the level, if all else is fresh.
    """

    noise: float
    share: float
    copies: int
    probability: float


def planted_copies(
    train: Embeddings, spacings: NDArray[np.float64], noise: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Some training samples with noise of the given relative length, none of them a duplicate: (PLANTED at most, d).

    Args:
        train: the training set.
        spacings: of its samples to their nearest neighbors in it, shape (n,).
        noise: length of the noise, in spacings.
        rng: what draws them.
    """
    single = np.flatnonzero(spacings > 0)
    chosen = np.sort(rng.choice(single, min(PLANTED, len(single)), replace=False))
    rows = train.rows_at(chosen).cpu().numpy()
    if noise == 0:
        return rows
    direction = rng.standard_normal(rows.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    moved: NDArray[np.float32] = (rows + noise * spacings[chosen, None] * direction).astype(np.float32)
    return moved


def calibrated(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Carlini's calibrated distance: the nearest over the mean of the nearest, (n, k) ascending → (n,); 0 of a copy.

    A sample in a dense place is near to many, a copy near to one (Carlini et al., USENIX Security 2023, section 4.2;
    their factor α only moves the threshold).
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
    level: float,
    seed: int,
) -> tuple[Power, ...]:
    """The power against exact and noisy copies, by share.

    Args:
        train: the training set.
        spacings: of its samples, shape (n_train,).
        fresh: calibrated distances of fresh samples, shape (m,).
        n: how many samples were generated.
        neighbors: of the calibrated distance.
        level: of the test.
        seed: of copies and repeats.
    """
    rng = np.random.default_rng(seed)
    ascending = np.sort(fresh)
    found = []
    for noise in NOISE:
        copies = planted_copies(train, spacings, noise, rng)
        if not len(copies):
            continue
        scores = calibrated(nearest(copies, train, neighbors).distances)
        # Where among fresh scores a copy's lies, in [0, 1].
        places = np.searchsorted(ascending, scores, side="left") / len(ascending)
        for share in SHARES:
            count = round(share * n)
            if count:
                found.append(Power(noise, share, count, power(places, count, n, len(fresh), level, rng)))
    return tuple(found)


def power(places: NDArray[np.float64], copies: int, n: int, m: int, level: float, rng: np.random.Generator) -> float:
    """The probability that the tail test of n scores, some of copies, against m fresh ones passes at the level.

    Fresh scores enter by their places in their distribution, which are uniform: the thresholds are order statistics of
    m of them, and the counts between thresholds multinomial.

    Args:
        places: of copies, what share of fresh scores are below theirs; copies are drawn from these, shape (p,).
        copies: how many.
        n: samples in all.
        m: fresh scores.
        level: of the test.
        rng: what draws the repeats.
    """
    steps = np.diff(ranks(m), prepend=0, append=m + 1)
    gaps = rng.standard_gamma(steps, (REPEATS, len(steps)))
    gaps /= gaps.sum(1, keepdims=True)
    thresholds = gaps.cumsum(1)[:, :-1]
    below = np.searchsorted(np.sort(places), thresholds, side="left") / len(places)
    shares = np.diff(below, axis=1, prepend=0, append=1).clip(min=0)
    counts = (rng.multinomial(n - copies, gaps) + rng.multinomial(copies, shares)).cumsum(1)[:, :-1]
    return float((counts >= critical_counts(n, m, level)).any(1).mean())
