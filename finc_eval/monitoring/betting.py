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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

JUMP, DRIFT = 1.0, 0.2
"""Spread τ of a jump of scores, and of their slope an evaluation. Scores of 0.5 to 2 times these sizes lose little: a
jump of .3 standard deviations with 64 samples an evaluation has 2.4, a drift of .02 an evaluation has a slope of
.16."""

DATED = 1.92
"""Logarithm of a ratio of likelihoods up to which a start is not rejected at 5 %: half of the quantile of χ² with one
degree of freedom. Of alarms of jumps by 1.5 to 3.3 from evaluation 4 or 11 on, 2 to 7 % are dated before the jump, and
21 to 49 % if the start of the largest bet dates them."""

SURELY = 3.32
"""The same, at 1 %: two changes may have begun at one evaluation unless that is rejected for one of them. At 5 %, a
kind that two evaluations before a white border had none of by chance was a second cause."""


@dataclass(frozen=True)
class Weighed:
    """Evidence against "nothing has changed" after the last evaluation, of each followed thing."""

    log_e: Array  # logarithm of the e-value, shape (k,)
    start: NDArray[np.int64]  # evaluation from which it has changed, from 0 on, shape (k,), late rather than early
    likely: NDArray[np.int64]  # the most likely of these evaluations, shape (k,)


def weigh(scores: Array) -> Weighed:
    """Return the evidence in the scores of all evaluations, shape (t, k), NaN where an evaluation says nothing."""
    t, k = scores.shape
    if t == 0:
        return Weighed(np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64))
    seen = np.isfinite(scores)
    z, evaluation = np.where(seen, scores, 0.0), np.arange(1.0, t + 1)[:, None]
    of_jump, of_drift = _sums(z, seen, evaluation)
    jump, drift = _ratio(*of_jump, JUMP), _ratio(*of_drift, DRIFT)
    start = np.arange(1.0, t + 1)
    weight = -np.log(start * (start + 1))[:, None] - np.log(2)  # half of each start's weight for either shape
    bets = np.stack([jump + weight, drift + weight])
    rest = np.full((1, k), -np.log(t + 1.0))  # 1 − Σ 1/(s(s + 1)): bets that have not begun
    log_e = logsumexp(np.concatenate([bets.reshape(2 * t, k), rest]), axis=0)
    return Weighed(np.asarray(log_e), *_date(_likelihood(*of_jump), _likelihood(*of_drift)))


def _date(jump: Array, drift: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start of each change, and its most likely one, (k,), from log-likelihoods of all starts, (t, k).

    A jump is dated by the latest start that is not rejected: an alarm is not dated before the change. A drift, which
    begins slowly, is dated by the most likely start. A change is a drift if jumps are rejected.
    """
    is_drift = drift.max(0) > jump.max(0) + DATED
    latest = len(jump) - 1 - (jump >= jump.max(0) - DATED)[::-1].argmax(0)
    # Of starts that are as likely, the last: an evaluation that says nothing does not begin a change.
    last = len(jump) - 1 - jump[::-1].argmax(0)
    likely = np.where(is_drift, drift.argmax(0), last)
    return np.asarray(np.where(is_drift, likely, latest), np.int64), np.asarray(likely, np.int64)


def possible_starts(scores: Array) -> NDArray[np.bool_]:
    """Mark the evaluations at which a change may have begun, (t,), by the scores of all evaluations, (t,)."""
    z, seen = np.nan_to_num(scores)[:, None], np.isfinite(scores)[:, None]
    both = [_likelihood(*sums) for sums in _sums(z, seen, np.arange(1.0, len(scores) + 1)[:, None])]
    return np.asarray((np.maximum(*both) >= np.max(both) - SURELY)[:, 0])


def _sums(z: Array, seen: NDArray[np.bool_], evaluation: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return S and G of a jump and of a drift, by their start, shape (t, k) each."""

    def since(values: Array) -> Array:
        return np.cumsum(values[::-1], 0)[::-1]

    count, first, second = since(seen.astype(np.float64)), since(seen * evaluation), since(seen * evaluation**2)
    total, moment, before = since(z), since(z * evaluation), evaluation - 1
    slope = moment - before * total
    squares = second - 2 * before * first + before**2 * count
    return (total, count), (slope, squares)


def _likelihood(inner: Array, squares: Array) -> Array:
    """Return the largest log-likelihood of a change of any size, less that of no change: S² / 2G, of any shape."""
    return np.asarray(inner**2 / (2 * np.maximum(squares, 1)))


def _ratio(inner: Array, squares: Array, spread: float) -> Array:
    """Return the logarithm of the ratio of likelihoods from S and G."""
    grown = 1 + spread**2 * squares
    found: Array = spread**2 * inner**2 / (2 * grown) - np.log(grown) / 2
    return found
