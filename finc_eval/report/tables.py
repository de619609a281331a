"""Terminal tables of scores and of the installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finc_eval.report.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.doctor.diagnosis import Diagnosis
    from finc_eval.doctor.parity import Outcome
    from finc_eval.metrics.evaluate import Scores
    from finc_eval.metrics.score import Score


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


def p_value_text(value: float) -> str:
    """A p-value as a cell of a table."""
    return f"{value:.1e}" if value >= 1e-16 else "< 1e-16"
