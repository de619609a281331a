"""`Sealed`: a type of JSON file that is written for later commands: one record, its type and layout, and a checksum."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from finc_eval.core.files.stored import content_of
from finc_eval.core.marks import CHECKSUM, read_sealed, seal
from finc_eval.core.record import Record, plain, structure
from finc_eval.core.storage import write_readable

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Sealed(Generic[R]):
    """A type of JSON file that holds one record.

    Attributes:
        record: class of the record.
        type_name: type that the file states.
        layout: number of the layout; it is raised whenever what is stored changes, and others are refused.
        what: what messages call such a file, as in "an index".
        again: what to do about a damaged file.
        upgrade: makes of what an earlier version wrote, plain JSON types, what this version writes.
    """

    record: type[R]
    type_name: str
    layout: int
    what: str
    again: str
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = dict

    def text(self, content: R) -> str:
        """Return a record as it is written."""
        return _text(self._seal(content))

    def _seal(self, content: R) -> dict[str, Any]:
        return seal(self.type_name, self.layout, plain(content))

    def write(self, path: str | Path, content: R) -> str:
        """Write a record whole or not at all, once it is read back as it is, and return its checksum."""
        sealed = self._seal(content)
        write_readable(path, _text(sealed), lambda written: self.read(written)[0], content)
        return str(sealed[CHECKSUM])

    def read(self, path: str | Path) -> tuple[R, str]:
        """Read a record and its checksum.

        Raises:
            DataError: the file is of another type or layout, or was changed.
        """
        data = read_sealed(path, self.what, [self.type_name], self.layout, self.again)
        with content_of(path, self.again):
            record = structure(self.record, self.upgrade(data), str(path))
        return record, str(data[CHECKSUM])


def _text(sealed: dict[str, Any]) -> str:
    return json.dumps(sealed, indent=1, allow_nan=False) + "\n"
