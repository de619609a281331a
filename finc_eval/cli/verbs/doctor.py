"""The verb doctor: what the installation consists of, and whether it agrees with other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from finc_eval.cli.exit_codes import VerdictExit
from finc_eval.cli.options import Json, Quiet, shown
from finc_eval.cli.output import print_json
from finc_eval.doctor.diagnosis import Diagnosis, diagnose
from finc_eval.doctor.parity import Outcome, check_parity
from finc_eval.report.terminal import print_table

DISAGREES = 1
"""Exit code if an installed library gives different numbers."""


def doctor(
    parity: Annotated[
        bool, typer.Option("--parity", help="Compute the same numbers with the other libraries that are installed.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what this installation is made of, and with --parity whether it gives the numbers of other libraries.

    The exit code is 1 if an installed library differs by more than the tolerance that is printed.
    """
    found = diagnose()
    if parity:
        with shown(quiet) as progress:
            found = replace(found, parity=tuple(check_parity(progress)))
    if as_json:
        print_json(found)
    else:
        print_diagnosis(found)
    if found.disagrees:
        raise VerdictExit(DISAGREES)


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print a diagnosis as tables."""
    rows = [[name, version or "not installed"] for name, version in diagnosis.versions.items()]
    rows.append(["CUDA", diagnosis.cuda or "torch is built without"])
    rows += [["device", device] for device in diagnosis.devices]
    for folder in diagnosis.folders:
        state = f"{folder.used / 1e9:.2f} GB" if folder.exists else "not made yet"
        access = "" if folder.writable else ", cannot be written"
        rows.append([folder.purpose, f"{folder.path}: {state}, {folder.free / 1e9:.0f} GB free{access}"])
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
    checks_by_note: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.note:
            checks_by_note.setdefault(outcome.note, []).append(f"{outcome.metric} of {outcome.library}")
    for note, checks in checks_by_note.items():
        print(f"{', '.join(checks)}: {note}")
