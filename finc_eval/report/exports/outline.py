"""`Outline`: contents that all outputs of a result share: the frame of its page, Markdown, and the row of an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finc_eval.core.signature import Signature
from finc_eval.core.words import counted
from finc_eval.embeddings.set_info import SetInfo

NOT_MANY = 4
"""Sets that a title names."""


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Outline:
    """Contents that all outputs of a result share.

    Attributes:
        kind: what it is, in a few words, such as "comparison of two sets of samples".
        title: what it is about, such as "gen against ref".
        headline: what was found, in plain sentences.
        sets: number of samples of each set, by name; None where it is not known.
        signatures: everything that changes the numbers; one where all numbers share it.
        call: call from Python that makes it again.
        tables: tables of the findings.
        details: sentences that belong to the findings and stand after the headline.
        warnings: what to know before trusting the numbers.
        failures: what could not be read or computed, in a sentence each.
    """

    kind: str
    title: str
    headline: str
    sets: Mapping[str, int | None]
    signatures: Sequence[Signature | str]
    call: str
    tables: Sequence[Table] = ()
    details: Sequence[str] = ()
    warnings: Sequence[str] = ()
    failures: Sequence[str] = ()


def texts_of(item: Any, columns: Mapping[str, Callable[[Any], str]]) -> list[str]:
    """Return an item as the row of a table."""
    return [text(item) for text in columns.values()]


def several(names: Iterable[str]) -> str:
    """Return the names of sets as a title has them: "a, b, c, d and 3 more"."""
    found = [*names]
    more = len(found) - NOT_MANY
    return ", ".join(found[:NOT_MANY]) + (f" and {more} more" if more > 0 else "")


def sizes(sets: Mapping[str, SetInfo]) -> dict[str, int | None]:
    """Return the number of samples of each set."""
    return {label: info.n for label, info in sets.items()}


def unreadable(sets: Mapping[str, SetInfo]) -> list[str]:
    """Return a sentence for each set with samples that could not be read."""
    return [
        f"{counted(info.unreadable, 'sample')} of {label} could not be read." for label, info in sets.items()
        if info.unreadable
    ]  # fmt: skip
