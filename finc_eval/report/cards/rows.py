"""Rows of the first table of a page: samples, name, shares and differences; further rows can be folded below one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from finc_eval.report.drawings.svg import Ink
from finc_eval.report.exports.outline import Cell


class Link(NamedTuple):
    """A link to a card: its anchor, and its words."""

    anchor: str
    words: str


@dataclass(frozen=True)
class Row:
    """A kind or a direction as the first table of a page shows it.

    Attributes:
        words: its name, as short as the others allow.
        anchor: name by which links find its card; None without one.
        id: its id, where others have the same words.
        remark: why it does not count, or what it is; "" for a row that counts.
        samples: groups of samples that it shows, (label, ids) each.
        is_group: whether it sums up the rows after it.
        below: rows that are folded below it.
        summary: words of the fold.
    """

    words: str
    cells: Sequence[Cell]
    anchor: str | None = None
    title: str = ""
    id: str = ""
    remark: str = ""
    is_muted: bool = False
    samples: Sequence[tuple[str, Sequence[str]]] = ()
    drawing: Markup | str = ""
    links: Sequence[Link] = ()
    is_group: bool = False
    below: Sequence[Row] = ()
    summary: str = ""


@dataclass(frozen=True)
class Rows:
    """The first table of a page.

    Attributes:
        legend: colors of the drawings, by the name of the set.
        linked: heading of the links; "" without any.
    """

    id: str
    caption: str
    legend: Mapping[str, Ink]
    thing: str
    samples: str
    axis: Markup
    columns: Sequence[str]
    rows: Sequence[Row]
    linked: str = ""
