"""Limits of the time that decoding takes, and streams that keep them for decoders written in Python."""

from __future__ import annotations

import io
import time

SECONDS = 3
"""Seconds of computing that opening a file, or decoding a frame of few pixels, may take. The slowest of
`assets/clips` opens in 0.02 s."""

SECONDS_PER_UNIT = 5e-8
"""Further seconds for each pixel of a frame, or byte of a file that is opened."""

BRIEF_BYTES = 64 << 10
"""Bytes of an image that is decoded without a look at the clock: its loops are short, and the looks would take 15 % of
the time of a picture of 64 pixels."""

LOOKS = 64  # checks, such as calls of `read`, for each look at the clock, which takes as long as several


class Watch:
    """The time that this thread takes to open a file, and then to decode each of its frames."""

    def __init__(self, size: int) -> None:
        """Begin with a file of so many bytes, of which an image counts as none."""
        self._seconds: float = SECONDS
        self.begin(size)

    def begin(self, units: int) -> None:
        """Begin anew: with so many pixels, or bytes of a file that is opened."""
        self._allowed, self._start = self._seconds + SECONDS_PER_UNIT * units, time.thread_time()
        self._looks = 0

    def check(self) -> None:
        """Raise ValueError if it takes too long; most calls do not look at the clock."""
        self._looks += 1
        if self._looks % LOOKS == 0 and time.thread_time() - self._start > self._allowed:
            raise ValueError(f"took more than {self._allowed:.2g} seconds to decode: save it again")


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
        self._watch = Watch(0)
        # 4: times the bytes of a file that may be read before its pixels: tags of a TIFF can name the same bytes.
        self._left: float = 4 * len(data) + LOOKS * io.DEFAULT_BUFFER_SIZE

    def begin(self, pixels: int) -> None:
        """Allow the time that decoding so many pixels takes: the header has been read."""
        self._watch.begin(pixels)
        self._left = float("inf")

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("its header names the same bytes many times: save it again")
        self._watch.check()
        return data
