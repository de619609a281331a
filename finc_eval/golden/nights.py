"""The mathematics of nights: ranks among the nearest nights, bets over starts, and nights beyond all others.

Arrays in, numbers out. A night is a row of seven measures of a pair, or of their means over all pairs. If nights are
exchangeable, whatever states an engine has, the rank of the last night is uniform, and bets against that are a
supermartingale: `log_evidence` is large in few years only. `beyond` is quicker, and is not free of assumptions; what it
costs was measured (benchmarks/golden.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from finc_eval.numerics.families import level_of_each

Array = NDArray[np.float64]

MEASURES = ("psnr", "ssim", "structure", "thumb", "light", "red_blue", "detail")  # measures of a pair, in this order

STEPS = np.array([0.5, 0.1, 0.1, 0.1, 0.5, 0.5, 0.03])
"""Difference of each coordinate that is not looked at: dB, three logarithms, two levels of 255, and a logarithm."""

WORSE = np.array([-1, 1, 1, 1, 0, 0, 0])  # direction in which a coordinate is worse; 0: either

NEAREST = 0.2  # part of the other nights that a night is measured by: two states stay two states
MAX_BAG = 365  # latest nights among which a night has its rank: a year
POWERS = np.array([0.05, 0.1, 0.2, 0.4])  # ε of the bets ε·p^(ε−1)
YEAR = 100  # nights at which a bet may begin, each with the weight 1/100
FALSE_YEARS = 0.05  # part of the years without a change, 5 %, in which the bets may alarm

LEAST_PAST, SURE_PAST = 8, 20
"""Nights from which a night may lie beyond the past, and from which two such nights in a row are enough. With two from
8 nights on, 21 of 100 years were false where a resize filter has six equal states."""

SURE_ROW, LONG_ROW = 2, 3  # nights in a row that are red, with 20 known nights or more, and with fewer
BEYOND_ALL, BEYOND_PAIR = 3.0, 4.0
"""Times that the farthest known night is from its nearest, by which a night lies beyond: of all pairs, of one pair.
What they cost was measured (benchmarks/golden.py)."""

LEAST_STEPS = 2.0  # steps by which a night lies beyond at least

LINKED = 6.0  # spreads, of `_distances`, up to which two nights are of one state
GONE_P = 0.0005
"""Chance that a state is away for so long, up to which it is said to be gone; `benchmarks/golden.py` counts the nights
until it is, and years in which it is said falsely."""


def as_kept(values: Array) -> Array:
    """Return measures (…, 7) with the six digits that a floor keeps: the nights before were read from it."""
    return np.array([float(f"{value:.6g}") for value in values.ravel().tolist()]).reshape(values.shape)


def coordinates(values: Array) -> Array:
    """Return measures, (…, 7) in the order of `MEASURES`, as what nights are compared by.

    PSNR, light, colors and detail stay as they are; SSIM, structure and correlation become logarithms of what they lack
    to 1, so that equal steps are about as easily seen.
    """
    made = np.array(values, np.float64)
    made[..., 1:4] = np.log(np.maximum(1 - made[..., 1:4], 0) + 0.001)
    return made


def p_value(nights: Array, chance: float) -> float:
    """Return the rank of the last night among all, (t, 7), as a p-value: uniform if nights are exchangeable.

    Nights that tie with it count as farther: equal nights say nothing against an engine,
    and p is then larger than uniform.

    Args:
        nights: coordinates of all nights, with the last.
        chance: uniform number in (0, 1), by which its own place in the rank is drawn.
    """
    bag = nights[-MAX_BAG:]
    apart, spread = _distances(bag)
    far = (apart / spread).max(1)
    last = far[-1]
    # Equal numbers that were computed in another order count as ties, as do distances of 0.
    tied = np.isclose(far, last, rtol=1e-9, atol=1e-9)
    at_least = int(((far > last) | tied).sum())
    return float((at_least - 1 + chance) / len(bag))


def _distances(bag: Array) -> tuple[Array, Array]:
    """Return how far each night is from its nearest fifth, (t, 7), and the median of that with a step, (7,)."""
    count = int(np.ceil(NEAREST * (len(bag) - 1)))
    apart: Array = np.abs(bag[:, None] - bag[None])  # its own distance of 0 comes first
    nearest = np.partition(apart, count, axis=1)[:, count]
    return nearest, np.median(nearest, axis=0) + STEPS


def log_evidence(p_values: Array) -> float:
    """Return the logarithm of the sum of all bets, over starts and powers, after the last of these nights, (t,).

    A bet that has not begun is 1, so that the sum is 400 without any night. NaN is a night that says nothing.
    """
    p = np.where(np.isfinite(p_values), p_values, 1.0)[:, None]
    gains = np.where(np.isfinite(p_values)[:, None], np.log(POWERS) + (POWERS - 1) * np.log(p), 0.0)
    since = np.cumsum(gains[::-1], 0)[:YEAR]
    waiting = (YEAR - len(since)) * len(POWERS)
    return float(logsumexp(np.append(since.ravel(), np.log(waiting) if waiting else -np.inf)))


def needed_evidence(things: int) -> float:
    """Return the logarithm that bets on one of so many things need, so that all together alarm in 5 % of years."""
    return float(np.log(YEAR * len(POWERS) / level_of_each(FALSE_YEARS, things)))


def beyond(past: Array, night: Array, times: float, new: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Return in which coordinates a night lies beyond all known nights, (7,), in the bad direction.

    Args:
        past: coordinates of the known nights, (t, 7), at least two.
        night: coordinates of the night, (7,).
        times: times that the farthest known night is from its nearest.
        new: which nights are of a state that was accepted: they are known places, and tell no spread.
    """
    order = np.sort(past if new is None or new.all() else past[~new], axis=0)
    steps = np.diff(order, axis=0)
    edge = np.full((1, past.shape[1]), np.inf)
    nearest = np.minimum(np.concatenate([edge, steps]), np.concatenate([steps, edge]))
    gap = np.where(np.isfinite(nearest), nearest, 0.0).max(0)
    need = np.maximum(times * gap, LEAST_STEPS * STEPS)
    below, above = past.min(0) - night > need, night - past.max(0) > need
    return np.asarray((below & (WORSE <= 0)) | (above & (WORSE >= 0)))


class Gone(NamedTuple):
    """A state that has not been seen for some nights."""

    nights: NDArray[np.int64]  # numbers of its nights
    since: int  # nights since its last night


def gone_states(nights: Array) -> Iterator[Gone]:
    """Yield the states among nights, (t, 7), that are surely gone."""
    if len(nights) > 1:
        yield from gone_among(_states(nights[-MAX_BAG:]), max(len(nights) - MAX_BAG, 0))


def gone_among(states: NDArray[np.int64], first: int = 0) -> Iterator[Gone]:
    """Yield the states that are surely gone, from the state of each night, (t,); `first` is the number of the first.

    If nights are exchangeable, the chance that all k nights of a state lie before the last r of n nights is the product
    of (n − r − i)/(n − i) over i < k.
    """
    n = len(states)
    for state in np.unique(states):
        in_state = np.flatnonzero(states == state)
        since = n - 1 - int(in_state[-1])
        drawn = np.arange(len(in_state))
        if since and np.log((n - since - drawn) / (n - drawn)).sum() <= np.log(GONE_P):
            yield Gone(in_state + first, since)


def _states(nights: Array) -> NDArray[np.int64]:
    """Return the state of each night (n,), from coordinates (n, 7): short distances link nights of one state."""
    from scipy.cluster.hierarchy import fcluster, linkage

    _, spread = _distances(nights)
    links = linkage(nights / spread, "single", metric="chebyshev")
    return np.asarray(fcluster(links, LINKED, "distance"), np.int64)
