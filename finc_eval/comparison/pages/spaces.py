"""The page, the notebook view and the terminal table of two sets in several embedding spaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from finc_eval.comparison.pages.comparison import titles
from finc_eval.comparison.pages.side_by_side import outline_of
from finc_eval.comparison.spaces import SAME, Spaces, adjust
from finc_eval.core.words import join_words, percent, plural
from finc_eval.gallery.pictured import Pictures
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.pages.map import MapOnPage, map_on_page
from finc_eval.partitions.pages.tables import TEXT_SAMPLES, kind_row
from finc_eval.report import Page
from finc_eval.report.colors import PAIR
from finc_eval.report.exports.outline import Cell, Outline, TextTable
from finc_eval.report.formats import number, optional_percent, p_value
from finc_eval.report.pages import Section, render, sections_of
from finc_eval.samples.source import Samples

HOW = (
    "Each space has kinds of its own. Its p-values are multiplied by the number of spaces, so that a false kind in any "
    f"of them has probability {ALPHA:g} at most; intervals of shares hold together within a space. Two kinds are one, "
    f"seen by both spaces, if they have {percent(SAME)} or more of their samples in common (Jaccard index) and differ "
    "in the same direction. Samples that one space holds together and another does not are found by SPEC, whether the "
    "sets differ or not."
)


def outline(result: Spaces) -> Outline:
    """Return what the spaces say in all outputs."""
    names = list(result.comparisons)
    return outline_of(
        result,
        f", by {join_words(names)}",
        ("compare", f"extractor={names!r}"),
        replace(result.first.settings, sigma=None),
        kind=f"two sets of samples in {plural(len(names), 'embedding space')}",
        says=says(result),
        tables=[_spaces(result), *_kinds(result), _clusters(result)],
        warnings=result.warnings,
        how=HOW,
    )


def page(result: Spaces, samples: Mapping[str, Samples]) -> str:
    """Return the page: the tables, with a map of each space before them."""
    said, gallery = outline(result), result.gallery_of(samples)
    first, *others = sections_of(said)
    return render(result, said, gallery, sections=[first, *_maps(result, gallery.pictures), *others])


def _maps(result: Spaces, pictures: Pictures) -> list[Section]:
    """Return the maps of all spaces side by side, as a section; none without maps.

    A kind is in color if it differs over all spaces together, as in the list.
    """
    found: dict[str, MapOnPage] = {}
    for name, comparison in result.comparisons.items():
        kinds = [replace(kind, p_value=adjust(kind.p_value, result.comparisons)) for kind in comparison.kinds]
        drawn = map_on_page(
            comparison.map, kinds, dict(zip(PAIR, titles(comparison), strict=True)), PAIR, pictures, has_cards=False
        )
        found |= {} if drawn is None else {name: drawn}
    if not found:
        return []
    texts = [f"{name}: {drawing.legend}" for name, drawing in found.items()]
    parts = [Section("", f"{name} as a table", table=drawing.table) for name, drawing in found.items()]
    maps = {name: drawing.figure for name, drawing in found.items()}
    return [Section("map", "A map of each space", maps=maps, texts=texts, parts=parts)]


def says(result: Spaces) -> dict[str, str]:
    """Return what was found in a few plain sentences."""
    if not result.kinds:
        return {"nothing": "No kind differs significantly in any space."}
    sentences = {}
    for name in result.comparisons:
        kinds = [kind for kind in result.kinds if kind.space == name]
        alone = [kind for kind in kinds if len(kind.seen_by) == 1]
        text = f"{plural(len(kinds), 'kind')} {'differs' if len(kinds) == 1 else 'differ'} in {name}"
        few = join_words([f"“{result.kind_of(kind).title}”" for kind in alone[:TEXT_SAMPLES]])
        which = "no other space shows" if len(result.comparisons) > 2 else "the other space does not show"
        shared = [
            f"“{result.kind_of(kind).title}” also in {join_words(kind.seen_by[1:])}"
            for kind in kinds
            if kind not in alone
        ]
        parts = [text, *shared[:TEXT_SAMPLES], *([f"{which} {few}"] if alone else [])]
        sentences[name] = "; ".join(parts) + "."
    return sentences


def _spaces(result: Spaces) -> TextTable:
    rows: list[list[Cell | str]] = []
    for name, comparison in result.comparisons.items():
        ends, p = comparison.difference_interval or (0.0, 1.0), comparison.difference_p_value
        interval = f"[{', '.join(percent(end, 1) for end in ends)}]"
        adjusted = "–" if p is None else p_value(adjust(p, result.comparisons))
        kinds = sum(kind.space == name for kind in result.kinds)
        rows.append([name, Cell(optional_percent(comparison.difference, 1), interval), adjusted, str(kinds)])
    columns = ["Space", "Difference", "Adj. p", "Kinds that differ"]
    return TextTable("How different the sets are in each space", columns, rows)


def _kinds(result: Spaces) -> list[TextTable]:
    named = {label: label.capitalize() for label in result.pictured_sets()}
    rows: list[list[Cell | str]] = []
    for seen in result.kinds:
        kind = replace(result.kind_of(seen), p_value=seen.p_value)
        parts = [
            f"{name}: {found.id} ({percent(found.jaccard)} in common)"
            for name, found in seen.elsewhere.items()
            if found.id
        ]
        also = join_words(parts) if len(seen.seen_by) > 1 else f"no space{'; ' + join_words(parts) if parts else ''}"
        rows.append([seen.space, *kind_row(with_id(kind), kind, named), also])
    shares = [f"{name}, %" for name in named.values()]
    columns = ["Space", "Kind", *shares, "Difference, points", "Adj. p", "Also seen by"]
    return (
        [TextTable("Kinds that differ", columns, rows, names=["Kind"], words=["Space", "Also seen by"])] if rows else []
    )


def _clusters(result: Spaces) -> TextTable:
    return TextTable.of(
        "Samples that one space holds together and another does not",
        {
            "Together in": lambda cluster: Cell(
                cluster.space, samples=[(label, ids[: result.shown]) for label, ids in cluster.ids.items()]
            ),
            "Not in": lambda cluster: cluster.other,
            "Most are of": lambda cluster: with_id(result.kind(cluster.space, cluster.kind)),
            "Eigenvalue": lambda cluster: number(cluster.eigenvalue),
        },
        result.clusters,
        words=["Not in", "Most are of"],
    )


PAGE = Page(says, outline, draw=page)
