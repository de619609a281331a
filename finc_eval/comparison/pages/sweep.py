"""The page, the notebook view and the terminal table of a sweep: how directions come and go with one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import isclose, nan
from statistics import fmean, median

from finc_eval.comparison.direction import ROLES, SETS_OF, Role
from finc_eval.comparison.pages.comparison import titles
from finc_eval.comparison.pages.directions import card_of, scale_of
from finc_eval.comparison.pages.facts import kernel_facts, stability
from finc_eval.comparison.pages.figures import Mark, sweep_svg
from finc_eval.comparison.pages.side_by_side import outline_of
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.core.words import SET_NAMES, plural, points
from finc_eval.naming.evidence import with_id
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.pages.tables import kinds_in_words
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, TextTable
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

COLUMNS: dict[str, Callable[[Point], str]] = {
    "More, directions": lambda point: str(len(point.of("over"))),
    "Less, directions": lambda point: str(len(point.of("under"))),
    "Largest difference": lambda point: optional_percent(
        max((abs(direction.share_difference) for direction, _ in point.significant), default=None), 1
    ),
    "Stability": lambda point: optional_percent(
        _over_known(fmean, [direction.stability for direction in point.of("over")])
    ),
    "Spreadness": lambda point: _spreadness(_over_known(median, [spreadness for _, spreadness in point.significant])),
}
"""The columns of a table of values, between the value and its notes."""

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
    symbol, first, said = SYMBOLS[sweep.parameter], sweep.first, outline(sweep)
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
    found = [(point, *pair) for point in sweep.points for pair in point.significant]
    marked: dict[Role, list[Mark]] = {"over": [], "under": []}
    for point, direction, spreadness in found:
        spread = nan if spreadness is None else spreadness
        marked[direction.role].append(
            Mark(point.value, 100 * abs(direction.share_difference), spread, with_id(direction))
        )
    figure = sweep_svg(symbol, [*sweep.rows], marked, chosen_values(sweep))
    rows = [
        [
            with_id(direction),
            f"{point.value:.4g}",
            SET_NAMES[SETS_OF[direction.role][0]],
            points(direction.share_difference),
            _spreadness(spreadness),
        ]
        for point, direction, spreadness in found
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
    symbol = SYMBOLS[sweep.parameter]
    under = f" under {plural(len(sweep.points), 'value')} of {symbol}"
    value: dict[str, Callable[[Point], str]] = {symbol: lambda point: f"{point.value:.4g}"}
    notes: dict[str, Callable[[Point], str]] = {"Notes": lambda point: "; ".join(_notes(sweep, point))}
    table = TextTable.of(
        "Value by value",
        value | COLUMNS | notes,
        sweep.points,
        words=["Notes"],
        bold="Largest difference",
        muted=[not point.significant for point in sweep.points],
        legend=LEGEND.format(ALPHA, stability(sweep.first.settings)) + PAPERS * (sweep.parameter == "sigma"),
    )
    return outline_of(
        sweep,
        under,
        ("sweep", repr(sweep.parameter), repr([*sweep.rows])),
        replace(sweep.first.settings, **{sweep.parameter: getattr(Settings(), sweep.parameter)}),
        kind=f"the same two sets{under}",
        says=says(sweep),
        tables=[table],
        warnings=common_warnings(sweep),
        how=HOW[sweep.parameter],
    )


def _cards(sweep: Sweep) -> Iterator[Section]:
    """Yield the cards of the significant directions at each value, all on one scale: their most typical samples."""
    found = [*sweep.significant.values()]
    scale, names = scale_of([direction for directions in found for direction in directions]), titles(sweep.first)
    for place, (value, directions) in enumerate(zip(sweep.rows, found, strict=True)):
        title = f"{SYMBOLS[sweep.parameter]} = {value:.4g}: {plural(len(directions), 'direction')}"
        names_of_value = marks(sweep, value)
        cards = []
        for direction in directions:
            card = card_of(direction, names, scale, sweep.shown, place=f"-{place}")
            views = tuple(view._replace(grids=view.grids[:1]) for view in card.views)
            cards.append(replace(card, views=views, folded=()))
        yield Section("", ", ".join([title, *names_of_value]), cards=cards, is_open=bool(names_of_value))


def marks(sweep: Sweep, value: float) -> list[str]:
    """Return other names of a value, such as "compare's default"."""
    return [name for name, chosen in chosen_values(sweep).items() if isclose(chosen, value)]


def _notes(sweep: Sweep, point: Point) -> list[str]:
    """Return other names of a value, and the warnings that not all values share."""
    common = common_warnings(sweep)
    return [*marks(sweep, point.value), *(warning for warning in point.comparison.warnings if warning not in common)]


def _over_known(mean: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    """Return a mean of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def _spreadness(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def common_warnings(sweep: Sweep) -> tuple[str, ...]:
    """Return the warnings of the sweep, and the warnings that all values share."""
    first, *others = (row.warnings for row in sweep.rows.values())
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
    symbol, values = SYMBOLS[sweep.parameter], [*sweep.rows]
    most = max(sweep.points, key=lambda point: len(point.significant))
    over, under = (len(most.of(role)) for role in ROLES)
    tried = (
        f"{len(values)} values of {symbol} were tried, from {values[0]:.4g} to {values[-1]:.4g}."
        if len(values) > 1
        else f"{symbol} = {values[0]:.4g} was tried."
    )
    differ = (
        f"Most directions differ at {symbol} = {most.value:.4g}: the generated set has more of "
        f"{kinds_in_words(over)} than the reference set, and less of {under} (adjusted p ≤ {ALPHA:g})."
        if over + under
        else f"No kind of samples differs significantly under any of them (adjusted p ≤ {ALPHA:g})."
    )
    default = f"By default, compare takes {symbol} = {sweep.default:.4g}."
    sentences = {"tried": tried, "directions": differ, "narrower": NARROWER, "default": default}
    if sweep.parameter == "sigma":
        picked = "accepts none of these" if sweep.papers_rule is None else f"picks σ = {sweep.papers_rule:.4g}"
        sentences["rule"] = f"The rule of the KEN and FINC papers {picked}."
    return sentences


PAGE = Page(says, outline, draw=page)
