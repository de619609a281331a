"""Pairs that do not belong to their run: further apart than the bulk of the run, and than runs of the baseline are.

Differences that no eye sees count alike. Above the bulk, the logarithm of a measure is taken to have an exponential
tail, which is heavier than that of noise, of compression and of blur (benchmarks/same_ids.py). A pair is also broken if
other ids are as near as its own, where nearly all pairs are nearest to their own, or if it shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from finc_eval.same_ids.pairs import PairTable

Array = NDArray[np.float64]

RATE = 0.02
"""False discovery rate at which pairs are listed, and so the rate of lists where nothing is broken. The tails are
models: what they are wrong by must fit in what is left of 5 %."""

LEAST_SEEN = 0.002  # mean squared difference, of a PSNR of 27 dB, below which a pair is not broken
ALIKE = 0.9  # structure, and correlation of thumbnails, from which both pictures show the same
UNLIKE_MOTION = 0.4
"""Difference of motion, in parts of the motion, above which a clip moves otherwise. Of 12 real clips, noise of 4/255
made at most 0.18; playing them backwards made 0.64, and stopping them 0.39, in half of them at least."""

OTHER = 0.05  # part of other ids as near as its own from which a pair is of different ids
OWN = 0.75  # part of the pairs that must be nearest to their own id for that

SCALES = (0.5, 0.8), (0.75, 0.85)
"""Pairs of quantiles. The tail has the larger of their two slopes. Up to an eighth of all pairs may be broken."""

BASE = 0.85  # quantile at which the tail begins

LOGARITHMS: dict[str, Callable[[dict[str, Array]], Array]] = {
    "mse": lambda measured: np.log(measured["mse"] + 0.001),
    "relative": lambda measured: np.log((measured["mse"] + 0.001) / (measured["detail"] + 0.001)),
    "structure": lambda measured: np.log(1 - measured["structure"] + 0.01),
    "coarse": lambda measured: np.log(1 - measured["coarse"] + 0.02),
}
"""Logarithms of the measures of pictures, with what no eye sees added. Twice as much for structure hides how the bulk
spreads: where noise is of many sizes, 9 of 139 runs then have a list instead of 5. SSIM is not among them: where
everything is brighter or tinted, it falls far in a few pictures: with it, 30 of 32 such runs had a pair that was called
broken."""


def logarithms(table: PairTable) -> Array:
    """Return the logarithms of the measures of pairs, shape (n, measures)."""
    known = [how(table.values) for how in LOGARITHMS.values()] if "mse" in table.values else []
    known += [np.log(table.values["motion"] + 0.1)] if "motion" in table.values else []
    return np.stack([*known, np.log(table.values["distance"] + 0.05)], 1)


def find_broken(table: PairTable, floor: PairTable | None = None, rate: float = RATE) -> NDArray[np.bool_]:
    """Return which pairs do not belong to their run, shape (n,), at a false discovery rate.

    `floor` has pairs of runs of the baseline: broken pairs are further apart than these, too.
    """
    from scipy.stats import false_discovery_control  # slow to import, and reports of other results load this module

    values = logarithms(table)
    p_values = _tails(values, values, is_bulk=True)
    if floor is not None:
        p_values = np.maximum(p_values, _tails(values, logarithms(floor), is_bulk=False))
    smallest = np.minimum(1, p_values.min(1) * p_values.shape[1])
    is_far: NDArray[np.bool_] = false_discovery_control(smallest) <= rate
    return (is_far | of_other_ids(table, floor) | is_blank(table, floor)) & is_seen(table)


def is_seen(table: PairTable) -> NDArray[np.bool_]:
    """Return which pairs differ in what they show, by more than what no eye sees; without pictures, all."""
    if "mse" not in table.values:
        return np.ones(len(table), bool)
    alike = np.minimum(table.values["structure"], table.values["coarse"])
    moves = table.values.get("motion", np.zeros(len(table))) > UNLIKE_MOTION
    return ((table.values["mse"] > LEAST_SEEN) & (alike < ALIKE)) | moves


def is_blank(table: PairTable, floor: PairTable | None = None) -> NDArray[np.bool_]:
    """Return which first pictures show nothing while the second does, however many; none where some of the floor do."""
    blank = [
        pairs.values.get("blank", np.zeros(len(pairs))) > 0.5 for pairs in (table, floor) if pairs is not None
    ]  # of frames
    return blank[0] if len(blank) < 2 or not blank[1].any() else np.zeros(len(table), bool)


def of_other_ids(table: PairTable, floor: PairTable | None = None) -> NDArray[np.bool_]:
    """Return which pairs are as far apart as different ids are; none where the bulk or some of the floor is, too."""
    is_usual = floor is not None and bool((floor.others >= OTHER).any())
    if is_usual or np.quantile(table.others, OWN) > 0:
        return np.zeros(len(table), bool)
    return table.others >= OTHER


def _tails(values: Array, sample: Array, *, is_bulk: bool) -> Array:
    """Return P(a pair of the sample's law is at least so far apart), (n, measures), by exponential tails.

    The tail of a bulk begins at its quantile `BASE`, as broken pairs may be among it; else at the largest value.
    """
    found = np.empty(values.shape)
    for column, known in enumerate(sample.T):
        slopes = [
            (np.quantile(known, high) - np.quantile(known, low)) / np.log((1 - low) / (1 - high))
            for low, high in SCALES
        ]
        scale = max(*slopes, 0.1)  # bulks in which all pairs are as far apart have no scale of their own
        start, rest = (np.quantile(known, BASE), 1 - BASE) if is_bulk else (known.max(), 1 / (len(known) + 1))
        beyond = rest * np.exp(-np.maximum(values[:, column] - start, 0) / scale)
        above = len(known) - np.searchsorted(np.sort(known), values[:, column])
        inside = np.ones(len(values)) if is_bulk else (above + 1) / (len(known) + 1)
        found[:, column] = np.where(values[:, column] > start, beyond, inside)
    return found
