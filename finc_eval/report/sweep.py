"""From a sweep to HTML: how modes come and go as one parameter changes."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose, isnan
from statistics import fmean, median

from markupsafe import Markup

from finc_eval.comparison.modes import Mode, Role
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.report.pages import ALPHA, environment, kinds
from finc_eval.report.plots import Mark, sweep_svg

SYMBOLS = {"sigma": "σ", "rho": "ρ"}

DEFAULT = "compare's default"
PAPERS_RULE = "the papers' rule"


@dataclass(frozen=True)
class Row:
    """What a sweep says of one value; all but the warnings is about the significant modes.

    Attributes:
        value: of the parameter.
        marks: what else the value is, such as the default.
        over, under: how many modes are significant.
        excess: the largest; None where there is no mode.
        stability: of the over-represented modes, their mean; None where there is none.
        spreadness: the median; None where none is known.
        warnings: those that not every value of the sweep has.
    """

    value: float
    marks: tuple[str, ...]
    over: int
    under: int
    excess: float | None
    stability: float | None
    spreadness: float | None
    warnings: tuple[str, ...]


def sweep_rows(sweep: Sweep) -> tuple[Row, ...]:
    """One row a value."""
    return tuple(_row(sweep, point) for point in sweep.points)


def common_warnings(sweep: Sweep) -> tuple[str, ...]:
    """The warnings that every value of the sweep has."""
    first, *others = (point.comparison.warnings for point in sweep.points)
    return tuple(warning for warning in first if all(warning in other for other in others))


def chosen_values(sweep: Sweep) -> dict[str, float]:
    """The values to point out, by what they are; where they are the same, under one name."""
    if sweep.papers_rule is None:
        return {DEFAULT: sweep.default}
    if isclose(sweep.papers_rule, sweep.default):
        return {f"{DEFAULT} and {PAPERS_RULE}": sweep.default}
    return {DEFAULT: sweep.default, PAPERS_RULE: sweep.papers_rule}


def render_sweep(sweep: Sweep) -> str:
    """The page of a sweep as the text of one HTML file that loads nothing."""
    marks: dict[Role, list[Mark]] = {"over": [], "under": []}
    for point in sweep.points:
        for mode, spreadness in _significant(point):
            marks[mode.role].append(Mark(point.value, mode.excess, spreadness))
    symbol, values = SYMBOLS[sweep.parameter], [point.value for point in sweep.points]
    figure = sweep_svg(symbol, values, (marks["over"], marks["under"]), chosen_values(sweep))
    comparison = sweep.points[0].comparison
    return (
        environment()
        .get_template("sweep.html")
        .render(
            sweep=sweep,
            symbol=symbol,
            rows=sweep_rows(sweep),
            comparison=comparison,
            figure=Markup(figure),
            summary=summary(sweep),
            warnings=common_warnings(sweep),
            notes=(),
            alpha=ALPHA,
            version=comparison.version,
        )
    )


def summary(sweep: Sweep) -> str:
    """What the sweep shows, in a few plain sentences."""
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
            f"Most modes differ at {symbol} = {most.value:.4g}: the generated set has more of {kinds(most.over)} than "
            f"the reference set, and less of {most.under} (adjusted p ≤ {ALPHA:g})."
        )
    else:
        sentences.append(f"No kind of samples differs significantly under any of them (adjusted p ≤ {ALPHA:g}).")
    sentences.append(f"When nothing is said, compare takes {symbol} = {sweep.default:.4g}.")
    if sweep.parameter == "sigma":
        picked = "accepts none of these" if sweep.papers_rule is None else f"picks σ = {sweep.papers_rule:.4g}"
        sentences.append(f"The rule of the KEN and FINC papers {picked}.")
    return " ".join(sentences)


def _row(sweep: Sweep, point: Point) -> Row:
    found = _significant(point)
    over = [mode for mode, _ in found if mode.role == "over"]
    known = [spreadness for _, spreadness in found if not isnan(spreadness)]
    common = common_warnings(sweep)
    return Row(
        value=point.value,
        marks=tuple(what for what, value in chosen_values(sweep).items() if isclose(value, point.value)),
        over=len(over),
        under=len(found) - len(over),
        excess=max((mode.excess for mode, _ in found), default=None),
        stability=fmean(mode.stability for mode in over) if over else None,
        spreadness=median(known) if known else None,
        warnings=tuple(warning for warning in point.comparison.warnings if warning not in common),
    )


def _significant(point: Point) -> list[tuple[Mode, float]]:
    """The significant modes of a comparison, each with its spreadness."""
    pairs = zip(point.comparison.all_modes, point.spreadness, strict=True)
    return [(mode, spreadness) for mode, spreadness in pairs if mode.p_value <= ALPHA]
