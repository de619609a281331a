"""Thumbnails: samples made small and encoded, a clip as a moving preview, and pictures that files bring, checked."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw
from torch.nn.functional import adaptive_avg_pool2d

from finc_eval.core.errors import DataError
from finc_eval.core.words import plural
from finc_eval.extractors.networks.flow import optical_flow
from finc_eval.samples.images import FixedSettings

Kind = Literal["png", "webp", "jpeg"]

MAX_EDGE = 96  # pixels of the longer edge of a thumbnail; smaller images are not enlarged

MAX_LOSSLESS_EDGE = 32
"""Pixels of the longer edge up to which an image is kept lossless, as PNG, and shown pixel by pixel."""

QUALITY = 75  # quality of lossy pictures

MAX_CLIP_FRAMES, MAX_CLIP_EDGE = 8, 80
"""Frames of a clip that are shown, spread evenly over it, and pixels of their longer edge: a page shows hundreds."""

CLIP_QUALITY = 50
"""WebP quality of moving pictures: 10 kB a preview on average and 14 kB at most, over twelve real clips."""

CLIP_EFFORT = 2  # effort of WebP on moving pictures, 0 to 6: with 4, they are 5 % smaller and take 1.6 times as long

MIN_PREVIEW_MS = 1000  # milliseconds that a preview lasts at least: 16 frames at 30 frames a second are a flicker


ROW_EDGE, ROW_GAP = 64, 2  # height of pictures in a row, and white pixels between them

SMALL_EDGE = 48  # pixels of the longer edge of the picture of a member that a card has folded

STRIP_EDGE = 48  # pixels of the longer edge of each frame of a clip in the strip under its preview

ANIMATED = b"ANIM"  # name of the chunk that begins the animation of a WebP file, in its first 64 bytes


class Thumbnail(NamedTuple):
    """A picture for an <img>: its bytes, their format, and its size in pixels."""

    data: bytes
    kind: Kind
    width: int
    height: int

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.data).decode('ascii')}"

    @property
    def is_small(self) -> bool:
        """True for a picture that is shown enlarged, pixel by pixel."""
        return max(self.width, self.height) <= MAX_LOSSLESS_EDGE

    @property
    def is_moving(self) -> bool:
        """True for the preview of a clip."""
        return self.kind == "webp" and ANIMATED in self.data[:64]

    @property
    def still(self) -> Thumbnail:
        """The last frame of a preview, without lines, which a page shows until the reader asks for more."""
        return _still(self)

    def small(self, edge: int) -> Thumbnail:
        """The picture at most this large, encoded again if it is larger; of a clip its last frame."""
        if not self.is_moving and max(self.width, self.height) <= edge:
            return self
        return thumbnail(np.asarray(self.last), edge)

    @property
    def last(self) -> Image.Image:
        """The picture in RGB; of a clip its last frame."""
        with _opened(self.data) as stored:
            return _frame(stored, getattr(stored, "n_frames", 1) - 1)

    @property
    def strip(self) -> Thumbnail | None:
        """Frames of a preview side by side, for print and for who cannot watch it; None for a picture that stands."""
        return _strip(self) if self.is_moving else None


@lru_cache(maxsize=1000)  # a page shows a clip in several places, and is drawn again if it is too large
def _still(clip: Thumbnail) -> Thumbnail:
    return _webp(clip.last, lossless=clip.is_small)


@lru_cache(maxsize=1000)
def _strip(clip: Thumbnail) -> Thumbnail:
    with _opened(clip.data) as stored:
        # 4: frames of a clip that stand side by side under its preview.
        places = spread_evenly(getattr(stored, "n_frames", 1), 4).tolist()
        shown = [_frame(stored, number) for number in places]
    for frame in shown:
        frame.thumbnail((STRIP_EDGE, STRIP_EDGE), Image.Resampling.LANCZOS)
    width, height = shown[0].size
    strip = Image.new("RGB", (width * len(shown), height))
    for number, frame in enumerate(shown):
        strip.paste(frame, (number * width, 0))
    return _webp(strip, lossless=clip.is_small)


@contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    """Open a picture by the closed list of formats, and by Pillow's own settings."""
    with FixedSettings(), Image.open(io.BytesIO(data), formats=[kind.upper() for kind in get_args(Kind)]) as stored:
        yield stored


def _frame(stored: Image.Image, number: int) -> Image.Image:
    stored.seek(number)
    return stored.convert("RGB")


def read_thumbnail(data: bytes, kind: str, width: int, height: int) -> Thumbnail:
    """Return a picture that a file brings, with the format and the size that the file states.

    Its header is read first, and then its frames, one at a time: whoever made the file chose the bytes.

    Raises:
        DataError: the picture is damaged, of another format or size than stated, too large, or has too many frames.
    """
    try:
        with _opened(data) as stored:
            frames = getattr(stored, "n_frames", 1)
            if (stored.format, *stored.size) != (str(kind).upper(), width, height):
                raise DataError(f"it is {stored.format} of {stored.width}x{stored.height} pixels, not what is stated")
            if max(stored.size) > MAX_EDGE:
                raise DataError(f"it has {stored.width}x{stored.height} pixels, above {MAX_EDGE}x{MAX_EDGE}")
            if frames > MAX_CLIP_FRAMES:
                raise DataError(f"it has {plural(frames, 'frame')}, above {MAX_CLIP_FRAMES}")
            for number in range(frames):
                _frame(stored, number)
            return Thumbnail(data, cast(Kind, str(kind)), *stored.size)
    except DataError:
        raise
    except Exception as error:  # Pillow's readers raise almost anything on damaged bytes
        raise DataError("it is damaged") from error


def kept_thumbnails(pictures: Iterable[tuple[str, bytes, Any, Any, Any]]) -> tuple[dict[str, Thumbnail], str]:
    """Return the pictures that a file brings, by id, and a phrase about those that are left out; "" for none.

    Each is an id, and what `read_thumbnail` takes.
    """
    kept: dict[str, Thumbnail] = {}
    lacking: list[str] = []
    for name, *stated in pictures:
        try:
            kept[name] = read_thumbnail(*stated)
        except DataError as error:
            lacking.append(f"{name[:100]!r}, {error}")
    if not lacking:
        return kept, ""
    return kept, f"{plural(len(lacking), 'kept picture')} cannot be shown, such as that of {lacking[0]}"


def thumbnail(image: npt.NDArray[np.uint8], edge: int = MAX_EDGE) -> Thumbnail:
    """Make an RGB image, shape (height, width, 3), small.

    Up to 32 pixels it stays as it is, in PNG; a larger picture is brought down to at most `edge`, and is encoded as the
    smallest of PNG, WebP and JPEG.
    """
    picture = Image.fromarray(image)
    is_small = max(picture.size) <= MAX_LOSSLESS_EDGE
    picture.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    if (image == image[..., :1]).all():
        picture = picture.convert("L")
    made: list[tuple[bytes, Kind]] = [(_encode(picture, "PNG", optimize=True), "png")]
    if not is_small:
        made.append((_encode(picture, "WEBP", quality=QUALITY, method=4), "webp"))
        made.append((_encode(picture, "JPEG", quality=QUALITY, optimize=True), "jpeg"))
    return Thumbnail(*min(made, key=lambda encoded: len(encoded[0])), *picture.size)


def preview(frames: npt.NDArray[np.uint8], fps: float) -> Thumbnail:
    """Make an RGB clip, shape (frames, height, width, 3), a small animated WebP that plays in an <img>, endlessly.

    At most 8 of its frames are shown, at the clip's own speed or as much slower as it takes to last a second. Up to 32
    pixels they are lossless; on larger pictures, lines show how their parts move.
    """
    shown = spread_evenly(len(frames), MAX_CLIP_FRAMES)
    pictures = [Image.fromarray(frame) for frame in frames[shown]]
    is_small = max(pictures[0].size) <= MAX_LOSSLESS_EDGE
    for picture in pictures:
        picture.thumbnail((MAX_CLIP_EDGE, MAX_CLIP_EDGE), Image.Resampling.LANCZOS)
    if not is_small:
        draw_motion(pictures, frames, shown)
    whole = max(MIN_PREVIEW_MS, 1000 * len(frames) / fps)
    moving = {"save_all": True, "append_images": pictures[1:], "duration": round(whole / len(pictures)), "loop": 0}
    return _webp(pictures[0], lossless=is_small, quality=CLIP_QUALITY, method=CLIP_EFFORT, **moving)


def moving_picture(frames: npt.NDArray[np.uint8], fps: float, edge: int) -> Thumbnail:
    """Make all frames of an RGB clip, shape (frames, height, width, 3), an animated WebP at their own speed."""
    pictures = [Image.fromarray(frame) for frame in frames]
    for picture in pictures:
        picture.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    is_small = max(pictures[0].size) <= MAX_LOSSLESS_EDGE
    moving: dict[str, Any] = {"save_all": True, "append_images": pictures[1:], "duration": round(1000 / fps), "loop": 0}
    return _webp(pictures[0], lossless=is_small, **moving)


def side_by_side(pictures: Sequence[Thumbnail]) -> bytes | None:
    """Return pictures in a row, as PNG, of clips their last frames; None of no pictures."""
    row = row_of(pictures)
    return None if row is None else _encode(row, "PNG")


def row_of(pictures: Sequence[Thumbnail]) -> Image.Image | None:
    """Return pictures in a row, of clips their last frames; None of no pictures."""
    images = [picture.last for picture in pictures]
    images = [image.resize((max(1, round(image.width * ROW_EDGE / image.height)), ROW_EDGE)) for image in images]
    if not images:
        return None
    lefts = np.cumsum([0, *(image.width + ROW_GAP for image in images)]).tolist()
    row = Image.new("RGB", (lefts[-1] - ROW_GAP, ROW_EDGE), "white")
    for left, image in zip(lefts, images, strict=False):
        row.paste(image, (left, 0))
    return row


def spread_evenly(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return the numbers of at most `most` of `count` frames, spread evenly."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(int)


def _webp(picture: Image.Image, *, quality: int = QUALITY, method: int = 4, **options: Any) -> Thumbnail:
    return Thumbnail(_encode(picture, "WEBP", quality=quality, method=method, **options), "webp", *picture.size)


def _encode(picture: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


MOTION_SIDE, MOTION_LINES, MOTION_EVERY = 48, 8, 2
"""Pixels along a side on which flow is computed, lines along a side, and frames from one flow to the next.

Of photographs that move by up to .02 of a side a frame, lines are wrong by .003 to .007 of a side on average amid the
picture. From every frame on 64 pixels they are wrong by .002 to .011, and take three times as long."""

LEAST = 0.01
"""Motion from one shown frame to the next, in sides of the picture, below which no line is drawn: less than a pixel."""

REACH = 0.8 / MOTION_LINES  # length of a line at most, so that lines stand apart


def draw_motion(pictures: Sequence[Image.Image], frames: npt.NDArray[np.uint8], shown: npt.NDArray[np.int64]) -> None:
    """Draw on pictures of frames how each eighth of them moves until the next picture.

    `shown` has the places of the pictures among all frames, ascending.
    """
    if len(shown) < 2:
        return
    steps = [
        spread_evenly(stop - start + 1, -(-(stop - start) // MOTION_EVERY) + 1) + start
        for start, stop in pairwise(shown)
    ]
    read = np.unique(np.concatenate(steps))
    small = [
        np.asarray(Image.fromarray(frame).convert("L").resize((MOTION_SIDE, MOTION_SIDE))) for frame in frames[read]
    ]
    gray = torch.from_numpy(np.stack(small))[:, None].float() / 255
    flow, _ = optical_flow(gray[:-1], gray[1:])
    cells = adaptive_avg_pool2d(flow, MOTION_LINES) / MOTION_SIDE
    ends = np.cumsum([0, *(len(instants) - 1 for instants in steps)]).tolist()
    for picture, (start, stop) in zip(pictures, pairwise(ends), strict=False):
        moves = cells[start:stop].sum(0).clamp(-REACH, REACH)
        draw, (width, height) = ImageDraw.Draw(picture), picture.size
        for row, column in (moves.norm(dim=0) > LEAST).nonzero().tolist():
            across, down = moves[:, row, column].tolist()
            x, y = (column + 0.5) / MOTION_LINES, (row + 0.5) / MOTION_LINES
            ends = [(x * width, y * height), ((x + across) * width, (y + down) * height)]
            draw.line(ends, fill=(255, 214, 0))
            draw.point(ends[1], fill=(255, 255, 255))
