"""`Outline`: contents that all outputs of a result share, and `Made`: what makes the result again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from finc_eval.core.provenance import Provenance
from finc_eval.core.signature import Signature
from finc_eval.core.words import plural

if TYPE_CHECKING:
    from finc_eval.embeddings.set_info import SetInfo

NOT_MANY = 4  # sets that a title names


class Cell(NamedTuple):
    """A cell of a table, if it is more than a text."""

    text: str  # text of all outputs
    small: str = ""  # text in small print, such as an interval, which terminals leave out
    html: Markup | str = ""  # elements instead of the texts on a page
    samples: Sequence[tuple[str, Sequence[str]]] = ()  # samples that pages and notebooks show, (label, ids) each
    anchor: str = ""  # card that the text leads to on a page
    note: str = ""  # small text below, on a page
    mark: str = ""  # class of the cell on a page, besides the class of its column
    is_stacked: bool = False  # whether pages lay the samples of two sets on each other, under a handle

    @property
    def whole(self) -> str:
        """Both texts."""
        return f"{self.text} {self.small}".strip()


@dataclass(frozen=True)
class TextTable:
    """A table, as all outputs of a result show it.

    Attributes:
        columns: headings.
        rows: cells, or texts, by row.
        names: headings of the columns of names; default: the first.
        words: headings of the columns of words; others have numbers.
        bold: heading of the column in bold on a page.
        muted: whether each row counts for nothing; empty if all rows count.
        marks: class of a heading on a page, besides the class of its column.
        legend: sentence about the table on a page.
        nothing: words of a table without rows on a page.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    names: Sequence[str] | None = None
    words: Sequence[str] = ()
    bold: str = ""
    muted: Sequence[bool] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    legend: str = ""
    nothing: str = "None."

    @classmethod
    def of(
        cls, title: str, columns: Mapping[str, Callable[[Any], Cell | str]], items: Iterable[Any], **more: Any
    ) -> TextTable:
        """Return the table of some items, a row each, from functions that return the cell of an item by heading."""
        return cls(title, [*columns], [[cell(item) for cell in columns.values()] for item in items], **more)

    @property
    def headers(self) -> Sequence[str]:
        """Headings of the columns of names."""
        return self.columns[:1] if self.names is None else self.names

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, each cell as a `Cell`."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def texts(self, *, small: bool) -> list[list[str]]:
        """Return the rows as texts, with or without small print."""
        return [[cell.whole if small else cell.text for cell in row] for row in self.cells]


@dataclass(frozen=True)
class Outline:
    """Contents that all outputs of a result share."""

    kind: str  # what it is, in a few words, such as "comparison"
    title: str  # what it is about, such as "gen against ref"
    says: Mapping[str, str]  # what was found, a sentence or two by key, in order; `Document.says` of a result
    sets: Mapping[str, int | None]  # number of samples of each set, by name; None if it is not known
    signatures: Sequence[Signature | str]  # everything that changes the numbers; one where all numbers share it
    call: str  # call from Python that makes it again
    counted: Sequence[str] = ()  # names of findings that the headline only counts
    tables: Sequence[TextTable] = ()  # tables of the findings
    details: Sequence[str] = ()  # sentences that belong to the findings and stand after the headline
    warnings: Sequence[str] = ()  # what to know before trusting the numbers
    failures: Sequence[str] = ()  # what could not be read or computed, in a sentence each
    how: str = ""  # how to read the numbers; "" for a page whose template says it
    figure: Markup | str = ""  # drawing that a notebook shows below the tables

    @property
    def headline(self) -> str:
        """Findings in plain sentences."""
        return " ".join(self.says.values())


def several(names: Iterable[str]) -> str:
    """Return the names of sets as a title has them: "a, b, c, d and 3 more"."""
    all_names = [*names]
    more = len(all_names) - NOT_MANY
    return ", ".join(all_names[:NOT_MANY]) + (f" and {more} more" if more > 0 else "")


def sizes(sets: Mapping[str, SetInfo]) -> dict[str, int | None]:
    """Return the number of samples of each set."""
    return {label: info.n for label, info in sets.items()}


def unreadable(sets: Mapping[str, SetInfo]) -> list[str]:
    """Return a sentence for each set with samples that could not be read."""
    return [
        f"{plural(info.unreadable, 'sample')} of {label} could not be read."
        for label, info in sets.items()
        if info.unreadable
    ]


ABSOLUTE = re.compile(r"^((?:[^=/]*=)?)(/.*)", re.DOTALL)
"""An absolute path as a word of a command line, alone or after its name: /images/a, a=/images/a, --ref=/images/a."""


@dataclass(frozen=True)
class Made:
    """Making of a result, as pages and texts describe it."""

    command: str
    by_command: bool
    using: str  # versions, device and git state: "finc-eval 0.1.0, torch 2.5.1; on cpu; git 0123456789ab."


def how_made(provenance: Provenance, call: str) -> Made:
    """Return the making of a result."""
    command = shareable(provenance.command)
    first = {"finc-eval": provenance.versions.get("finc-eval", "of an unknown version")}
    parts = [", ".join(f"{name} {version}" for name, version in (first | provenance.versions).items())]
    parts.append(f"on {provenance.device}")
    if provenance.git is not None:
        parts.append(f"git {provenance.git.revision[:12]}")
    if provenance.config is not None:
        parts.append(f"defaults from {PurePath(provenance.config).name}")
    return Made(command or call, command is not None, "; ".join(parts) + ".")


def shareable(command: str | None) -> str | None:
    """Return a command line with only the last part of absolute paths, as pages are passed on."""
    if command is None:
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return shlex.join(ABSOLUTE.sub(lambda match: match[1] + PurePath(match[2]).name, word) for word in words)


def call(function: str, *arguments: str, settings: object = None) -> str:
    """Return a call from Python, with the fields of the settings that are not their defaults as keywords."""
    return f"fe.{function}({', '.join([*arguments, *([] if settings is None else _keywords(settings))])})"


def source(label: str, info: SetInfo) -> str:
    """Return a set as an argument: its place if that is known, else its name as a variable's."""
    return repr(info.place) if info.source is not None else label if label.isidentifier() else "…"


def sources(sets: Mapping[str, SetInfo]) -> str:
    """Return sets by name as one argument."""
    return "{" + ", ".join(f"{label!r}: {source(label, info)}" for label, info in sets.items()) + "}"


def _keywords(settings: object) -> list[str]:
    default: Any = type(settings)()
    values = {field.name: getattr(settings, field.name) for field in fields(default)}
    return [
        f"{name}=fe.{type(value).__name__}({', '.join(_keywords(value))})"
        if is_dataclass(value)
        else f"{name}={value!r}"
        for name, value in values.items()
        if value != getattr(default, name)
    ]
