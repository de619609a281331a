"""Directions of feature space with their masses, intervals and samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from finc_eval.core.record import ABSENT, NOT_IN_JSON, Indices, Numbers, Record, plain
from finc_eval.core.serialize import Shown
from finc_eval.gallery.counts import shown_if_muted
from finc_eval.naming.causes import CauseKind
from finc_eval.naming.evidence import Evidence
from finc_eval.numerics.inference import ALPHA

Role = Literal["over", "under"]

ROLES: tuple[Role, Role] = ("over", "under")

Interval = tuple[float, float]

FIRM_STABILITY = 0.5  # stability below which a direction is muted and not counted

SetLabel = Literal["gen", "ref"]

SETS_OF: dict[Role, tuple[SetLabel, SetLabel]] = {"over": ("gen", "ref"), "under": ("ref", "gen")}
"""Labels of the set that has more of a direction of a role, and of the other set."""


Vector = Annotated[NDArray[np.float32], *NOT_IN_JSON]
"""v, shape (q,), norm 1. The HDF5 file of a comparison has it, JSON does not."""


@dataclass(frozen=True, eq=False)
class Tail(Record):
    """The samples that score highest at an end of a direction.

    Attributes:
        share: fraction of the direction's in-sample excess in this tail; the two tails add to 1.
        gen, ref: indices of the top samples of each set, best first, at most `KEPT`.
        gen_ids, ref_ids: their sample ids.
        gen_scores, ref_scores: |s| = |φ(x)·v| of each, between 0 and 1.
    """

    share: float
    gen: Indices
    ref: Indices
    gen_ids: tuple[str, ...]
    ref_ids: tuple[str, ...]
    gen_scores: Numbers
    ref_scores: Numbers


@dataclass(frozen=True, eq=False)
class Direction(Record, Shown):
    """A direction of feature space on which one set has more mass than the other.

    Its members are the samples that score beyond `threshold` on its first tail, s = φ(x)·v, and shares are exact counts
    of members. Members of two directions may be the same samples, so their shares must not be added.

    Attributes:
        id: stable name, from role and best sample; it does not depend on rank, batching or device.
        role: "over" when the generated set has more of it, "under" when it has less.
        name: what most members have in common and other samples have not; None without significant evidence.
        evidence: what supports the name.
        cause: with labels of both sets, "frequency" if these labels are drawn more often, "appearance" if samples of a
            label look different, or "both"; None if neither is significant.
        looks_different: id of a direction of the opposite role that shows the same kind of samples: the sets then
            differ in the looks of these samples, not in their number. None without such a direction.
        kinds: ids of the kinds that a tenth or more of its best samples lie in, the most frequent first.
        shown_by_kinds: whether at least half of its best samples lie in kinds that differ in the same way.
        share_gen, share_ref: fraction of each set that are members; of a sketch that keeps no samples, the mass.
        share_gen_interval, share_ref_interval: their intervals.
        share_difference: share_gen − share_ref.
        share_difference_interval: its interval. All intervals of a comparison hold together with probability 0.95.
        p_value: one-sided p-value of "no more than ρ times", adjusted for all directions, which are a separate family.
        stability: share of the direction that refits find again, in [0, 1]: R² between its scores and the scores of the
            matching direction of a refit, averaged over four refits, to each half of the samples and with each half of
            the random frequencies. Near 1 the direction is a fact of the data; below 0.5 do not give it a name.
        threshold: score from which on a sample is a member.
        mass_gen, mass_ref: mean of s² over each set, in [0, 1], cross-fitted: each sample is scored by the matching
            direction of the half of the data it is not part of.
        excess: mass_gen − ρ·mass_ref for "over", mass_ref − ρ·mass_gen for "under".
        interval: interval of the excess; the intervals of all directions hold together with probability 0.95.
        standard_error: standard error of the excess.
        fitted_excess: vᵀΛv in the data the direction was fitted to, an over-estimate; for unrotated directions
            this is the eigenvalue.
        tails: positive and negative tail; the positive tail carries most of the excess.
        drawn_gen, drawn_ref: ids of members of each set, drawn at random: unlike the top samples they show what most
            members look like. At most 16; none of a sketch that keeps no samples.
        direction: v, shape (q,), norm 1.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> direction = fe.compare(*example_sets(), features=500).under[0]
        >>> direction.role, direction.p_value < 0.05, direction.share_gen < direction.share_ref
        ('under', True, True)
    """

    id: str
    role: Role
    name: str | None
    evidence: tuple[Evidence, ...]
    cause: CauseKind | None
    looks_different: str | None
    kinds: tuple[str, ...]
    shown_by_kinds: bool
    share_gen: float
    share_ref: float
    share_gen_interval: Interval
    share_ref_interval: Interval
    share_difference: float
    share_difference_interval: Interval
    p_value: float
    stability: float | None
    threshold: float
    mass_gen: float
    mass_ref: float
    excess: float
    interval: Interval
    standard_error: float
    fitted_excess: float
    tails: tuple[Tail, Tail]
    drawn_gen: tuple[str, ...]
    drawn_ref: tuple[str, ...]
    direction: Vector = field(default=ABSENT, kw_only=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float:
        """mass_gen / mass_ref; infinite when the reference has none, null in JSON."""
        return self.mass_gen / self.mass_ref if self.mass_ref > 0 else float("inf")

    @property
    def top_gen(self) -> NDArray[np.int64]:
        """Indices of the generated samples that are most of this direction, best first."""
        return self.tails[0].gen

    @property
    def top_ref(self) -> NDArray[np.int64]:
        """Indices of the reference samples that are most of this direction, best first."""
        return self.tails[0].ref

    @property
    def has_opposite(self) -> bool:
        """True if the opposite tail carries enough of the excess to be shown."""
        # 0.1: the opposite tail of a direction is shown when it carries more than this share of the excess.
        return self.tails[1].share > 0.1

    def typical(self, label: SetLabel) -> tuple[str, ...]:
        """Return the ids of the samples of a set that are most of this direction, best first."""
        return self.tails[0].gen_ids if label == "gen" else self.tails[0].ref_ids

    def drawn(self, label: SetLabel) -> tuple[str, ...]:
        """Return the ids of members of a set, drawn at random."""
        return self.drawn_gen if label == "gen" else self.drawn_ref

    def opposite(self, label: SetLabel) -> tuple[str, ...]:
        """Return the ids at the end of the opposite tail, if it carries enough of the excess to be shown."""
        if not self.has_opposite:
            return ()
        return self.tails[1].gen_ids if label == "gen" else self.tails[1].ref_ids

    def shown(self, label: SetLabel, count: int) -> list[str]:
        """Return the ids of the samples of a set that a page shows, `count` of each draw; fewer if it is muted."""
        if self.p_value > ALPHA:
            return [*self.typical(label)[: shown_if_muted(count)]]
        draws = (self.typical(label), self.drawn(label), self.opposite(label))
        return [name for ids in draws for name in ids[:count]]

    def members(self, label: SetLabel) -> NDArray[np.int64]:
        """Return the indices of the top samples of a set that are members, best first."""
        tail = self.tails[0]
        index, scores = (tail.gen, tail.gen_scores) if label == "gen" else (tail.ref, tail.ref_scores)
        return index[scores >= self.threshold]

    def frame_row(self) -> dict[str, Any]:
        """Return the row of a data frame, with shares, difference and interval under the names that kinds have."""
        row = plain(self)
        shares = {
            label: {"share": row.pop(f"share_{label}"), "interval": row.pop(f"share_{label}_interval")}
            for label in ("gen", "ref")
        }
        renamed = {"difference": row.pop("share_difference"), "excess_interval": row.pop("interval")}
        return {**row, "shares": shares, **renamed, "interval": row.pop("share_difference_interval")}

    @property
    def title(self) -> str:
        """The name, or else the id."""
        return self.name or self.id

    @property
    def firm(self) -> bool:
        """True unless refits find less than half of the direction again."""
        return self.stability is None or self.stability >= FIRM_STABILITY

    def _summary(self) -> str:
        low, high = self.share_difference_interval
        return (
            f"{self.title}: {self.share_gen:.1%} of gen, {self.share_ref:.1%} of ref, difference "
            f"{self.share_difference:+.1%} [{low:+.1%}, {high:+.1%}], p={self.p_value:.2g}"
        )

    def _shown(self) -> dict[str, object]:
        low, high = self.share_difference_interval
        return {
            "direction": self.title,
            "role": f"{self.role}-represented",
            "share of gen": f"{self.share_gen:.1%}",
            "share of ref": f"{self.share_ref:.1%}",
            "difference": f"{self.share_difference:+.1%} [{low:+.1%}, {high:+.1%}]",
            "p": f"{self.p_value:.2g}",
            "best in gen": ", ".join(self.tails[0].gen_ids[:5]),
            "best in ref": ", ".join(self.tails[0].ref_ids[:5]),
        }


@dataclass(frozen=True)
class Spectrum(Record):
    """Leading eigenvalues of the two covariance differences, descending.

    Attributes:
        over: eigenvalues of C_gen − ρC_ref; empty if the method has none.
        under: eigenvalues of C_ref − ρC_gen; empty if the method has none.
    """

    over: tuple[float, ...]
    under: tuple[float, ...]
