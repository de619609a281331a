"""The lines of a ledger: one spending each, with a checksum that follows from the line before it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import json_table
from finc_eval.core.record import Record
from finc_eval.private.dp.guarantee import MAX_MU
from finc_eval.private.dp.population import sketch_of

CHECK, COUNT, SALT = "check", "releases", "salt"
"""Keys of the checksum of a line, and of the number of releases and the salt of sketches in the first line."""

COUNT_DIGITS = 10  # digits of that number, so that it can be changed in its place


@dataclass(frozen=True)
class Spending(Record):
    """One line of a ledger: digests and names of a data set, the μ that was spent on it, and for what.

    Attributes:
        data: digests and names of the data set, and one of each that it looks like.
        mu: what was spent.
        name: name that the owner gave to the data set.
        sketches: sketches of its records, by which others that look like it are known.
    """

    data: tuple[str, ...]
    mu: float
    purpose: str
    name: str | None = None
    sketches: tuple[str, ...] = ()


def parse_line(text: bytes) -> dict[str, Any] | None:
    """Return the table in a line, or None."""
    try:
        return json_table(text)
    except DataError:
        return None


def seal(content: dict[str, Any], before: str = "") -> bytes:
    """Return a line with its checksum."""
    return json.dumps(_without(content, CHECK) | {CHECK: check_of(content, before)}).encode() + b"\n"


def check_of(content: dict[str, Any], before: str = "") -> str:
    """Return the checksum of a line, which follows from the checksum of the line before."""
    return sha256_of(before, json.dumps(_without(content, CHECK)))[:16]


def root_of(header: dict[str, Any]) -> str:
    """Return what the checksum of the first release follows from: the budget, and not the number of releases."""
    return check_of(_without(header, COUNT))


def _without(content: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name != key}


def spending_in(line: Any, before: str) -> Spending | None:
    """Return the spending in a line, or None if the line is not valid after the lines before."""
    match line or {}:
        case {
            "data": [*data],
            "mu": float(mu),
            "purpose": str(purpose),
            "name": str() | None as name,
            "sketches": [*sketches],
            "check": str(check),
        } if (
            data
            and 0 < mu <= MAX_MU
            and all(isinstance(line, str) and sketch_of(line) for line in sketches)
            and check == check_of(line or {}, before)
        ):
            return Spending(tuple(map(str, data)), mu, purpose, name, tuple(sketches))
        case _:
            return None
