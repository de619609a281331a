"""Kinds in several pieces: k-means cuts a large kind up, and pieces that no gap parts are one kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import critical_value
from finc_eval.partitions.tests import KindTests

NO_GAP = 0.35
"""Samples halfway between the centers of two kinds, over those at the center that has fewer, from which on no gap parts
them."""

WINDOW = 0.15
"""Samples are halfway, or at a center, up to this part of the distance between both centers."""

LINKED = 0.5
"""Part of the pieces of a kind that no gap must part a further piece from."""

Pieces = tuple[int, ...]
"""Numbers of the clusters that a kind consists of, the clearest first."""


Coordinates = NDArray[np.float32]
"""Coordinates of samples, shape (m, k)."""


def gap(coordinates: Coordinates, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Return the density of samples halfway between two kinds, over that at the thinner of both centers.

    Two pieces of one cloud have as many samples halfway as at their centers, and separate kinds none: the density
    is that of the members' projections on the line through both centers (after Hennig 2010, section 4).

    Args:
        coordinates: where samples lie.
        first: which of them are of one kind, (m,).
        second: which are of the other.
    """
    if not (first.any() and second.any()):
        return 0.0
    start, end = (coordinates[members].mean(0) for members in (first, second))
    line = end - start
    length = float(np.square(line).sum())
    if not length:
        return 1.0
    place = (coordinates[first | second] - start) @ line / length
    at = [int((np.abs(place - center) < WINDOW).sum()) for center in (0, 0.5, 1)]
    return at[1] / max(min(at[0], at[2]), 1)


def pieces_of_one(
    numbers: NDArray[np.int64], row: int, tests: KindTests, coordinates: Coordinates, cells: NDArray[np.int32]
) -> list[Pieces]:
    """Gather kinds that set one set apart into those that are pieces of one.

    A kind joins where no gap parts it from half of the pieces or more, and the set's part of their samples is one.

    Args:
        numbers: the kinds, the clearest first.
        row: row of the tests that they are significant in.
        tests: tests of all kinds.
        coordinates: where samples of all sets lie.
        cells: kind of each of them at each level, shape (m, levels).
    """
    members = [cells[:, tests.level[number]] == tests.index[number] for number in numbers]
    alike = _one_rate(numbers, row, tests)
    found: list[list[int]] = []
    for new in range(len(numbers)):
        for pieces in found:
            linked = [bool(alike[new, old]) and gap(coordinates, members[old], members[new]) > NO_GAP for old in pieces]
            if np.mean(linked) >= LINKED:
                pieces.append(new)
                break
        else:
            found.append([new])
    return [tuple(int(numbers[place]) for place in pieces) for pieces in found]


def _one_rate(numbers: NDArray[np.int64], row: int, tests: KindTests) -> NDArray[np.bool_]:
    """Return which kinds do not differ in the part that one set has of their samples, (k, k), by χ² of 2 × 2 tables."""
    place, _ = tests.side(row)
    members = (tests.members / tests.effects)[:, numbers]
    own = members[place]
    rest = members.sum(0) - own
    both = own + rest
    of_own, of_rest = (one[:, None] + one for one in (own, rest))
    spread = of_own * of_rest * both[:, None] * both
    apart = (own[:, None] * rest - own * rest[:, None]) ** 2 * (of_own + of_rest)
    return np.asarray(apart <= critical_value(1) ** 2 * spread)
