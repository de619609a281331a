"""`compare_releases`: what became of the kinds of samples from one release of a model to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from finc_eval.comparison.direction import Role
from finc_eval.comparison.result import Comparison, as_comparison
from finc_eval.core.errors import IncompatibleError, check_fraction
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import NOT_IN_JSON, Record, check_names
from finc_eval.core.serialize import Shown
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import points
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.pictured import Gallery, Pictured, Pictures
from finc_eval.naming.evidence import Name
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import choose, kind_id
from finc_eval.partitions.counts import Examples
from finc_eval.partitions.kind import Kind, check_kinds, describe_kinds, shown_of
from finc_eval.partitions.tests import test_kinds
from finc_eval.samples.source import Samples

Status = Literal["new", "grown", "gone", "shrunk", "undecided", "unchanged"]

ORDER: tuple[Status, ...] = ("new", "grown", "gone", "shrunk", "undecided", "unchanged")


@dataclass(frozen=True, eq=False)
class Change(Record, Shown):
    """A kind in two releases.

    Attributes:
        status: of a kind whose share changed, "new" or "gone" if hardly the old, or the new release, differs from the
            reference in it; else "grown" or "shrunk", by its distance from the share of the reference. All others are
            "unchanged", or "undecided" if most of the difference from the reference seems to have come or gone.
        role: whether the release that differs more clearly has more, "over", or less of it than the reference.
        kind: the kind, with its shares of "new" and "old", and the p-value of "its share did not change".
        share_ref: share of the reference.
    """

    status: Status
    role: Role
    kind: Kind
    share_ref: float

    @property
    def id(self) -> str:
        """Id of the kind, the same in both comparisons."""
        return self.kind.id

    @property
    def title(self) -> str:
        """Name of the kind, or its id without a name."""
        return self.kind.title

    @property
    def has_changed(self) -> bool:
        """True if the share is shown to have changed."""
        return self.kind.p_value <= ALPHA

    @property
    def change(self) -> float:
        """Share of the new release minus share of the old release."""
        return self.kind.seen_from("new")[0]

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the change; all intervals hold together with probability 0.95."""
        return self.kind.seen_from("new")[1]

    def _summary(self) -> str:
        low, high = self.interval
        return f"{self.status} {self.title}, {points(self.change)} points [{points(low)}, {points(high)}]"


@dataclass(frozen=True, eq=False)
class Changes(Pictured):
    """The kinds of two releases of a model that differ from the reference, or from each other; no two overlap.

    Attributes:
        changes: new kinds, then grown, gone, shrunk, undecided and unchanged kinds, each by the size of the change.
        alpha: adjusted p-value up to which a kind differs from the reference.
        old, new: signatures of the two comparisons.
        sets: "old" and "new", the generated sets of both, and "ref".
        sets_p_value: p-value of "both releases are samples of one law", by the means of φ and moments of their errors,
            which need no samples; None where a comparison kept none, or another φ, or a release has fewer than 8
            independent samples.
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
    page: ClassVar[str] = "finc_eval.comparison.pages.changes"

    changes: tuple[Change, ...]
    alpha: float
    old: SignatureText
    new: SignatureText
    sets: dict[str, SetInfo]
    sets_p_value: float | None = field(default=None, kw_only=True)
    compared: Annotated[tuple[Comparison, Comparison] | None, *NOT_IN_JSON] = field(
        default=None, kw_only=True, repr=False
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        check_kinds((change.kind for change in self.changes), (), ("new", "old"))
        check_names("set", ("new", "old"), self.sets)
        return self

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the generated sets of both releases, and the reference."""
        return self.sets

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of each set that a page shows."""
        return shown_of((change.kind for change in self.changes), self.sets, self.shown)

    def _gather(self, samples: Mapping[str, Samples]) -> Gallery:
        """Gather the pictures of the samples that a page shows: what the comparisons show."""
        if self.kept is not None or self.compared is None:
            return super()._gather(samples)
        old, new = (comparison.gallery.pictures for comparison in self.compared)
        kept: Pictures = {"old": old["gen"], "new": new["gen"], "ref": {}}
        return replace(self, kept=kept).gallery_of(samples)

    def _frame_rows(self) -> tuple[Change, ...]:
        return self.changes

    def _summary(self) -> str:
        counts = Counter[str](change.status for change in self.changes)
        return ", ".join(f"{count} {status}" for status, count in counts.items()) or "no kind differs"

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, place: int) -> Change:
        return self.changes[place]


def compare_releases(old: Comparison | str | Path, new: Comparison | str | Path, alpha: float = ALPHA) -> Changes:
    """Return what became of each kind from one release of a model to the next: new, grown, unchanged, shrunk or gone.

    Both comparisons count by one tree of kinds. So the shares of a kind in both releases are compared by the exact
    tests of `kinds`, from the numbers of samples in the two files; no samples are needed. Followed are the kinds that
    either comparison lists, and that changed or differ from the reference. What the old release has never made is
    counted with the kind that it is nearest to.

    Args:
        old: comparison of the earlier release with the reference, or the path of its file.
        new: comparison of the later release with the same reference, made by `compare` with `kinds=old`.
        alpha: adjusted p-value up to which a kind differs from the reference.

    Raises:
        IncompatibleError: the comparisons have unlike references or kinds.
        UsageError: α does not lie between 0 and 1, or an argument is not a comparison with kinds.
        DataError: a file is not a comparison.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> _, ref = example_sets(1000)
        >>> negatives = np.concatenate([ref[500:900], 1 - ref[900:]])  # a fifth of the new release
        >>> old = fe.compare(ref[500:], ref[:500], features=500)
        >>> new = fe.compare(negatives, ref[:500], features=500, kinds=old)
        >>> any(change.status in ("new", "grown") for change in fe.compare_releases(old, new))
        True
    """
    check_fraction("alpha", alpha)
    before, after = as_comparison(old, "old"), as_comparison(new, "new")
    _check_alike(before, after)
    tree = before.tree.tree
    nodes = {kind_id(node): node for node in range(tree.nodes)}
    both = {"new": after, "old": before}  # a change is the share of the first minus the share of the second
    listed = {label: _listed(comparison, nodes) for label, comparison in both.items()}
    known = np.array(sorted({*listed["old"], *listed["new"]}))
    tests = test_kinds({label: comparison.counted_kinds.tallies["gen"] for label, comparison in both.items()})
    only = np.ones_like(tests.adjusted)
    only[:, known] = tests.adjusted[:, known]
    p_old, p_new = _against_ref(before), _against_ref(after)
    followed = list(choose(tree, replace(tests, adjusted=only)))
    p = np.minimum(p_old, p_new)
    for node in sorted(known[p[known] <= alpha].tolist(), key=lambda node: p[node]):
        if not (tree.members[followed] & tree.members[node]).any():
            followed.append(node)

    def examples(label: str, node: int) -> Examples:
        if node not in listed[label]:
            return Examples()
        part = listed[label][node].shares["gen"]
        return Examples(part.top, part.top_ids, part.drawn, part.drawn_ids)

    names = {node: Name(kind.name, kind.evidence) for node, kind in (listed["old"] | listed["new"]).items()}
    tally = after.counted_kinds.tallies["ref"]
    changes = [
        _change(kind, float(tally.members[node] / tally.n), float(p_old[node]), float(p_new[node]), alpha)
        for node, kind in zip(followed, describe_kinds(tests, followed, names, examples, kind_id), strict=True)
    ]
    return Changes(
        changes=tuple(sorted(changes, key=lambda change: (ORDER.index(change.status), -abs(change.change)))),
        alpha=alpha,
        old=before.signature,
        new=after.signature,
        sets={"old": before.gen, "new": after.gen, "ref": after.ref},
        sets_p_value=_test_laws(before, after),
        compared=(before, after),
        provenance=Provenance.here("cpu"),
    )


def _test_laws(before: Comparison, after: Comparison) -> float | None:
    """Test the generated sets of two comparisons by what both kept of them."""
    if before.law is None or after.law is None or before.feature_map.digest != after.feature_map.digest:
        return None
    return after.law.p_value(before.law)


def _check_alike(before: Comparison, after: Comparison) -> None:
    """Raise IncompatibleError if two comparisons have unlike references or kinds."""
    if before.ref.digest != after.ref.digest:
        digests = f"{before.ref.digest[:12]} and {after.ref.digest[:12]}"
        raise IncompatibleError(f"the references differ, {digests}: compare both releases with one")
    if before.tree.digest != after.tree.digest:
        raise IncompatibleError(
            "the comparisons have unlike kinds: make the later by the kinds of the earlier (kinds=old, --kinds)"
        )


def _listed(comparison: Comparison, nodes: Mapping[str, int]) -> dict[int, Kind]:
    """Return the kinds and headings of a comparison by their nodes; a heading of several branches is not a node."""
    return {nodes[kind.id]: kind for kind in (*comparison.headings, *comparison.kinds) if kind.id in nodes}


def _against_ref(comparison: Comparison) -> NDArray[np.float64]:
    """Return the adjusted p-value of each node in a comparison, shape (nodes,)."""
    tests = test_kinds(comparison.counted_kinds.tallies, comparison.settings.rho, comparison.settings.parts[1])
    found: NDArray[np.float64] = tests.adjusted.min(0)
    return found


def _change(kind: Kind, share_ref: float, p_old: float, p_new: float, alpha: float) -> Change:
    before, after = (kind.shares[label].share - share_ref for label in ("old", "new"))
    role: Role = "over" if (after if p_new <= p_old else before) > 0 else "under"
    least, most = sorted((abs(before), abs(after)))
    status: Status
    if kind.p_value > ALPHA:
        status = "undecided" if 2 * abs(after - before) > most else "unchanged"
    elif 2 * least < most and max(p_old, p_new) > alpha:
        status = "new" if abs(after) > abs(before) else "gone"
    else:
        status = "grown" if abs(after) > abs(before) else "shrunk"
    return Change(status, role, kind, share_ref)
