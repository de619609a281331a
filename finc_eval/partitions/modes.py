"""`Kind`: a kind of samples with its share of each set, and the choice of kinds to report, with names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record
from finc_eval.core.shown import Shown
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import told_sets
from finc_eval.naming.evidence import Evidence, Name
from finc_eval.naming.names import name_modes
from finc_eval.numerics.exact_tests import clopper_pearson, mover
from finc_eval.numerics.inference import ALPHA, DEFAULT_CONFIDENCE
from finc_eval.partitions.counts import Counted, Examples
from finc_eval.partitions.overlap import distinct_kinds, overlapping, shared_members
from finc_eval.partitions.tests import KindTests


@dataclass(frozen=True)
class KindShare(Record):
    """The part of a set that is of a kind.

    Attributes:
        count: number of samples of the kind.
        share: fraction of the set; over all kinds of a level the shares add to 1.
        interval: exact interval of the share; all intervals of a result hold together with probability 0.95.
        top_ids: ids of the samples nearest to the center of the kind, nearest first.
        drawn_ids: ids of samples of the kind, drawn at random: they show what most of them look like.
    """

    count: int
    share: float
    interval: tuple[float, float]
    top_ids: tuple[str, ...]
    drawn_ids: tuple[str, ...]


@dataclass(frozen=True)
class Kind(Record, Shown):
    """A kind of samples.

    Attributes:
        id: stable name, from the number of kinds of its level and its place there, such as "k50-17", or "k50-far".
        level: number of kinds of its level.
        index: its number there, from 0.
        set_with_most: label of the set that has more of it than the others together, most clearly; where it is clearer
            that a set has less, the one with the largest share.
        set_with_least: label of the set that has less of it than the others together, where this is clearer; else None.
        p_value: p-value of "it does not have more", or less, adjusted for all kinds of all levels and all sets.
        name: what most of its samples have in common and other samples have not; None without significant evidence.
        evidence: what supports the name.
        shares: the part of each set, by label.
        difference: share in that set, with most or with least, minus the share in all others together.
        interval: interval of the difference; all intervals of a result hold together with probability 0.95.
    """

    id: str
    level: int
    index: int
    set_with_most: str
    set_with_least: str | None
    p_value: float
    name: str | None
    evidence: tuple[Evidence, ...]
    shares: dict[str, KindShare]
    difference: float
    interval: tuple[float, float]

    def _summary(self) -> str:
        shares = ", ".join(f"{one.share:.1%} of {label}" for label, one in self.shares.items())
        return f"{self.title}: {shares}, p={self.p_value:.2g}"

    @property
    def title(self) -> str:
        """The name, or the id of a kind without one."""
        return self.name or self.id

    @property
    def side(self) -> str:
        """Set that it sets apart, in words: "most in gen" or "least in gen"."""
        return f"least in {self.set_with_least}" if self.set_with_least else f"most in {self.set_with_most}"

    @property
    def share_gen(self) -> float:
        """Share of the set that is called "gen", as of a `Mode`."""
        return self._share_of("gen")

    @property
    def share_ref(self) -> float:
        """Share of the set that is called "ref", as of a `Mode`."""
        return self._share_of("ref")

    def _share_of(self, label: str) -> float:
        if label not in self.shares:
            raise UsageError(f"no set is called {label!r}, but {', '.join(self.shares)}: use shares[name].share")
        return self.shares[label].share


def shown_of(kinds: Iterable[Kind], labels: Iterable[str], count: int) -> dict[str, list[str]]:
    """Return the ids of the samples of each set that a page shows.

    Args:
        kinds: the kinds.
        labels: labels of all sets.
        count: number of samples of each kind and set that are typical, and of those that are drawn at random.
    """
    found: dict[str, list[str]] = {label: [] for label in labels}
    for kind in kinds:
        for label in told_sets(kind.shares, kind.set_with_most):
            part = kind.shares[label]
            found[label] += (*part.top_ids[:count], *part.drawn_ids[:count])
    return found


def reported_kinds(
    tests: KindTests,
    counted: Mapping[str, Counted],
    embeddings: Mapping[str, Embeddings],
    levels: tuple[int, ...],
    main: int,
) -> tuple[Kind, ...]:
    """Return the clearest significant kinds of all levels, with names, and those of the main level that are not."""
    best, p = tests.raw.argmin(0), tests.adjusted.min(0)
    significant = np.flatnonzero(p <= ALPHA)
    shared = shared_members([one.counts for one in counted.values()])
    clear: list[int] = []
    for row in range(len(tests.raw)):
        found = distinct_kinds(tests.raw[row], significant[best[significant] == row], shared)
        if tests.side(row)[1]:  # what one set lacks may be what another has more of, at another level
            found = found[~overlapping(found, clear, shared)]
        clear += found.tolist()
    names = names_of(clear, counted, embeddings)
    others = np.flatnonzero((tests.level == main) & (p > ALPHA) & (tests.members.sum(0) > 0)).tolist()

    def examples(label: str, number: int) -> Examples:
        return counted[label].examples(number, embeddings[label])

    return described_kinds(tests, [*clear, *others], names, examples, levels)


def names_of(
    kinds: Sequence[int], counted: Mapping[str, Counted], embeddings: Mapping[str, Embeddings]
) -> dict[int, Name]:
    """Name kinds by what samples of them have in common that were drawn at random from the set with the largest share.

    Args:
        kinds: the kinds, numbered through all levels.
        counted: the counted sets.
        embeddings: their embeddings.
    """
    labels = list(counted)
    shares = np.array([one.counts.all_members() / one.counts.n for one in counted.values()])
    most = [labels[place] for place in shares[:, list(kinds)].argmax(0)]
    members = [{label: counted[label].samples(kind).drawn} for label, kind in zip(most, kinds, strict=True)]
    return dict(zip(kinds, name_modes(members, embeddings), strict=True))


def described_kinds(
    tests: KindTests,
    numbers: Iterable[int],
    names: Mapping[int, Name],
    examples: Callable[[str, int], Examples],
    levels: tuple[int, ...],
) -> tuple[Kind, ...]:
    """Return some kinds with their shares, the clearest first.

    Args:
        tests: the tests of all kinds.
        numbers: the kinds, numbered through all levels.
        names: names of kinds that have one.
        examples: function from the label of a set and a kind to samples that show it.
        levels: number of kinds of each level, without the one of samples far from all others.
    """
    best, p, intervals = tests.raw.argmin(0), tests.adjusted.min(0), _Intervals(tests)
    return tuple(
        _kind(number, names.get(number, Name(None)), tests, intervals, examples, levels)
        for number in sorted(numbers, key=lambda number: (p[number], tests.raw[best[number], number]))
    )


class _Intervals:
    """Intervals of all shares, and of the difference of each set from all others together, which hold together."""

    def __init__(self, tests: KindTests) -> None:
        k, n = tests.members / tests.cautious, tests.sizes[:, None] / tests.cautious
        rest_k, rest_n = k.sum(0) - k, n.sum(0) - n
        # Of two sets, both differences are one.
        differences = tests.members.size // 2 if len(tests.labels) == 2 else tests.members.size
        confidence = 1 - (1 - DEFAULT_CONFIDENCE) / (tests.members.size + differences)
        self.low, self.high = clopper_pearson(k, n, confidence)
        self.share, self.rest = k / n, rest_k / rest_n
        rest_low, rest_high = clopper_pearson(rest_k, rest_n, confidence)
        self.ends = mover((self.low, self.share, self.high), (rest_low, self.rest, rest_high))


def _kind(
    number: int,
    name: Name,
    tests: KindTests,
    intervals: _Intervals,
    examples: Callable[[str, int], Examples],
    levels: tuple[int, ...],
) -> Kind:
    row = int(tests.raw[:, number].argmin())
    own, is_less = tests.side(row)
    level, index = levels[tests.level[number]], int(tests.index[number])
    low, high = (float(end[own, number]) for end in intervals.ends)

    def share(s: int, label: str) -> KindShare:
        shown = examples(label, number)
        return KindShare(
            count=int(tests.members[s, number]),
            share=float(intervals.share[s, number]),
            interval=(float(intervals.low[s, number]), float(intervals.high[s, number])),
            top_ids=shown.top_ids,
            drawn_ids=shown.drawn_ids,
        )

    return Kind(
        id=f"k{level}-{'far' if index == level else index}",
        level=level,
        index=index,
        set_with_most=tests.labels[int(intervals.share[:, number].argmax()) if is_less else own],
        set_with_least=tests.labels[own] if is_less else None,
        p_value=float(tests.adjusted[row, number]),
        name=name.text,
        evidence=name.evidence,
        shares={label: share(s, label) for s, label in enumerate(tests.labels)},
        difference=float(intervals.share[own, number] - intervals.rest[own, number]),
        interval=(low, high),
    )
