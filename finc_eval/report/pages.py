"""The skeleton of all pages, the sections that most of them consist of, and the view of a notebook."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from finc_eval.core.serialize import Document
from finc_eval.gallery.counts import LEAD_SAMPLES, shown_if_muted
from finc_eval.gallery.pictured import Gallery
from finc_eval.gallery.thumbnails import SMALL_EDGE
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards import Cards, PageCard, anchor
from finc_eval.report.drawings import Axis
from finc_eval.report.exports.outline import Cell, Outline, TextTable, how_made
from finc_eval.report.formats import optional_percent, p_value, printable

NO_GALLERY = Gallery({})  # pictures of a page that shows no samples
ON_PAPER = {"rows": 6, "heat": 12, "board": 24, "forest": 12, "cards": 2, "members": 60}
"""Rows of tables, by their form, warnings, and cards of a page that is printed in short: pages of all types of results
then have at most two sheets of A4 (`tests/browser/test_family_in_browser.py`)."""

WHISKER_WIDTH = 160  # width of an interval drawing, in its own units; 6 are kept free at each end


def scale(values: Sequence[float]) -> Axis:
    """Return the scale of a drawing that these values fill."""
    return Axis(min(values), max(values), 6, WHISKER_WIDTH - 6)


def draw_intervals(
    text: str,
    title: str,
    rows: Sequence[tuple[str, str, float, tuple[float, float], str]],
    scale: Axis,
    ticks: Sequence[float] = (),
) -> Cell:
    """Return a cell with an interval, which a page draws below others.

    `rows` have class, name, estimate, interval and words of each estimate.
    """
    macros: Any = environment().get_template("whiskers.html").module
    drawing = macros.whiskers(rows, lambda value: f"{scale.at(value):.1f}", WHISKER_WIDTH, title, ticks)
    return Cell(text, html=Markup("{}<span>{}</span>").format(drawing, printable(text)), mark="interval")


@cache
def environment() -> Environment:
    """Return the environment of the templates: their folder, escaping and filters."""
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader("finc_eval.report"), PackageLoader("finc_eval", "")]
        ),  # of the kit; of pages
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=printable,
    )
    made.filters["p_value"], made.filters["percent"] = p_value, optional_percent
    made.globals |= {
        "on_paper": ON_PAPER,
        "anchor": anchor,
        "lead_samples": LEAD_SAMPLES,
        "small_edge": SMALL_EDGE,
        "shown_if_muted": shown_if_muted,
    }
    made.filters["count"] = lambda value: f"{value:,}"
    made.filters["unbroken"] = lambda text: _unbroken(escape(printable(text)))
    made.filters["first_in_bold"] = _first_in_bold
    return made


END_OF_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z“\d])")


def _unbroken(text: Markup) -> Markup:
    """Return a text whose lines do not end before "%"."""
    return Markup(str(text).replace(" %", "&nbsp;%"))


def _first_in_bold(text: str) -> Markup:
    """Return a headline as HTML, with its first sentence in bold."""
    first, *rest = END_OF_SENTENCE.split(str(printable(text)), maxsplit=1)
    return _unbroken(Markup(" ").join([Markup("<b>{}</b>").format(first), *rest]))


NAVIGATION = "<!-- navigation -->"  # place of the links to the sections of a page
PREVIEWS = "/* previews */"  # place of the moving pictures of the clips that a page shows
MOVING = re.compile(r'data-moving="([^"]*)"')

SECTION = re.compile(r'<h2 id="([\w-]+)"[^>]*>(.*?)</h2>', re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A section of a page, whose parts come in the order of the attributes."""

    id: str  # name by which links find it
    title: str
    legend: str = ""
    figure: Markup | str = ""
    maps: Mapping[str, Markup] = field(default_factory=dict)  # maps side by side, by what is above each
    view: Markup | str = ""  # view of a notebook
    table: TextTable | None = None
    texts: Sequence[str] = ()
    # ids of samples to show, by a heading; the label of their set is the first of each pair
    samples: Mapping[str, tuple[str, Sequence[str]]] | None = None
    cards: Cards | Sequence[PageCard] | None = (
        None  # cards with their own heading and tools, or a plain sequence of cards
    )
    parts: Sequence[Section] = ()  # sections that are folded
    facts: Sequence[tuple[str, object]] = ()  # names and values; the value of a set is its `SetInfo`
    is_open: bool = False  # whether it is unfolded at first, if it is a part


def sections_of(outline: Outline) -> list[Section]:
    """Return a section for each table of an outline; its details follow the last table."""
    last = len(outline.tables)
    return [
        Section(
            f"table-{number}", table.title, table.legend, table=table, texts=outline.details if number == last else ()
        )
        for number, table in enumerate(outline.tables, start=1)
    ]


def render(
    result: Document,
    outline: Outline,
    gallery: Gallery = NO_GALLERY,
    /,
    template: str = "base.html",
    sections: Sequence[Section] | None = None,
    **context: Any,
) -> str:
    """Return the page of a result, from what all its outputs say: by default a section for each table."""
    return frame(
        template,
        outline,
        result.mark,
        result=result,
        made=how_made(result.provenance, outline.call),
        version=result.provenance.version,
        pictures=gallery.pictures,
        previews={
            f"{label}/{name}": picture.uri
            for label, pictures in gallery.pictures.items()
            for name, picture in pictures.items()
            if picture.is_moving
        },
        notes=gallery.notes,
        members_at=getattr(result, "folder_of_members", ""),
        sections=sections_of(outline) if sections is None else sections,
        **{"folds": getattr(result, "folds", {}), **context},
    )


def frame(
    template: str, outline: Outline, mark: str, /, styles: Sequence[str] = ("report.css",), **context: Any
) -> str:
    """Return a page of the family: header, links to its sections, policy, styles and script are the same on all."""
    style, script = Markup("\n").join(map(_asset, styles)), _asset("report.js")
    shared: dict[str, Any] = {
        "style": style,
        "script": script,
        "style_hash": hash_of(style),
        "script_hash": hash_of(script),
        "navigation": Markup(NAVIGATION),
        "moving": Markup(PREVIEWS),
        "outline": outline,
        "alpha": ALPHA,
        "mark": mark,
        "summary": outline.headline,
        "warnings": outline.warnings,
        "forest": None,
        "map": None,
        "seen": (),
        "sections": (),
        # sections before the warnings: what a page shows first, if it has no list and no map
        "leading": 0 if context.get("forest") or context.get("map") else 1,
        "pictures": {},
        "previews": {},
        "colors": {},  # classes of sets at the top of a page that have another than that of their label
        "notes": (),
        "folds": {},  # members that cards have folded, by the id of the card
        "members_at": "",  # folder of the pages with all members of kinds; "" without one
        "has_pictures": lambda view: any(context["pictures"].get(grid.label) for grid in view.grids),
    }
    text = environment().get_template(template).render({**shared, **context})
    links = (f'<li><a href="#{name}">{Markup(heading).striptags()}</a></li>' for name, heading in SECTION.findall(text))
    previews = context.get("previews", {})
    moving = {key: previews[key] for key in sorted({unescape(name) for name in MOVING.findall(text)})}
    return text.replace(NAVIGATION, "".join(links), 1).replace(PREVIEWS, htmlsafe_json_dumps(moving), 1)


def notebook_view(outline: Outline, gallery: Gallery) -> str:
    """Return the headline, the tables and the warnings of an outline, for a notebook; it takes on its colors."""
    tables = outline.tables or [TextTable("", [""], [])]
    context = {"outline": outline, "tables": tables, "pictures": gallery.pictures, "notes": gallery.notes}
    return environment().get_template("fragment.html").render(context)


@cache
def _asset(name: str) -> Markup:
    loader = environment().loader
    assert loader is not None
    return Markup(loader.get_source(environment(), name)[0].strip())


def hash_of(text: str) -> str:
    """Return the digest by which a policy of a page allows a style or a script."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
