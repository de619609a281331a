"""Kinds in several pieces: k-means cuts a large kind up, and pieces that lie near each other are one kind."""

from __future__ import annotations

from math import inf

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.numerics.inference import critical_value
from finc_eval.partitions.tests import KindTests

NEAR = 4.0
"""`distance` up to which samples are of one kind. It is 2.7 for halves of a normal cloud and 3.5 for those of a uniform
one. Chosen on planted changes of photographs and digits, whose classes lie further apart."""

AROUND = 5
"""Nearest neighbors that tell whether a sample lies amid others."""

LINKED = 0.5
"""Part of the pieces of a kind that a further piece must be near."""

Pieces = tuple[int, ...]
"""Numbers of the clusters that a kind consists of, the clearest first."""


Coordinates = NDArray[np.float32]
"""Coordinates of samples, shape (m, k)."""


def distance(part: Coordinates, whole: Coordinates) -> float:
    """Return the distance between the centers of some samples and of others, in standard deviations of the first.

    Both are taken along the line through the centers, so that other directions add no noise (after Ashman et al. 1994).
    It is infinite where one has no samples. The spread of the others does not count: they may be of several kinds.
    """
    if not (len(part) and len(whole)):
        return inf
    line = whole.mean(0, dtype=np.float64) - part.mean(0, dtype=np.float64)
    squared, spread = float(line @ line), float((part @ line).std())
    return squared / spread if spread else (inf if squared else 0.0)


def amid(part: Coordinates, rest: Coordinates) -> bool:
    """Tell whether most of the nearest neighbors of some samples are among others, as in a corner of one cloud."""
    both, own = (torch.from_numpy(np.ascontiguousarray(rows)) for rows in (np.concatenate([part, rest]), part))
    nearest = torch.cdist(own, both).topk(min(AROUND + 1, len(both)), largest=False).indices[:, 1:]
    return bool((nearest >= len(part)).double().mean() > 1 / 2)


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
            linked = [bool(alike[new, old]) and distance(members[new], members[old]) <= NEAR for old in pieces]
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
