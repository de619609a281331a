"""`finc-eval doctor schema`: the form of the JSON of a result."""

from __future__ import annotations

from typing import Annotated

import typer

from finc_eval.cli.output import print_json
from finc_eval.core.checks import check_choice
from finc_eval.report import RESULTS, result_class


def schema(
    type_name: Annotated[
        str | None, typer.Argument(metavar="[TYPE]", help='Type of result, such as "comparison".')
    ] = None,
) -> None:
    """Print the JSON Schema of a type of result, or list the types.

    The type of a result is the entry "type" of its JSON.
    """
    if type_name is None:
        print(*RESULTS, sep="\n")
        return
    check_choice("TYPE", type_name, RESULTS)
    print_json(result_class(type_name).json_schema())
