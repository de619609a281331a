"""Decoding of one video file, from its start to its end, with the FFmpeg in the package `av`.

- Frames are numbered from 0 in the order of display, as PyAV's `decode` returns them. The container's statements about
  their number and times are not trusted. Videos are never sought in, because that is inexact in AVI.
- RGB is that of `frame.to_ndarray(format="rgb24")`: swscale, bilinear chroma, with the matrix (BT.601, BT.709 …) and
  the range in the frame's marks; default: BT.601 and limited range. Alpha is dropped, more than 8 bits become 8, HDR is
  not tone-mapped, and pixels count as square.
- The display matrix (phones store portrait video lying on its side) is applied if it turns by quarters or mirrors.
- A file that is damaged or cut short is a failure: FFmpeg alone would continue and show a guess.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from finc_eval.core.memory import DECODED, excess, max_decoded, max_pixels, readable
from finc_eval.samples.clips import Clip, FrameIndices, gathered, window_indices
from finc_eval.samples.images import take_pixels
from finc_eval.samples.source import COPIES, Pixels
from finc_eval.samples.traits import Traits, is_gray

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# A closed list of FFmpeg's demuxers: others include playlists, which read further files and addresses.
CONTAINERS = "mov,avi,matroska,gif,mpegts,mpeg,asf,flv,ogg"

MAX_BYTES_AT_ONCE = 64 << 20
"""Bytes of pixels up to which all windows of a video are held in memory together."""

MAX_UNPACKING = 100_000
"""Bytes of pixels for a byte of a file. A black picture that never changes has about 60,000 in H.264."""

MAX_STILL_SETS = 16
"""Times FINC_EVAL_MAX_DECODED that the frames of any file may take, one after the other."""

MAX_MISSING_SECONDS = Fraction(1, 4)
"""Seconds by which a file may end before its stated duration: not every packet states how long it lasts."""


def read_windows(stream: IO[bytes], clip: Clip, windows: Sequence[int]) -> Iterator[tuple[Pixels, Traits]]:
    """Decode windows of a video.

    The places of the windows depend on the number of frames, which only decoding tells for certain. Windows that fit
    into `MAX_BYTES_AT_ONCE` are decoded as if every packet of the file were a frame, and again if that was wrong (as in
    AVI with packed B-frames). For larger windows, frames are counted first.

    Args:
        stream: the file; it must be seekable.
        clip: choice of the frames.
        windows: increasing numbers of the video's windows.

    Yields:
        For each window its pixels, (frames, height, width, 3) uint8 RGB, and the encoding of the video.

    Raises:
        ValueError: the file is not a video, is damaged or cut short, or has too few frames.
    """
    facts = _examined(stream)
    for pixels in _decoded(stream, clip, windows, facts):
        height, width = pixels.shape[1:3]
        gray = all(is_gray(frame) for frame in pixels)
        fps = None if facts.rate is None else float(facts.rate)
        yield pixels, Traits(facts.codec, facts.pixel_format, width, height, gray, fps=fps)


def _decoded(stream: IO[bytes], clip: Clip, windows: Sequence[int], facts: _Facts) -> Iterator[Pixels]:
    plan = window_indices(facts.packets, facts.rate, clip)[list(windows)]
    if phrase := excess(COPIES * plan.shape[1] * facts.frame_bytes):
        raise ValueError(f"a window of {phrase}")
    DECODED.take(COPIES * plan.shape[1] * facts.frame_bytes)
    if plan.size * facts.frame_bytes <= MAX_BYTES_AT_ONCE:
        reading = _Reading(stream, plan)
        with closing(reading.frames()) as frames:
            made = list(gathered(plan, frames))
            for _ in frames:
                pass
        if reading.count == facts.packets:
            yield from made
            return
    else:
        reading = _Reading(stream)
        for _ in reading.frames():
            pass
    plan = window_indices(reading.count, facts.rate, clip)[list(windows)]
    with closing(_Reading(stream, plan).frames()) as frames:
        yield from gathered(plan, frames)


@dataclass(frozen=True)
class _Facts:
    """Facts about a video that are known without decoding it."""

    codec: str
    pixel_format: str
    rate: Fraction | None
    frame_bytes: int
    packets: int


def _examined(stream: IO[bytes]) -> _Facts:
    """Read all packets of a video.

    Raises:
        ValueError: the file is not a video, or is cut short in a way that decoding would not show.
    """
    with _opened(stream) as (container, video):
        take_pixels(video.width, video.height)
        packets, end = 0, Fraction(0)
        for packet in container.demux():
            if packet.is_corrupt:
                raise ValueError(f"damaged or cut short after {packets} frames")
            if packet.stream is video and packet.size and not packet.is_discard:
                packets += 1
            if packet.pts is not None:
                end = max(end, (packet.pts + (packet.duration or 0)) * packet.time_base)
        frame_bytes = 3 * video.width * video.height
        _check_length(packets, packets * frame_bytes, stream)
        # FFmpeg marks a packet that is cut, but not a file that ends between packets, or a Matroska file.
        stated = Fraction(container.duration or 0, 1_000_000)
        if container.format.name.startswith(("matroska", "mov")) and stated - end > MAX_MISSING_SECONDS:
            raise ValueError(f"cut short: it ends after {float(end):.2f} of {float(stated):.2f} seconds")
        if container.format.name == "gif" and not _has_trailer(stream):
            raise ValueError("cut short: the end of the GIF is missing")
        context = video.codec_context
        return _Facts(
            codec=context.codec.canonical_name,
            pixel_format=context.pix_fmt or "",
            rate=video.average_rate or video.guessed_rate,
            frame_bytes=frame_bytes,
            packets=packets,
        )


def _check_length(frames: int, size: int, stream: IO[bytes]) -> None:
    """Raise ValueError for a small file of so many large frames that decoding would take hours."""
    if size > max(MAX_STILL_SETS * max_decoded(), MAX_UNPACKING * stream.seek(0, os.SEEK_END)):
        raise ValueError(f"{frames:,} frames of {readable(size)} in a small file: cut it, or make its frames smaller")


class _Reading:
    """One pass over the frames of a video, which counts them."""

    def __init__(self, stream: IO[bytes], plan: FrameIndices | None = None) -> None:
        self.count = 0
        self._stream = stream
        self._wanted = frozenset() if plan is None else frozenset(plan.ravel().tolist())

    def frames(self) -> Generator[tuple[int, Pixels], None, None]:
        """Yield the number and the pixels of each frame in the plan."""
        from av.video.reformatter import VideoReformatter

        # One for all frames: making it takes about as long as using it once.
        reformatter = VideoReformatter()
        with _opened(self._stream) as (container, video):
            # Several videos are decoded in parallel: threads within one would only slow down the others.
            video.codec_context.thread_count = 1
            video.codec_context.options = {"max_pixels": str(max_pixels())}
            for frame in container.decode(video):
                number = self.count
                self.count += 1
                if frame.is_corrupt:
                    raise ValueError(f"damaged or cut short at frame {number}")
                if frame.width * frame.height > max_pixels():  # it need not have the size that the file states
                    raise ValueError(f"a frame of {frame.width}x{frame.height} pixels is too large")
                if number in self._wanted:
                    rgb = reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
                    yield number, _upright(rgb.astype(np.uint8, copy=False), frame)


@contextmanager
def _opened(stream: IO[bytes]) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open the video in a file; errors of FFmpeg become a ValueError with a short text."""
    import av

    stream.seek(0)
    try:
        # Old data sets have metadata that is not UTF-8.
        container = av.open(stream, "r", metadata_errors="ignore", options={"format_whitelist": CONTAINERS})
    except av.FFmpegError as error:
        raise ValueError(f"not a video that can be read: {_words(error)}") from error
    with container:
        video = container.streams.best("video")
        # Audio files contain their cover as a video of one picture.
        if not isinstance(video, av.VideoStream) or video.disposition & av.stream.Disposition.attached_pic:
            raise ValueError("it holds no video")
        if video.codec_context is None:
            raise ValueError("its codec is not known")
        try:
            yield container, video
        except av.FFmpegError as error:
            raise ValueError(f"damaged or cut short: {_words(error)}") from error


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _upright(pixels: Pixels, frame: VideoFrame) -> Pixels:
    """Apply the frame's display matrix: row vectors (x, y) · [[a, b], [c, d]], in 16.16 fixed point."""
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return pixels
    a, b, _, c, d = np.frombuffer(matrix, np.int32)[:5]
    if a == d == 0:
        pixels, a, d = pixels.swapaxes(0, 1), c, b
    elif b or c:
        return pixels
    return np.ascontiguousarray(pixels[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1])


def _has_trailer(stream: IO[bytes]) -> bool:
    """Return whether a GIF ends with its trailer, a semicolon; some programs append zeros."""
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - 64))
    return stream.read().rstrip(b"\0\r\n").endswith(b";")
