"""Limits of the time that decoding takes, and streams that keep them for decoders written in Python."""

from __future__ import annotations

import io
import time

SECONDS = 3
"""Seconds of computing that opening a file, or decoding a frame of few pixels, may take. The slowest of
`assets/clips` opens in 0.02 s."""

SECONDS_PER_UNIT = 5e-8
"""Further seconds for each pixel of a frame, or byte of a file that is opened: decoders take up to 2e-8."""

BRIEF_BYTES = 32 << 10
"""Bytes of an image that is decoded without a look at the clock: its loops are short, and the looks would take 15 % of
the time of a picture of 64 pixels."""

READS = 64  # calls of `read` between two looks at the clock, which takes as long as several
MAX_REREAD = 4  # times the bytes of a file that may be read before its pixels: tags of a TIFF can name the same bytes


def allowed_seconds(units: int, seconds: float) -> float:
    """Return the seconds of computing for opening a file of so many bytes, or decoding so many pixels."""
    return seconds + SECONDS_PER_UNIT * units


def watched(data: bytes) -> io.BytesIO:
    """Return the bytes of an image as a stream that ends the decoding if it takes too long."""
    return Patience(data) if len(data) > BRIEF_BYTES else io.BytesIO(data)


class Patience(io.BytesIO):
    """The bytes of an image, which end their decoder with a ValueError if it takes too long.

    Pillow's own loops, over segments, chunks, tags and runs, read in each round; the loops of its decoders in C are
    over pixels, whose number is limited.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._start = time.thread_time()
        self._allowed: float = SECONDS
        self._reads = 0
        self._left: float = MAX_REREAD * len(data) + READS * io.DEFAULT_BUFFER_SIZE

    def begin(self, pixels: int) -> None:
        """Allow the time that decoding so many pixels takes: the header has been read."""
        self._allowed, self._left = allowed_seconds(pixels, SECONDS), float("inf")

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._reads += 1
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("its header names the same bytes many times: save it again")
        if self._reads % READS == 0 and time.thread_time() - self._start > self._allowed:
            raise ValueError(f"took more than {self._allowed:.2g} seconds to decode: save it again")
        return data
