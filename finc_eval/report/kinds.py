"""The page, the notebook view and the terminal table of sets divided into kinds."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.comparison.headline import missed, top_level
from finc_eval.core.words import figure, percent
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kinds import Kinds
from finc_eval.report.cards.sets import kinds_on_page
from finc_eval.report.cards.texts import UNDER, kind_columns, kind_texts
from finc_eval.report.exports.made import call, sources
from finc_eval.report.exports.outline import Outline, Table, several, sizes, unreadable
from finc_eval.report.formats import p_value
from finc_eval.report.pages import kinds_in_words, render, table_fragment
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.report.verdict import such_as
from finc_eval.samples import Samples

TITLE = f"Share of each kind in each set ({UNDER.strip()} under a heading)"


def page(result: Kinds, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    gallery = result.gallery_of(samples)
    return render(
        "kinds.html",
        result,
        outline(result),
        **kinds_on_page(result.kinds, result.headings, _titles(result), result.shown),
        pictures=gallery.pictures,
        notes=gallery.notes,
        range_of=_range,
    )


def outline(result: Kinds) -> Outline:
    """Return what the kinds say in all outputs."""
    return Outline(
        kind=f"{len(result.sets)} sets of samples, divided into kinds",
        title=several(result.sets),
        headline=summary(result),
        sets=sizes(result.sets),
        signatures=[result.signature],
        call=call("kinds", sources(result.sets), settings=result.settings),
        tables=_tables(result, intervals=True),
        warnings=result.warnings,
        failures=unreadable(result.sets),
    )


def fragment(result: Kinds) -> str:
    """Return the kinds that differ with their shares, for a notebook."""
    (rows, *_) = [table.rows for table in _tables(result, intervals=False)] or [()]
    return table_fragment(summary(result), kind_columns(_titles(result)), rows)


def show(result: Kinds) -> None:
    """Print the kinds that differ with their shares of each set."""
    for table in _tables(result, intervals=False):
        print_table(table.title, table.columns, table.rows, names=["Kind", "Set apart"])
    print(summary(result))
    print_notes(result.warnings)
    print(result.signature)


def _tables(result: Kinds, *, intervals: bool) -> list[Table]:
    titles = _titles(result)
    rows = kind_texts(result.kinds, result.headings, titles, intervals=intervals)
    return [Table(TITLE, kind_columns(titles), rows)] if rows else []


def _titles(result: Kinds) -> dict[str, str]:
    return {label: label for label in result.sets}


UNTESTED = "Whether this is more than chance was not tested: a set has too few independent samples."


def summary(result: Kinds) -> str:
    """Return what was found in a few plain sentences."""
    significant, first = result.significant(ALPHA), top_level(result.kinds, result.headings)
    sides = [
        (word, label, f"{side} in {label}")
        for word, side in (("more", "most"), ("less", "least"))
        for label in result.sets
    ]
    groups = [
        (word, label, count, [kind for kind in first if kind.side == side])
        for word, label, side in sides
        if (count := sum(kind.side == side for kind in significant))
    ]
    examples = such_as((*result.headings, *result.kinds), [(label, found) for _, label, _, found in groups])
    found = [
        f"{label} has significantly {word} of {kinds_in_words(count)}{few}"
        for (word, label, count, _), few in zip(groups, examples, strict=True)
    ]
    nothing = "No kind is significantly more or less frequent in one set"
    return " ".join([f"{'; '.join(found) or nothing}.", *_overall(result), *missed(result.detectable)])


def _overall(result: Kinds) -> list[str]:
    """Return how different the sets are over all kinds, and whether that is more than chance."""
    value = f"{percent(result.difference, 1)} (95 % interval {_range(result.difference_interval)})"
    p = result.difference_p_value
    if p is not None and p > ALPHA:
        return [f"Over all kinds together, the difference is within chance (p = {p:.2g}): an estimated {value}."]
    most = max(result.differences, key=lambda label: result.differences[label].value)
    text = (
        f"{' and '.join(result.sets)} differ in {value} of their samples"
        if len(result.sets) == 2
        else f"{most} is the most different set: {value} of its samples set it apart from all others"
    )
    tested = [] if p is not None else [UNTESTED]
    return [f"{text}{f' (p {p_value(p)})' if p is not None else ''}.", *tested]


def _range(ends: tuple[float, float]) -> str:
    return f"{_ends(ends)} %"


def _ends(ends: tuple[float, float]) -> str:
    low, high = (figure(100 * end, "z.1f") for end in ends)
    return f"{low} to {high}"
