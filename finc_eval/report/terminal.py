"""Results on the terminal, in a few lines or with all tables.

In tables names and prose are wrapped to fit, and long names cut; numbers and ids never are.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from shutil import get_terminal_size

from finc_eval.core.terminal import visible
from finc_eval.core.words import join_words, one_line, plural
from finc_eval.report.exports.outline import Outline, TextTable

PLAIN_WIDTH = 100
"""Width of a table in a pipe or a log, which has none of its own; narrower terminals have plain tables, too."""

PLAIN = str.maketrans(
    {"≤": "<=", "≥": ">=", "–": "-", "−": "-", "…": "...", "×": "x", "±": "+-", "·": "*", "“": '"', "”": '"', "’": "'"}
)
"""ASCII for the signs of a table, where the reader is a log."""

MAX_COLUMNS = 120  # characters of a line of a short text
MAX_NAME_LINES = 3  # lines of a name
BREAK = re.compile(r" (?!%)")  # space at which a name may be wrapped: a number keeps its sign
HARD_SPACE = "\u00a0"  # space at which no line ends
BORDER = 3  # characters between two columns; a table has one more at its end


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: Collection[str] = (),
    prose: Collection[str] = (),
) -> None:
    """Print a table on standard output.

    Names and prose that do not fit are wrapped, and so are headings. A name has three lines at most: the first ones and
    the last one, which ends in its id. If the numbers alone are too wide, the last columns follow in further tables,
    each next to the first column. Logs and terminals of less than 100 characters get ASCII.
    """
    from rich.box import ASCII, HEAVY_HEAD
    from rich.cells import cell_len  # 0.1 s that the library need not pay
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, markup=False)
    plain = not sys.stdout.isatty() or console.is_dumb_terminal or console.width < PLAIN_WIDTH
    if plain:  # rich takes 80 columns for a dumb terminal, and does not ask a log, which may state its width
        columns_there, lines = get_terminal_size((PLAIN_WIDTH, 25))
        console.size = min(PLAIN_WIDTH, columns_there), lines
    signs, cut = (PLAIN, "...") if plain else ({}, "…")
    title, columns = visible(title).translate(signs), [visible(text).translate(signs) for text in columns]
    names, prose = ([visible(text).translate(signs) for text in texts] for texts in (names, prose))
    cells = [[visible(text).translate(signs) for text in row] for row in rows]
    wanted, least = [], []
    for column, heading in enumerate(columns):
        texts = [row[column] for row in cells]
        wanted.append(max(map(cell_len, [*heading.split(), *texts]), default=0))
        least.append(wanted[-1])
        if heading in (*names, *prose):
            longest = max((cell_len(part) for text in texts for part in text.split()), default=0)
            # 32: characters of a word in a name, such as an id, that stay on one line.
            whole = min(longest, 32) if heading in names else longest
            # 12: characters of a line of a name, or of prose, that stay where all else needs more.
            least[-1] = max(min(wanted[-1], 12), whole)
    for places in _parts(least, console.width):
        widths = _widen([wanted[i] for i in places], [least[i] for i in places], console.width)
        table = Table(
            title=None if places[1:2] > [1] else title, title_justify="left", box=ASCII if plain else HEAVY_HEAD
        )
        for column, width in zip(places, widths, strict=True):
            table.add_column(columns[column], width=width, overflow="fold")
        for row in cells:
            sized = zip(places, widths, strict=True)
            table.add_row(*(_fold(row[i], width, cut) if columns[i] in names else row[i] for i, width in sized))
        console.print(table)


def brief(outline: Outline, lines: int, width: int = MAX_COLUMNS) -> list[str]:
    """Return what was found, and what else there is room for, in at most so many lines of at most `width` characters.

    What was found comes first, in a line or more for each sentence. The first table follows if it fits, and then the
    notes that fit. The last line counts what is left out.
    """
    told, left = _wrapped_findings(outline, lines - 1, width), Counter[str]()
    for place, table in enumerate(outline.tables):
        drawn = aligned([table.columns, *table.texts(small=False)]) if place == 0 else []
        if table.rows and drawn and len(told) + len(drawn) < lines and max(map(len, drawn)) <= width:
            told += drawn
        else:
            left["table"] += 1
    for sentence in dict.fromkeys([*(f"note: {warning}" for warning in outline.warnings), *outline.details]):
        note = wrap(one_line(visible(sentence)), width)
        if len(told) + len(note) < lines:
            told += note
        else:
            left["note"] += 1
    counts = join_words([plural(count, thing) for thing, count in left.items()])
    return [*told, *([f"{counts}: --verbose"] if left else [])]


def _wrapped_findings(outline: Outline, lines: int, width: int) -> list[str]:
    """Return what was found, a sentence below the other, or as a paragraph if they are too many; the end is cut."""
    more = [f"Also found: {', '.join(outline.counted)}."] if outline.counted else []
    sentences = [one_line(visible(sentence)) for sentence in (*outline.says.values(), *more)]
    told = [line for sentence in sentences for line in wrap(sentence, width)]
    if len(told) > lines:
        told = wrap(" ".join(sentences), width)
    if len(told) > lines:
        told = [*told[: lines - 1], f"{told[lines - 1][: width - 1]}…"]
    return told


def wrap(sentence: str, width: int = MAX_COLUMNS) -> list[str]:
    """Return a sentence in lines of at most `width` characters; a number stays with its percent sign.

    Example:
        >>> from finc_eval.report.terminal import wrap
        >>> wrap("30 % is in color", width=9)
        ['30 % is', 'in color']
    """
    kept = sentence.replace(" %", f"{HARD_SPACE}%")
    return [line.replace(f"{HARD_SPACE}%", " %") for line in textwrap.wrap(kept, width, break_on_hyphens=False)]


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a line for each row, with the cells of a column below each other.

    Example:
        >>> from finc_eval.report.terminal import aligned
        >>> aligned([["set", "share"], ["gen", "5 %"]])
        ['set  share', 'gen  5 %']
    """
    texts = [[one_line(visible(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in texts]


def print_outline(outline: Outline) -> None:
    """Print a result on standard output: what was found, its tables, and what qualifies it, each sentence on a line."""
    print(one_line(outline.headline))
    for table in outline.tables:
        print_one(table)
    print(*map(one_line, outline.details), sep="\n", end="\n" if outline.details else "")
    print_notes(outline.warnings)
    print(*(one_line(str(signature)) for signature in outline.signatures), sep="\n")


def print_one(table: TextTable) -> None:
    """Print a table of a result, without its small print."""
    names = [header for header in table.headers if header not in table.words]
    print_table(table.title, table.columns, table.texts(small=False), names=names, prose=table.words)


def print_notes(warnings: Iterable[str]) -> None:
    """Print what a reader should know before trusting the numbers."""
    for warning in warnings:
        print(f"note: {one_line(warning)}")


def _fold(name: str, width: int, mark: str) -> str:
    """Return a name in lines of this width; if there are too many, the first lines, cut by a mark, and the last."""
    from rich.cells import cell_len, chop_cells, set_cell_size

    lines: list[str] = []  # a word is divided only if it is longer than a line
    for part in (part for word in BREAK.split(name) for part in chop_cells(word, width)):
        if lines and cell_len(f"{lines[-1]} {part}") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    if len(lines) <= MAX_NAME_LINES:
        return "\n".join(lines)
    whole = MAX_NAME_LINES - 2
    cut = set_cell_size(" ".join(lines[whole:-1]), width - len(mark))
    return "\n".join([*lines[:whole], f"{cut.rstrip(' ,')}{mark}", lines[-1]])


def _parts(least: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of each table, the first column in all of them."""
    parts = [[0]]
    for column in range(1, len(least)):
        if sum(least[i] + BORDER for i in (*parts[-1], column)) >= width and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(column)
    return parts


def _widen(wanted: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: from the left as much of the wanted widths as there is room for."""
    room = width - 1 - sum(size + BORDER for size in least)
    widths = []
    for most, size in zip(wanted, least, strict=True):
        widths.append(size + max(min(most - size, room), 0))
        room -= widths[-1] - size
    return widths
