"""What changed between two releases of a model: the modes of two comparisons with one reference, matched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from finc_eval.comparison.cross_fit import match, squared_overlap
from finc_eval.comparison.modes import Mode, Role
from finc_eval.comparison.result import Comparison
from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.inference import critical_value

Status = Literal["new", "grown", "unchanged", "shrunk", "gone"]

ORDER: tuple[Status, ...] = ("new", "grown", "gone", "shrunk", "unchanged")

SAME = 0.5
"""Squared overlap of two directions from which on they are one mode: no direction has it with two others. Also how much
of a mode the other comparison, or refits, must have for it to be known there."""

FREE = ("n", "modes", "se", "prec", "v")
"""Fields of the signature that two releases may differ in."""


@dataclass(frozen=True)
class Change:
    """What became of one mode.

    Attributes:
        status: "new" or "gone" where only one comparison has the mode; else "grown", "shrunk" or, where the interval of
            the change holds zero, "unchanged". Of an under-represented mode it is the deficit that grows or shrinks.
        role: "over" or "under" the reference.
        old, new: the mode in either comparison.
        overlap: squared overlap of the two directions, 0 to 1; 0 where one is missing.
        change: excess in the new comparison minus that in the old; a missing mode counts as 0.
        interval: of the change; all intervals hold together with probability 0.95. It takes the errors of the two
            comparisons as independent, though they share their reference, so it is somewhat too wide.
    """

    status: Status
    role: Role
    old: Mode | None
    new: Mode | None
    overlap: float
    change: float
    interval: tuple[float, float]

    @property
    def id(self) -> str:
        """The mode's name: it keeps its old one."""
        mode = self.old or self.new
        assert mode is not None
        return mode.id

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON types."""
        return {
            "id": self.id,
            "status": self.status,
            "role": self.role,
            "old": None if self.old is None else self.old.id,
            "new": None if self.new is None else self.new.id,
            "overlap": self.overlap,
            "excess_old": None if self.old is None else self.old.excess,
            "excess_new": None if self.new is None else self.new.excess,
            "change": self.change,
            "interval": list(self.interval),
        }

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Change({self.status} {self.id}, {self.change:+.4f} [{low:+.4f}, {high:+.4f}])"


def match_releases(old: Comparison, new: Comparison, alpha: float = 0.05) -> tuple[Change, ...]:
    """Which modes are new, grown, unchanged, shrunk or gone from one release of a model to the next.

    A mode is followed where it is significant in at least one of the comparisons. It counts as the same mode in both
    where the directions overlap by more than half. It counts as new or gone where more than half of it lies outside
    all that the other comparison reports, significant or not; where refits find it again (stability above one half),
    since what halves of the data do not agree on two releases need not share; and where its interval lies above the
    least excess that the other comparison reports, if that reports as many modes as it was asked for. So compare with
    more `modes` than you expect to differ.

    Args:
        old: the comparison of the earlier release with the reference.
        new: that of the later one, with the same reference and feature map: compare it with the reference's sketch.
        alpha: adjusted p-value up to which a mode counts.

    Returns:
        New modes, then grown, gone, shrunk and unchanged ones, each by the size of the change.

    Raises:
        FincEvalError: when the comparisons are of unlike references, feature maps or settings.
    """
    unlike = [line for line in old.signature.differences(new.signature) if line.split(":")[0] not in FREE]
    if unlike:
        raise FincEvalError(
            f"the two comparisons do not compare ({'; '.join(unlike)}): compare both releases with one sketch of the "
            "reference, in the same way"
        )
    pairs = [
        pair
        for before, after in ((old.modes, new.modes), (old.under_represented, new.under_represented))
        for pair in _paired(before, after, _cut(before, old), _cut(after, new))
        if any(mode is not None and mode.p_value <= alpha for mode in pair[:2])
    ]
    changes = [_change(*pair, family=len(pairs)) for pair in pairs]
    return tuple(sorted(changes, key=lambda change: (ORDER.index(change.status), -abs(change.change))))


def _cut(modes: tuple[Mode, ...], comparison: Comparison) -> float:
    """The excess that a mode needed in order to be among these modes of the comparison."""
    return min(mode.excess for mode in modes) if len(modes) == comparison.settings.modes else 0.0


def _paired(
    old: tuple[Mode, ...], new: tuple[Mode, ...], old_cut: float, new_cut: float
) -> list[tuple[Mode | None, Mode | None, float]]:
    """Every mode that can be followed: with its counterpart and their overlap, or alone."""
    overlap = squared_overlap(_directions(old), _directions(new)) if old and new else torch.zeros(len(old), len(new))
    rows, columns = match(torch.where(overlap > SAME, overlap, 0.0))
    both = [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if overlap[i, j] > SAME]
    # Directions of one comparison are orthonormal: their squared overlaps add to the part that lies in their span.
    within = overlap.sum(1).tolist(), overlap.sum(0).tolist()
    matched = {i for i, _ in both}, {j for _, j in both}

    def alone(side: int, index: int, mode: Mode, cut: float) -> bool:
        """Whether the other comparison lacks the mode, and would have reported it if it had it."""
        elsewhere = index in matched[side] or within[side][index] > SAME
        return not elsewhere and mode.stability > SAME and mode.interval[0] > cut

    return [
        *((old[i], new[j], float(overlap[i, j])) for i, j in both),
        *((mode, None, 0.0) for i, mode in enumerate(old) if alone(0, i, mode, new_cut)),
        *((None, mode, 0.0) for j, mode in enumerate(new) if alone(1, j, mode, old_cut)),
    ]


def _directions(modes: tuple[Mode, ...]) -> torch.Tensor:
    return torch.stack([torch.from_numpy(mode.direction) for mode in modes], 1)


def _change(old: Mode | None, new: Mode | None, overlap: float, family: int) -> Change:
    present = [mode for mode in (old, new) if mode is not None]
    change = (new.excess if new else 0.0) - (old.excess if old else 0.0)
    width = critical_value(family) * sum(mode.standard_error**2 for mode in present) ** 0.5
    interval = (change - width, change + width)
    status: Status
    if old is None:
        status = "new"
    elif new is None:
        status = "gone"
    elif interval[0] > 0:
        status = "grown"
    elif interval[1] < 0:
        status = "shrunk"
    else:
        status = "unchanged"
    return Change(status, present[0].role, old, new, overlap, change, interval)
