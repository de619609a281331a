"""Choice among overlapping kinds: the levels of a partition hold the same samples several times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.partitions.counts import Counts

NESTED = 1 / 3
"""Members that two kinds share, over those of the smaller one, from which on only one of them is reported."""


def shared_members(counts: Sequence[Counts]) -> NDArray[np.float64]:
    """Return how many samples of all sets every two kinds share, shape (t, t)."""
    offsets = np.concatenate([[0], np.cumsum(counts[0].levels)])
    shared = np.zeros((offsets[-1], offsets[-1]))
    for one in counts:
        for first, start in enumerate(offsets[:-1]):
            for second, other in enumerate(offsets[:-1]):
                pair = one.cells[:, first].astype(np.int64) * one.levels[second] + one.cells[:, second]
                table = np.bincount(pair, one.number, one.levels[first] * one.levels[second])
                shape = one.levels[first], one.levels[second]
                shared[start : offsets[first + 1], other : offsets[second + 1]] += table.reshape(shape)
    return shared


def overlapping(numbers: NDArray[np.int64], others: Sequence[int], shared: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which kinds are too much the same as one of others to be reported beside it."""
    size, known = shared.diagonal(), np.array(others, np.int64)
    smaller = np.minimum(size[numbers][:, None], size[known])
    return np.asarray((shared[np.ix_(numbers, known)] > NESTED * smaller).any(1))


def distinct_kinds(
    p_values: NDArray[np.float64], numbers: NDArray[np.int64], shared: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Choose among overlapping kinds, the strongest evidence first.

    A kind gives way to smaller ones inside it that have more evidence together than it has alone: it joins what differs
    for several reasons, or with what does not differ. Every kind pays for having been chosen among all, so that the
    pieces of one kind, whose evidence adds to that of the whole, do not replace it.

    Args:
        p_values: p-value of every kind.
        numbers: kinds to choose from.
        shared: samples that every two kinds share; on the diagonal, those of each.
    """
    evidence = -np.log(np.maximum(p_values, np.finfo(float).tiny)) - np.log(len(p_values))
    size = shared.diagonal()

    def independent(among: Sequence[int]) -> list[int]:
        found: list[int] = []
        for number in sorted(among, key=lambda number: -evidence[number]):
            if not overlapping(np.array([number]), found, shared)[0]:
                found.append(number)
        return found

    whole = []
    for number in numbers.tolist():
        inside = [o for o in numbers if size[o] < size[number] and shared[o, number] > NESTED * size[o]]
        if evidence[independent(inside)].sum() <= evidence[number]:
            whole.append(number)
    return np.array(independent(whole), np.int64)
