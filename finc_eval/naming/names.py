"""Names of kinds and directions, from what their members have and other samples do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.classes import class_properties, is_class, overlap, says_little, within
from finc_eval.naming.evidence import CLASSIFIER, LOOKS_LIKE, MOST, SUCH_AS, TRAIT, Evidence, Name, divergence
from finc_eval.naming.properties import TEXT_COLUMNS, metadata_properties, panel_of
from finc_eval.naming.questions import MORE, Question, questions_of, trait_questions
from finc_eval.numerics.families import holm
from finc_eval.numerics.inference import ALPHA

SECOND = 0.25
"""Share of the members from which a value stands in a name that describes fewer than most, or next to another value."""

BOTH = 0.6
"""Share of the members that two values must describe together, where neither describes most, and from which a class or
noun is said without a wider noun that more of them have."""


def name_by_members(members: Sequence[Mapping[str, NDArray[np.int64]]], sets: Mapping[str, Embeddings]) -> list[Name]:
    """Name kinds or directions by properties that their members have more often than other samples.

    The properties are, in this order: values of metadata columns, the labels first, with ranges of numbers and dates,
    and words of prompts (Fisher's exact test; words are ranked by log-odds, Monroe, Colaresi and Quinn 2008); classes
    of the extractor's own last layer, where its weights are at hand; visual traits, where pictures are, and traits of
    motion, for embeddings by `motion` (Mann and Whitney's test). The p-values of all kinds are adjusted together (Holm
    1979). Members are compared with up to 1000 other samples of each set, by ranges and traits with samples of their
    own set alone. The samples of a group count once. All members are in the denominators of shares, also those without
    a value.

    A name needs substance too: a value that most of the members have, or two that most have together. Where no value of
    a column of metadata describes most, the name says "partly", of one or two that at least a quarter have. A label
    that describes most comes first; of the other sources, the one whose value tells members from others best
    (`Evidence.information`). A noun is said only of most members, with its clearest class. A trait that tells them
    apart better than a value of hardly most is the name alone. `members` are drawn at random, since the most
    typical have more in common than others.
    """
    if not members or not sets:
        return [Name(None) for _ in members]
    panel = panel_of(members, sets)
    questions = [
        question
        for properties in (*metadata_properties(panel), *class_properties(panel))
        for question in questions_of(panel, properties)
    ]
    questions += trait_questions(panel)
    adjusted = iter(holm([asked.evidence.p_value for asked in questions if asked.is_tested]).tolist())
    found: list[list[Question]] = [[] for _ in members]
    for question in questions:
        p_value = next(adjusted) if question.is_tested else 1.0
        if p_value <= ALPHA or _may_be_example(question):
            found[question.kind].append(replace(question, evidence=replace(question.evidence, p_value=p_value)))
    return [_name(mine) for mine in found]


def _name(asked: list[Question]) -> Name:
    """Name one kind from its significant properties, which come in the order of their sources.

    The example of a noun need not be significant: of dogs of a hundred breeds, no breed is.
    """
    questions = [question for question in asked if question.evidence.p_value <= ALPHA]
    by_source = [
        _best(sorted(group, key=lambda question: (-question.strength, " to " in question.evidence.value)))
        for _, group in groupby(questions, lambda question: question.evidence.source)
    ]
    phrases = [phrase for group in by_source if (phrase := _phrase(group, asked))]
    noun = max(phrases, key=lambda phrase: (phrase.is_label, phrase.information), default=None)
    traits = [
        question.evidence
        for group in by_source
        for question in group
        if question.large and question.evidence.source == TRAIT
    ]
    if (
        noun
        and not noun.is_label
        and noun.share < BOTH
        and any(trait.information > noun.information for trait in traits)
    ):
        noun = None
    # 2: traits that stand in a name.
    words = [*([noun.text] if noun else []), *(trait.value for trait in traits[:2])]
    said = [*(noun.said if noun else ()), *traits[:2]]
    others = [question.evidence for group in by_source for question in group if question.evidence not in said]
    shared = tuple(
        question.evidence
        for question in questions
        if question.large
        and question.evidence.share_members >= MOST
        and question.evidence.source != TRAIT
        and not question.is_range
    )
    return Name(", ".join(words) or None, (*(replace(part, in_name=True) for part in said), *others), shared)


@dataclass(frozen=True)
class _Phrase:
    """Values of one source that members have, in words, and a class that stands as an example of a noun."""

    text: str
    values: tuple[Evidence, ...]
    example: tuple[Evidence, ...] = ()

    @property
    def said(self) -> tuple[Evidence, ...]:
        """All values in the words."""
        return self.values + self.example

    @property
    def share(self) -> float:
        """Share of the members that have one of the values."""
        return min(1.0, sum(value.share_members for value in self.values))

    @property
    def information(self) -> float:
        """Bits by which the values together, or the example, tell a member from another sample."""
        together = divergence(self.share, min(1.0, sum(value.share_others for value in self.values)))
        return max([together, *(one.information for one in self.example)])

    @property
    def is_label(self) -> bool:
        """True if these are labels, which the user gave, of most members."""
        return self.values[0].source == "label" and self.share >= MOST


def _best(group: list[Question]) -> list[Question]:
    """Return the properties of a source, without those that a better one holds or lies in.

    Of ranges, the strongest stays that most members are in; of classes and nouns, the best of those with common
    classes, behind a wider noun where that is safer (`_wider`).
    """
    if group[0].is_range:
        return next(([question] for question in group if question.evidence.share_members >= MOST), group[:1])
    if group[0].evidence.source != CLASSIFIER:
        return group
    kept: list[Question] = []
    # What most members have goes first: a class of a third of them lies below a noun that names them.
    for question in sorted(
        group, key=lambda candidate: not (candidate.large and candidate.evidence.share_members >= MOST)
    ):
        if not any(overlap(question.evidence.value, other.evidence.value) for other in kept):
            kept.append(question)
    return [*_wider(kept[0].evidence, group), *kept]


def _wider(first: Evidence, group: Sequence[Question]) -> list[Question]:
    """Return the noun that stands before a class or a narrower noun of most members; none if that says enough.

    A layer mistakes spiders for other spiders: "spider such as barn spider", and not "barn spider". And where many more
    members are seen as a noun above it, or hardly most are seen as it, the noun is true more surely: Chihuahuas are
    "dog such as toy terrier".
    """
    share = first.share_members
    if share < MOST:
        return []
    around = [question for question in group if question.large and within(first.value, question.evidence.value)]
    generic = [
        question for question in around if is_class(first.value) and first.value.endswith(f" {question.evidence.value}")
    ]
    sure = [question for question in around if share < BOTH <= question.evidence.share_members]
    more = [
        question
        for question in around
        if question.evidence.share_members >= share + MORE and not says_little(question.evidence.value)
    ]
    return (generic or more or sure)[:1]


def _may_be_example(question: Question) -> bool:
    """Return whether it is asked of a class that members are seen as more than others."""
    return question.evidence.source == CLASSIFIER and question.strength > 0 and is_class(question.evidence.value)


def _example(noun: Evidence, asked: Sequence[Question]) -> list[Evidence]:
    """Return the class below a noun that members are seen as most, and more than others; none below a class."""
    classes = [each for each in asked if _may_be_example(each) and within(each.evidence.value, noun.value)]
    return [max(classes, key=lambda question: question.strength).evidence] if classes else []


def _phrase(questions: list[Question], asked: Sequence[Question]) -> _Phrase | None:
    """Say what members have of one source, from its values, the strongest first; None if they share nothing."""
    source, large = questions[0].evidence.source, [question for question in questions if question.large]
    if source == TRAIT:
        return None
    most = [question.evidence for question in large if question.evidence.share_members >= MOST]
    strongest = sorted(large, key=lambda question: -question.part)
    some = [question.evidence for question in strongest if question.part >= SECOND][:2]
    both = len(some) == 2 and sum(question.part for question in large if question.evidence in some) >= BOTH
    example: list[Evidence] = []
    if source == CLASSIFIER:
        # The classes after the first are its neighbors, and mostly wrong: a lion is not a cheetah.
        verb, both = LOOKS_LIKE, both and all(is_class(value.value) for value in some)
        shown = most[:1] or (some if both else [])
        example = _example(most[0], asked) if most else []
    elif source in TEXT_COLUMNS:
        shown, verb = most[:2], f"{source} with "
    else:
        shown = some if both or not most else most[:1]
        verb = ("" if both else "mostly " if most else "partly ") + ("" if source == "label" else f"{source} ")
    words = " and ".join(f"“{value.value}”" if source in TEXT_COLUMNS else value.value for value in shown)
    words = SUCH_AS.join([words, *(value.value for value in example)])
    shares = ", ".join(f"{100 * value.share_members:.0f} %" for value in (*shown, *example))
    return _Phrase(f"{verb}{words} ({shares})", tuple(shown), tuple(example)) if shown else None
