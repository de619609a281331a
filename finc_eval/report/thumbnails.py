"""Thumbnails: the few samples a report shows, read again, made small and turned into data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.samples import Samples, Traits, open_source
from finc_eval.samples.clips import Clip

MAX_EDGE = 96
"""Pixels of the longer edge of a thumbnail; smaller images are not enlarged."""

MAX_LOSSLESS_EDGE = 32
"""Pixels of the longer edge up to which an image is kept lossless, as PNG, and shown pixel by pixel."""

WEBP_QUALITY = 80

MAX_CLIP_FRAMES, MAX_CLIP_EDGE = 8, 80
"""Frames of a clip that are shown, spread evenly over it, and pixels of their longer edge: a page shows hundreds."""

CLIP_QUALITY = 50
"""WebP quality of moving pictures: 6 kB a preview on average and 9 kB at most, over twelve real clips."""

DEFAULT_FPS = 25.0
"""Frames a second of clips that do not state it, such as arrays."""

MIN_PREVIEW_MS = 1000
"""Milliseconds that a preview lasts at least: 16 frames at 30 frames a second are a flicker."""


class Thumbnail(NamedTuple):
    """A picture for an <img>: its data URI, and its size in pixels."""

    uri: str
    width: int
    height: int

    @property
    def is_small(self) -> bool:
        """True for a picture that is shown enlarged, pixel by pixel."""
        return max(self.width, self.height) <= MAX_LOSSLESS_EDGE


Pictures = dict[str, dict[str, Thumbnail]]
"""Thumbnails by the label of their set and their id."""


def read_pictures(
    sets: Mapping[str, SetInfo],
    shown: Mapping[str, Iterable[str]],
    samples: Mapping[str, Samples],
    names: Mapping[str, str],
) -> tuple[Pictures, list[str]]:
    """Read the samples that a page shows.

    Args:
        sets: the sets of the result, by label.
        shown: ids of the samples to show, by label.
        samples: where the samples of a set are now, by label, if not where they were embedded from.
        names: names of the sets in a sentence, by label; default: the label.

    Returns:
        The thumbnails, and a sentence for each set that lacks some.
    """
    for label, given in samples.items():
        if label not in sets:
            raise UsageError(f"the result has no set {label!r}: it has {', '.join(sets)}")
        sets[label].check_samples(given)
    pictures, notes = {}, []
    for label, info in sets.items():
        source, hint = samples.get(label, info.source), f"samples={{{label!r}: …}}"
        pictures[label], note = read_thumbnails(names.get(label, label), source, shown[label], hint, info.clip)
        notes += [note] if note else []
    return pictures, notes


def read_thumbnails(
    name: str, source: Any, ids: Iterable[str], argument: str, clip: Clip | None = None
) -> tuple[dict[str, Thumbnail], str | None]:
    """Read the samples with these ids from anything `open_source` takes.

    Args:
        name: name of the set in a sentence.
        source: where its samples are; None when that is not known.
        ids: ids of the samples.
        argument: argument of the page by which a reader says where they are.
        clip: frames of a video that make a sample; None for images.

    Returns:
        The thumbnails by id, without those that cannot be read; and, when some are missing, one sentence that
        says why and what to do.
    """
    wanted = set(ids)
    found: dict[str, Thumbnail] = {}
    if not wanted:
        return found, None
    where = f"pass {argument}, the folder, zip, npz or array that holds them"
    if source is None:
        return found, (
            f"The samples of {name} are not shown, because the comparison was made from embeddings alone: {where}."
        )
    try:
        samples = open_source(source, clip=clip)
        numbers = [number for number, sample in enumerate(samples.ids) if sample in wanted]
        for sample in samples.take(numbers):
            if sample.pixels is not None:
                found[sample.id] = _picture(sample.pixels, sample.traits, clip)
    except (FincEvalError, OSError) as error:
        return found, f"The samples of {name} cannot be read ({error}): {where} now."
    missing = len(wanted) - len(found)
    if missing:
        return found, (
            f"{missing} of the {len(wanted)} samples of {name} that this report shows cannot be found or read in "
            f"{samples.name}: {where} now."
        )
    return found, None


def thumbnail(image: npt.NDArray[np.uint8]) -> Thumbnail:
    """Make an RGB image, shape (height, width, 3), small.

    Up to 32 pixels it stays as it is, in PNG; a larger one is brought down to at most 96 and is encoded as the
    smaller of PNG and WebP.
    """
    picture = Image.fromarray(image)
    is_small = max(picture.size) <= MAX_LOSSLESS_EDGE
    picture.thumbnail((MAX_EDGE, MAX_EDGE), Image.Resampling.LANCZOS)
    if (image == image[..., :1]).all():
        picture = picture.convert("L")
    encoded, kind = _encoded(picture, "PNG", optimize=True), "png"
    if not is_small:
        webp = _encoded(picture, "WEBP", quality=WEBP_QUALITY, method=4)
        encoded, kind = (webp, "webp") if len(webp) < len(encoded) else (encoded, kind)
    return _thumbnail(encoded, kind, picture)


def preview(frames: npt.NDArray[np.uint8], fps: float) -> Thumbnail:
    """Make an RGB clip, shape (frames, height, width, 3), a small animated WebP that plays in an <img>, endlessly.

    At most 8 of its frames are shown, at the clip's own speed or as much slower as it takes to last a second. Up to 32
    pixels they are lossless. Browsers play it even where the reader asked for less motion: no style can stop an image.
    """
    shown = frames[np.linspace(0, len(frames) - 1, min(MAX_CLIP_FRAMES, len(frames))).round().astype(int)]
    pictures = [Image.fromarray(frame) for frame in shown]
    is_small = max(pictures[0].size) <= MAX_LOSSLESS_EDGE
    for picture in pictures:
        picture.thumbnail((MAX_CLIP_EDGE, MAX_CLIP_EDGE), Image.Resampling.LANCZOS)
    whole = max(MIN_PREVIEW_MS, 1000 * len(frames) / fps)
    stream = io.BytesIO()
    pictures[0].save(
        stream,
        "WEBP",
        save_all=True,
        append_images=pictures[1:],
        duration=round(whole / len(pictures)),
        loop=0,
        lossless=is_small,
        quality=CLIP_QUALITY,
        method=4,
    )
    return _thumbnail(stream.getvalue(), "webp", pictures[0])


def _picture(pixels: npt.NDArray[np.uint8], traits: Traits | None, clip: Clip | None) -> Thumbnail:
    """Show an image as it is, and a clip of several frames playing."""
    if pixels.ndim == 3:
        return thumbnail(pixels)
    if len(pixels) == 1:
        return thumbnail(pixels[0])
    fps = (clip and clip.fps) or (traits and traits.fps) or DEFAULT_FPS
    return preview(pixels, fps / clip.stride if clip else fps)


def _thumbnail(encoded: bytes, kind: str, picture: Image.Image) -> Thumbnail:
    return Thumbnail(f"data:image/{kind};base64,{base64.b64encode(encoded).decode('ascii')}", *picture.size)


def _encoded(picture: Image.Image, kind: str, **options: int) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()
