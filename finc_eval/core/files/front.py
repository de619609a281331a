"""The front of a finc-eval file: one line of 512 bytes that says what it is, and where its header is.

The file behind it is HDF5, so that other programs can read its arrays. finc-eval itself goes by the front and the
header: a table of all arrays with their places and checksums. It never interprets the structures of HDF5, which hang or
follow links to other files where they are damaged or forged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from finc_eval.core.doors import NotAFileError, open_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import parse_json
from finc_eval.core.storage import PROGRAM

FRONT_BYTES = 512  # length of the front, which HDF5 calls a user block and passes over
BLOCK_BYTES = 1 << 18  # bytes of an array that share a checksum
FIRST_BYTES = b'{"program"'  # first bytes of a front

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

MAX_HEADER_BYTES = 1 << 28  # bytes of the largest header that is read; a cache of 100 GB has one of 5 MB


@dataclass(frozen=True)
class Front:
    """The front of a file."""

    type_name: str  # type of the file, such as "embeddings"
    layout: int  # number of the layout of this type
    size: int  # length of the file
    start: int  # place of the header
    length: int  # length of the header
    sha256: str  # digest of the header

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
        """Read a front; None if this is not one, or a damaged one."""
        try:
            found = parse_json(data.decode("ascii"))
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
    return Front.of(_beginning(path)[:FRONT_BYTES])


def file_type(path: str | Path) -> str | None:
    """Return the type of a finc-eval file, such as "embeddings", "sketch" or "comparison"; None for other files."""
    front = front_of(path)
    return None if front is None else front.type_name


def is_stored(path: str | Path) -> bool:
    """Return whether a file is one of finc-eval or an HDF5 file, however damaged: messages should be about that."""
    found = _beginning(path)
    return found.startswith(FIRST_BYTES) or HDF5_SIGNATURE in found


def is_other_hdf5(path: str | Path) -> bool:
    """Return whether a file is HDF5 without a front: of another program, or of finc-eval before it wrote fronts."""
    return _beginning(path).startswith(HDF5_SIGNATURE)


def _beginning(path: str | Path) -> bytes:
    try:
        with open_file(on_disk(path)) as file:
            return file.read(FRONT_BYTES + len(HDF5_SIGNATURE))
    except PermissionError as error:  # nobody knows what it is: it must not pass for a file of another kind
        raise DataError(f"{path} cannot be read (permission denied): check who may read it") from error
    except (OSError, NotAFileError):
        return b""


def check_target(path: str | Path, type_name: str) -> None:
    """Raise DataError when `path` holds anything but a finc-eval file of this type, which would be overwritten."""
    if Path(path).exists() and file_type(path) != type_name:
        raise DataError(f"{path} already exists and is not a finc-eval {type_name}: choose another name")


class FileType(NamedTuple):
    """A type of file, in the words of a message."""

    is_a: str  # what the file is
    goes_to: str  # who takes it
    needed: str  # what to pass where this type is needed


FILE_TYPES = {
    "embeddings": FileType(
        "a file of embeddings",
        "finc-eval compare and the other verbs take instead of samples",
        "samples, or their embeddings by finc-eval extract",
    ),
    "sketch": FileType(
        "a sketch",
        "finc-eval compare takes instead of samples (in Python: fe.Sketch.load)",
        "a sketch by finc-eval extract sketch",
    ),
    "comparison": FileType(
        "a comparison",
        "finc-eval report, score and changes take (in Python: fe.Comparison.load)",
        "the .h5 file of a comparison by finc-eval compare",
    ),
    "kinds": FileType("a result of finc-eval kinds", "fe.load opens", "the .h5 file of a result of finc-eval kinds"),
    "monitor": FileType("a monitor of a training", "fe.Monitor.load opens", "a file by fe.Monitor.save"),
    "statistics": FileType(
        "the mean and covariance of a set",
        "only Fréchet distances take (finc-eval metrics --metrics fd)",
        "the statistics of a set",
    ),
    "private sketch": FileType(
        "a private sketch",
        "finc-eval evaluate, private sketch score and private sketch compare take as --ref (in Python: "
        "PrivateSketch.score)",
        "a private sketch by finc-eval private sketch release",
    ),
    "kahm": FileType(
        "a file of kernel affine hull machines", "fe.kahm.load_models opens", "a file by fe.kahm.save_models"
    ),
}
"""Types of files that users pass on. Queries and answers of federated classification never leave their folder."""


MADE_BY = {
    "comparison": "finc-eval compare",
    "methods": "finc-eval compare methods",
    "spaces": "finc-eval compare --extractor",
    "sweep": "finc-eval compare sweep",
    "changes": "finc-eval compare changes",
    "kinds": "finc-eval kinds",
    "scores": "finc-eval metrics",
    "evaluation": "finc-eval evaluate",
    "audit": "finc-eval audit",
    "verdict": "finc-eval gate",
    "baseline": "finc-eval gate --promote",
    "baseline-kinds": "finc-eval gate --promote",
    "leaderboard": "finc-eval leaderboard",
    "leaderboard-index": "finc-eval leaderboard",
    "leaderboard-entry": "finc-eval leaderboard",
    "leaderboard-reference": "finc-eval leaderboard",
    "sketch": "finc-eval extract sketch",
}
"""The command that makes a file of a type again."""


def check_layout(path: str | Path, type_name: str, layout: object, reads: int, remedy: str = "make it again") -> None:
    """Raise DataError unless a file has the layout that this version reads.

    A layout is raised whenever what is stored of the type changes.
    """
    if layout == reads:
        return
    is_later = isinstance(layout, int) and layout > reads
    command = f"run {MADE_BY[type_name]} again" if type_name in MADE_BY else remedy
    raise DataError(
        f"{path} was written by {'a later' if is_later else 'an earlier'} version of finc-eval (it has {type_name} "
        f"layout {layout!r:.40}, this version reads {reads}): {'update finc-eval' if is_later else command}"
    )


def check_type(source: object, name: str, *allowed: str) -> None:
    """Raise DataError if a set is a file or a result of finc-eval of a type that cannot be one.

    The message advises the first allowed type. `name` is what it calls an object.
    """
    if isinstance(source, str | Path):
        name, found = str(source), file_type(source)
    else:
        found = getattr(type(source), "type_name", None)
    if isinstance(found, str) and found not in allowed:
        raise wrong_type(name, found, allowed[0])


def wrong_type(given: str | Path, found: str, needed: str) -> DataError:
    """Return the error for a file of one type where another is needed; `given` is its path."""
    is_a, goes_to, _ = FILE_TYPES.get(found, (f"a finc-eval file of the type {found!r}", "fe.load opens", ""))
    what = FILE_TYPES[needed].needed if needed in FILE_TYPES else needed
    return DataError(f"{given} is {is_a}, which {goes_to}: here pass {what}")
