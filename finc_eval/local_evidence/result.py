"""`LocalEvidence`: the p-value of the test of local evidence, and the parts of the sets that it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finc_eval.core.record import Record

PartKind = Literal["patches", "likeness", "pairs", "orientation"]
Side = Literal["more", "less"]

Heat = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class LocalPart(Record):
    """A part of a set that hardly any sample of the other set is like, or a change of all.

    Attributes:
        kind: what shows it: "patches" of pictures, "likeness" of pictures to themselves, near "pairs", "orientation".
        name: why, in words that follow "have" or "are", such as "two halves that mirror each other"; "on average" for
            a change of all pictures, which has no shares; None if unknown.
        side: "more" for a part of the generated set, "less" for a part of the reference that this set lacks.
        p_value: p-value of "both sets are samples of one law" by this part, adjusted for all that was looked at.
        share_gen: share of the generated set that is flagged; None for a change of all.
        share_ref: share of the reference that is flagged; None for a change of all.
        at_least: lower end of the share of the part, 2.24 standard errors below the estimate (a − b)/(1 − b), with a
            the larger and b the smaller of both shares; None for a change of all.
        samples: row numbers of the flagged samples, surest first, of the generated set; of the reference if the side is
            "less".
        others: row numbers of the two samples of the other set that are most like them.
        heat: how much each window says so, for the first samples, row by row of the grid; empty if not of patches.
    """

    kind: PartKind
    name: str | None
    side: Side
    p_value: float
    share_gen: float | None
    share_ref: float | None
    at_least: float | None
    samples: tuple[int, ...]
    others: tuple[int, ...] = ()
    heat: tuple[Heat, ...] = ()

    @property
    def share(self) -> float | None:
        """Estimate of the share of the part; None for a change of all."""
        return estimate_share(self.share_gen, self.share_ref)


def estimate_share(share_gen: float | None, share_ref: float | None) -> float | None:
    """Return (a − b)/(1 − b), a the larger and b the smaller of both flagged shares: what chance flags is taken off.

    Example:
        >>> from finc_eval.local_evidence.result import estimate_share
        >>> estimate_share(0.6, 0.2)
        0.5
    """
    if share_gen is None or share_ref is None:
        return None
    a, b = sorted((share_gen, share_ref), reverse=True)
    return round((a - b) / (1 - b), 12) if b < 1 else 0.0


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
