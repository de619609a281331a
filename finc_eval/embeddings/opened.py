"""`OpenedSet`: a set that somebody gave, opened once; `Sets`: the sets of a verb by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, Literal, Protocol, TypeVar, cast, runtime_checkable

from finc_eval.core.errors import DataError
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import HasSpace, known_space
from finc_eval.embeddings.set_info import SetInfo, set_info

Form = Literal["samples", "embeddings", "sketch", "statistics"]
"""Forms of a set: samples, which are embedded first; embeddings; a sketch of them; their mean and covariance."""

Held = TypeVar("Held", bound=HasSpace, covariant=True)
Kept = TypeVar("Kept", bound=HasSpace)


@runtime_checkable
class Summary(Protocol):
    """Sums of a set in place of its embeddings, with some samples: a sketch."""

    @property
    def name(self) -> str | None:
        """Title of the set; None for an array."""

    @property
    def sources(self) -> Sequence[str]:
        """Digests of the sets that were added up."""

    @property
    def n(self) -> int:
        """Number of samples of the set."""

    def held(self, name: str = ...) -> Embeddings | None:
        """Return the samples that are kept; None if there are none, or their groups are unknown."""


@dataclass(frozen=True, eq=False)
class OpenedSet(Generic[Held]):
    """A set that somebody gave, opened once by its form."""

    label: str  # its role: "gen", "ref", a model …
    held: Held  # embeddings, also of samples; a sketch; or statistics
    stand_in: Embeddings | None = None  # samples that stand for a sketch where samples are counted
    given: object = None  # what somebody gave: an array, a path, images …
    form: Form = "embeddings"

    @property
    def embeddings(self) -> Embeddings | None:
        """Embeddings of the whole set; None if sums of them were given."""
        return self.held if isinstance(self.held, Embeddings) else None

    @property
    def known(self) -> Embeddings | None:
        """Samples with their columns, which checks ask for; None if sums alone are known."""
        return self.embeddings or self.stand_in

    @cached_property
    def at_hand(self) -> Embeddings:
        """Embeddings of the set, or the sample that its sketch keeps.

        Raises:
            DataError: a sketch keeps no samples, or not their groups; or statistics were given.
        """
        held = cast(object, self.held)
        if self.known is not None:
            return self.known
        if not isinstance(held, Summary):
            raise DataError(f"{self.label} holds a mean and a covariance, and no samples: pass its embeddings")
        kept = held.held(self.label)
        if kept is None:
            raise DataError(
                f"{self.label} is a sketch that keeps no samples, or not which groups they are of: pass its embeddings"
            )
        return kept

    @property
    def space(self) -> str:
        """Extractor, as name@digest."""
        return self.held.space

    @property
    def as_embedded(self) -> object:
        """Source for another verb: samples as they were embedded, which are not read again; all else as given."""
        return self.held if self.form == "samples" else self.given

    def with_rows(self, rows: HasSpace) -> OpenedSet[Held]:
        """Return the same set with other rows: its samples in groups, or some of them. A sketch keeps its sums."""
        if self.embeddings is None and isinstance(rows, Embeddings):
            return replace(self, stand_in=rows)
        return replace(self, held=rows)  # type: ignore[arg-type]  # of the same form

    def info(self) -> SetInfo:
        """Describe the set for a report."""
        held = cast(object, self.held)
        if isinstance(held, Summary):
            return set_info(held.name or self.label, None, held.n, "+".join(held.sources))
        return set_info(self.label, self.at_hand, self.at_hand.n, self.at_hand.digest)


class Sets(dict[str, OpenedSet[Kept]], Generic[Kept]):
    """The sets of a verb by their labels, each opened once; nothing adds to them."""

    @property
    def held(self) -> dict[str, Kept]:
        """Embeddings, sketch or statistics of each set."""
        return {label: opened.held for label, opened in self.items()}

    @property
    def embeddings(self) -> dict[str, Embeddings]:
        """Embeddings of the sets that have them."""
        return {label: opened.embeddings for label, opened in self.items() if opened.embeddings is not None}

    @property
    def at_hand(self) -> dict[str, Embeddings]:
        """Embeddings of each set, or the sample that its sketch keeps."""
        return {label: opened.at_hand for label, opened in self.items()}

    @property
    def known(self) -> dict[str, Embeddings]:
        """The samples that checks ask for their columns, of the sets that have any."""
        return {label: opened.known for label, opened in self.items() if opened.known is not None}

    def chosen(self, labels: Iterable[str]) -> Sets[Kept]:
        """Return the sets with these labels."""
        return Sets({label: self[label] for label in labels})

    def with_rows(self, rows: Mapping[str, HasSpace]) -> Sets[Kept]:
        """Return the same sets with other rows of those with these labels; see `OpenedSet.with_rows`."""
        return Sets(
            {label: opened.with_rows(rows[label]) if label in rows else opened for label, opened in self.items()}
        )

    def narrowed(self, parts: Mapping[str, Embeddings]) -> Sets[Kept]:
        """Return the same sets as if these parts had been given; what describes a set is still the whole."""
        return Sets({label: replace(self[label], given=part, form="embeddings") for label, part in parts.items()})

    @cached_property
    def infos(self) -> dict[str, SetInfo]:
        """Description of each set for a report."""
        return {label: opened.info() for label, opened in self.items()}

    @property
    def space(self) -> str:
        """Extractor of the sets, as name@digest."""
        return known_space(opened.space for opened in self.values())
