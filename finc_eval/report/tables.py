"""Results as tables on a terminal, for the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from finc_eval.report.formats import frequency, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.comparison.changes import Change
    from finc_eval.comparison.methods import MethodTable
    from finc_eval.comparison.models import Holding, ModelTable
    from finc_eval.comparison.modes import Mode
    from finc_eval.comparison.result import Comparison
    from finc_eval.comparison.sweep import Sweep
    from finc_eval.demo.found import Experiment, Planted
    from finc_eval.demo.run import DemoResult
    from finc_eval.doctor.diagnosis import Diagnosis
    from finc_eval.doctor.parity import Outcome
    from finc_eval.metrics.evaluate import Scores
    from finc_eval.metrics.score import Score

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
            p_value_text(mode.p_value),
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
            print_table(title, columns, [row(rank, mode) for rank, mode in enumerate(found, start=1)])
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


def print_demo(result: DemoResult) -> None:
    """The comparison of the digits, and of all experiments what was planted against what was found."""
    print_comparison(result.digits.comparison)
    copies = result.digits.comparison.copies
    count = copies.count if copies else 0
    copied = ["exact copies of reference images", f"{result.copies_planted} images", f"{count} images", "", ""]
    print_planted(result.digits, copied)
    print("Coloring half of the generated digits also halves its gray ones: the other gray modes are real, too.")
    for experiment in result.real:
        print_planted(experiment)


def print_scores(result: Scores) -> None:
    """Scores with their intervals and floors, and below them what pins and qualifies each."""

    def row(score: Score) -> list[str]:
        interval = "" if score.interval is None else f"[{score.interval[0]:.6g}, {score.interval[1]:.6g}]"
        return [score.key, f"{score.value:.6g}", interval, "" if score.floor is None else f"{score.floor:.6g}"]

    if result.scores:
        columns = ["metric", "value", "95 %", "floor"]
        print_table(f"{result.gen} against {result.ref}", columns, [row(score) for score in result.scores])
    for score in result.scores:
        print(score.signature)
        for note in score.notes:
            print(f"  note: {note}")


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """What an installation is made of, and how it agrees with other libraries."""
    rows = [[name, version or "not installed"] for name, version in diagnosis.versions.items()]
    rows.append(["CUDA", diagnosis.cuda or "torch is built without"])
    rows += [["device", device] for device in diagnosis.devices]
    for folder in diagnosis.folders:
        state = f"{folder.used / 1e9:.2f} GB" if folder.exists else "not made yet"
        access = "" if folder.writable else ", cannot be written"
        rows.append([folder.what, f"{folder.path}: {state}, {folder.free / 1e9:.0f} GB free{access}"])
    print_table("This installation", ["what", "here"], rows)
    if diagnosis.parity is not None:
        _print_parity(diagnosis.parity)


def _print_parity(outcomes: Sequence[Outcome]) -> None:
    def number(value: float | None, digits: str = ".8g") -> str:
        return "" if value is None else f"{value:{digits}}"

    columns = ["metric", "library", "ours", "theirs", "relative difference", "tolerance", ""]
    rows = [
        [
            outcome.metric,
            f"{outcome.library} {outcome.version or ''}".strip(),
            number(outcome.ours),
            number(outcome.theirs),
            number(outcome.difference, ".1e"),
            number(outcome.tolerance, ".0e"),
            outcome.verdict,
        ]
        for outcome in outcomes
    ]
    print()
    print_table("The same random arrays through other libraries", columns, rows)
    told: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.note:
            told.setdefault(outcome.note, []).append(f"{outcome.metric} of {outcome.library}")
    for note, of in told.items():
        print(f"{', '.join(of)}: {note}")


def print_planted(experiment: Experiment, *more: list[str]) -> None:
    """What an experiment planted against what was found."""

    def row(planted: Planted) -> list[str]:
        mode = planted.mode
        return [
            planted.what,
            f"{planted.share_gen:.3f} / {planted.share_ref:.3f}",
            "not found" if mode is None else f"{mode.id}, ratio {mode.ratio:.2f}, p {mode.p_value:.0e}",
            f"{planted.purity:.2f}",
            f"{planted.recall:.2f}",
        ]

    found = sum(planted.mode is not None for planted in experiment.planted)
    title = f"{experiment.title}: planted against found"
    columns = ["planted", "share gen / ref", "found", "purity of top 50", "recall"]
    print()
    print_table(title, columns, [*map(row, experiment.planted), *more])
    print(f"{found} of {len(experiment.planted)} planted kinds are found")


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
    print_table("Modes that differ significantly", columns, rows)
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
                p_value_text(mode.p_value),
                percent(mode.stability),
                *(cell(mode.holdings[label]) for label in table.sets),
            ]
            for mode in found
        ]
        print_table("Mass of each mode in each set, and its share of the models' mass", columns, rows)
    print(f"{len(found)} modes differ at family-wise level 0.05 ({table.tested} directions tested)")
    others = len(table.modes) - len(found)
    if others:
        print(f"{others} more are not significant; the page and the JSON have them")


def print_methods(table: MethodTable) -> None:
    """The kinds against the methods: rank and excess of every mode, in parentheses where it is not significant."""
    from finc_eval.report.methods import cells, groups
    from finc_eval.report.pages import ALPHA, METHOD_NAMES

    def cell(rank: int, mode: Mode) -> str:
        text = f"{rank}. {mode.excess:.4f}"
        return text if mode.p_value <= ALPHA else f"({text})"

    titles = {"over": "More in gen than in ref", "under": "Less in gen than in ref"}
    for role, _, _, found in groups(table):
        rows = [
            [kind.name, *("; ".join(cell(*one) for one in cells(table, method, kind)) for method in table.comparisons)]
            for kind in found
        ]
        if rows:
            columns = ["kind", *(METHOD_NAMES[method] for method in table.comparisons)]
            print_table(titles[role], columns, rows)
        else:
            print(f"{titles[role]}: nothing significant")
    for warning in table.warnings:
        print(f"note: {warning}")
    for one in table.comparisons.values():
        print(one.signature)


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
        print_table("Modes of the old and the new release", ["", "mode", "role", "excess", "change [95 %]"], rows)
        if all(change.status == "unchanged" for change in changes):
            print("Nothing changed: the interval of every change holds zero.")
    else:
        print("Nothing changed: no mode is significant in either comparison.")


def _with_interval(value: float, interval: tuple[float, float], sign: str = "") -> str:
    return f"{value:{sign}.4f} [{interval[0]:{sign}.4f}, {interval[1]:{sign}.4f}]"


def p_value_text(value: float) -> str:
    """A p-value as a cell of a table."""
    return f"{value:.1e}" if value >= 1e-16 else "< 1e-16"


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table on stdout, never cut where that is no terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False).print(table)
