"""The front of a finc-eval file: one line of 512 bytes that says what it is, and where its header is.

The file behind it is HDF5, so that other programs can read its arrays. finc-eval itself goes by the front and the
header: a table of all arrays with their places and checksums. It never interprets the structures of HDF5, which hang or
follow links to other files where they are damaged or forged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from finc_eval.core.doors.reading import NotAFileError, opened
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import parsed_json
from finc_eval.core.remote.mirror import local
from finc_eval.core.storage import PROGRAM

FRONT_BYTES = 512
"""Length of the front, which HDF5 calls a user block and passes over."""

BLOCK_BYTES = 1 << 18
"""Bytes of an array that share a checksum."""

FIRST_BYTES = b'{"program"'
"""First bytes of a front."""

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

MAX_HEADER_BYTES = 1 << 28
"""Largest header that is read. That of a cache of 100 GB has 5 MB."""


@dataclass(frozen=True)
class Front:
    """The front of a file.

    Attributes:
        type_name: type of the file, such as "embeddings".
        layout: number of the layout of this type.
        size: length of the file.
        start: place of the header.
        length: length of the header.
        sha256: digest of the header.
    """

    type_name: str
    layout: int
    size: int
    start: int
    length: int
    sha256: str

    def encoded(self) -> bytes:
        """Return the front as it is written."""
        line = {
            "program": PROGRAM,
            "type": self.type_name,
            "layout": self.layout,
            "size": self.size,
            "header": [self.start, self.length],
            "sha256": self.sha256,
        }
        return json.dumps(line).encode("ascii").ljust(FRONT_BYTES - 1) + b"\n"

    @classmethod
    def of(cls, data: bytes) -> Front | None:
        """Read a front; None where this is not one, or a damaged one."""
        try:
            found = parsed_json(data.decode("ascii"))
        except (UnicodeDecodeError, DataError):
            return None
        match found:
            case {
                "program": str(program),
                "type": str(type_name),
                "layout": int(layout),
                "size": int(size),
                "header": [int(start), int(length)],
                "sha256": str(digest),
            } if program == PROGRAM and len(data) == FRONT_BYTES:
                return cls(type_name, layout, size, start, length, digest)
            case _:
                return None


def front_of(path: str | Path) -> Front | None:
    """Read the front of a file; None for files without one, and for those that cannot be read."""
    try:
        with opened(local(path)) as file:
            return Front.of(file.read(FRONT_BYTES))
    except (OSError, NotAFileError):
        return None


def file_type(path: str | Path) -> str | None:
    """Return the type of a finc-eval file, such as "embeddings", "sketch" or "comparison"; None for other files."""
    front = front_of(path)
    return None if front is None else front.type_name


def is_stored(path: str | Path) -> bool:
    """Return whether a file is one of finc-eval or an HDF5 file, however damaged: messages should be about that."""
    return _beginning(path).startswith((HDF5_SIGNATURE, FIRST_BYTES)) or HDF5_SIGNATURE in _beginning(path)


def is_other_hdf5(path: str | Path) -> bool:
    """Return whether a file is HDF5 without a front: of another program, or of finc-eval before it wrote fronts."""
    return _beginning(path).startswith(HDF5_SIGNATURE)


def _beginning(path: str | Path) -> bytes:
    try:
        with opened(local(path)) as file:
            return file.read(FRONT_BYTES + len(HDF5_SIGNATURE))
    except (OSError, NotAFileError):
        return b""


def check_target(path: str | Path, type_name: str) -> None:
    """Raise DataError when `path` holds anything but a finc-eval file of this type, which would be overwritten."""
    if Path(path).exists() and file_type(path) != type_name:
        raise DataError(f"{path} already exists and is not a finc-eval {type_name}: choose another name")
