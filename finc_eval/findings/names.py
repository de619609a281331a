"""`KindNames`: what kinds and directions are called, with all names that are said, the same in every verb."""

from __future__ import annotations

from collections.abc import Iterable

from finc_eval.core.words import quote
from finc_eval.findings.finding import LACKING, two_shares
from finc_eval.naming.evidence import (
    ADJECTIVE,
    LOOKS_LIKE,
    MOST,
    SUCH_AS,
    HasName,
    UniqueNames,
    starts_with_trait,
    unnamed,
)
from finc_eval.partitions.kind import Kind, Whole
from finc_eval.partitions.wholes import has_others

MAX_NAME = 5  # words of the name of a kind

USUAL, UNUSUAL = "usual ", "unusual "
"""Beginnings of the names of a lost and of a new kind if the set has other samples of the class that names it."""


def whole_with_others(kind: HasName) -> Whole | None:
    """Return the class or label of a kind that is rarer in the generated set, if this has others of it; else None."""
    whole = _class_of(kind)
    if whole is None or not isinstance(kind, Kind):
        return None
    return whole if kind.share_gen < kind.share_ref and has_others(kind, whole) else None


def _class_of(kind: HasName) -> Whole | None:
    """Return the class or label that a kind of two sets is a part of; None of a noun, which has other classes, too."""
    if not isinstance(kind, Kind) or {*kind.shares} != {"gen", "ref"} or SUCH_AS in (kind.name or ""):
        return None
    return kind.part_of


def usual_of(kind: HasName) -> tuple[str, Whole] | None:
    """Return "usual " or "unusual " and the class or label of most of whose samples a kind is; None of other kinds.

    Of a lost kind, the generated set has other samples of the class: the usual samples are missing, and the class is
    not. Of a new kind, the reference has other samples: the class is drawn otherwise.
    """
    whole = _class_of(kind)
    if whole is None or not isinstance(kind, Kind):
        return None
    less, most = sorted(kind.shares, key=lambda label: kind.shares[label].share)
    is_apart = kind.shares[less].share <= LACKING * kind.shares[most].share
    is_most = kind.shares[most].share >= MOST * whole.shares[most]
    if not (is_apart and is_most and has_others(kind, whole)):
        return None
    return (USUAL if less == "gen" else UNUSUAL), whole


class KindNames:
    """Short names of all kinds that are said together, by which a reader can tell them apart.

    Example:
        >>> from finc_eval.demo import example_sets
        >>> from finc_eval.findings.names import KindNames
        >>> import finc_eval as fe
        >>> kinds = fe.compare(*example_sets(), features=200).significant()
        >>> len({KindNames(kinds).noun(kind) for kind in kinds}) == len(kinds)
        True
    """

    def __init__(self, every: Iterable[HasName]) -> None:
        self._unique = UniqueNames(every)

    def noun(self, kind: HasName) -> str:
        """Return the name as the object of a sentence: "jellyfish", "samples that are darker", "unnamed kind k9".

        The id follows where others read the same.
        """
        if kind.name is None:
            return unnamed(kind.id)
        short = self.cut(kind)
        if starts_with_trait(kind.name, kind.evidence):
            short = f"samples {short}" if short.startswith("with ") else f"{ADJECTIVE}{short}"
        elif (usual := usual_of(kind)) is not None:
            short = f"{usual[0]}{short}"
        return f"{short} ({kind.id})" if self._unique.is_shared(kind) else short

    def quoted(self, kind: HasName, thing: str = "kind") -> str:
        """Return the thing and its name in quotation marks: "kind “jellyfish”", "kind like “dog”, k3,"."""
        if kind.name is None:
            return unnamed(kind.id) if thing == "kind" else f"{thing} {kind.id}"
        like = "like " * kind.name.startswith(LOOKS_LIKE)
        return f"{thing} {like}{quote(self.cut(kind))}" + f", {kind.id}," * self._unique.is_shared(kind)

    def say_usual(self, kind: Kind, usual: str, whole: Whole, of_set: str) -> str:
        """Say that the usual samples of a class are missing, or that there are unusual samples, and its whole share."""
        own, before = two_shares(kind.share_gen, kind.share_ref)
        in_all, before_in_all = two_shares(whole.share_gen, whole.share_ref)
        name = quote(self.cut(kind))
        of_all = f"{name} in all is {in_all} (reference {before_in_all})"
        return f"The {usual}{name} is {own}{of_set} (reference {before}); {of_all}."

    def cut(self, kind: HasName) -> str:
        """Return the first `MAX_NAME` words of the name; a noun with its example is whole."""
        words = self._unique.words(kind).split()
        if LOOKS_LIKE in (kind.name or "") and SUCH_AS in " ".join(words):
            return " ".join(words)
        return " ".join(words[:MAX_NAME]) + "…" * (len(words) > MAX_NAME)
