"""`Tally`: how many samples of a set are of each kind, and how much they inform: all that tests and shares need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers of samples of a set by kind, the kinds of all levels numbered through.

    Attributes:
        levels: number of kinds of each level.
        members: number of samples of each kind, shape (t,).
        effects: factor by which the samples of each kind inform less than independent ones, shape (t,).
        n: number of samples.
    """

    levels: tuple[int, ...]
    members: NDArray[np.int64]
    effects: NDArray[np.float64]
    n: int

    def effective(self, level: int) -> NDArray[np.float64]:
        """Return effective numbers of samples of each kind of a level, shape (kinds,), for tests of all kinds together.

        All are divided by one mean design effect, as in Rao and Scott's first-order correction (1981); by that of the
        one kind that has all samples.
        """
        start = sum(self.levels[:level])
        here = slice(start, start + self.levels[level])
        members, there = self.members[here], self.members[here] > 0
        effects, weights = self.effects[here][there], 1 - members[there] / self.n
        mean = np.average(effects, weights=weights if weights.any() else None)
        return np.asarray(members / max(float(mean), 1.0))

    @classmethod
    def pooled(cls, tallies: Sequence[Tally]) -> Tally:
        """Return the tally of several sets together, with the mean of their effects by size."""
        n = np.array([one.n for one in tallies])
        return cls(
            tallies[0].levels,
            np.sum([one.members for one in tallies], axis=0),
            np.average([one.effects for one in tallies], axis=0, weights=n),
            int(n.sum()),
        )
