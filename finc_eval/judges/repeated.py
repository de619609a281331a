"""Votes that stand several times: a file twice, exports that overlap, a table that was joined with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from math import ceil, gcd, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import plural
from finc_eval.judges.tables import exact_text

Integers = NDArray[np.int64]

CHANCE = (
    0.01  # expected runs of votes that two parts of a table share by chance, above which a run does not count as a copy
)
AGREE = 0.75  # taken part of pairs that a voter judges as before: 16 of 16 by chance have probability .01
LEAST_UNLIKE = 10  # unlike votes from which equal counts of all are not chance: 1 of 1 024 tables has them
LEAST_RUN = 5  # votes of a run that is a copy, however rare each of them is


def once(texts: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[Any]]) -> tuple[list[int], list[str]]:
    """Return the rows of votes that count, each vote once, and sentences on the others.

    Equal rows may be votes of their own: of other samples of a prompt, or of several people without names. They are
    copies if all rows stand equally often, if they follow each other as others do, or if a voter has more of them than
    chance explains.

    Args:
        texts: columns of votes.
        columns: all columns, whose further ones tell votes apart.
    """
    codes = _codes([*texts.values(), *_further(texts, columns)])
    n, notes = len(codes), []
    rows = _without_runs(codes, _least_run(texts["winner"]))
    rows = rows[_without_multiples(codes[rows])]
    if any(texts["voter"]):
        left = {name: [column[row] for row in rows] for name, column in texts.items()}
        rows = rows[_without_excess(left, codes[rows])]
    if gone := n - len(rows):
        stand = "stands" if gone == 1 else "stand"
        notes.append(
            f"{plural(gone, 'vote')} of {n:,} {stand} twice, as from a file given twice or exports that overlap: each "
            "vote counts once"
        )
    alike = len(rows) - len({*codes[rows].tolist()})
    if alike and any(texts["voter"]):
        notes.append(f"{plural(alike, 'vote')} of {len(rows):,} equal another vote of the same voter, and count")
    return rows.tolist(), [*notes, *_both_ways(texts, rows)]


def _further(texts: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[Any]]) -> list[list[str]]:
    """Return further columns, but for those that number the rows."""
    found = []
    for name, values in columns.items():
        if name not in texts and name.strip():
            cells = [exact_text(value) for value in values]
            if not all(cell.isdecimal() for cell in cells) or len({*cells}) < len(cells):
                found.append(cells)
    return found


def _codes(columns: Sequence[Sequence[str]]) -> Integers:
    """Return a number of each row that equal rows share."""
    numbers: dict[tuple[str, ...], int] = {}
    rows = zip(*columns, strict=True)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)


def _agreement(texts: Sequence[str]) -> float:
    """Return the probability that two texts drawn at random are equal."""
    return sum(count**2 for count in Counter(texts).values()) / len(texts) ** 2


def _least_run(winners: Sequence[str]) -> int:
    """Return how many votes in a row must be equal to be a copy: two people may vote on prompts in one order."""
    agree = min(_agreement(winners), 0.9)  # more, and no run would be long enough
    return max(LEAST_RUN, ceil(log(len(winners) ** 2 / CHANCE) / -log(agree)))


def _without_runs(codes: Integers, least: int) -> Integers:
    """Return the rows without runs of at least so many rows that stand before, in the same order."""
    before: dict[int, list[int]] = {}
    kept, row, listed = [], 0, codes.tolist()
    while row < len(listed):
        places = before.setdefault(listed[row], [])
        # A copied run begins at one of the equal rows before: the first and the last few of them are tried.
        size = max((_length(listed, row, place) for place in (*places[:8], *places[-8:])), default=0)
        if size >= least and len({*listed[row : row + size]}) >= LEAST_RUN:
            row += size
            continue
        # A long run of few unlike rows stays as a whole: it is not looked through again from its next row.
        for place in range(row, row + (size if size >= least else 1)):
            before.setdefault(listed[place], []).append(place)
            kept.append(place)
        row = kept[-1] + 1
    return np.array(kept, np.int64)


def _length(codes: Sequence[int], row: int, before: int) -> int:
    """Return how many rows from one on equal those from a row before."""
    size = 0
    while row + size < len(codes) and codes[row + size] == codes[before + size]:
        size += 1
    return size


def _without_multiples(codes: Integers) -> Integers:
    """Return the places of rows, of which a part is left out if all unlike rows stand equally often."""
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    times = reduce(gcd, counts.tolist())
    if times < 2 or len(counts) < LEAST_UNLIKE:
        return np.arange(len(codes))
    seen = np.zeros(len(counts), np.int64)
    kept = []
    for place, code in enumerate(codes.tolist()):
        seen[code] += 1
        if seen[code] <= counts[code] // times:
            kept.append(place)
    return np.array(kept, np.int64)


def _without_excess(texts: Mapping[str, Sequence[str]], codes: Integers) -> Integers:
    """Return the places of rows; each unlike row stands once if more are equal than chance and people explain.

    Chance: prompts, voters and winners are drawn independently of each other. People: a voter who sees a pair again
    does not always agree.
    """
    from scipy.stats import binom  # slow to import

    n = len(codes)
    first = np.sort(np.unique(codes, return_index=True)[1])
    alike, expected, agree = n - len(first), n * (n - 1) / 2, AGREE
    for name, column in texts.items():
        share = _agreement(column)
        expected *= share
        agree = max(agree, share) if name == "winner" else agree
    pairs = _codes([column for name, column in texts.items() if name != "winner"])
    again = n - len(np.unique(pairs))
    # Twice the expected number and 4 more: a Poisson variable is above that in less than 1 % of tables.
    if alike > 2 * expected + 4 or binom.sf(alike - 1, again, agree) < CHANCE:
        return first
    return np.arange(n)


def _both_ways(texts: Mapping[str, Sequence[str]], rows: Integers) -> list[str]:
    """Return how many pairs a voter voted on both ways."""
    winners: dict[tuple[str, ...], set[str]] = {}
    pairs = texts.get("pair")
    for row in rows.tolist():
        if texts["voter"][row]:
            sides = sorted((texts["left"][row], texts["right"][row]))
            key = (texts["voter"][row], texts["prompt"][row], *sides, "" if pairs is None else pairs[row])
            winners.setdefault(key, set()).add(texts["winner"][row])
    twice = [key for key, votes in winners.items() if len({winner for winner in votes if winner.lower() != "tie"}) > 1]
    if not twice:
        return []
    voters = plural(len({key[0] for key in twice}), "voter")
    return [f"{voters} voted both ways on {plural(len(twice), 'pair')} of a prompt and two models: both votes count"]
