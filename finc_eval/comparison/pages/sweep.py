"""The page, the notebook view and the terminal table of a sweep: how directions come and go with one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose, nan
from statistics import fmean, median

from finc_eval.comparison.direction import Direction, Role
from finc_eval.comparison.pages.comparison import titles
from finc_eval.comparison.pages.directions import mode_card, scale_of
from finc_eval.comparison.pages.facts import kernel_facts, stability
from finc_eval.comparison.pages.figures import Mark, sweep_svg
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.core.words import percent, plural, points
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.pages.tables import kinds_in_words
from finc_eval.report import Page
from finc_eval.report.exports.outline import Cell, Outline, TextTable, call, source, unreadable
from finc_eval.report.formats import optional_percent
from finc_eval.report.pages import Section, render
from finc_eval.samples.source import Samples

SYMBOLS = {"sigma": "σ", "rho": "ρ"}

DEFAULT = "compare's default"
PAPERS_RULE = "the papers' rule"

NARROWER = (
    "A sweep tests directions alone, without clusters, and by conservative intervals, so that compare may find more "
    "at the same value."
)


@dataclass(frozen=True)
class SweepRow:
    """The significant directions at one value of the parameter."""

    value: float
    marks: tuple[str, ...]  # other names of the value, such as "compare's default"
    over: int
    under: int
    difference: float | None  # largest difference of shares, without its sign; None without a direction
    stability: float | None  # mean stability of the directions with more in the generated set; None without one
    spreadness: float | None  # median spreadness; None if it is not known of any direction
    warnings: tuple[str, ...]  # warnings of the comparison that are not common to all values


COLUMNS: dict[str, Callable[[SweepRow], Cell | str]] = {
    "More, directions": lambda row: str(row.over),
    "Less, directions": lambda row: str(row.under),
    "Largest difference": lambda row: "–" if row.difference is None else percent(row.difference, 1),
    "Stability": lambda row: optional_percent(row.stability),
    "Spreadness": lambda row: "–" if row.spreadness is None else f"{row.spreadness:.2f}",
    "Notes": lambda row: "; ".join((*row.marks, *row.warnings)),
}
"""The columns of a table of values, after the value."""

VARIED = {"sigma": "Bandwidth", "rho": "Mass ratio"}  # settings that a sweep has many values of

HOW = {
    "sigma": "Each dot is a direction along which one of the two sets has significantly more. A small "
    "bandwidth σ distinguishes many narrow kinds and soon leaves every sample alone; a large one merges kinds until "
    "all look alike. Look for a range of σ over which the number of directions, their difference of shares and their "
    "spreadness change little, and stay where no warning is given.",
    "rho": "Each dot is a direction along which one of the two sets has significantly more. A kind counts if "
    "one set has more than ρ times the share of the other: at a large ρ only kinds remain that the other set "
    "hardly has.",
}

FIGURE = (
    f"Above, the difference of shares of every direction with adjusted p ≤ {ALPHA}; below, its spreadness: the trace "
    "of the covariance of the samples that are most of it, in the set that has more, over the reference's. At 1 they "
    "are as spread as the reference itself, and the direction does not show one kind of samples."
)

LEGEND = (
    "All directions here have adjusted p ≤ {}. Stability is the mean over the directions with more in the generated "
    "set: {} Spreadness is the median over the directions of both sets."
)

PAPERS = (
    " The papers' rule, of KEN and FINC, is the smallest σ, from the largest down, under which the KEN score varies by "
    "less than 0.01 between resamples. It knows nothing of the warnings."
)


def page(sweep: Sweep, samples: Mapping[str, Samples]) -> str:
    """Return the page."""
    symbol, first, said = SYMBOLS[sweep.parameter], sweep.points[0].comparison, outline(sweep)
    facts = [
        *(fact for fact in kernel_facts(first) if not fact[0].startswith(VARIED[sweep.parameter])),
        ("Generated set", first.gen),
        ("Reference set", first.ref),
        ("Intervals", "conservative, as every value is compared from sketches"),
        ("Rotation", getattr(first.settings.method, "rotation", None) or "none"),
        (
            "Directions per role",
            f"{first.settings.modes:,} at most; {first.tested:,} directions tested over both roles, at every value",
        ),
    ]
    points_of = [(point, *one) for point in sweep.points for one in _significant(point)]
    marks: dict[Role, list[Mark]] = {"over": [], "under": []}
    for point, mode, spreadness in points_of:
        size, spread = 100 * abs(mode.share_difference), nan if spreadness is None else spreadness
        marks[mode.role].append(Mark(point.value, size, spread, with_id(mode)))
    figure = sweep_svg(symbol, [point.value for point in sweep.points], marks, chosen_values(sweep))
    rows = [
        [
            with_id(mode),
            f"{point.value:.4g}",
            "generated set" if mode.role == "over" else "reference set",
            points(mode.share_difference),
            "–" if spreadness is None else f"{spreadness:.2f}",
        ]
        for point, mode, spreadness in points_of
    ]
    columns = ["Direction", symbol, "More in", "Difference", "Spreadness"]
    twin = TextTable("The directions of the figure", columns, rows, words=["More in"])
    parts = [Section("twin", "The directions of the figure as a table", table=twin)]
    sections = [
        Section("figure", f"Directions against {symbol}", FIGURE, figure=figure, parts=parts),
        Section("values", "Value by value", table=said.tables[0]),
        Section("modes", "The directions at each value", parts=list(_cards(sweep))),
        Section("settings", "Settings", facts=facts),
    ]
    return render(sweep, said, sweep.gallery_of(samples), sections=sections)


def outline(sweep: Sweep) -> Outline:
    """Return what the sweep says in all outputs."""
    symbol, first, rows = SYMBOLS[sweep.parameter], sweep.points[0].comparison, sweep_rows(sweep)
    sets = {"gen": first.gen, "ref": first.ref}
    settings = replace(first.settings, **{sweep.parameter: getattr(Settings(), sweep.parameter)})
    values = repr([row.value for row in rows])
    made = [*(source(*one) for one in sets.items()), repr(sweep.parameter), values]
    values_of = f"{plural(len(rows), 'value')} of {symbol}"
    legend = LEGEND.format(ALPHA, stability(first.settings)) + PAPERS * (sweep.parameter == "sigma")
    return Outline(
        kind=f"the same two sets under {values_of}",
        title=f"{first.gen.name} against {first.ref.name} under {values_of}",
        says=says(sweep),
        sets={info.name: info.n for info in sets.values()},
        signatures=[*dict.fromkeys(point.comparison.signature for point in sweep.points)],
        call=call("sweep", *made, settings=settings),
        tables=[
            TextTable.of(
                "Value by value",
                {symbol: lambda row: f"{row.value:.4g}", **COLUMNS},
                rows,
                words=["Notes"],
                bold="Largest difference",
                muted=[not row.over + row.under for row in rows],
                legend=legend,
            )
        ],
        warnings=common_warnings(sweep),
        failures=unreadable(sets),
        how=HOW[sweep.parameter],
    )


def _cards(sweep: Sweep) -> Iterator[Section]:
    """Yield the cards of the significant directions at each value, all on one scale: their most typical samples."""
    found = [[mode for mode, _ in _significant(point)] for point in sweep.points]
    scale, names = scale_of([mode for modes in found for mode in modes]), titles(sweep.points[0].comparison)
    for place, (row, modes) in enumerate(zip(sweep_rows(sweep), found, strict=True)):
        title = f"{SYMBOLS[sweep.parameter]} = {row.value:.4g}: {plural(len(modes), 'direction')}"
        cards = []
        for mode in modes:
            card = mode_card(mode, names, scale, sweep.shown, place=f"-{place}")
            views = tuple(view._replace(grids=view.grids[:1]) for view in card.views)
            cards.append(replace(card, views=views, folded=()))
        yield Section("", ", ".join([title, *row.marks]), cards=cards, is_open=bool(row.marks))


def sweep_rows(sweep: Sweep) -> tuple[SweepRow, ...]:
    """Return one row a value."""
    common, rows = common_warnings(sweep), []
    for point in sweep.points:
        found = _significant(point)
        over = [mode for mode, _ in found if mode.role == "over"]
        stabilities = [mode.stability for mode in over if mode.stability is not None]
        known = [spreadness for _, spreadness in found if spreadness is not None]
        row = SweepRow(
            value=point.value,
            marks=tuple(what for what, value in chosen_values(sweep).items() if isclose(value, point.value)),
            over=len(over),
            under=len(found) - len(over),
            difference=max((abs(mode.share_difference) for mode, _ in found), default=None),
            stability=fmean(stabilities) if stabilities else None,
            spreadness=median(known) if known else None,
            warnings=tuple(warning for warning in point.comparison.warnings if warning not in common),
        )
        rows.append(row)
    return tuple(rows)


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


def says(sweep: Sweep) -> dict[str, str]:
    """Return what the sweep shows in a few plain sentences."""
    symbol, found = SYMBOLS[sweep.parameter], sweep_rows(sweep)
    first, last = found[0].value, found[-1].value
    most = max(found, key=lambda row: row.over + row.under)
    tried = (
        f"{len(found)} values of {symbol} were tried, from {first:.4g} to {last:.4g}."
        if len(found) > 1
        else f"{symbol} = {first:.4g} was tried."
    )
    differ = (
        f"Most directions differ at {symbol} = {most.value:.4g}: the generated set has more of "
        f"{kinds_in_words(most.over)} than the reference set, and less of {most.under} (adjusted p ≤ {ALPHA:g})."
        if most.over + most.under
        else f"No kind of samples differs significantly under any of them (adjusted p ≤ {ALPHA:g})."
    )
    default = f"By default, compare takes {symbol} = {sweep.default:.4g}."
    sentences = {"tried": tried, "directions": differ, "narrower": NARROWER, "default": default}
    if sweep.parameter == "sigma":
        picked = "accepts none of these" if sweep.papers_rule is None else f"picks σ = {sweep.papers_rule:.4g}"
        sentences["rule"] = f"The rule of the KEN and FINC papers {picked}."
    return sentences


def _significant(point: Point) -> list[tuple[Direction, float | None]]:
    pairs = zip(point.comparison.directions, point.spreadness, strict=True)
    return [(mode, spreadness) for mode, spreadness in pairs if mode.p_value <= ALPHA]


PAGE = Page(says, outline, draw=page)
