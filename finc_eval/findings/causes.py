"""Causes: of findings that share samples, the cause is the one without which less of the other is left.

A finding explains another if, among the samples without it, at most half of the other's difference is left, or less
than all of it and not significantly. Blurred butterflies follow from a blurred quarter of a set; strokes that are gone
follow from the ones that are gone; and kinds that grow follow from a kind that is lost, as shares add to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from finc_eval.findings.finding import LACKING, Finding
from finc_eval.naming.evidence import ADJECTIVE, MOST, is_unnamed
from finc_eval.naming.questions import enrichment_p
from finc_eval.naming.traits import Trait
from finc_eval.numerics.families import holm, level_of_each
from finc_eval.numerics.inference import ALPHA

Members = Mapping[str, NDArray[np.bool_]]  # which of the samples looked at are meant, by set: "gen" and "ref"
Floats = NDArray[np.float64]

SETS = ("gen", "ref")
PARTS = ("look", "kind", "repeat", "copy", "part", "words", "column", "drift")  # findings that have members

NOTHING_LEFT = 0.01  # part of a set that is left without a finding, below which all other findings follow from it


@dataclass(frozen=True, eq=False)
class Held:
    """A finding, and the samples that it is about.

    Attributes:
        finding: the finding.
        members: which of the samples looked at have it; all of a set that has moved as a whole.
        key: name of a look, or id of a kind, by which `explains` of its cause refers to it.
        trait: what was measured, of a look.
        asked: samples that were to be of a kind, such as those whose prompts have the word that names it; None for
            kinds that are named by what their pictures look like, and without a name.
        examples: ids of samples that show it, by set.
        without_look: samples that would be of a kind if both sets had the same look; None without a look of all, and
            for kinds that are not a place of their own.
        made_by: of a look of all that unlike shares of kinds make, the key of the largest of these kinds; else "".
        others: samples of the class, or label, of a lost kind that are not of the kind; None if there are hardly any.
        share: estimate of the share of a part of pictures, where the finding has its lower bound; 0 for other findings.
        of_kind: of a class with a look, the key of the kind that its samples were of without the look; else "".
    """

    finding: Finding
    members: Members
    key: str = ""
    trait: Trait | None = None
    asked: Members | None = None
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    without_look: Members | None = None
    made_by: str = ""
    others: Members | None = None
    of_kind: str = ""
    share: float = 0.0

    @property
    def is_part(self) -> bool:
        """True if it is about some of the samples."""
        return not self.finding.whole and self.finding.kind in PARTS

    @property
    def own_set(self) -> str:
        """Label of the set that has more of it."""
        return "gen" if self.finding.is_more else "ref"

    @property
    def has_come_or_gone(self) -> bool:
        """True if the samples that were to be of it are hardly in one of the sets: a label is new or lost."""
        if self.asked is None:
            return False
        own, other = (self.asked[label].mean() for label in (self.own_set, _other(self.own_set)))
        return bool(other <= LACKING * own)

    @property
    def asked_p(self) -> float:
        """P-value of "both sets have its labels, or words of prompts, as often"; 1 for a kind without any."""
        if self.asked is None:
            return 1.0
        counts = np.array([(int(self.asked[label].sum()), len(self.asked[label])) for label in SETS])
        return min(1.0, _p_value(counts))

    @property
    def p_without_look(self) -> float:
        """P-value of "both sets would have it as often with the same look"; 1 unless it would be lost all the same."""
        if self.without_look is None:
            return 1.0
        counts = np.array([(self.without_look[label].sum(), len(self.without_look[label])) for label in SETS])
        shares = [(mask["gen"].mean(), mask["ref"].mean()) for mask in (self.members, self.without_look)]
        return min(1.0, _p_value(counts)) if all(now <= LACKING * before for now, before in shares) else 1.0

    def reach(self, other: Held) -> Members:
        """Return the samples without which another finding is looked at.

        Where another kind came in the place of this kind, samples of both are left out. A look may be of what came: of
        the set that has less of this kind, what was asked for is left in. Words that both sets have as often bring a
        look only if this kind has half of its samples.
        """
        is_kind, own = other.finding.kind == "kind", self.own_set
        has_little = (other.members[own] & self.members[own]).sum() < MOST * other.members[own].sum()
        if self.asked is None or (not is_kind and has_little and self.asked_p > ALPHA):
            return self.members
        labels = SETS if is_kind else (own,)
        return {label: mask | (self.asked[label] & (label in labels)) for label, mask in self.members.items()}


Left = tuple[float, bool]  # part of a difference that is left, and whether this explains it


def causes_of(held: Sequence[Held], *, among_kinds: bool = True) -> list[int | None]:
    """Return the place of the finding that each finding follows from; None for causes.

    Each look was found among the samples without the looks before it: none follows from another. What a whole set looks
    like has no samples of its own, and is not asked. Kinds follow from each other only `among_kinds`.
    """
    parts = [place for place, finding in enumerate(held) if finding.is_part]
    cause: list[int | None] = [None] * len(held)
    left: dict[tuple[int, int], Left] = {}
    for i, j in product(parts, repeat=2):
        if i != j and _may_bring(held[i], held[j], among_kinds):
            left[i, j] = _left_of(held[i], held[j])
    explains = {pair for pair, (_, is_explained) in left.items() if is_explained}
    for j in parts:
        firm = [i for i in parts if (i, j) in explains and ((j, i) not in explains or _is_first(i, j, held, left))]
        if firm:
            cause[j] = min(firm, key=lambda i: left[i, j][0])
    _follow_repeats(held, cause)
    _follow_names(held, cause)
    _follow_classes(held, cause)
    _explain_jointly(held, cause)
    _follow_kinds(held, cause)
    _break_circles(held, cause)
    return [_first_cause(cause, place) for place in range(len(held))]


def are_left_beside_look(held: Sequence[Held]) -> list[bool]:
    """Return for each kind whether it differs besides a look of all.

    No look changes labels and words of prompts. A look of all moves the samples of all kinds alike: a kind that is a
    place of its own, and would be gone with the same look in both sets, is lost. All kinds are one family for either
    reason: each of twenty at 5 % would say so of a kind in two of three pairs of sets of one law.
    """
    families = [[each.asked_p for each in held], [each.p_without_look for each in held]]
    level = level_of_each(ALPHA, len(families))
    return [min(p_values) <= level for p_values in zip(*(holm(family).tolist() for family in families), strict=True)]


def follow_whole_looks(held: Sequence[Held], cause: Sequence[int | None]) -> list[int | None]:
    """Return the causes of `causes_of`, with what follows from looks of all, and with looks of all that kinds make.

    Kinds follow from the first look of all that no kinds make, unless they differ beside it. A look of all that kinds
    make follows from the largest of them, or from the cause of that kind. A look of all clips follows from its drift.
    """
    of_all = [i for i, each in enumerate(held) if each.finding.kind == "look" and each.finding.is_of_all]
    drifts = {i: j for j, each in enumerate(held) for i in of_all if _drifts_as(each, held[i])}
    causes = [drifts.get(i, root) for i, root in enumerate(cause)]
    stands = next((drifts.get(i, i) for i in of_all if not held[i].made_by), None)
    if stands is not None:
        kinds = [i for i, each in enumerate(held) if each.finding.kind == "kind"]
        for i, is_left in zip(kinds, are_left_beside_look([held[i] for i in kinds]), strict=True):
            if not is_left:
                causes[i] = stands
        for i, each in enumerate(held):
            if each.finding.kind == "part":
                causes[i] = stands
    for i in of_all:
        kind = next((j for j, each in enumerate(held) if held[i].made_by and each.key == held[i].made_by), None)
        root = kind if kind is None or causes[kind] is None else causes[kind]
        if root is not None and root not in (stands, i):
            causes[i] = root
    return causes


def _drifts_as(drift: Held, look: Held) -> bool:
    """Return whether a look of all is what clips have come to over time."""
    looks = () if drift.trait is None else (drift.trait.name, *drift.trait.brings)
    return drift.finding.kind == "drift" and look.trait is not None and look.trait.name in looks


def _may_bring(one: Held, other: Held, among_kinds: bool) -> bool:
    """Return whether a finding may follow from another at all."""
    kind, brought = one.finding.kind, other.finding.kind
    if other.trait is not None and other.trait.is_asked:
        return False  # a user asked for it
    if kind == brought == "kind":
        return among_kinds
    if "part" in (kind, brought):
        return False  # see `_follow_names`
    if brought in ("repeat", "copy", "words", "drift"):
        return kind == "repeat" and brought == "copy"
    if kind == "kind":
        return one.asked is not None or _is_lost_thing(one, other)
    return brought == "kind" or kind in ("words", "drift")


def _is_lost_thing(kind: Held, look: Held) -> bool:
    """Return whether a kind says what samples are that a set lacks, and a look how they look: jellyfish are bluish.

    A kind that is named by its look says no more than this; and of a trait with a worse side, such as noise, the look
    is said.
    """
    name, lacks = kind.finding.name, not (kind.finding.is_more or look.finding.is_more)
    is_thing = not (is_unnamed(name) or name.startswith(ADJECTIVE))
    return lacks and is_thing and look.trait is not None and look.trait.bad == 0


def _is_first(i: int, j: int, held: Sequence[Held], left: Mapping[tuple[int, int], Left]) -> bool:
    """Return whether the second of two findings that explain each other follows from the first."""
    one, other = held[i], held[j]
    own, others = left[i, j][0], left[j, i][0]
    if (one.finding.kind == "kind") != (other.finding.kind == "kind"):
        kind = one if one.finding.kind == "kind" else other
        # What only its samples look like follows, however well that marks them.
        if kind.has_come_or_gone or _is_lost_thing(kind, other if one is kind else one):
            return one is kind
        return own < others or (own == others and other is kind)
    # 0.05: difference of the parts that two kinds leave of each other up to which the narrower kind is the cause.
    if abs(own - others) > 0.05:
        return own < others
    sizes = [sum(int(mask.sum()) for mask in each.reach(rest).values()) for each, rest in ((one, other), (other, one))]
    return (sizes[0], i) < (sizes[1], j)


def _follow_repeats(held: Sequence[Held], cause: list[int | None]) -> None:
    """Let a lost kind follow from repeats, or copies, that are most of the other samples of its class.

    A class that comes from three pictures has lost its usual pictures.
    """
    repeats = [place for place, finding in enumerate(held) if finding.finding.kind in ("repeat", "copy")]
    for j, kind in enumerate(held):
        if kind.others is None or not kind.others["gen"].any():
            continue
        has = kind.others["gen"]
        inside = {i: float(held[i].members["gen"][has].mean()) for i in repeats if held[i].finding.is_more}
        if inside and max(inside.values()) >= MOST:
            cause[j] = max(inside, key=lambda i: inside[i])


def _follow_names(held: Sequence[Held], cause: list[int | None]) -> None:
    """Let what pictures have a part of follow from what names these pictures: looks, kinds and copies.

    What is of the same pictures names them if it is at least half as large; a smaller look is said beside the part, and
    a smaller kind follows from it. Several names may leave nothing of a part together. What the reference has more of
    follows from a part that the set has: where pictures are changed, something is not there.
    """
    parts = [j for j, each in enumerate(held) if each.finding.kind == "part"]
    names = [i for i, each in enumerate(held) if each.is_part and i not in parts]
    together = {label: np.logical_or.reduce([held[i].members[label] for i in names]) for label in SETS}
    for j in sorted(parts, key=lambda j: held[j].finding.is_more):
        part = held[j]
        alike = [i for i in names if _left(part.members, held[i].members)[0] <= MOST]
        large = [i for i in alike if held[i].finding.size >= MOST * part.share]
        small = [i for i in alike if held[i].finding.kind == "kind"]
        changed = [i for i in parts if held[i].finding.is_more and not part.finding.is_more]
        if large or (names and _left(together, part.members)[1]):
            cause[j] = min(large or names, key=lambda i: _left(held[i].members, part.members)[0])
        elif changed:
            cause[j] = max(changed, key=lambda i: held[i].finding.size)
        else:
            cause[:] = [j if each is None and i in small else each for i, each in enumerate(cause)]


def _follow_classes(held: Sequence[Held], cause: list[int | None]) -> None:
    """Let a lost kind follow from its class with a look, and what grew by samples of that class as well.

    If gray goldfish are most of the samples that are gray, they are why the set has more gray samples.
    """
    for i, look in enumerate(held):
        kind = next((j for j, each in enumerate(held) if look.of_kind and each.key == look.of_kind), None)
        if kind is None or cause[kind] not in (None, i):
            cause[i] = cause[kind] if kind is not None else cause[i]
            continue
        cause[i], cause[kind] = None, i
        for j, other in enumerate(held):
            has = other.members["gen"]
            is_grown = other.is_part and j != i and other.finding.is_more and has.any()
            if is_grown and look.members["gen"][has].mean() >= MOST:
                cause[j] = i


def _follow_kinds(held: Sequence[Held], cause: list[int | None]) -> None:
    """Let looks follow from a kind without a name of its own that itself follows from another kind, or from words.

    What sevens became has the look of ones: it follows from the word.
    """
    roots = [None if root is None else held[root].finding.kind for root in cause]
    brought = [i for i, root in enumerate(roots) if root in ("kind", "words") and held[i].finding.kind == "kind"]
    for j, look in enumerate(held):
        if cause[j] is None and look.is_part and look.finding.kind == "look":
            found = [(i, _left(held[i].members, look.members)) for i in brought]
            firm = [i for i, (_, explains) in found if explains and not _left(look.members, held[i].members)[1]]
            cause[j] = min(firm, key=lambda i: dict(found)[i][0]) if firm else None


def _break_circles(held: Sequence[Held], cause: list[int | None]) -> None:
    """Make the largest of findings that follow from each other in a circle their cause."""
    for start in range(len(held)):
        chain, place = list[int](), start
        while (further := cause[place]) is not None and place not in chain:
            chain.append(place)
            place = further
        if place in chain:
            cause[max(chain[chain.index(place) :], key=lambda i: held[i].finding.size)] = None


def _first_cause(cause: Sequence[int | None], place: int) -> int | None:
    """Follow causes of causes to the first."""
    found = cause[place]
    while found is not None and (further := cause[found]) is not None:
        found = further
    return found


def _explain_jointly(held: Sequence[Held], cause: list[int | None]) -> None:
    """Give a kind that looks explain together, and none alone, to the look without which it differs least."""
    looks = [i for i, look in enumerate(held) if look.is_part and look.finding.kind != "kind" and cause[i] is None]
    if len(looks) < 2:
        return
    together = {label: np.logical_or.reduce([held[i].members[label] for i in looks]) for label in SETS}
    for j, kind in enumerate(held):
        if cause[j] is None and kind.is_part and kind.finding.kind == "kind" and _left(together, kind.members)[1]:
            best = min(looks, key=lambda i: _left(held[i].members, kind.members)[0])
            cause[j] = best if _left(held[best].members, kind.members)[0] < 1 else None


def _left_of(one: Held, other: Held) -> Left:
    """Return what is left of a finding without another; kinds do not overlap, and their shares are known.

    What is left of a kind without a name must be significant among all kinds: the kind was chosen among them.
    """
    if one.finding.kind != "kind" or other.finding.kind != "kind":
        return _left(one.reach(other), other.members, tests=_tests_behind(other))
    if one.asked is not None:
        return _left(one.reach(other), other.members, at_least=ALPHA)
    (own, before), (others, others_before) = (each.finding.shares or (0.0, 0.0) for each in (one, other))
    if max(own, before) > 1 - NOTHING_LEFT:
        return 0.0, True
    left = others / max(1 - own, 1e-12) - others_before / max(1 - before, 1e-12)
    part = abs(left) / max(abs(others - others_before), 1e-12)
    return part, part <= MOST


def _tests_behind(held: Held) -> float:
    """Return how many tests the p-value of a kind without a name was adjusted for; 1 of anything else."""
    if held.finding.p_value is None or not is_unnamed(held.finding.name):
        return 1.0
    counts = np.array([(int(held.members[label].sum()), len(held.members[label])) for label in SETS])
    return max(1.0, held.finding.p_value / max(_p_value(counts), 1e-300))


def _left(without: Members, members: Members, at_least: float = 1.0, tests: float = 1.0) -> Left:
    """Return the part of a difference that is left without some samples, and whether these explain it.

    With `at_least`, the difference must have such a p-value among the samples that were looked at. What is left is one
    of so many `tests`.
    """
    kept = {label: ~mask for label, mask in without.items()}
    every = np.array([(members[label].sum(), len(members[label])) for label in SETS], float)
    rest = np.array([((members[label] & kept[label]).sum(), kept[label].sum()) for label in SETS], float)
    return left_of(every, rest, at_least=at_least, tests=tests)


def left_of(
    every: Floats, rest: Floats, *, fewest: float = NOTHING_LEFT, at_least: float = 1.0, tests: float = 1.0
) -> Left:
    """Return the part of a difference of shares that is left without some samples, and whether these explain it.

    Args:
        every: samples of each of two sets that have a thing, and all, shape (2, 2).
        rest: the same of the samples that are left, shape (2, 2).
        fewest: part of a set that is left below which nothing is.
        at_least: p-value that the difference must have among all samples.
        tests: number of tests that what is left is one of.
    """
    if (rest[:, 1] < fewest * every[:, 1]).any():
        return 0.0, True
    whole, left = (-float(np.diff(each[:, 0] / np.maximum(each[:, 1], 1))[0]) for each in (every, rest))
    part = abs(left) / max(abs(whole), 1e-12)
    if at_least < 1:  # too few samples were looked at to say what is left
        return part, part <= MOST and _p_value(every) <= at_least
    return part, part <= MOST or (part < 1 and tests * _p_value(rest) > ALPHA)


def _p_value(counts: NDArray[np.int64] | Floats) -> float:
    """Return the two-sided p-value of Fisher's exact test of two sets, each with members and samples, shape (2, 2)."""
    own = np.maximum(np.rint(counts), [0, 1])
    return float(2 * min(enrichment_p(*one, *other) for one, other in (own, own[::-1])))


def _other(label: str) -> str:
    return SETS[label == SETS[0]]
