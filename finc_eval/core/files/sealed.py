"""JSON files of finc-eval with a checksum over everything else, by which damage and edits are found."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import read_json
from finc_eval.core.files.reading import content_of
from finc_eval.core.storage import PROGRAM

CHECKSUM = "checksum"
"""Key of the digest of all other keys."""


def checksum_of(data: Mapping[str, Any]) -> str:
    """Return a digest of plain JSON types, whatever the order of their keys."""
    rest = {key: value for key, value in data.items() if key != CHECKSUM}
    return sha256_of(json.dumps(rest, sort_keys=True))[:16]


def sealed(type_name: str, layout: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain JSON types with what they are of, and their checksum."""
    stated = {"program": PROGRAM, "type": type_name, "layout": layout, **data}
    return stated | {CHECKSUM: checksum_of(stated)}


def read_sealed(
    path: str | Path, what: str, types: Collection[str], layout: int, again: str = "make it again"
) -> dict[str, Any]:
    """Read a file, and check that it is what was written.

    Args:
        path: the file.
        what: what a message calls a file of these types, such as "a result".
        types: types that it may be of.
        layout: layout that this version reads.
        again: what to do where it is anything else.

    Raises:
        DataError: it cannot be read, is of another type or layout, or was changed.
    """
    data = read_json(path)
    if not isinstance(data, dict) or data.get("program") != PROGRAM or data.get("type") not in [*types]:
        raise DataError(f"{path} is not {what} of {PROGRAM} of this version: {again}")
    check_layout(data, layout, path, again)
    with content_of(path):
        same = data.get(CHECKSUM) == checksum_of(data)
    if not same:
        raise DataError(f"{path} was changed since it was written: {again}")
    return data


def check_layout(data: Mapping[str, Any], layout: int, where: str | Path, again: str = "make it again") -> None:
    """Raise DataError unless data are of a layout."""
    if data.get("layout") != layout:
        raise DataError(f"{where} has layout {data.get('layout')!r:.40}, this version reads {layout}: {again}")
