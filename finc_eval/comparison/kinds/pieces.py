"""Kinds in several pieces: k-means cuts a large kind up, and pieces that lie near each other are one kind."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import critical_value
from finc_eval.partitions.tests import KindTests

NEAR = 2.0
"""`separation` up to which samples are of one kind. Halves of a normal cloud have 1.3, of a uniform one 1.7, clusters of
two classes of photographs or digits mostly 2.2 and more. For equal spreads it is half of the D of Ashman et al. (1994)."""

LINKED = 0.5
"""Part of the pieces of a kind that a further piece must be near."""

Pieces = tuple[int, ...]
"""Numbers of the clusters that a kind consists of, the clearest first."""


Coordinates = NDArray[np.float32]
"""Coordinates of samples, shape (m, k)."""


def separation(first: Coordinates, second: Coordinates) -> float:
    """Return the distance between the centers of some samples and of others, in standard deviations of both along it.

    It is infinite where one has no samples.
    """
    if not (len(first) and len(second)):
        return inf
    line = second.mean(0, dtype=np.float64) - first.mean(0, dtype=np.float64)
    squared = float(line @ line)
    spread = float((first @ line).std() + (second @ line).std())
    return squared / spread if spread else (inf if squared else 0.0)


def pieces_of_one(
    numbers: NDArray[np.int64], row: int, tests: KindTests, coordinates: Coordinates, cells: NDArray[np.int32]
) -> list[Pieces]:
    """Gather kinds that set one set apart into those that are pieces of one.

    A kind joins where half of the pieces or more are near it, and the set's part of their samples is one.

    Args:
        numbers: the kinds, the clearest first.
        row: row of the tests that they are significant in.
        tests: tests of all kinds.
        coordinates: where samples of all sets lie.
        cells: kind of each of them at each level, shape (m, levels).
    """
    members = [coordinates[cells[:, tests.level[number]] == tests.index[number]] for number in numbers]
    alike = _one_rate(numbers, row, tests)
    found: list[list[int]] = []
    for new in range(len(numbers)):
        for pieces in found:
            linked = [bool(alike[new, old]) and separation(members[old], members[new]) <= NEAR for old in pieces]
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
