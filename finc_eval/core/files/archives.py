"""Archives, read by zipfile and tarfile: opened as regular files alone, and two members of one name are refused."""

from __future__ import annotations

import io
import struct
import tarfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from finc_eval.core.doors import READ_AT_ONCE, open_file
from finc_eval.core.errors import DataError

DAMAGED = (OSError, EOFError, ValueError, RuntimeError, MemoryError, zlib.error, zipfile.BadZipFile)
"""Errors that readers of archives raise on damaged bytes, and on sizes that are not there."""

LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Header of a member of a zip file, which ends with the lengths of its name and of its extra fields (APPNOTE 4.3.7)."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # methods of compression that zipfile unpacks a piece at a time


def open_zip_file(path: Path) -> zipfile.ZipFile:
    """Open a zip file; an error of `DAMAGED` if it is damaged.

    Raises:
        DataError: two members have one name.
    """
    stream = open_file(path)
    try:
        archive = zipfile.ZipFile(stream)
        weakref.finalize(archive, stream.close)  # ZipFile leaves open what it did not open itself
        names = Counter(info.filename for info in archive.infolist() if not info.filename.endswith("/"))
        (name, times), *_ = names.most_common(1) or [("", 0)]
        if times > 1:
            raise DataError(f"{path} has {times:,} members called {name!r}: give each a name of its own")
        return archive
    except BaseException:
        stream.close()
        raise


def verify_members(archive: zipfile.ZipFile) -> None:
    """Read all members of a zip file once, a piece at a time; an error of `DAMAGED` if a checksum is wrong."""
    for info in archive.infolist():
        with open_member(archive, info) as stream:
            while stream.read(READ_AT_ONCE):
                pass


def open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of a zip file, to be read in pieces; ValueError if it can only be unpacked whole."""
    if info.compress_type not in PACKED:
        raise ValueError("packed by another method than deflate: pack it again")
    return archive.open(info)


def place_of_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Return the place of the first byte of a member in its zip file; ValueError if the file ends before the last."""
    file: IO[bytes] = archive.fp  # type: ignore[assignment]  # it is open
    file.seek(info.header_offset)
    _, name_bytes, extra_bytes = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    start = file.tell() + name_bytes + extra_bytes
    if start + info.compress_size > file.seek(0, io.SEEK_END):
        raise ValueError("it is cut short")
    return int(start)


def tar_members(path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of the members of an uncompressed tar file; a damaged file raises almost any error."""
    with open_file(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        end = 0
        for member in archive:
            if member.size < 0 or archive.offset <= end:
                raise ValueError("a header leads back")
            yield member
            archive.members.clear()  # type: ignore[attr-defined]  # tarfile keeps them all
            end = archive.offset
