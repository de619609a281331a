"""`Kind`: a kind of samples with its share of each set, and the choice of kinds to report, with names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from pydantic import model_validator

from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record, check_names, plain
from finc_eval.core.run import Run
from finc_eval.core.serialize import Shown
from finc_eval.embeddings.base import Embeddings
from finc_eval.gallery.counts import shown_if_muted
from finc_eval.naming.evidence import Evidence, Name
from finc_eval.naming.names import name_by_members
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, DEFAULT_CONFIDENCE, clopper_pearson, mover, significant
from finc_eval.partitions.counts import Counted, Examples, KindsOfSamples
from finc_eval.partitions.tests import KindTests, Mix

NOT_ZERO = float(np.finfo(np.float32).eps)  # end of an interval that leaves out 0 and nothing else


@dataclass(frozen=True)
class KindShare(Record):
    """The part of a set that is of a kind.

    Attributes:
        count: number of samples of the kind.
        share: fraction of the set; over all kinds the shares add to 1.
        interval: exact interval of the share; the intervals of all shares of a family of kinds hold together with
            probability 0.95.
        top_ids: ids of typical samples of the kind, the most typical first, at most 16.
        drawn_ids: ids of samples of the kind, drawn at random: they show what most of them look like.
        top, drawn: row numbers of these samples.
    """

    count: int
    share: float
    interval: tuple[float, float]
    top_ids: tuple[str, ...]
    drawn_ids: tuple[str, ...]
    top: tuple[int, ...] = ()
    drawn: tuple[int, ...] = ()


@dataclass(frozen=True)
class Whole(Record):
    """A label, word, class or noun that a kind is a part of, with its own size.

    Attributes:
        name: what it is, such as "1" or "looks like dog".
        set_apart: label of the set whose share is compared with the share of all others together.
        shares: share of each set, by label; of classes, among at most 4096 of its samples.
        difference: share of `set_apart` minus the share of all others together.
        interval: interval of the difference; the intervals of all wholes of one source hold together with probability
            0.95.
    """

    name: str
    set_apart: str
    shares: dict[str, float]
    difference: float
    interval: tuple[float, float]

    @property
    def share_gen(self) -> float:
        """Share of the set that is called "gen"."""
        return self.shares["gen"]

    @property
    def share_ref(self) -> float:
        """Share of the set that is called "ref"."""
        return self.shares["ref"]

    def seen_from(self, label: str) -> tuple[float, tuple[float, float]]:
        """Return the difference of one of two sets from the other, with its interval."""
        return _seen_from(label, self.set_apart, self.difference, self.interval)


def _seen_from(
    label: str, seen: str, difference: float, interval: tuple[float, float]
) -> tuple[float, tuple[float, float]]:
    """Return a difference of two sets, which is of the set `own`, from one of them."""
    return (difference, interval) if seen == label else (-difference, (-interval[1], -interval[0]))


@dataclass(frozen=True)
class Kind(Record, Shown):
    """A kind of samples that belong together, from any set. Every sample belongs to exactly one listed kind.

    Attributes:
        id: stable name, from its place in the tree of kinds, such as "k173"; "far" for samples far from all kinds.
        set_with_most: label of the set that has more of it than the others together, most clearly; where it is clearer
            that a set has less, the one with the largest share.
        set_with_least: label of the set that has less of it than the others together, where this is clearer; else None.
        p_value: p-value of "it does not have more", or less, adjusted for all kinds of the tree and all sets.
        name: what most of its samples have in common and other samples have not; None without significant evidence.
        evidence: what supports the name.
        shares: the part of each set, by label.
        difference: share in that set, with most or with least, minus the share in all others together.
        interval: interval of the difference; the intervals of all differences of a family of kinds hold together with
            probability 0.95.
        children: of a heading, the ids of the listed kinds that it holds.
        mix: of paired sets, the part of the plain difference that unlike mixes of prompts make; `difference` is then
            the other part, within prompts. None if the mixes are equal.
        part_of: the label, word, class or noun that its name says, with its own size, if the kind is a part of it; of a
            heading, what its kinds have in common.
    """

    id: str
    set_with_most: str
    set_with_least: str | None
    p_value: float
    name: str | None
    evidence: tuple[Evidence, ...]
    shares: dict[str, KindShare]
    difference: float
    interval: tuple[float, float]
    children: tuple[str, ...] = ()
    mix: Mix | None = None
    part_of: Whole | None = None

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        check_names(
            "set", (label for label in (self.set_with_most, self.set_with_least) if label is not None), self.shares
        )
        if self.part_of is not None:
            check_names("set", (self.part_of.set_apart, *self.part_of.shares), self.shares)
            check_names("set", self.shares, self.part_of.shares)
        return self

    def _summary(self) -> str:
        shares = ", ".join(f"{share.share:.1%} of {label}" for label, share in self.shares.items())
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
        """Share of the set that is called "gen"."""
        return self._of("gen").share

    @property
    def share_ref(self) -> float:
        """Share of the set that is called "ref"."""
        return self._of("ref").share

    @property
    def share_difference(self) -> float:
        """share_gen − share_ref."""
        self._of("gen"), self._of("ref")
        return self.seen_from("gen")[0]

    @property
    def share_difference_interval(self) -> tuple[float, float]:
        """Interval of the difference of the shares of "gen" and "ref"."""
        self._of("gen"), self._of("ref")
        return self.seen_from("gen")[1]

    def seen_from(self, label: str) -> tuple[float, tuple[float, float]]:
        """Return the difference of one of two sets from the other, with its interval."""
        return _seen_from(label, self.set_with_least or self.set_with_most, self.difference, self.interval)

    def frame_row(self) -> dict[str, Any]:
        """Return the kind as a row of a table; the difference of two sets is the first less the second, as on pages."""
        row: dict[str, Any] = plain(self)
        if len(self.shares) == 2:
            row["difference"], row["interval"] = self.seen_from(next(iter(self.shares)))
        return row

    def _of(self, label: str) -> KindShare:
        if label not in self.shares:
            raise UsageError(f"no set is called {label!r}, but {', '.join(self.shares)}: use shares[name].share")
        return self.shares[label]


def check_kinds(kinds: Iterable[Kind], headings: Iterable[Kind], sets: Collection[str]) -> None:
    """Raise ValueError unless kinds and headings are of these sets, and headings hold kinds that are there."""
    kinds, headings = tuple(kinds), tuple(headings)
    for kind in (*kinds, *headings):
        check_names("set", kind.shares, sets)
        check_names("set", sets, kind.shares)
    check_names("kind", (name for heading in headings for name in heading.children), {kind.id for kind in kinds})
    check_names("kind", (name for kind in kinds for name in kind.children), ())


def choose_sets(kind: Kind) -> tuple[str, str]:
    """Return the two sets whose samples show a kind: the set with most, and the reference, or else the next set."""
    others = {label: part.share for label, part in kind.shares.items() if label != kind.set_with_most}
    return kind.set_with_most, "ref" if "ref" in others else max(others, key=lambda label: others[label])


def shown_of(kinds: Iterable[Kind], labels: Iterable[str], count: int) -> dict[str, list[str]]:
    """Return the ids of the samples of each set that a page shows: of kinds that do not differ, few typical samples."""
    ids: dict[str, list[str]] = {label: [] for label in labels}
    for kind in kinds:
        differs = kind.p_value <= ALPHA
        for label in choose_sets(kind):
            part = kind.shares[label]
            ids[label] += part.top_ids[: count if differs else shown_if_muted(count)]
            ids[label] += part.drawn_ids[:count] if differs else ()
    return ids


def names_of_unions(
    unions: Mapping[int, Sequence[int]], counted: Mapping[str, Counted], embeddings: Mapping[str, Embeddings]
) -> dict[int, Name]:
    """Name unions of counted kinds by what random samples of each have in common, from the set with most of it."""
    labels = list(counted)
    shares = np.array([counted_set.counts.members / counted_set.counts.n for counted_set in counted.values()])
    members = []
    for pieces in unions.values():
        most = labels[int(shares[:, list(pieces)].sum(1).argmax())]
        members.append({most: counted[most].samples(counted[most].drawn, pieces)})
    return dict(zip(unions, name_by_members(members, embeddings), strict=True))


def kinds_of_rows(kinds: Sequence[Kind], divided: KindsOfSamples, run: Run) -> Callable[[torch.Tensor], list[str]]:
    """Return the function that gives rows, shape (n, d), the ids of their kinds; "" far from all kinds."""
    return partial(divided.named, [kind.id for kind in kinds], run=run)


def describe_kinds(
    tests: KindTests,
    numbers: Iterable[int],
    names: Mapping[int, Name],
    examples: Callable[[str, int], Examples],
    id_of: Callable[[int], str],
) -> tuple[Kind, ...]:
    """Return some kinds with their shares, in their order."""
    intervals, kinds = _Intervals(tests), list[Kind]()
    for number in numbers:
        row, name = int(tests.raw[:, number].argmin()), names.get(number, Name(None))
        is_less, side = divmod(row, len(tests.labels))
        p_value = float(tests.adjusted[row, number])
        low, high = (float(end[side, number]) for end in intervals.ends)
        if p_value <= ALPHA and tests.family.rho >= 1:
            low, high = (low, min(high, -NOT_ZERO)) if is_less else (max(low, NOT_ZERO), high)
        shares, mix = dict[str, KindShare](), None
        for s, label in enumerate(tests.labels):
            count, shown = int(tests.members[s, number]), examples(label, number)
            share, *ends = (float(numbers[s, number]) for numbers in (intervals.share, intervals.low, intervals.high))
            shares[label] = KindShare(
                count, share, (ends[0], ends[1]), shown.top_ids, shown.drawn_ids, shown.top, shown.drawn
            )
        if tests.mixes is not None:
            plain, value, *ends = (
                float(numbers[side, number]) for numbers in (tests.mixes.plain, tests.mixes.value, *intervals.mix_ends)
            )
            mix = Mix(plain, value, (ends[0], ends[1]))
        kinds.append(
            Kind(
                id=id_of(number),
                set_with_most=tests.labels[int(intervals.share[:, number].argmax()) if is_less else side],
                set_with_least=tests.labels[side] if is_less else None,
                p_value=p_value,
                name=name.text,
                evidence=name.evidence,
                shares=shares,
                difference=float(intervals.differences[side, number]),
                interval=(low, high),
                mix=mix,
            )
        )
    return tuple(kinds)


class _Intervals:
    """Intervals of all shares, and of the difference of each set from all others together, which hold together.

    A difference that its test finds significant is not 0 with the same confidence (Guilbaud 2008): the interval of it
    ends at 0, and leaves it out. So the differences hold together, and so do the shares: differences and shares of two
    sets of one law and 30 kinds did in 93 % of 2000 simulated pairs. With ρ < 1, a significant share can be the smaller
    share.
    """

    def __init__(self, tests: KindTests) -> None:
        n = tests.sizes[:, None] / tests.cautious
        k = tests.shares * n
        rest_k, rest_n = k.sum(0) - k, n.sum(0) - n
        # Of two sets, both differences are one.
        differences = tests.members.size // 2 if len(tests.labels) == 2 else tests.members.size
        all_of_them = tests.members.size + differences * (1 if tests.mixes is None else 2)
        confidence = 1 - level_of_each(1 - DEFAULT_CONFIDENCE, all_of_them)
        self.low, self.high = clopper_pearson(k, n, confidence)
        self.share, self.rest = k / n, rest_k / rest_n
        rest_low, rest_high = clopper_pearson(rest_k, rest_n, confidence)
        self.ends = mover((self.low, self.share, self.high), (rest_low, self.rest, rest_high))
        self.differences = self.share - self.rest
        if (within := tests.within) is not None:
            both = len(within.difference) == 1
            low, high = within.intervals(confidence)
            self.differences = np.concatenate([within.difference, -within.difference]) if both else within.difference
            self.ends = (np.concatenate([low, -high]), np.concatenate([high, -low])) if both else (low, high)
        self.mix_ends = () if tests.mixes is None else tests.mixes.intervals(confidence)


def top_level(kinds: Sequence[Kind], headings: Sequence[Kind]) -> list[Kind]:
    """Return headings, and the significant kinds under none, by the difference of shares, the largest first."""
    inside = {child for heading in headings for child in heading.children}
    alone = [kind for kind in significant(kinds, ALPHA) if kind.id not in inside]
    return sorted([*headings, *alone], key=lambda kind: -abs(kind.difference))
