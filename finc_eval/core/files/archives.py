"""Archives, .zip and .tar: what their headers say is not believed, and is read in bounded memory."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import tarfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError
from finc_eval.core.memory import max_decoded

DAMAGED = (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile)
"""Errors that readers of archives raise on damaged bytes."""

MAX_TAR_HEADER_BYTES = 1 << 16  # bytes of all headers of one member of a tar file: names of Linux have 4,096 bytes

MANY_DIGITS = re.compile(rb"\d{100}")
"""Digits that no header has one after the other; tarfile takes time that grows with the square of their number."""

BLOCK = 1 << 20  # bytes of a member that are read at once
BLOCK_BYTES = 512  # bytes of a header in a tar file without extended headers
LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Header of a member of a zip file, which ends with the lengths of its name and of its extra fields (APPNOTE 4.3.7)."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # methods of compression that zipfile unpacks a piece at a time


class Metered(io.BufferedReader):
    """A file with a limit of bytes that may be read: `left`, which the caller raises."""

    def __init__(self, path: Path, left: float) -> None:
        super().__init__(open_file(path).detach())
        self.left = left

    def read(self, size: int | None = -1, /) -> bytes:
        """Read `size` bytes, or all; ValueError beyond the limit."""
        if size is None or size < 0:
            size = max(0, os.fstat(self.fileno()).st_size - self.tell())
        self.left -= size
        if self.left < 0:
            raise ValueError("its headers are too large")
        return super().read(size)


class TarHeaders(Metered):
    """A tar file of which the headers are read."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read `size` bytes; ValueError beyond the limit, and for what is not a header."""
        data = super().read(size)
        if len(data) > BLOCK_BYTES and MANY_DIGITS.search(data):
            raise ValueError("a header has a number of more than 100 digits")
        return data


def open_zip_file(path: Path) -> zipfile.ZipFile:
    """Open a zip file, whose list of members takes no more memory than is allowed; `DAMAGED` if it is damaged.

    Raises:
        DataError: two members have one name.
    """
    # 10: bytes that a byte of the list of members of a zip file takes in memory.
    stream = Metered(path, max_decoded() // 10)
    try:
        archive = zipfile.ZipFile(stream)
        weakref.finalize(archive, stream.close)  # ZipFile leaves open what it did not open itself
        stream.left = math.inf
        files = [info for info in archive.infolist() if not info.filename.endswith("/")]
        if sum(info.compress_size for info in files) > stream.seek(0, io.SEEK_END):
            raise ValueError("its members share bytes")
        (name, times), *_ = Counter(info.filename for info in files).most_common(1) or [("", 0)]
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
            while stream.read(BLOCK):
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
    with TarHeaders(path, MAX_TAR_HEADER_BYTES) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        end = 0
        for member in archive:
            if member.size < 0 or archive.offset <= end:
                raise ValueError("a header leads back")
            yield member
            archive.members.clear()  # type: ignore[attr-defined]  # tarfile keeps them all
            end, stream.left = archive.offset, MAX_TAR_HEADER_BYTES
