"""Ends of video files, since FFmpeg says nothing of a clip that was cut: is a file as long as its container says?"""

from __future__ import annotations

import math
import os
import struct
from typing import IO

MAX_BOXES = 1 << 17  # boxes of an MP4 that are looked at; files can be all boxes, and a recording has two a second

BOXES = frozenset(b"ftyp moov mdat moof free skip wide uuid sidx styp mfra meta udta pdin emsg".split())
"""Boxes that an MP4 or MOV consists of; what follows others is not of it."""

ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")  # mark of the properties of an ASF, with its size


def find_missing_end(kind: str, stream: IO[bytes]) -> str | None:
    """Return a phrase if a video file ends before its container says; None if it does not, or the container is silent.

    Sources: RIFF; ISO 14496-12 (boxes); RFC 8794 and 9559 (EBML, Matroska); ASF 1.2, section 3.2; RFC 3533 (Ogg);
    FLV 10.1; GIF89a.

    Args:
        kind: name of the container, as FFmpeg calls its reader.
        stream: the file; it must be seekable.
    """
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 65_307))  # bytes of the longest page of an Ogg
    tail = stream.read()
    stream.seek(0)
    head = stream.read(1 << 16)  # bytes in which a file says how long it is
    end: int | None = None
    match kind.split(",")[0]:
        case "gif":  # its trailer is a semicolon; some programs append zeros
            return None if tail.rstrip(b"\0\r\n").endswith(b";") else "the end of the GIF is missing"
        case "ogg":  # the flag 4 of a page says that it is the last
            page = tail[tail.rfind(b"OggS") :]
            is_last, segments = len(page) > 27 and page[5] & 4, page[26] if len(page) > 27 else 0
            whole = len(page) >= 27 + segments + sum(page[27 : 27 + segments])
            return None if is_last and whole else "the last page of the Ogg is missing"
        case "avi":
            end = 8 + int.from_bytes(head[4:8], "little")
        case "mov":
            end = _end_of_boxes(stream, size)
        case "matroska":
            end = _end_of_segment(head)
        case "flv":  # a number in its metadata
            value = head.partition(b"filesize\0")[2][:8]
            size_stated = struct.unpack(">d", value)[0] if len(value) == 8 else 0.0
            end = int(size_stated) if math.isfinite(size_stated) else None
        case "asf":
            start = head.find(ASF_PROPERTIES)
            is_known = 0 <= start < len(head) - 88 and not head[start + 88] & 1  # a live recording has this flag
            end = int.from_bytes(head[start + 40 : start + 48], "little") if is_known else None
    return None if end is None or end <= size else f"{end - size:,} bytes are missing"


def _end_of_boxes(stream: IO[bytes], size: int) -> int | None:
    """Return where the last box of an MP4 or MOV ends; None if a box states none, or there are too many."""
    end = 0
    for _ in range(MAX_BOXES):
        if end + 8 > size:
            return end
        stream.seek(end)
        head = stream.read(16)
        length = int.from_bytes(head[8:16] if head[:4] == b"\0\0\0\1" else head[:4], "big")
        if length < 8 or head[4:8] not in BOXES:
            return None
        end += length
    return None


def _end_of_segment(head: bytes) -> int | None:
    """Return where the segment of a Matroska file ends; None if it does not say, as a live recording."""
    end = 0
    for name in (b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"):
        if head[end : end + 4] != name or len(head) <= end + 4:
            return None
        length = 9 - head[end + 4].bit_length()
        mask = (1 << 7 * length) - 1
        value = int.from_bytes(head[end + 4 : end + 4 + length], "big") & mask
        end += 4 + length + value
    return None if value == mask else end
