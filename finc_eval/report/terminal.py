"""Tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

PIPE_WIDTH = 1000
"""Width of a table in a pipe, which has none of its own: every row stays on one line."""


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output; its rows are cut or wrapped on a terminal only."""
    from rich.console import Console  # 0.1 s that the library need not pay
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False).print(table)


def print_notes(warnings: Iterable[str]) -> None:
    """Print what a reader should know before trusting the numbers."""
    for warning in warnings:
        print(f"note: {warning}")
