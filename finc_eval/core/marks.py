"""Marks of result files, by which a job knows its own files, and checksums of JSON files, by which damage is found."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.file_types import check_layout
from finc_eval.core.files.parsed import read_json, read_text
from finc_eval.core.files.stored import content_of, header_of
from finc_eval.core.places import place_of
from finc_eval.core.storage import PROGRAM

MARKS = {
    ".html": re.compile(rb'<meta name="finc-eval" content="([^"]*)">'),
    ".md": re.compile(rb"\A<!-- finc-eval: ([^>]*) -->"),
    ".tex": re.compile(rb"\A% finc-eval: ([^\n]*)\n"),
    ".csv": re.compile(rb"\Aresult(?:,[^\n]*)?\n([a-z-]+(?: [0-9a-f]+)?)[,\n]"),
}
"""The mark at the beginning of a text: `templates/base.html`, `report/exports/markdown.py` and `Document` write it."""

HALF_DIGITS = 8  # hexadecimal digits of a job that are of its inputs; the others are of its verb and settings

TEXT_MARK = re.compile(r"# By finc-eval \(([^()]*), text ([0-9a-f]{16})\)[^\n]*\n")
"""The mark of a file that is meant to be edited, and its first line: it also has the digest of the lines below it."""


asked: ContextVar[Mapping[str, Any] | None] = ContextVar("asked", default=None)
"""Settings of the command that runs, by name, without those that have their defaults; the command line sets it."""


def job_digest(verb: str, inputs: Mapping[str, str]) -> str:
    """Return a digest of what a command is asked: half is of the places of its inputs, half of verb and settings."""
    places = sorted((label, place_of(path)) for label, path in inputs.items())
    halves = (places, [verb, *sorted(settings_beside(inputs).items())])
    return "".join(text_digest(json.dumps(half))[:HALF_DIGITS] for half in halves)


def same_settings(job: str, other: str) -> bool:
    """Return whether two jobs are of one verb and one set of settings, whatever the places of their inputs."""
    return job[HALF_DIGITS:] == other[HALF_DIGITS:]


def settings_beside(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the command that runs as texts, by name, without those that are its inputs."""
    return {name: _text_of(value) for name, value in (asked.get() or {}).items() if name not in inputs}


def _text_of(value: object) -> str:
    """Return the value of a setting as a text, a path as its place."""
    if isinstance(value, list | tuple):
        return ",".join(map(_text_of, value))
    return place_of(value) if isinstance(value, Path) else str(value)


def text_digest(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a text."""
    return sha256_of(text)[:16]


def mark(type_name: str, job: str | None) -> str:
    """Return the mark of a result; without a job, only its type."""
    return f"{type_name} {job}" if job else type_name


def mark_text(type_name: str, job: str, text: str) -> str:
    """Return a text that is meant to be edited, below its mark, which does not count once it is."""
    stamp = f"({mark(type_name, job)}, text {text_digest(text)})"
    return f"# By finc-eval {stamp}. The same command writes it again, unless it was edited.\n{text}"


def mark_of(path: Path) -> str | None:
    """Return the mark of a page, text, JSON or HDF5 file, or of an unedited policy; None for any other file."""
    with suppress(DataError, OSError, ValueError, KeyError, TypeError, AttributeError):
        if path.suffix in MARKS:
            with open_file(path) as file:
                # 1 << 16: length of the beginning of a text that has its mark.
                match = MARKS[path.suffix].search(file.read(1 << 16))
            return match and match[1].decode()
        if path.suffix == ".toml":
            text = read_text(path)
            first = TEXT_MARK.match(text)
            return first[1] if first and first[2] == text_digest(text[first.end() :]) else None
        if path.suffix == ".json":
            return _mark_in(read_json(path))
        return _mark_in((header_of(path) or {})["result"])
    return None


def _mark_in(data: dict[str, Any]) -> str | None:
    return mark(data["type"], data["provenance"].get("job")) if data["program"] == PROGRAM else None


CHECKSUM = "checksum"  # key of the digest of all other keys


def checksum_of(data: Mapping[str, Any]) -> str:
    """Return a digest of plain JSON types, whatever the order of their keys."""
    rest = {key: value for key, value in data.items() if key != CHECKSUM}
    return text_digest(json.dumps(rest, sort_keys=True))


def seal(type_name: str, layout: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain JSON types with what they are of, and their checksum."""
    stated = {"program": PROGRAM, "type": type_name, "layout": layout, **data}
    return stated | {CHECKSUM: checksum_of(stated)}


def read_sealed(
    path: str | Path, what: str, types: Collection[str], layout: int, again: str = "make it again"
) -> dict[str, Any]:
    """Read a file, and check that it is what was written.

    A message calls such files `what`, as in "a result", and says to do `again` about anything else.
    """
    data = read_json(path)
    if not isinstance(data, dict) or data.get("program") != PROGRAM or data.get("type") not in [*types]:
        raise DataError(f"{path} is not {what} of {PROGRAM} of this version: {again}")
    check_layout(path, str(data["type"]), data.get("layout"), layout, again)
    with content_of(path):
        same = data.get(CHECKSUM) == checksum_of(data)
    if not same:
        raise DataError(f"{path} was changed since it was written: {again}")
    return data
