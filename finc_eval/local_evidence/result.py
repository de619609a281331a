"""`LocalEvidence`: the p-value of the test of local evidence, and the parts of the sets that it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finc_eval.core.record import Record

PartKind = Literal["patches", "likeness", "pairs", "orientation"]
Side = Literal["more", "less"]

Heat = tuple[tuple[float, ...], ...]

UPSIDE_DOWN = "upside down"
"""Name of a part of pictures that are turned by 180°; other names say what pictures have."""

SHOWN = 12  # samples of a part with a heat map: as many as a page shows


@dataclass(frozen=True)
class FoundPart(Record):
    """Shares and p-value of a part of a set that hardly any sample of the other set is like, or of a change of all.

    `PartOfSet`, which results hold, says what each of these is.
    """

    kind: PartKind
    name: str | None
    side: Side
    p_value: float
    share_gen: float | None
    share_ref: float | None
    at_least: float | None

    @property
    def share(self) -> float | None:
        """Estimate of the share of the part; None for a change of all pictures.

        It is (a − b)/(1 − b), a the larger and b the smaller of both flagged shares: b is flagged by chance.
        """
        if self.share_gen is None or self.share_ref is None:
            return None
        a, b = sorted((self.share_gen, self.share_ref), reverse=True)
        return (a - b) / (1 - b) if b < 1 else 0.0


@dataclass(frozen=True)
class LocalPart(FoundPart):
    """A part, with the row numbers of its samples.

    Attributes:
        samples: row numbers of the flagged samples, the surest first, in the set that has more of the part.
        others: row numbers of the two samples of the other set that are most like them.
        heat: how much each window says so, for the first samples, row by row of the grid, in standard deviations of
            the scores of pictures; empty if not of patches.
        elsewhere: row numbers of samples of each further set that are flagged by the same rule; None for a set whose
            samples it cannot flag. Only parts of the generated set are looked for elsewhere.
    """

    samples: tuple[int, ...]
    others: tuple[int, ...] = ()
    heat: tuple[Heat, ...] = ()
    elsewhere: tuple[tuple[int, ...] | None, ...] = ()


@dataclass(frozen=True)
class LocalEvidence(Record):
    """Test of "both sets are samples of one law" by what is local in pictures.

    Attributes:
        p_value: p-value by all statistics together (Westfall and Young 1993).
        parts: parts that are significant at .05, surest first; empty if none is.
        looked_at: arrays that were tested: "cells", "likeness", "embeddings", "flipped".
        draws: number of random permutations.
        n_gen: samples of the generated set.
        n_ref: samples of the reference.
    """

    p_value: float
    parts: tuple[LocalPart, ...]
    looked_at: tuple[str, ...]
    draws: int
    n_gen: int
    n_ref: int
