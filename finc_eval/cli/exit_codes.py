"""What all verbs share: errors as one sentence and an exit code, never a traceback."""

from __future__ import annotations

import io
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from finc_eval.core.errors import FincEvalError

BAD_INPUT, INTERRUPTED = 3, 130


class Verbs(TyperGroup):
    """Turns what a user can cause into one sentence on stderr and an exit code, instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        for stream in (sys.stdout, sys.stderr):
            # File names need not be text, nor need the terminal know every letter.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except FincEvalError as error:
            print(f"finc-eval: {error}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as error:
            print(
                "finc-eval: interrupted; what is finished is kept, and the same command goes on from there",
                file=sys.stderr,
            )
            raise typer.Exit(INTERRUPTED) from error
