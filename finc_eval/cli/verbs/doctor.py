"""The verb that looks at the installation: doctor."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from finc_eval.cli.options import Json
from finc_eval.core.progress import terminal

DISAGREES = 1


def doctor(
    parity: Annotated[
        bool, typer.Option("--parity", help="Run the same arrays through the other libraries that are installed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what this installation is made of, and with --parity whether it gives the numbers of other libraries.

    Exit code 1 if an installed library disagrees, by more than the tolerance that is printed.
    """
    from finc_eval.doctor.diagnosis import diagnose
    from finc_eval.doctor.parity import check_parity
    from finc_eval.report.tables import print_diagnosis

    found = diagnose()
    if parity:
        with terminal() as progress:
            found = replace(found, parity=tuple(check_parity(progress)))
    print(found.to_json()) if as_json else print_diagnosis(found)
    if found.disagrees:
        raise typer.Exit(DISAGREES)
