"""`LookPart`: what a monitor keeps of the samples of a look: counts, sums and values, and never the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.monitoring.exchange import Array, Counts

TRACED = 512  # samples of a look that are traced


@dataclass(frozen=True)
class LookPart:
    """Measurements of the samples that one process has of a look; those of several processes add up by `+`.

    Everything is in the order of the followed things, shares before scores.
    """

    n: int  # number of samples
    shares: Counts  # independent units that have it, and units, shape (shares, 2)
    scores: tuple[Array, ...]  # values of independent units, for each score
    sums: Array  # sum over all samples, or pairs of samples, and their number, for what is shown, shape (things, 2)
    phi: Array  # sum of φ over all samples, shape (q,)
    traces: Array  # random projections of the first samples, by which those of the same seeds are known, shape (m, 16)
    pictures: dict[str, Thumbnail] = field(default_factory=dict)  # a sample of each kind, by the name of the kind
    broken: int = 0  # samples that are left out because they are not finite
    known: int = 0  # samples that are left out because they are samples of the reference
    notes: tuple[str, ...] = ()  # what to know of the samples, such as how many could not be read

    def __add__(self, other: LookPart) -> LookPart:
        traces = np.concatenate([self.traces, other.traces])[:TRACED]
        return LookPart(
            self.n + other.n,
            self.shares + other.shares,
            tuple(np.concatenate(pair) for pair in zip(self.scores, other.scores, strict=True)),
            self.sums + other.sums,
            self.phi + other.phi,
            traces,
            other.pictures | self.pictures,
            self.broken + other.broken,
            self.known + other.known,
            self.notes + other.notes,
        )

    @property
    def brought(self) -> int:
        """Number of samples, with those that are left out."""
        return self.n + self.known + self.broken


def join_parts(parts: Iterable[LookPart]) -> LookPart:
    """Join the parts of a look, at least one."""
    return reduce(LookPart.__add__, parts)
