"""`compare_releases`: the modes of two comparisons with one reference, matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import computed_field

from finc_eval.comparison.cross_fit import SAME_MODE_OVERLAP, match, squared_overlap
from finc_eval.comparison.modes import Mode, Role, significant
from finc_eval.comparison.result import Comparison
from finc_eval.core.checks import check_fraction
from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.core.shown import Shown
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import points
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.gallery import Gallery, Pictures
from finc_eval.gallery.pictured import Pictured
from finc_eval.numerics.exact_tests import mover
from finc_eval.samples import Samples

Status = Literal["new", "grown", "unchanged", "undecided", "shrunk", "gone"]

ORDER: tuple[Status, ...] = ("new", "grown", "gone", "shrunk", "undecided", "unchanged")

KNOWN_PART = SAME_MODE_OVERLAP
"""Part of a mode that the other comparison, or refits, must have for it to be known there."""

FREE_FIELDS = ("n", "modes", "se", "prec", "v")
"""Fields of the signature that two releases may differ in."""


@dataclass(frozen=True, eq=False)
class Change(Record, Shown):
    """A mode in two releases.

    Attributes:
        status: "new" or "gone" where only one comparison has the mode; else "grown", "shrunk" or, where the interval of
            the change holds zero, "unchanged"; "undecided" where it holds zero, but most of the mode seems to have
            come or gone. Of an under-represented mode it is the deficit that grows or shrinks.
        role: "over" or "under" the reference.
        old, new: the mode in either comparison; None where it is missing.
        overlap: squared overlap of the two directions, 0 to 1; 0 where one is missing.
        change: difference of shares from the reference in the new comparison, minus that in the old; a missing mode
            counts as 0. Of an under-represented mode, of the deficits: positive where more is missing.
        interval: interval of the change; all intervals hold together with probability 0.95. It takes the errors of the
            two comparisons as independent, though they share their reference, so it is somewhat too wide.
    """

    status: Status
    role: Role
    old: Mode | None
    new: Mode | None
    overlap: float
    change: float
    interval: tuple[float, float]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """Name of the mode: it keeps its old one."""
        return next(mode.id for mode in (self.old, self.new) if mode is not None)

    @property
    def latest(self) -> Mode:
        """The mode in the new release, or in the old one where it is gone."""
        return next(mode for mode in (self.new, self.old) if mode is not None)

    @property
    def title(self) -> str:
        """Name of the mode in the new release or else in the old one, or the id of a mode without one."""
        return next((mode.name for mode in (self.new, self.old) if mode is not None and mode.name), self.id)

    @property
    def told(self) -> bool:
        """True where the mode is shown to have changed."""
        return self.status not in ("unchanged", "undecided")

    def _summary(self) -> str:
        low, high = self.interval
        return f"{self.status} {self.id}, {points(self.change)} points [{points(low)}, {points(high)}]"


@dataclass(frozen=True, eq=False)
class Changes(Pictured):
    """The modes of two releases of a model, matched.

    Attributes:
        changes: new modes, then grown, gone, shrunk, undecided and unchanged ones, each by the size of the change.
        alpha: adjusted p-value up to which a mode counts.
        old, new: signatures of the two comparisons.
        sets: "old" and "new", the generated sets of both, and "ref".
        unfollowed_old, unfollowed_new: modes that are significant in one comparison alone, where it cannot be told
            whether the other lacks them or has missed them.
        compared: the comparisons; None for changes that were read from a file.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> same = fe.compare(gen, ref, features=500)
        >>> {change.status for change in fe.compare_releases(same, same)}
        {'unchanged'}
    """

    type_name: ClassVar[str] = "changes"

    changes: tuple[Change, ...]
    alpha: float
    old: SignatureText
    new: SignatureText
    sets: dict[str, SetInfo]
    unfollowed_old: tuple[Mode, ...]
    unfollowed_new: tuple[Mode, ...]
    compared: Annotated[tuple[Comparison, Comparison] | None, *NOT_IN_JSON] = field(
        default=None, kw_only=True, repr=False
    )

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the generated sets of both releases, and the reference."""
        return self.sets

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of each set that a page shows."""
        found: dict[str, list[str]] = {label: [] for label in self.sets}
        for change in self.changes:
            for label, mode in (("old", change.old), ("new", change.new)):
                if mode is not None:
                    found[label] += (*mode.typical("gen")[: self.shown], *mode.drawn("gen")[: self.shown])
            latest = change.latest
            found["ref"] += (*latest.typical("ref")[: self.shown], *latest.drawn("ref")[: self.shown])
        return found

    def _gathered(self, samples: Mapping[str, Samples]) -> Gallery:
        """Gather the pictures of the samples that a page shows: those that the comparisons show."""
        if self.kept is not None or self.compared is None:
            return super()._gathered(samples)
        old, new = (one.gallery.pictures for one in self.compared)
        kept: Pictures = {"old": old["gen"], "new": new["gen"], "ref": old["ref"] | new["ref"]}
        return replace(self, kept=kept).gallery_of(samples)

    def _frame_rows(self) -> tuple[Change, ...]:
        return self.changes

    def _summary(self) -> str:
        counts = Counter[str](change.status for change in self.changes)
        counts["not followed"] = len(self.unfollowed_old) + len(self.unfollowed_new)
        found = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        return found or "no mode is significant"

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place: int) -> Change:
        return self.changes[place]


def compare_releases(old: Comparison | str | Path, new: Comparison | str | Path, alpha: float = 0.05) -> Changes:
    """Match the modes of two releases of a model: new, grown, unchanged, undecided, shrunk or gone.

    A mode is followed where it is significant in at least one of the comparisons. It counts as the same mode in both
    where the directions overlap by more than half. It counts as new or gone where three things hold. More than half of
    it lies outside all that the other comparison reports, significant or not. Refits find it again (stability above
    one half), since what halves of the data do not agree on two releases need not share. And the other comparison would
    have seen it: the least difference of shares that its interval allows is larger than `detectable` there. So compare
    with more `modes` than you expect to differ. Significant modes of which this cannot be told are listed as such.

    Args:
        old: comparison of the earlier release with the reference, or the path of its file.
        new: comparison of the later one, with the same reference and feature map: use the reference's sketch.
        alpha: adjusted p-value up to which a mode counts.

    Raises:
        IncompatibleError: the comparisons have unlike references, feature maps or settings.
        UsageError: α does not lie between 0 and 1, or an argument is not a comparison.
        DataError: a file is not a comparison.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> _, ref = example_sets(1000)
        >>> sketch = fe.Sketch.reference(ref[:500], features=500)
        >>> negatives = np.concatenate([ref[500:900], 1 - ref[900:]])  # a fifth of the new release
        >>> old, new = fe.compare(ref[500:], sketch), fe.compare(negatives, sketch)
        >>> {(change.status, change.role) for change in fe.compare_releases(old, new)}
        {('new', 'over')}
    """
    check_fraction("alpha", alpha)
    old, new = _comparison(old, "old"), _comparison(new, "new")
    try:
        old.signature.check_comparable(new.signature, FREE_FIELDS)
    except IncompatibleError as error:
        hint = "compare both releases with one sketch of the reference, in the same way"
        raise IncompatibleError(f"{error}: {hint}") from error
    pairs = [
        pair
        for before, after in ((old.over, new.over), (old.under, new.under))
        for pair in _paired(before, after, old.detectable, new.detectable)
        if any(mode is not None and mode.p_value <= alpha for mode in pair[:2])
    ]
    changes = [_change(*pair) for pair in pairs]
    in_order = sorted(changes, key=lambda change: (ORDER.index(change.status), -abs(change.change)))
    return Changes(
        tuple(in_order),
        alpha,
        old.signature,
        new.signature,
        {"old": old.gen, "new": new.gen, "ref": new.ref},
        _missing(significant(old.directions, alpha), [change.old for change in changes]),
        _missing(significant(new.directions, alpha), [change.new for change in changes]),
        compared=(old, new),
        provenance=Provenance.here("cpu"),
    )


def _missing(modes: Sequence[Mode], followed: Sequence[Mode | None]) -> tuple[Mode, ...]:
    """Return the modes of a comparison that are not among those that were followed."""
    ids = {mode.id for mode in followed if mode is not None}
    return tuple(mode for mode in modes if mode.id not in ids)


def _comparison(one: Comparison | str | Path, name: str) -> Comparison:
    if isinstance(one, str | Path):
        return Comparison.load(one)
    if isinstance(one, Comparison):
        return one
    raise UsageError(
        f"{name} must be a comparison, as fe.compare returns it, or the path of one, got {type(one).__name__}"
    )


def _paired(
    old: tuple[Mode, ...], new: tuple[Mode, ...], seen_by_old: float | None, seen_by_new: float | None
) -> list[tuple[Mode | None, Mode | None, float]]:
    """Return every mode that can be followed: with its counterpart and their overlap, or alone."""
    overlap = squared_overlap(_directions(old), _directions(new)) if old and new else torch.zeros(len(old), len(new))
    rows, columns = match(torch.where(overlap > SAME_MODE_OVERLAP, overlap, 0.0))
    both = [(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True) if overlap[i, j] > SAME_MODE_OVERLAP]
    return [
        *((old[i], new[j], float(overlap[i, j])) for i, j in both),
        *((mode, None, 0.0) for mode in _alone(old, {i for i, _ in both}, new, seen_by_new)),
        *((None, mode, 0.0) for mode in _alone(new, {j for _, j in both}, old, seen_by_old)),
    ]


def _alone(modes: Sequence[Mode], matched: Container[int], others: Sequence[Mode], seen: float | None) -> list[Mode]:
    """Return the modes that the other comparison lacks, and would have reported if it had them."""
    if not modes or seen is None:
        return []
    known = torch.zeros(len(modes))
    if others:
        span, _ = torch.linalg.qr(_directions(others))
        known = squared_overlap(_directions(modes), span).sum(1)
    return [
        mode
        for place, mode in enumerate(modes)
        if place not in matched and known[place] <= KNOWN_PART and mode.firm and _difference(mode)[0] > seen
    ]


def _difference(mode: Mode | None) -> tuple[float, float, float]:
    """Return the difference of shares in the direction of the role: its lower end, itself, and its upper end."""
    if mode is None:
        return 0.0, 0.0, 0.0
    low, high = mode.share_difference_interval
    over = mode.role == "over"
    return (low, mode.share_difference, high) if over else (-high, -mode.share_difference, -low)


def _directions(modes: Sequence[Mode]) -> torch.Tensor:
    return torch.stack([torch.from_numpy(mode.direction) for mode in modes], 1)


def _change(old: Mode | None, new: Mode | None, overlap: float) -> Change:
    """Compare the difference of shares of a mode in two releases.

    Two comparisons of one and the same law tell somewhat other members of a mode, by a part 1 − overlap: the interval
    allows for it.
    """
    present = [mode for mode in (old, new) if mode is not None]
    before, after = _difference(old), _difference(new)
    allowed = (1 - overlap) * max(before[1], after[1]) if old and new else 0.0
    low, high = mover(after, before)
    change, interval = after[1] - before[1], (float(low) - allowed, float(high) + allowed)
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
        status = "undecided" if 2 * abs(change) > max(before[1], after[1], 0) else "unchanged"
    return Change(status, present[0].role, old, new, overlap, change, interval)
