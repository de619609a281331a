"""`KindNames`: what kinds and directions are called, with all names that are said, the same in every verb."""

from __future__ import annotations

from collections.abc import Iterable

from finc_eval.core.words import quote
from finc_eval.naming.evidence import ADJECTIVE, LOOKS_LIKE, SUCH_AS, HasName, UniqueNames, starts_with_trait, unnamed

MAX_NAME = 5  # words of the name of a kind


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
        return f"{short} ({kind.id})" if self._unique.is_shared(kind) else short

    def quoted(self, kind: HasName, thing: str = "kind") -> str:
        """Return the thing and its name in quotation marks: "kind “jellyfish”", "kind like “dog”, k3,"."""
        if kind.name is None:
            return unnamed(kind.id) if thing == "kind" else f"{thing} {kind.id}"
        like = "like " * kind.name.startswith(LOOKS_LIKE)
        return f"{thing} {like}{quote(self.cut(kind))}" + f", {kind.id}," * self._unique.is_shared(kind)

    def cut(self, kind: HasName) -> str:
        """Return the first `MAX_NAME` words of the name; a noun with its example is whole."""
        words = self._unique.words(kind).split()
        if LOOKS_LIKE in (kind.name or "") and SUCH_AS in " ".join(words):
            return " ".join(words)
        return " ".join(words[:MAX_NAME]) + "…" * (len(words) > MAX_NAME)
