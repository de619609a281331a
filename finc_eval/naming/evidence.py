"""Names of kinds and directions, the evidence for each, and unlike names for all that one result shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2
from typing import Protocol, TypeVar

from finc_eval.core.record import Record
from finc_eval.core.words import quote

CLASSIFIER, TRAIT = "classifier", "trait"  # Sources of evidence that are not columns of metadata
MOST = 0.5  # share of the members that a property must describe to name the kind


@dataclass(frozen=True)
class Evidence(Record):
    """Property that members of a kind or direction, in the set with more of them, have more often than other samples.

    Attributes:
        source: origin of the property: a column of metadata such as "label" or "prompt"; "classifier" for the classes
            of the extractor's own last layer; "trait" for what the pictures look like.
        value: the property: a value of the column, a word of the prompts, a class or a noun above classes ("dog"), or a
            comparative ("brighter").
        share_members: share of the members that have it.
        share_others: share of the other samples of all sets that have it; of a trait, of the same set. A sample has a
            trait from the value on that tells members and others apart best.
        p_value: p-value of "members have it no more often than others", adjusted for everything that was asked of all
            kinds (Holm).
        in_name: whether the name says it.
    """

    source: str
    value: str
    share_members: float
    share_others: float
    p_value: float
    in_name: bool = False

    @property
    def information(self) -> float:
        """Bits by which a member, on average, shows that it is not another sample: the divergence of both shares."""
        return divergence(self.share_members, self.share_others)


def divergence(share: float, others: float) -> float:
    """Return the divergence of a share from a smaller share, in bits; 0 if it is not smaller."""
    # 0.001: share of other samples that a property counts as having at least: few others show no smaller one.
    p, q = share, max(others, 0.001)
    terms = [a * log2(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0 and b > 0]
    return sum(terms) if p > q else 0.0


@dataclass(frozen=True)
class Name(Record):
    """Name of a kind or direction, and what supports it.

    Attributes:
        text: the name, such as "mostly 3 (94 %), brighter"; None if nothing describes most of the members.
        evidence: significant properties of the members, and the example of a noun, which need not be significant. Those
            that the name says come first, then by source, the strongest first. Of classes and nouns that have classes
            in common, the best stays, or two that the name says.
        shared: all properties that most members have, and clearly fewer others, without traits and ranges.
    """

    text: str | None
    evidence: tuple[Evidence, ...] = ()
    shared: tuple[Evidence, ...] = ()

    @property
    def noun(self) -> str:
        """The name as a noun without shares, "" without a name; traits are adjectives: "samples that are brighter"."""
        text = _drop_traits(_drop_shares(self.text or ""), self.text, self.evidence)
        return f"{ADJECTIVE}{text}" if starts_with_trait(self.text, self.evidence) else text


WORD = re.compile(r"[^\W_]+")

ADJECTIVE = "samples that are "  # beginning of a noun that is made of traits


PARTLY = "partly "  # beginning of the name of a kind if no value describes most of its members

LOOKS_LIKE = "looks like "
"""Beginning of a name that the extractor's classes gave, which need not be the classes of the samples."""

SUCH_AS = " such as "  # between a noun and its clearest class, as in "food such as pizza"

SLIGHT = "what differs has no name, such as many small changes"
"""Sentence on sets that differ where no kind and no look does."""

SHARES = re.compile(r" \([\d %,]+\)")  # the shares of members in a name, such as " (50 %, 41 %)"
BETWEEN_PARTS = re.compile(r", | and ")  # words between the parts of a name, which may come in any order


class HasName(Protocol):
    """Whatever has an id, a name with evidence, and a title, the id without a name: a kind, or a direction."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def title(self) -> str:
        """The name, or the id without a name."""

    @property
    def name(self) -> str | None:
        """The name; None without one."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence for the name."""


AnyNamed = TypeVar("AnyNamed", bound=HasName)


class UniqueNames:
    """Distinct names of the kinds or directions of a result.

    A name is as short as the others allow: without the shares of members and, where it says more, without traits. Where
    another has the same short name, traits distinguish them, or else ids.
    """

    def __init__(self, named: Iterable[HasName]) -> None:
        known = [*named]
        self._short = Counter(_reading(_without_traits(kind)) for kind in known)
        self._full = Counter(_reading(_without_shares(kind)) for kind in known)

    def words(self, named: HasName) -> str:
        """Return the name, with traits only if they distinguish it; the id of an unnamed kind."""
        if named.name is None:
            return unnamed(named.title)
        short, full = _without_traits(named), _without_shares(named)
        return full if self._short[_reading(short)] > 1 and self._full[_reading(full)] == 1 else short

    def is_shared(self, named: HasName) -> bool:
        """Return whether others have the same words, so that ids must distinguish them."""
        return self._short[_reading(self.words(named))] > 1

    def title(self, named: HasName) -> str:
        """Return the whole name, with the id where others read the same but for their shares."""
        return f"{named.title}, {named.id}" if self._full[_reading(_without_shares(named))] > 1 else named.title

    def kind(self, named: HasName) -> str:
        """Return the kind of samples as the object of a sentence."""
        if named.name is None:
            return f"samples of {unnamed(named.id)}"
        words = self.words(named)
        if starts_with_trait(named.name, named.evidence):
            text = f"{ADJECTIVE}{quote(words)}"
        elif named.name.startswith(LOOKS_LIKE):
            text = f"samples that look like {quote(words)}"
        elif words.startswith(PARTLY):
            text = f"samples that are partly {quote(words.removeprefix(PARTLY))}"
        else:
            text = quote(words)
        return f"{text}, {named.id}" if self.is_shared(named) else text

    def examples(self, groups: Iterable[Sequence[AnyNamed]], count: int) -> list[list[AnyNamed]]:
        """Return the first kinds of each group, up to a number, without kinds that read like an earlier kind."""
        taken: set[frozenset[str]] = set()
        chosen: list[list[AnyNamed]] = []
        for group in groups:
            chosen.append([])
            for kind in group:
                reading = _reading(self.words(kind))
                if len(chosen[-1]) < count and reading not in taken:
                    taken.add(reading)
                    chosen[-1].append(kind)
        return chosen


KIND_ID = re.compile(r"k\d+")  # id of a kind, which directions do not have


UNNAMED = "unnamed kind "  # beginning of the words for a kind without a name


def unnamed(mode_id: str) -> str:
    """Return the words for a kind without a name, such as "unnamed kind k9"; for directions, the id alone."""
    return f"{UNNAMED}{mode_id}" if KIND_ID.fullmatch(mode_id) else mode_id


def is_unnamed(noun: str) -> bool:
    """Return whether a noun is that of a kind without a name, whose id each division of samples gives anew."""
    return noun.startswith(UNNAMED)


def read_alike(one: HasName, other: HasName) -> bool:
    """Return whether two kinds or directions have names that read the same."""
    named = one.name is not None and other.name is not None
    return named and _reading(_without_shares(one)) == _reading(_without_shares(other))


def with_id(kind: HasName) -> str:
    """Return the name with the id, as tables have it; the id alone without a name."""
    return kind.id if kind.title == kind.id else f"{kind.title}, {kind.id}"


def _without_shares(kind: HasName) -> str:
    return _drop_shares(kind.title)


def _without_traits(kind: HasName) -> str:
    """Return a name without shares and traits; traits alone stay."""
    return _drop_traits(_without_shares(kind), kind.name, kind.evidence)


def _drop_shares(text: str) -> str:
    return SHARES.sub("", text).removeprefix("mostly ").removeprefix(LOOKS_LIKE)


def _drop_traits(text: str, name: str | None, evidence: Iterable[Evidence]) -> str:
    """Return the text of a name without its traits; traits alone stay."""
    for part in () if starts_with_trait(name, evidence) else evidence:
        if part.source == TRAIT:
            text = text.replace(f", {part.value}", "")
    return text


def starts_with_trait(text: str | None, evidence: Iterable[Evidence]) -> bool:
    """Return whether a name has traits alone: they stand behind whatever else it has."""
    return any(part.source == TRAIT and (text or "").startswith(part.value) for part in evidence)


def _reading(text: str) -> frozenset[str]:
    """Return what a reader takes from a name: its parts, in whatever order."""
    return frozenset(BETWEEN_PARTS.split(text))


def in_common(kinds: Sequence[HasName], others: Iterable[HasName]) -> str | None:
    """Return the words that all names of some kinds share and no others have, as "coloured" of coloured-0; or None."""
    words_of_each = [_words(kind) for kind in kinds]
    taken = {word for kind in others for word in _words(kind)}
    shared = (
        [word for word in words_of_each[0] if all(word in words for words in words_of_each)]
        if len(words_of_each) > 1
        else []
    )
    return " ".join(shared) if shared and taken and taken.isdisjoint(shared) else None


def _words(kind: HasName) -> list[str]:
    """Return the words of the values that name a kind, without the traits of its pictures."""
    named = [part.value for part in kind.evidence if part.source != TRAIT and part.value in (kind.name or "")]
    return list(dict.fromkeys(word for value in named for word in WORD.findall(value)))
