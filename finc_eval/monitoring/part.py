"""`Part`: what a monitor keeps of the samples of a look: counts, sums and values, and never the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.monitoring.exchange import Array, Counts


@dataclass(frozen=True)
class Part:
    """Measurements of the samples that one process has of a look; those of several processes add up by `+`.

    Everything is in the order of the followed things, shares before scores.
    """

    n: int  # number of samples
    shares: Counts  # independent units that have it, and units, shape (shares, 2)
    scores: tuple[Array, ...]  # values of independent units, for each score
    sums: Array  # sum over all samples, or pairs of samples, and their number, for what is shown, shape (things, 2)
    phi: Array  # sum of φ over all samples, shape (q,)
    pictures: dict[str, Thumbnail] = field(default_factory=dict)  # a sample of each kind, by the name of the kind

    def __add__(self, other: Part) -> Part:
        return Part(
            self.n + other.n,
            self.shares + other.shares,
            tuple(np.concatenate(pair) for pair in zip(self.scores, other.scores, strict=True)),
            self.sums + other.sums,
            self.phi + other.phi,
            other.pictures | self.pictures,
        )


def join_parts(parts: Iterable[Part]) -> Part:
    """Join the parts of a look, at least one."""
    return reduce(Part.__add__, parts)
