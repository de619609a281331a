"""Tables on the terminal: names are cut and prose is wrapped to fit, numbers and ids never are."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from finc_eval.core.terminal import visible

PIPE_WIDTH = 1000
"""Width of a table in a pipe, which has none of its own: every row stays on one line."""

LEAST_WIDTH = 12
"""Characters of a name, or of a line of prose, that stay where all else needs more."""

BORDER = 3
"""Characters between two columns; a table has one more at its end."""


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: Collection[str] = (),
    prose: Collection[str] = (),
) -> None:
    """Print a table on standard output.

    On a terminal, names are cut with "…" where they do not fit, save for what follows their last comma, such as an id,
    and prose and headings are wrapped. If the numbers alone are too wide, the last columns follow in further tables,
    each beside the first column.

    Args:
        title: title of the table.
        columns: headings.
        rows: cells.
        names: headings of the columns that may be cut.
        prose: headings of the columns that may be wrapped between words.
    """
    from rich.cells import cell_len  # 0.1 s that the library need not pay
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False)
    cells = [[visible(text) for text in row] for row in rows]
    wanted, least = [], []
    for place, heading in enumerate(columns):
        texts = [row[place] for row in cells]
        word = max(map(cell_len, heading.split()), default=0)
        wanted.append(max([word, *map(cell_len, texts)]))
        longest = [cell_len(part) for text in texts for part in text.split()] if heading in prose else []
        least.append(max([min(wanted[-1], LEAST_WIDTH), *longest]) if heading in (*names, *prose) else wanted[-1])
    for places in _parts(least, console.width):
        widths = _widened([wanted[i] for i in places], [least[i] for i in places], console.width)
        table = Table(title=None if places[1:2] > [1] else visible(title), title_justify="left")
        for place, width in zip(places, widths, strict=True):
            table.add_column(visible(columns[place]), width=width)
        for row in cells:
            sized = zip(places, widths, strict=True)
            table.add_row(*(_cut(row[i], width) if columns[i] in names else row[i] for i, width in sized))
        console.print(table)


def print_notes(warnings: Iterable[str]) -> None:
    """Print what a reader should know before trusting the numbers."""
    for warning in warnings:
        print(f"note: {warning}")


def _cut(name: str, width: int) -> str:
    """Return a name in so many characters; what follows its last comma stays, since it tells rows apart."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(name) <= width:
        return name
    _, comma, last = name.rpartition(", ")
    room = width - cell_len(f"…, {last}")
    if comma and room > 0:
        return f"{set_cell_size(name, room).rstrip(' ,')}…, {last}"
    return last if comma and cell_len(last) <= width else f"{set_cell_size(name, width - 1)}…"


def _parts(least: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of each table, the first column in all of them."""
    parts = [[0]]
    for place in range(1, len(least)):
        if sum(least[i] + BORDER for i in (*parts[-1], place)) >= width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(place)
    return parts


def _widened(wanted: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: from the left as much of the wanted ones as there is room for."""
    room = width - 1 - sum(size + BORDER for size in least)
    widths = []
    for most, size in zip(wanted, least, strict=True):
        widths.append(size + max(min(most - size, room), 0))
        room -= widths[-1] - size
    return widths
