"""Results as tables on a terminal, for the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from finc_eval.report.formats import frequency, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.demo.run import DemoResult
    from finc_eval.ensemble import Holding, ModelTable
    from finc_eval.modes import Mode
    from finc_eval.releases import Change
    from finc_eval.results import Comparison
    from finc_eval.sweeps import Sweep

PIPE_WIDTH = 1000
"""A pipe has no width: rows stay on one line. Tables are as wide as they need to be."""


def print_comparison(result: Comparison) -> None:
    """The modes of both roles, and what to know of them."""

    def row(rank: int, mode: Mode) -> list[str]:
        return [
            str(rank),
            mode.id,
            f"{mode.mass_gen:.4f}",
            f"{mode.mass_ref:.4f}",
            f"{mode.ratio:.2f}",
            _with_interval(mode.excess, mode.interval),
            frequency(mode.excess_frequency),
            _p(mode.p_value),
            percent(mode.stability),
            ((mode.tails[0].gen_ids if mode.role == "over" else mode.tails[0].ref_ids) or ("",))[0],
        ]

    columns = ["", "mode", "mass gen", "mass ref", "ratio", "excess [95 %]", "≈ share", "p", "found again"]
    columns.append("most typical sample")
    for title, found in (
        ("More in gen than in ref", result.modes),
        ("Less in gen than in ref", result.under_represented),
    ):
        if found:
            _table(title, columns, [row(rank, mode) for rank, mode in enumerate(found, start=1)])
        else:
            print(f"{title}: nothing")
    error, settings = result.kernel_error, result.settings
    differ = len(result.significant())
    print(f"{differ} modes differ at family-wise level 0.05 ({result.tested} directions tested)")
    if settings.sigma is None:
        print(f"{settings.kernel} kernel: exact, without a bandwidth")
    else:
        print(f"sigma {settings.sigma:.4g} ({settings.sigma_rule}), {settings.features} frequencies")
        if error is not None:
            print(f"kernel error: rms {error.rms:.4f}, largest {error.max:.4f} of {error.pairs} pairs")
    for warning in result.warnings:
        print(f"note: {warning}")
    print(result.signature)


def print_planted(result: DemoResult) -> None:
    """What the demo planted against what was found."""
    rows = []
    for planted in result.planted:
        mode = planted.mode
        found = "not found" if mode is None else f"{mode.id}, ratio {mode.ratio:.2f}, p {mode.p_value:.0e}"
        rows.append(
            [
                planted.what,
                f"{planted.share_gen:.3f} / {planted.share_ref:.3f}",
                found,
                f"{planted.purity:.2f}",
            ]
        )
    copies = result.comparison.copies
    rows.append(
        [
            "exact copies of reference images",
            f"{result.copies_planted} images",
            f"{copies.count if copies else 0} images",
            "",
        ]
    )
    print()
    _table("Planted against found", ["planted", "share gen / ref", "found", "purity of top 50"], rows)
    print("Colouring half of the generated digits also halves its grey ones: the other grey modes are real, too.")


def print_sweep(sweep: Sweep) -> None:
    """One row a value, about the modes that are significant under it."""
    from finc_eval.report.sweep import common_warnings, sweep_rows

    rows = [
        [
            f"{row.value:.4g}",
            str(row.over),
            str(row.under),
            "" if row.excess is None else f"{row.excess:.4f}",
            "" if row.stability is None else percent(row.stability),
            "" if row.spreadness is None else f"{row.spreadness:.2f}",
            "; ".join((*row.marks, *(warning.split(":")[0] for warning in row.warnings))),
        ]
        for row in sweep_rows(sweep)
    ]
    columns = [sweep.parameter, "more", "less", "largest excess", "found again", "spreadness", ""]
    _table("Modes that differ significantly", columns, rows)
    print(f"compare's default: {sweep.parameter} {sweep.default:.4g}")
    if sweep.parameter == "sigma":
        picked = "none of these values" if sweep.papers_rule is None else f"sigma {sweep.papers_rule:.4g}"
        print(f"the papers' rule: {picked}")
    for warning in common_warnings(sweep):
        print(f"note: {warning}")


def print_models(table: ModelTable) -> None:
    """The significant modes against the sets: the mass of each in each, and the share that a model owns."""

    def cell(holding: Holding) -> str:
        width = max(holding.mass - holding.interval[0], holding.interval[1] - holding.mass)
        share = "" if holding.share is None else f", {percent(holding.share)}"
        return f"{holding.mass:.4f} ± {width:.4f}{share}"

    found = table.significant()
    if found:
        columns = ["mode", "most in", "excess [95 %]", "p", "found again", *table.sets]
        rows = [
            [
                mode.id,
                mode.owner,
                _with_interval(mode.excess, mode.interval),
                _p(mode.p_value),
                percent(mode.stability),
                *(cell(mode.holdings[label]) for label in table.sets),
            ]
            for mode in found
        ]
        _table("Mass of each mode in each set, and its share of the models' mass", columns, rows)
    print(f"{len(found)} modes differ at family-wise level 0.05 ({table.tested} directions tested)")
    others = len(table.modes) - len(found)
    if others:
        print(f"{others} more are not significant; the page and the JSON have them")


def print_changes(changes: Sequence[Change]) -> None:
    """What became of each mode from the old release to the new one."""

    def excess(mode: Mode | None) -> str:
        return "–" if mode is None else f"{mode.excess:.4f}"

    rows = [
        [
            change.status,
            change.id,
            change.role,
            f"{excess(change.old)} → {excess(change.new)}",
            _with_interval(change.change, change.interval, "+"),
        ]
        for change in changes
    ]
    if rows:
        _table("Modes of the old and the new release", ["", "mode", "role", "excess", "change [95 %]"], rows)
        if all(change.status == "unchanged" for change in changes):
            print("Nothing changed: the interval of every change holds zero.")
    else:
        print("Nothing changed: no mode is significant in either comparison.")


def _with_interval(value: float, interval: tuple[float, float], sign: str = "") -> str:
    return f"{value:{sign}.4f} [{interval[0]:{sign}.4f}, {interval[1]:{sign}.4f}]"


def _p(value: float) -> str:
    return f"{value:.1e}" if value >= 1e-16 else "< 1e-16"


def _table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False).print(table)
