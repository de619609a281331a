"""Bets against scores: e-processes whose alarms hold at every evaluation.

Under the null hypothesis, scores of evaluations are independent and standard normal (`exchange`). A bet says that from
evaluation s on they are not: Z_i ~ N(μ·g(i − s + 1), 1) with μ ~ N(0, τ²), for a jump, g = 1, and for a drift, g(j) =
j. Its ratio of likelihoods is a martingale with the mean 1, in closed form: with G = Σ g² and S = Σ g·Z,

    (1 + τ²G)^(−1/2) · exp(τ²S² / (2(1 + τ²G))).

Bets that have not begun have the value 1. The mixture of all bets, with 1/(s(s + 1)) as the weight of start s, is a
martingale too. By Ville's inequality it ever reaches 1/α with probability α at most, however many evaluations there
are.

All followed things are one family (`families.closed_e_values`; Vovk and Wang 2021, Annals of Statistics 49): the
probability of any false alarm, ever, is at most α, whatever the dependence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

Array = NDArray[np.float64]

JUMP, DRIFT = 1.0, 0.2
"""Spread τ of a jump of scores, and of their slope an evaluation. Scores of 0.5 to 2 times these sizes lose little: a
jump of .3 standard deviations with 64 samples an evaluation has 2.4, a drift of .02 an evaluation has a slope of
.16."""

MORE = 2.0
"""Spread τ of a jump upwards that a classifier finds: of ten new classes of 8 %, scores of an evaluation have means of
1 to 3, and the median alarm came at evaluation 6 with τ = 1 and at 5 with 2."""


def weigh(scores: Array) -> Array:
    """Return the evidence against "nothing has changed": the logarithm of the e-value of each followed thing, (k,).

    Args:
        scores: scores of all evaluations, shape (t, k), NaN where an evaluation says nothing.
    """
    t, k = scores.shape
    if t == 0:
        return np.zeros(k)
    seen = np.isfinite(scores)
    z, evaluation = np.where(seen, scores, 0.0), np.arange(1.0, t + 1)[:, None]
    of_jump, of_drift = _sums(z, seen, evaluation)
    jump, drift = _ratio(*of_jump, JUMP), _ratio(*of_drift, DRIFT)
    start = np.arange(1.0, t + 1)
    weight = -np.log(start * (start + 1))[:, None] - np.log(2)  # half of each start's weight for either shape
    bets = np.stack([jump + weight, drift + weight])
    rest = np.full((1, k), -np.log(t + 1.0))  # 1 − Σ 1/(s(s + 1)): bets that have not begun
    return np.asarray(logsumexp(np.concatenate([bets.reshape(2 * t, k), rest]), axis=0))


def bet_on_more(inner: Array, squares: Array) -> Array:
    """Return the logarithm of the ratio of likelihoods of jumps upwards alone, μ ~ |N(0, τ²)|, with τ = `MORE`.

    Its closed form is that of a jump times 2·Φ(τS / √(1 + τ²G)).

    Args:
        inner: sum S of scores, shape (k,).
        squares: number G of scores, shape (k,).
    """
    above = log_ndtr(MORE * inner / np.sqrt(1 + MORE**2 * squares))
    return np.asarray(_ratio(inner, squares, MORE) + np.log(2) + above)


def _sums(z: Array, seen: NDArray[np.bool_], evaluation: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return S and G of a jump and of a drift, by their start, shape (t, k) each."""

    def since(values: Array) -> Array:
        return np.cumsum(values[::-1], 0)[::-1]

    count, first, second = since(seen.astype(np.float64)), since(seen * evaluation), since(seen * evaluation**2)
    total, moment, before = since(z), since(z * evaluation), evaluation - 1
    slope = moment - before * total
    squares = second - 2 * before * first + before**2 * count
    return (total, count), (slope, squares)


def _ratio(inner: Array, squares: Array, spread: float) -> Array:
    """Return the logarithm of the ratio of likelihoods from S and G."""
    grown = 1 + spread**2 * squares
    found: Array = spread**2 * inner**2 / (2 * grown) - np.log(grown) / 2
    return found
