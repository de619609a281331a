"""Decoding of one video file, from its start to its end, with the FFmpeg in the package `av`, or of an animation.

- Frames are numbered from 0 in the order of display, as PyAV's `decode` returns them, and shown at the times that they
  state, from that of the first. The container's statement about their number is not trusted. Where times are missing or
  go back, as in AVI, frames count as evenly spaced. Videos are never sought in, because that is inexact in AVI.
- RGB equals `frame.to_ndarray(format="rgb24")`: swscale, bilinear chroma, with the matrix (BT.601, BT.709 …) and
  the range in the frame's marks; default: BT.601 and limited range. Alpha is dropped, more than 8 bits become 8, HDR is
  not tone-mapped, and pixels count as square.
- The display matrix (phones store portrait video lying on its side) is applied if it turns by quarters or mirrors.
- A file that is damaged or cut short is a failure where the format can tell: FFmpeg alone would continue and show a
  guess. HEVC and MPEG have no checksums, and some damage passes for a picture. MPEG and live recordings (Matroska and
  MP4 in fragments) do not state their length. Where packets of H.264 lack, its times alone show it.
- FFmpeg does not read WebP and PNG files of several frames: Pillow composes them, and turns them into RGB as images.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from finc_eval.core.files.endings import find_missing_end
from finc_eval.core.memory import DECODED, excess, max_pixels
from finc_eval.samples.animations.decode import Begin, check_length, decode_animation, is_animation
from finc_eval.samples.clips import Clip, ClipPlan, DecodedWindow, FrameIndices, gather, plan_windows, unmerge
from finc_eval.samples.encoding import Encoding, has_alpha, is_gray, opaque
from finc_eval.samples.images import take_pixels
from finc_eval.samples.source import COPIES, Pixels
from finc_eval.samples.whole.course import (
    ASSUMED_FPS,
    COURSE_SIDE,
    MAX_COURSE,
    ROUNDED_SECONDS,
    ClipCourse,
    Seconds,
    join_course,
)

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# A closed list of FFmpeg's demuxers: others include playlists, which read further files and addresses.
CONTAINERS = "mov,avi,matroska,gif,mpegts,mpeg,asf,flv,ogg"

CHECKING_DECODERS = {"vp8": "libvpx", "vp9": "libvpx-vp9"}
"""Decoders that refuse damaged data where FFmpeg's own guess: those accepted 22 of 30 damaged VP9 files."""

STRICT_CODECS = ("mjpeg",)
"""Codecs whose decoder shows damage only if it is told to stop at errors: of 30 damaged files, 18 were accepted."""

UNMARKED = (0, 2, 3)  # marks of color that say nothing (ISO 23091-2): reserved and unspecified
MAX_BYTES_AT_ONCE = 64 << 20  # bytes of pixels up to which all windows of a video are held in memory together

MAX_MISSING_SECONDS = Fraction(1, 4)
"""Seconds by which a file may end before its stated duration: not every packet states how long it lasts."""


def read_windows(
    stream: IO[bytes], clip: Clip, windows: Sequence[int], begin: Begin = lambda _: None, *, with_course: bool = False
) -> Iterator[DecodedWindow]:
    """Decode windows of a video, perhaps with its course, and say when each frame begins, with its number of pixels.

    The places of the windows depend on the times of the frames, which only decoding shows for certain. Windows that fit
    into `MAX_BYTES_AT_ONCE` are decoded as if every packet of the file were a frame, and again if that was wrong (as in
    AVI with packed B-frames). For larger windows, frames are counted first. The numbers of windows increase.
    """
    if is_animation(stream):
        yield from decode_animation(stream, clip, windows, begin, with_course=with_course)
        return
    facts = _examine(stream)
    plan = facts.plan(clip, windows)
    if phrase := excess(COPIES * plan.indices.shape[1] * facts.frame_bytes):
        raise ValueError(f"a window of {phrase}")
    DECODED.take(COPIES * plan.indices.shape[1] * facts.frame_bytes)
    is_small = plan.indices.size * facts.frame_bytes <= MAX_BYTES_AT_ONCE
    reading = _Reading(stream, begin, plan.indices if is_small else None, with_course=with_course)
    with closing(reading.frames()) as frames:
        made = list(gather(plan.indices, frames)) if is_small else []
        for _ in frames:
            pass
    # AVI has times of decoding alone: where frames are reordered, those of the frames go back and forth.
    times = reading.times if reading.times == sorted(reading.times, key=lambda time: time or 0) else [None]
    facts = replace(facts, count=reading.count, shown=_timeline(times, facts))
    decoded = facts.plan(clip, windows)
    course = facts.course(reading.small) if with_course else None
    is_right = len(made) == len(windows) and np.array_equal(plan.indices, decoded.indices)
    reading = reading if is_right else _Reading(stream, begin, decoded.indices)
    with closing(reading.frames()) as frames:
        pictures = made if is_right else gather(decoded.indices, frames)
        for pixels, instants in zip(pictures, decoded.times, strict=False):
            yield DecodedWindow(pixels, instants, facts.encoding(pixels, reading, clip), course)


@dataclass(frozen=True)
class _Facts:
    """Facts about a video that are known without decoding it."""

    codec: str  # name of its codec
    rate: Fraction | None  # frames a second, as the container states them
    tick: Fraction  # seconds of a unit of its times
    last: float  # seconds that the last packet lasts; 0 if it does not say
    frame_bytes: int  # bytes of the pixels of a frame
    count: int  # number of frames
    # instants at which they begin and the last frame ends; None if they are evenly spaced, at `rate`
    shown: Seconds | None
    is_animation: bool  # whether equal frames in sequence are merged, as in a GIF
    aspect: Fraction  # width of a pixel by its height
    transparent: bool  # whether the container says that the video has an alpha channel

    def plan(self, clip: Clip, windows: Sequence[int]) -> ClipPlan:
        """Choose the frames of some windows."""
        return plan_windows(self.count, self.rate, unmerge(clip, self.animated), self.shown, windows)

    def course(self, small: Sequence[Pixels]) -> ClipCourse:
        """Join the small frames of the whole video."""
        return join_course(small, self.rate, self.shown, is_merged=self.is_animation)

    @property
    def animated(self) -> Seconds | None:
        """Instants of the frames of an animation; None for another video."""
        return self.shown if self.is_animation else None

    def encoding(self, pixels: Pixels, reading: _Reading, clip: Clip) -> Encoding:
        """Describe the encoding."""
        height, width = pixels.shape[1:3]
        gray = all(is_gray(frame) for frame in pixels)
        rate = None if self.rate is None else float(self.rate)
        if self.animated is not None:
            rate = unmerge(replace(clip, fps=None), self.animated).fps
        seconds = float(self.shown[-1]) if self.shown is not None else self.count / rate if rate else None
        count = self.count if self.animated is None or rate is None or seconds is None else round(seconds * rate)
        return Encoding(
            *(self.codec, reading.mode(self.transparent), width, height, gray),
            fps=rate,
            frames=count,
            seconds=seconds,
            color=reading.color,
            aspect=float(self.aspect),
        )


def _examine(stream: IO[bytes]) -> _Facts:
    """Read all packets of a video."""
    size = stream.seek(0, os.SEEK_END)
    with _open(stream) as (container, video):
        take_pixels(video.width, video.height)
        times: list[int | None] = []
        last, end, taken = Fraction(0), Fraction(0), 0
        for packet in container.demux():
            if packet.is_corrupt:
                raise ValueError(f"damaged or cut short after {len(times)} frames")
            taken += packet.size
            # 2: times the bytes of a file that all its packets may have: an index can name the same bytes often.
            if taken > 2 * size:
                raise ValueError("its frames share their bytes: encode it again")
            if packet.stream is video and packet.size and not packet.is_discard:
                times.append(packet.pts)
                last = (packet.duration or 0) * packet.time_base
            if packet.pts is not None:
                end = max(end, (packet.pts + (packet.duration or 0)) * packet.time_base)
        packets = len(times)
        frame_bytes = 3 * video.width * video.height
        check_length(packets, packets * frame_bytes, stream)
        # FFmpeg marks a packet that is cut, but not a file that ends between packets, or a Matroska file.
        stated, kind = Fraction(container.duration or 0, 1_000_000), container.format.name
        if kind.startswith(("matroska", "mov", "flv")) and stated - end > MAX_MISSING_SECONDS:
            raise ValueError(f"cut short: it ends after {float(end):.2f} of {float(stated):.2f} seconds")
        if missing := find_missing_end(kind, stream):
            raise ValueError(f"cut short: {missing}")
        facts = _Facts(
            codec=video.codec_context.codec.canonical_name,
            rate=video.average_rate or video.guessed_rate,
            tick=video.time_base or Fraction(1, 1000),
            last=float(last),
            frame_bytes=frame_bytes,
            count=packets,
            shown=None,
            is_animation=kind == "gif",
            aspect=video.sample_aspect_ratio or Fraction(1),
            transparent=video.metadata.get("alpha_mode") == "1",
        )
        return replace(facts, shown=_timeline(times, facts))


def _timeline(times: Sequence[int | None], facts: _Facts) -> Seconds | None:
    """Return the instants at which frames begin and the last frame ends; None if evenly spaced, or not known."""
    known = sorted(instant for instant in times if instant is not None)
    if not known or len(known) < len(times) or (len(times) > 1 and known[0] == known[-1]):
        return None
    starts = (np.array(known, np.float64) - known[0]) * float(facts.tick)
    if facts.rate and np.abs(starts - np.arange(len(starts)) / float(facts.rate)).max() <= 2 * ROUNDED_SECONDS:
        return None
    typical = float(np.median(np.diff(starts))) if len(starts) > 1 else 1 / float(facts.rate or ASSUMED_FPS)
    return np.append(starts, starts[-1] + (facts.last or typical))


class _Reading:
    """One pass over the frames of a video, which counts them and notes their times and their format."""

    def __init__(
        self, stream: IO[bytes], begin: Begin, plan: FrameIndices | None = None, *, with_course: bool = False
    ) -> None:
        self.count = 0
        self.small: list[Pixels] = []  # small frames of the whole video, if they were asked for
        self._small = MAX_COURSE if with_course else 0
        self.times: list[int | None] = []
        self.color: str | None = None  # marks of matrix and transfer as FFmpeg numbers them, "1/16"
        self._mode, self._transparent = "", False
        self._stream, self._begin = stream, begin
        self._wanted = frozenset() if plan is None else frozenset(plan.ravel().tolist())

    def mode(self, transparent: bool) -> str:
        """Return the format of the pixels, one with alpha only if a pixel is transparent or the container says so."""
        if transparent and not self._mode.startswith("yuva"):
            return self._mode.replace("yuv", "yuva", 1)
        return self._mode if self._transparent else opaque(self._mode)

    def frames(self) -> Generator[tuple[int, Pixels], None, None]:
        """Yield the number and the pixels of each frame in the plan."""
        from av.video.reformatter import Interpolation, VideoReformatter

        # One for all frames: making it takes about as long as using it once.
        reformatter, shrinker, fast = VideoReformatter(), VideoReformatter(), Interpolation.FAST_BILINEAR
        with _open(self._stream) as (container, video):
            self._begin(video.width * video.height)
            for frame in _decode(container, video):
                self._begin(frame.width * frame.height)
                number = self.count
                self.count += 1
                self.times.append(frame.pts)
                if frame.is_corrupt:
                    raise ValueError(f"damaged or cut short at frame {number}")
                if frame.width * frame.height > max_pixels():  # it need not have the size that the file states
                    raise ValueError(f"a frame of {frame.width}x{frame.height} pixels is too large")
                if number < self._small:
                    shrunk = shrinker.reformat(frame, COURSE_SIDE, COURSE_SIDE, "rgb24", interpolation=fast, threads=1)
                    self.small.append(shrunk.to_ndarray().astype(np.uint8, copy=False))
                if number in self._wanted:
                    self._mode, marks = frame.format.name, (int(frame.colorspace), int(frame.color_trc))
                    self.color = None if all(mark in UNMARKED for mark in marks) else "/".join(map(str, marks))
                    alpha = self._mode == "pal8" or has_alpha(self._mode)  # a palette may have transparent entries
                    layout = "rgba" if alpha else "rgb24"
                    rgb = (
                        reformatter.reformat(frame, format=layout, threads=1).to_ndarray().astype(np.uint8, copy=False)
                    )
                    if alpha:
                        self._transparent = self._transparent or bool((rgb[..., 3] < 255).any())
                        rgb = np.ascontiguousarray(rgb[..., :3])
                    yield number, _upright(rgb, frame)


def _decode(container: InputContainer, video: VideoStream) -> Iterator[VideoFrame]:
    """Decode all frames."""
    import av

    checking = CHECKING_DECODERS.get(video.codec_context.codec.canonical_name)
    context = video.codec_context
    if checking in av.codecs_available:
        context = cast("VideoCodecContext", av.CodecContext.create(checking, "r"))
        context.extradata = video.codec_context.extradata
    # Several videos are decoded in parallel: threads within one would only slow down the others.
    context.thread_count = 1
    strict = {"err_detect": "explode"} if context.codec.canonical_name in STRICT_CODECS else {}
    context.options = {"max_pixels": str(max_pixels()), **strict}
    for packet in container.demux(video):
        yield from (
            packet.decode() if context is video.codec_context else context.decode(packet if packet.size else None)
        )


def open_container(stream: IO[bytes]) -> InputContainer:
    """Open a file of a video with PyAV; tags that are not UTF-8, as old data sets have them, are not an error."""
    import av

    # PyAV 19 keeps the bytes of such tags, and the argument that asked PyAV 18 not to fail is gone.
    lenient: Any = {} if int(av.__version__.partition(".")[0]) >= 19 else {"metadata_errors": "ignore"}
    return cast("InputContainer", av.open(stream, "r", options={"format_whitelist": CONTAINERS}, **lenient))


@contextmanager
def _open(stream: IO[bytes]) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open the video in a file; errors of FFmpeg become a ValueError with a short text."""
    import av

    stream.seek(0)
    try:
        container = open_container(stream)
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
