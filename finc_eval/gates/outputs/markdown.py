"""The verdict as Markdown for the page of a CI job, within what such pages take."""

from __future__ import annotations

from finc_eval.core.terminal import visible
from finc_eval.gates.verdict import Limit, Verdict

MAX_SUMMARY_BYTES = 900 * 1024
"""Size of a summary: GitHub drops one of more than 1 MiB without a word."""

HEAD = (
    "| limit | verdict | value | interval | margin | seen from | samples to decide |\n|---|---|--:|--:|--:|--:|--:|\n"
)


def markdown(verdict: Verdict) -> str:
    """Return the verdict as Markdown: those limits first that need a person, and the last ones left out if need be."""
    head = f"## Release gate: {verdict.overall}\n\n{verdict.summary}\n\n"
    tail = f"\n{verdict.family}\n\n`{visible(str(verdict.signature))}`\n"
    warnings = "".join(f"- {_cell(warning)}\n" for warning in verdict.warnings)
    tail = (f"\n{warnings}" if warnings else "") + tail
    left = MAX_SUMMARY_BYTES - len((head + HEAD + tail).encode()) - 200
    rows: list[str] = []
    for limit in verdict.by_urgency:
        row = _row(limit)
        left -= len(row.encode())
        if left < 0:
            break
        rows.append(row)
    out = len(verdict.limits) - len(rows)
    more = f"\n{out} row{'s' * (out != 1)} left out, see verdict.html.\n" if out else ""
    return head + HEAD + "".join(rows) + more + tail


def _row(limit: Limit) -> str:
    ends = "–" if limit.interval is None else f"{limit.number(limit.interval[0])} … {limit.number(limit.interval[1])}"
    margin = f"{'≤' if limit.harm == 'high' else '≥'} {limit.number(limit.margin)}"
    needed = f"{limit.needed:,}" if limit.needed else "–"
    name = _cell(f"{limit.name}: {limit.note}" if limit.note and limit.verdict != "held" else limit.name)
    verdict = f"**{limit.verdict}**" if limit.verdict in ("regressed", "missing", "undecided") else limit.verdict
    numbers = [limit.number(limit.value), ends, margin, limit.number(limit.detectable), needed]
    return "| " + " | ".join([name, verdict, *numbers]) + " |\n"


def _cell(text: str) -> str:
    """Return text that is one cell, and nothing but text."""
    plain = visible(text).replace("\n", " ")
    for character in "\\|<>`*_[]":
        plain = plain.replace(character, "\\" + character)
    return plain
