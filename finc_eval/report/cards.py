"""Cards and rows: what a page shows of a kind or a direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote as percent_encode

from markupsafe import Markup

from finc_eval.naming.evidence import Evidence
from finc_eval.report.colors import Ink
from finc_eval.report.exports.outline import Cell
from finc_eval.report.formats import printable


class Link(NamedTuple):
    """A link to a card: its anchor, and its words."""

    anchor: str
    words: str


@dataclass(frozen=True)
class CardRow:
    """A kind or a direction as the first table of a page shows it."""

    words: str  # its name, as short as the others allow
    cells: Sequence[Cell]
    anchor: str | None = None  # name by which links find its card; None without one
    title: str = ""
    id: str = ""  # its id, where others have the same words
    remark: str = ""  # why it does not count, or what it is; "" for a row that counts
    is_muted: bool = False
    samples: Sequence[tuple[str, Sequence[str]]] = ()  # groups of samples that it shows, (label, ids) each
    drawing: Markup | str = ""
    links: Sequence[Link] = ()
    is_group: bool = False  # whether it sums up the rows after it
    below: Sequence[CardRow] = ()  # rows that are folded below it
    summary: str = ""  # words of the fold


@dataclass(frozen=True)
class CardRows:
    """The first table of a page."""

    id: str
    caption: str
    legend: Mapping[str, Ink]  # colors of the drawings, by the name of the set
    thing: str
    samples: str
    axis: Markup
    columns: Sequence[str]
    rows: Sequence[CardRow]
    linked: str = ""  # heading of the links; "" without any


NOT_SIGNIFICANT = "not significant"  # why a kind or a direction does not count

TYPICAL, DRAWN = "Most typical", "Members drawn at random"  # the two ways to choose samples of a kind or of a direction


class Grid(NamedTuple):
    """Samples under a heading."""

    heading: str
    label: str
    ids: Sequence[str]
    scores: Sequence[float] | None = None  # their scores; None if they have none
    keyed: bool = False  # whether other pictures refer to these, as the samples nearest to them
    maps: Mapping[str, Markup] = MappingProxyType({})  # drawings beside some of them, by id


class CardView(NamedTuple):
    """View of a direction in one set."""

    ink: Ink
    title: str
    meaning: str
    grids: tuple[Grid, ...]


@dataclass(frozen=True)
class Seen:
    """Pictures of sets next to each other, which a page shows first.

    With a heading, such as "blurred", it shows a few samples and folds the others. A set without such samples has its
    title alone.
    """

    heading: str  # "" for none
    views: tuple[CardView, ...]
    ink: Ink = "other"
    legend: str = ""
    name: str = ""  # of the look that it shows, by which links find it
    drawing: Markup | str = ""  # how it is spread in both sets


@dataclass(frozen=True)
class PageCard:
    """A direction as a page shows it.

    Attributes:
        anchor: name by which links find the card.
    """

    id: str  # id of the direction
    title: str
    ink: Ink  # color of the set that has more
    tag: str  # role of the direction in a word or two
    is_muted: bool  # whether it does not count
    says: str  # its shares and their difference in a sentence
    drawing: Markup
    views: tuple[CardView, ...]
    facts: Mapping[str, str]  # all its numbers, by name
    evidence: tuple[Evidence, ...] = ()
    links: tuple[tuple[str, Sequence[Link]], ...] = ()  # sentences that point to other cards, each with their links
    # headings and rows of further numbers; None without any
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None
    named: tuple[tuple[str, Sequence[str]], ...] = ()  # ids of samples, each list with what they are
    folded: tuple[CardView, ...] = ()  # samples that are folded away
    notes: tuple[str, ...] = ()  # sentences that are folded away
    inside: tuple[PageCard, ...] = ()  # cards of the kinds under a heading, which are folded below it
    keys: Mapping[str, str] = field(default_factory=dict)  # values to sort and filter by
    place: str = ""  # end of the anchor, if a page has several cards of this direction

    @property
    def anchor(self) -> str:
        """Name by which links find the card."""
        return anchor(self.id, self.place)

    @property
    def reasons(self) -> tuple[Evidence, ...]:
        """The evidence that the name says; a result of an older version does not mark it."""
        return tuple(reason for reason in self.evidence if reason.in_name)

    @property
    def more_evidence(self) -> tuple[Evidence, ...]:
        """All other evidence."""
        return tuple(reason for reason in self.evidence if not reason.in_name)

    @property
    def data(self) -> Markup:
        """The keys as attributes."""
        return Markup("").join(
            Markup(' data-{}="{}"').format(key, printable(value)) for key, value in self.keys.items()
        )


@dataclass(frozen=True)
class Cards:
    """Cards under a heading; cards that do not count are folded away.

    Attributes:
        roles, sorts: values to filter and to sort by, each with its words.
        heading, others: words for the cards that are shown, and for the folded cards.
    """

    shown: Sequence[PageCard]
    folded: Sequence[PageCard]
    nothing: str  # words instead of the cards if there are none
    roles: Mapping[str, str]
    sorts: Mapping[str, str]
    things: str = "modes"
    heading: str = "that differ"
    others: str = "not significant"


def anchor(name: str, place: str = "", *, of: str = "mode") -> str:
    """Return the name by which links find a card: unlike cards have unlike names, whatever their characters are.

    `place` is its end, if a page has several cards of one direction.
    """
    return f"{of}-" + percent_encode(f"{name}{place}".encode("utf-8", "surrogatepass"), safe="").replace("%", ":")
