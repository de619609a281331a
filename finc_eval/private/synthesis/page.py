"""The page, the notebook view and the terminal text of a synthesis under differential privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from finc_eval.core.errors import UsageError
from finc_eval.core.words import percent, plural
from finc_eval.gallery.pictured import Gallery, Thumbnails, read_thumbnails
from finc_eval.private.reference.page import promises
from finc_eval.private.synthesis.learned import Learned
from finc_eval.private.synthesis.result import ALL, NOT_PRIVATE, MadeColumn, ReleasedPart, Synthesis
from finc_eval.report import Page
from finc_eval.report.drawings import bar
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call
from finc_eval.report.pages import Section, render, sections_of

SET = "synthetic"  # name of the set whose images a page shows

PARTS: dict[str, Callable[[ReleasedPart], str]] = {
    "Features": lambda part: part.features,
    "Numbers": lambda part: f"{part.numbers:,}",
    "Share of the budget": lambda part: percent(part.budget, 1),
    "Noise on each": lambda part: f"{part.noise:.3g}",
    "Discrepancy": lambda part: f"{part.discrepancy:.2f}",
}
"""Columns of the table of what was released."""


def _levels(column: MadeColumn) -> Cell:
    """Return the most frequent levels of a column with their shares, the most frequent one first."""
    # 8: most frequent levels of a column that a page shows.
    shown = sorted(zip(column.levels, column.shares, strict=True), key=lambda level: -level[1])[:8]
    lines = [f"{name} {percent(share, 1)}" for name, share in shown]
    drawn = [bar(share, text) for (_, share), text in zip(shown, lines, strict=True)]
    more = len(column.levels) - len(shown)
    return Cell(", ".join(lines), html=Markup("").join([*drawn, Markup(f"<div>and {more} more</div>" * (more > 0))]))


COLUMNS: dict[str, Callable[[MadeColumn], Cell | str]] = {
    "Column": lambda column: column.name,
    "Most frequent": _levels,
    "Moved": lambda column: f"{column.moved:.2f}",
}
"""Columns of the table of the columns that were made."""

HOW = (
    "Means of features of the private records were released once, with noise. A generator was fitted to them, and the "
    "records were drawn from it. Privacy does not get worse by what is done with the release or the records: both can "
    "be published. Whether the records serve a purpose cannot be read from the release. `finc-eval private utility` "
    "measures it on the private records, for their holder alone."
)

LEARNED = ("Records", "Discrepancy")

LEGENDS = {
    "learned": "Discrepancies from the same release. The description alone is what was public before. Columns "
    "without relations have the shares that fit the release best, and no relations to each other or to the class. "
    "Chance: as many records of such a law are related a little. All of it follows from the release, and costs no "
    "privacy.",
    "parts": "Means of features of the private records, with noise on every number. Discrepancy: the squared distance "
    "of the generator from them, over what noise alone makes of it. About 1 says that nothing but noise is left, and "
    "far more that the generator misses something.",
    "columns": "Shares of the synthetic records. Moved: how far they are from what the description assumes of the "
    "column, in total variation, from 0 to 1. All of that was learned from the release.",
}


def page(result: Synthesis, samples: Mapping[str, Any]) -> str:
    """Return the page: one HTML file that loads nothing.

    It shows images that are passed as the samples of "synthetic".
    """
    wanted = {name for names in result.shown.values() for name in names}
    for label in samples:
        if label != SET or not wanted:
            has = f"it has {SET}" if wanted else "it describes a table, and shows no samples"
            raise UsageError(f"the result has no images of {label!r}: {has}")
    pictures: Thumbnails = {}
    notes: tuple[str, ...] = ()
    if SET in samples:
        pictures, reason = read_thumbnails(samples[SET], wanted, None)
        notes = (f"Images are missing, because {reason}.",) if len(pictures) < len(wanted) else ()
    elif wanted:
        ask = f"pass samples={{{SET!r}: …}} or --samples {SET}=…, the .npz that holds them."
        notes = (f"The images are not shown: {ask}",)
    said = outline(result)
    sections = sections_of(said)
    if pictures:
        shown = {"The first images" if name == ALL else name: (SET, ids) for name, ids in result.shown.items()}
        sections.append(Section("images", "Synthetic images", samples=shown))
    return render(result, said, Gallery({SET: pictures}, notes), sections=sections)


def outline(result: Synthesis) -> Outline:
    """Return what the synthesis says in all outputs."""
    if result.guarantee is None:
        tables, epsilon, promise = [], "math.inf", NOT_PRIVATE
    else:
        tables, epsilon = [promises([result.guarantee])], f"{result.guarantee.epsilon:g}"
        promise = f"({epsilon}, {result.guarantee.delta:g})-DP"
    tables.append(TextTable.of("What was released", PARTS, result.parts, words=["Features"], legend=LEGENDS["parts"]))
    if result.shares:
        shares = [[name, percent(share, 1)] for name, share in result.shares.items()]
        tables.append(TextTable("Classes", ("Class", "Released share"), shares))
    if result.columns:
        legend, words = LEGENDS["columns"], ["Most frequent"]
        tables.append(TextTable.of("Columns", COLUMNS, result.columns, words=words, legend=legend))
    if result.learned is not None:
        tables.append(_learned(result, result.learned))
    form = "table" if result.columns else "images"
    return Outline(
        kind="synthetic records under differential privacy",
        title=f"{result.synthetic:,} synthetic records from {result.records:,} private ones",
        says=says(result),
        sets={"private": result.records, SET: result.synthetic},
        signatures=[f"{result.method}, {promise}"],
        call=call(f"privacy.synthesize_{form}", "…", f"epsilon={epsilon}", 'ledger="…"'),
        tables=tables,
        details=[] if result.guarantee is None else [f"Guarantee: {result.guarantee}."],
        warnings=[] if result.guarantee else [NOT_PRIVATE + "."],
        how=HOW,
    )


def _learned(result: Synthesis, learned: Learned) -> TextTable:
    """Return the table of what agrees with the release, and how well."""
    rows = [
        ("the description alone", f"{learned.description:.2f}"),
        ("columns without relations", f"{learned.independent:.2f}"),
        ("the synthetic records", f"{result.discrepancy:.2f}"),
        ("noise alone", "1.00"),
        ("noise and chance, without relations", f"{learned.chance:.2f}"),
    ]
    return TextTable("What was learned", LEARNED, rows, legend=LEGENDS["learned"])


def says(result: Synthesis) -> dict[str, str]:
    """Return what was released, whether the generator agrees with it, and whether it shows relations of columns."""
    agreement = (
        f"The generator is {result.discrepancy:.2f} times as far from them as noise alone would be: it needs more "
        "steps, or features that it can meet. A new run spends epsilon again."
        if not result.agrees
        else "The generator agrees with them as well as the noise allows."
    )
    released = (
        f"{plural(result.features, 'number')} about {plural(result.records, 'private record')} were released, and "
        f"{plural(result.synthetic, 'record')} drawn from a generator that was fitted to them by {result.method}."
    )
    return {"released": released, "agreement": agreement} | _relations(result)


def _relations(result: Synthesis) -> dict[str, str]:
    """Return whether relations between columns stand out from the noise; empty for images, and without noise."""
    if result.learned is None or result.guarantee is None:
        return {}
    shown = (
        "The release shows relations between columns."
        if result.learned.shows_relations
        else "Relations between columns do not stand out from the noise: do not rely on those of the synthetic records."
    )
    return {"relations": shown}


PAGE = Page(says, outline, draw=page)
