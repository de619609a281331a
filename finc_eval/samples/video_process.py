"""Decoding of any video within limits of time and memory.

FFmpeg goes over all that the index of a file states before it returns, in time and memory that the file chooses. So
videos are decoded in a process of its own, which ends at a limit. An ordinary MP4, AVI, Matroska, WebM, WebP or GIF,
whose index is small and states little, needs none: that is looked up first, and all else counts as odd.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import IO

import numpy as np

from finc_eval.core import isolation
from finc_eval.core.isolation import Line, Pool, ProcessLimits, TooLongError, check_ended
from finc_eval.core.memory import DECODED, VARIABLE, max_decoded, readable
from finc_eval.samples import video
from finc_eval.samples.clips import Clip, DecodedWindow
from finc_eval.samples.patience import SECONDS, SECONDS_PER_UNIT, Watch
from finc_eval.samples.source import reason
from finc_eval.samples.traits import Traits

SMALL_INDEX = 128 << 10
"""Bytes outside of the media data of an ordinary file. The order of the entries of an AVI decides how
long FFmpeg takes."""

FEW_STREAMS = 16  # streams of an ordinary file: FFmpeg looks at all of them for each of the first packets
STREAM = re.compile(rb"trak|strh")

FEW_ENTRIES = 200_000  # samples that all tables of an ordinary MP4 state together: FFmpeg lists them all
EDIT = 10_000  # samples as which an entry of an edit list counts: FFmpeg goes over all frames for each

MEDIA = {b"AVI ": b"LISTmovi", b"WEBP": b"ANMF"}
"""First bytes of chunks of frames, by the type of a RIFF file."""

RUNS = {b"stts": (2, 0), b"ctts": (2, 0), b"stsc": (3, 1)}
"""Columns of tables of an MP4 whose rows stand for many samples, and the column that says for how many."""

FRAGMENT = 1_000
"""Samples as which a run of a fragment counts: FFmpeg moves all that it has listed, if the times of runs go back."""

TABLE = re.compile(rb"elst|stsz|stz2|trun|" + b"|".join(RUNS))
HIDING = re.compile(rb"sidx|cmov")  # boxes of an MP4 that name other places for fragments, or hide boxes
FRAGMENTS = (b"moof", b"trun")  # boxes of fragments of an MP4, and of the runs in them

MATROSKA = b"\x1aE\xdf\xa3"  # first bytes of a Matroska or WebM file (RFC 8794, 11.2.1)
SEGMENT, CLUSTER, TRACKS, ATTACHMENTS = map(bytes.fromhex, ("18538067", "1f43b675", "1654ae6b", "1941a469"))
GROUP, FRAMES = b"\xa0", (b"\xa3", b"\xa1")
STREAMS = (b"\xae", b"a\xa7")  # tracks and attachments: FFmpeg makes streams of both
INSIDE = {
    SEGMENT: (CLUSTER, TRACKS, ATTACHMENTS),
    CLUSTER: (GROUP, *FRAMES),
    GROUP: FRAMES,
    TRACKS: (),
    ATTACHMENTS: (),
}
"""Elements of Matroska (RFC 9559, 5.1) that have elements, and those of these that are looked into."""

SOUGHT = (
    CLUSTER,
    TRACKS,
    ATTACHMENTS,
    *map(bytes.fromhex, ("114d9b74", "1549a966", "1254c367", "1c53bb6b", "1043a770")),
)
"""Names of elements where FFmpeg goes on after damage, be it within a frame."""

_pool = Pool("finc_eval.samples.video_process.serve", "av")


def read_windows(stream: IO[bytes], clip: Clip, windows: Sequence[int]) -> Iterator[DecodedWindow]:
    """Decode windows of a video, as `video.read_windows` does, an odd one in another process if the system has them."""
    if is_ordinary(stream) or not isolation.is_possible():
        yield from video.read_windows(stream, clip, windows)
        return
    asked = {"clip": asdict(clip), "windows": [*map(int, windows)], "most": max_decoded(), "seconds": SECONDS}
    error: ValueError | None = None
    with _pool.worker() as line:
        if isinstance(stream, io.BytesIO):
            line.tell(asked, stream.getbuffer())
        else:
            line.tell(asked, file=stream.fileno())
        while True:
            facts, data, _ = line.hear()
            try:
                check_ended(facts)
            except TooLongError:
                facts = {"error": f"took more than {SECONDS:g} seconds to open, or to decode a frame: encode it again"}
            except ValueError as crash:
                facts = {"error": str(crash)}
            if "shape" in facts:
                pixels = np.frombuffer(data, np.uint8).reshape(facts["shape"])
                yield DecodedWindow(pixels, np.array(facts["times"], np.float64), Traits(**facts["traits"]))
            elif "take" in facts:
                DECODED.take(facts["take"])
            else:
                error = ValueError(facts["error"]) if "error" in facts else None
                break
            line.tell({})
    if error is not None:
        raise error


class _Alarm(Watch):
    """A watch that ends the process, even in a loop that never looks at it."""

    def __init__(self, limits: ProcessLimits, seconds: float, most: int) -> None:
        self._limits, self._seconds, self._most = limits, seconds, most

    def begin(self, units: int) -> None:
        self._limits.set(self._seconds + SECONDS_PER_UNIT * units, self._most)

    def check(self) -> None:
        pass


def serve(line: Line) -> None:
    """Answer one call: in a worker."""
    asked, data, files = line.hear()
    os.environ[VARIABLE] = str(asked["most"])
    # 512 << 20: bytes beyond FINC_EVAL_MAX_DECODED that a decoder may take, for the frames on which others build.
    limits, most = ProcessLimits(), asked["most"] + (512 << 20)

    def take(size: int) -> None:
        line.tell({"take": size})
        line.hear()

    DECODED.owner = take
    try:
        with os.fdopen(files[0], "rb") if files else io.BytesIO(data) as stream:
            size = stream.seek(0, os.SEEK_END)
            # 256 << 20: bytes that the index of a video may take in memory.
            limits.set(asked["seconds"] + SECONDS_PER_UNIT * size, 256 << 20)
            clip, windows, watch = Clip(**asked["clip"]), asked["windows"], _Alarm(limits, asked["seconds"], most)
            for pixels, times, traits in video.read_windows(stream, clip, windows, watch):
                found = {"shape": pixels.shape, "times": times.tolist(), "traits": asdict(traits)}
                line.tell(found, np.ascontiguousarray(pixels).reshape(-1).data)
                line.hear()
        answer: dict[str, str] = {}
    except MemoryError:
        answer = {"error": f"took more than {readable(limits.size)} of memory to decode: encode it again"}
    except (EOFError, ConnectionError):
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        answer = {"error": reason(error)}
    limits.lift()
    line.tell(answer)


def is_ordinary(stream: IO[bytes]) -> bool:
    """Return whether a video in memory is a GIF, or another ordinary one with a small index that states few samples."""
    if not isinstance(stream, io.BytesIO):
        return False
    if stream.getvalue().startswith(MATROSKA):
        return _is_ordinary_matroska(stream.getvalue())
    with stream.getbuffer() as data:
        head = bytes(data[:12])
        is_mp4, media = head[4:8] == b"ftyp", MEDIA.get(head[8:] if head[:4] == b"RIFF" else b"")
        if not is_mp4 and media is None:
            return head[:4] == b"GIF8"
        index = _outside(data, 0, b"mdat") if media is None or is_mp4 else _outside(data, 12, media)
        if index is None or len(STREAM.findall(index)) > FEW_STREAMS:
            return False
        if not is_mp4 or HIDING.search(index) or _stated(index) > FEW_ENTRIES:
            return not is_mp4
    return b"moof" not in index or all(stream.getvalue().count(name) == index.count(name) for name in FRAGMENTS)


def _outside(data: memoryview, place: int, media: bytes) -> bytes | None:
    """Return the bytes outside of the media data; None if they are many. What is not a chunk counts to the end."""
    parts, size = [data[:place]], place
    while place < len(data):
        first, second = bytes(data[place : place + 4]), bytes(data[place + 4 : place + 8])
        if media == b"mdat":
            length, name = int.from_bytes(first, "big"), second
            length = int.from_bytes(data[place + 8 : place + 16], "big") if length == 1 else length
        else:
            length, name = 8 + int.from_bytes(second, "little"), first
            name += bytes(data[place + 8 : place + 4 + len(media)])  # the type of a list
            length += length % 2
        is_whole = 8 <= length <= len(data) - place
        if not (is_whole and name == media):
            parts.append(data[place : place + length] if is_whole else data[place:])
        size += 16 if is_whole and name == media else len(parts[-1])
        if size > SMALL_INDEX:
            return None
        place += length if is_whole else len(data)
    return b"".join(parts)


def _is_ordinary_matroska(data: bytes) -> bool:
    """Return whether a Matroska file has few bytes outside of its frames, few streams, and no hidden elements."""
    streams = outside = 0
    try:
        for name, size in _elements(data, 0, len(data), (SEGMENT,)):
            streams += name in STREAMS
            outside += size
            if outside > SMALL_INDEX:
                return False
    except (ValueError, IndexError):
        return False
    return streams <= FEW_STREAMS


def _elements(data: bytes, place: int, end: int, known: tuple[bytes, ...]) -> Iterator[tuple[bytes, int]]:
    """Yield names of elements, and their bytes that belong neither to a frame nor to a further element.

    Raises:
        ValueError: an element has no end, or another one than the element around it, or a frame holds elements.
    """
    while place < end:
        named = place + 9 - data[place].bit_length()
        start = named + 9 - data[named].bit_length()
        name, bits = data[place:named], 7 * (start - named)
        size = int.from_bytes(data[named:start], "big") & ((1 << bits) - 1)
        if len(name) > 4 or bits > 56 or size == (1 << bits) - 1 or size > end - start:
            raise ValueError("an element without an end")
        yield name, start - place + (0 if name in known else size)
        if name in known and name in INSIDE:
            yield from _elements(data, start, start + size, INSIDE[name])
        # 3: bytes in the next element with which a name may end.
        elif name in known and any(one in data[place : start + size + 3] for one in SOUGHT):
            raise ValueError("a frame with elements")
        place = start + size


def _stated(index: bytes) -> int:
    """Return how many samples the tables of an MP4 state, in any place where one may begin."""
    total = 0
    for found in TABLE.finditer(index):
        start, name = found.end() + 4, found[0]
        count = int.from_bytes(index[start : start + 4], "big")
        if name in RUNS:
            columns, column = RUNS[name]
            inside = max(0, min(columns * count, (len(index) - start) // 4 - 1))
            rows = np.frombuffer(index, ">u4", inside, start + 4)[column::columns] if inside else np.zeros(0, ">u4")
            total += count + int(rows.sum(dtype=np.int64))
        elif name == b"elst":
            total += EDIT * count
        elif name == b"trun":
            total += FRAGMENT + count
        else:
            total += int.from_bytes(index[start + 4 : start + 8], "big")
    return total
