"""The page, the notebook view and the terminal table of a sweep: how modes come and go with one parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isclose, nan
from statistics import fmean, median

from markupsafe import Markup

from finc_eval.comparison.direction import Direction, Role
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.core.words import counted, percent
from finc_eval.naming.unique_names import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.cards.card import Card
from finc_eval.report.cards.modes import mode_card, scale_of
from finc_eval.report.comparison import titles
from finc_eval.report.drawings.plots import Mark, sweep_svg
from finc_eval.report.exports.made import call, source
from finc_eval.report.exports.outline import Outline, Table, texts_of, unreadable
from finc_eval.report.formats import optional_percent
from finc_eval.report.pages import kinds_in_words, render
from finc_eval.report.terminal import print_notes, print_table
from finc_eval.samples import Samples

SYMBOLS = {"sigma": "σ", "rho": "ρ"}

DEFAULT = "compare's default"
PAPERS_RULE = "the papers' rule"

NARROWER = (
    "A sweep tests directions alone, without clusters, and by conservative intervals, so that compare may find more "
    "at the same value."
)


@dataclass(frozen=True)
class Row:
    """The significant modes at one value of the parameter.

    Attributes:
        marks: other names of the value, such as "compare's default".
        difference: largest difference of shares, without its sign; None without a mode.
        stability: mean stability of the over-represented modes that directions found; None without one.
        spreadness: median spreadness; None where it is not known of any mode.
        warnings: warnings of the comparison that are not common to all values.
    """

    value: float
    marks: tuple[str, ...]
    over: int
    under: int
    difference: float | None
    stability: float | None
    spreadness: float | None
    warnings: tuple[str, ...]


COLUMNS: dict[str, Callable[[Row], str]] = {
    "More, modes": lambda row: str(row.over),
    "Less, modes": lambda row: str(row.under),
    "Largest difference": lambda row: "–" if row.difference is None else percent(row.difference, 1),
    "Stability": lambda row: optional_percent(row.stability),
    "Spreadness": lambda row: "–" if row.spreadness is None else f"{row.spreadness:.2f}",
}
"""The columns of a table of values, on the page and on the terminal."""


def page(sweep: Sweep, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    gallery = sweep.gallery_of(samples)
    marks: dict[Role, list[Mark]] = {"over": [], "under": []}
    for point in sweep.points:
        for mode, spreadness in _significant(point):
            size, spread = 100 * abs(mode.share_difference), nan if spreadness is None else spreadness
            marks[mode.role].append(Mark(point.value, size, spread, with_id(mode)))
    symbol, values = SYMBOLS[sweep.parameter], [point.value for point in sweep.points]
    rows = sweep_rows(sweep)
    columns: dict[str, Callable[[Row], str]] = {symbol: _value_and_marks, **COLUMNS}
    if any(row.warnings for row in rows):
        columns["Warnings"] = lambda row: "; ".join(row.warnings)
    figure = sweep_svg(symbol, values, marks, chosen_values(sweep))
    return render(
        "sweep.html",
        sweep,
        outline(sweep),
        symbol=symbol,
        columns=columns,
        rows=rows,
        muted=lambda row: not row.over + row.under,
        comparison=sweep.points[0].comparison,
        figure=figure,
        modes=[(point.value, with_id(one), one, known) for point in sweep.points for one, known in _significant(point)],
        cards_of=_cards(sweep),
        pictures=gallery.pictures,
        notes=gallery.notes,
    )


def outline(sweep: Sweep) -> Outline:
    """Return what the sweep says in all outputs."""
    symbol, first, rows = SYMBOLS[sweep.parameter], sweep.points[0].comparison, sweep_rows(sweep)
    sets = {"gen": first.gen, "ref": first.ref}
    settings = replace(first.settings, **{sweep.parameter: getattr(Settings(), sweep.parameter)})
    values = repr([row.value for row in rows])
    made = [*(source(*one) for one in sets.items()), repr(sweep.parameter), values]
    values_of = f"{counted(len(rows), 'value')} of {symbol}"
    return Outline(
        kind=f"the same two sets under {values_of}",
        title=f"{first.gen.name} against {first.ref.name} under {values_of}",
        headline=summary(sweep),
        sets={info.name: info.n for info in sets.values()},
        signatures=[*dict.fromkeys(point.comparison.signature for point in sweep.points)],
        call=call("sweep", *made, settings=settings),
        tables=[Table("Value by value", [symbol, *COLUMNS, "Notes"], [_cells(row) for row in rows])],
        warnings=common_warnings(sweep),
        failures=unreadable(sets),
    )


def _cells(row: Row) -> list[str]:
    notes = "; ".join((*row.marks, *row.warnings))
    return [f"{row.value:.4g}", *texts_of(row, COLUMNS), notes]


def _cards(sweep: Sweep) -> list[tuple[float, list[Card]]]:
    """Return the cards of the significant modes at each value, all on one scale: their most typical samples."""
    found = [(point.value, [mode for mode, _ in _significant(point)]) for point in sweep.points]
    scale = scale_of([mode for _, modes in found for mode in modes])
    names = titles(sweep.points[0].comparison)
    return [
        (value, [_typical_only(mode_card(mode, names, scale, sweep.shown, place=f"-{place}")) for mode in modes])
        for place, (value, modes) in enumerate(found)
    ]


def _typical_only(card: Card) -> Card:
    views = tuple(view._replace(grids=view.grids[:1]) for view in card.views)
    return replace(card, views=views, folded=())


def show(sweep: Sweep) -> None:
    """Print the significant modes value by value."""
    rows = [
        [
            f"{row.value:.4g}",
            *texts_of(row, COLUMNS),
            "; ".join((*row.marks, *(warning.split(":")[0] for warning in row.warnings))),
        ]
        for row in sweep_rows(sweep)
    ]
    print_table("Modes that differ significantly", [sweep.parameter, *COLUMNS, "Notes"], rows, prose=["Notes"])
    print(f"{DEFAULT}: {sweep.parameter} {sweep.default:.4g}")
    if sweep.parameter == "sigma":
        picked = "none of these values" if sweep.papers_rule is None else f"sigma {sweep.papers_rule:.4g}"
        print(f"the papers' rule: {picked}")
    print(NARROWER)
    print_notes(common_warnings(sweep))


def _value_and_marks(row: Row) -> str:
    marks = (Markup(' <span class="ns">{}</span>').format(mark) for mark in row.marks)
    return Markup(f"{row.value:.4g}") + Markup("").join(marks)


def sweep_rows(sweep: Sweep) -> tuple[Row, ...]:
    """Return one row a value."""
    return tuple(_row(sweep, point) for point in sweep.points)


def common_warnings(sweep: Sweep) -> tuple[str, ...]:
    """Return the warnings of the sweep, and the warnings that all values share."""
    first, *others = (point.comparison.warnings for point in sweep.points)
    common = (warning for warning in first if all(warning in other for other in others))
    return tuple(dict.fromkeys((*sweep.warnings, *common)))


def chosen_values(sweep: Sweep) -> dict[str, float]:
    """Return the values to point out, by name; equal values share one name."""
    if sweep.papers_rule is None:
        return {DEFAULT: sweep.default}
    if isclose(sweep.papers_rule, sweep.default):
        return {f"{DEFAULT} and {PAPERS_RULE}": sweep.default}
    return {DEFAULT: sweep.default, PAPERS_RULE: sweep.papers_rule}


def summary(sweep: Sweep) -> str:
    """Return what the sweep shows in a few plain sentences."""
    symbol, found = SYMBOLS[sweep.parameter], sweep_rows(sweep)
    first, last = found[0].value, found[-1].value
    most = max(found, key=lambda row: row.over + row.under)
    sentences = [
        f"{len(found)} values of {symbol} were tried, from {first:.4g} to {last:.4g}."
        if len(found) > 1
        else f"{symbol} = {first:.4g} was tried."
    ]
    if most.over + most.under:
        sentences.append(
            f"Most modes differ at {symbol} = {most.value:.4g}: the generated set has more of "
            f"{kinds_in_words(most.over)} than the reference set, and less of {most.under} (adjusted p ≤ {ALPHA:g})."
        )
    else:
        sentences.append(f"No kind of samples differs significantly under any of them (adjusted p ≤ {ALPHA:g}).")
    sentences += [NARROWER, f"By default, compare takes {symbol} = {sweep.default:.4g}."]
    if sweep.parameter == "sigma":
        picked = "accepts none of these" if sweep.papers_rule is None else f"picks σ = {sweep.papers_rule:.4g}"
        sentences.append(f"The rule of the KEN and FINC papers {picked}.")
    return " ".join(sentences)


def _row(sweep: Sweep, point: Point) -> Row:
    found = _significant(point)
    over = [mode for mode, _ in found if mode.role == "over"]
    stabilities = [mode.stability for mode in over if mode.stability is not None]
    known = [spreadness for _, spreadness in found if spreadness is not None]
    common = common_warnings(sweep)
    return Row(
        value=point.value,
        marks=tuple(what for what, value in chosen_values(sweep).items() if isclose(value, point.value)),
        over=len(over),
        under=len(found) - len(over),
        difference=max((abs(mode.share_difference) for mode, _ in found), default=None),
        stability=fmean(stabilities) if stabilities else None,
        spreadness=median(known) if known else None,
        warnings=tuple(warning for warning in point.comparison.warnings if warning not in common),
    )


def _significant(point: Point) -> list[tuple[Direction, float | None]]:
    """Return the significant modes of a comparison, each with its spreadness."""
    pairs = zip(point.comparison.directions, point.spreadness, strict=True)
    return [(mode, spreadness) for mode, spreadness in pairs if mode.p_value <= ALPHA]
