"""Markdown of a result, within the size that the page of a CI job takes; names and labels in it stay text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from finc_eval.core.terminal import visible
from finc_eval.core.words import one_line, plural
from finc_eval.report.exports.outline import Made, Outline, TextTable

MAX_MARKDOWN = 900 * 1024  # bytes of a text: GitHub drops a summary of more than 1 MiB without a word
MAX_CELL = 12_000  # characters of a paragraph or a cell; a longer text is cut
MAX_SENTENCES = 40  # warnings, signatures and failures of each sort that a text has

SPECIAL = re.compile(r"[\\|<>&`*_\[\]#~$@!]|:(?=//)|(?<=www)\.")
"""Characters that begin something in Markdown, or that make a link of an address."""

LINE_BEGINS = re.compile(r"^(\d*)([-+=.)])")  # beginnings that make a list or a heading of a paragraph


def markdown(outline: Outline, made: Made, mark: str) -> str:
    """Return a result as Markdown: the headline, the warnings, the tables, their details, and how it was made.

    Rows that do not fit into 900 KiB are left out, and counted.
    """
    head = [
        f"<!-- finc-eval: {mark} -->",
        f"## {escape(outline.title)}",
        paragraph(outline.headline),
        *_write_list("Before you trust the numbers", outline.warnings),
    ]
    signatures = "\n".join(one_line(str(signature)) for signature in [*outline.signatures][:MAX_SENTENCES])
    tail = [
        *[paragraph(text) for text in outline.details[:MAX_SENTENCES]],
        "### How this was made",
        f"{escape(outline.kind).capitalize()}. Made by finc-eval.",
        _code(made.command),
        escape(made.using),
        *([_code(signatures)] if outline.signatures else []),
        *(_write_list("Failures", outline.failures) or ["Failures: none."]),
    ]
    room = MAX_MARKDOWN - sum(_size(block) for block in [*head, *tail]) - 200
    body: list[str] = []
    left_out = 0
    for table in outline.tables:
        block, missing = _table(table, room)
        room -= _size(block)
        left_out += missing
        body += [block] if block else []
    if left_out:
        are = "is" if left_out == 1 else "are"
        body.append(f"{plural(left_out, 'row')} {are} left out, see the page or the JSON file.")
    return "\n\n".join([*head, *body, *tail]) + "\n"


def paragraph(text: str) -> str:
    """Return text that is one paragraph, and nothing but text."""
    return LINE_BEGINS.sub(r"\1\\\2", escape(text))


def escape(text: str) -> str:
    """Return text on one line in which no character begins anything but itself."""
    plain = " ".join(visible(text).encode("utf-8", "backslashreplace").decode().split())
    if len(plain) > MAX_CELL:
        plain = f"{plain[:MAX_CELL]}…"
    return SPECIAL.sub(r"\\\g<0>", plain)


def _table(table: TextTable, room: int) -> tuple[str, int]:
    """Return a table, and the number of rows that do not fit."""
    rows = table.texts(small=True)
    numeric = [
        column > 0 and all(cell[:1] in "0123456789[−+<≤≥×–-." for cell in (row[column] for row in rows))
        for column in range(len(table.columns))
    ]
    title = [f"### {escape(table.title)}", ""] if table.title else []
    lines = [*title, _row(table.columns), "|" + "|".join("--:" if is_number else "---" for is_number in numeric) + "|"]
    room -= _size("\n".join(lines))
    if room < 0:
        return "", len(rows)
    for number, row in enumerate(rows):
        line = _row(row)
        room -= _size(line)
        if room < 0:
            return "\n".join(lines), len(rows) - number
        lines.append(line)
    return "\n".join(lines), 0


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(escape(cell) or " " for cell in cells) + " |"


def _code(text: str) -> str:
    """Return text as a block of code, fenced by more backticks than it has in a row."""
    plain = visible(text).encode("utf-8", "backslashreplace").decode()[: MAX_CELL * 2]
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    return f"{fence}\n{plain}\n{fence}"


def _write_list(title: str, texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    more = len(texts) - MAX_SENTENCES
    lines = [*texts[:MAX_SENTENCES], *([f"{plural(more, 'more')} in the JSON file"] if more > 0 else [])]
    return [f"**{title}**", "\n".join(f"- {paragraph(line)}" for line in lines)]


def _size(text: str) -> int:
    return len(text.encode()) + 2
