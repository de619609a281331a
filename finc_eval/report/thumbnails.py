"""Thumbnails: the few samples a report shows, read again, made small and turned into data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.errors import FincEvalError
from finc_eval.samples import open_source

LONGEST = 96
"""Pixels of the longer edge of a thumbnail at most; none is enlarged."""

SMALL = 32
"""Up to this longer edge an image is kept lossless, as PNG, and shown pixel by pixel."""

CHUNK = 64
"""Samples decoded at a time, so that memory does not grow with the number shown."""

WEBP_QUALITY = 80


class Thumbnail(NamedTuple):
    """A picture for an <img>: its data URI, and its size in pixels."""

    uri: str
    width: int
    height: int

    @property
    def is_small(self) -> bool:
        """Whether it is of the kind that is shown enlarged, pixel by pixel."""
        return max(self.width, self.height) <= SMALL


def read_thumbnails(
    name: str, source: Any, ids: Iterable[str], argument: str
) -> tuple[dict[str, Thumbnail], str | None]:
    """Read the samples with these ids from anything `open_source` takes.

    Args:
        name: what to call the set.
        source: where its samples are; None when nobody knows.
        ids: of the samples.
        argument: of the caller's caller, by which to say where they are.

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
        samples = open_source(source)
        known = [sample for sample in samples.ids if sample in wanted]
        for chunk in _chunks(known, CHUNK):
            found.update((sample, thumbnail(image)) for sample, image in samples.read(chunk).items())
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
    is_small = max(picture.size) <= SMALL
    picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    if (image == image[..., :1]).all():
        picture = picture.convert("L")
    encoded, kind = _encoded(picture, "PNG", optimize=True), "png"
    if not is_small:
        webp = _encoded(picture, "WEBP", quality=WEBP_QUALITY, method=4)
        encoded, kind = (webp, "webp") if len(webp) < len(encoded) else (encoded, kind)
    return Thumbnail(f"data:image/{kind};base64,{base64.b64encode(encoded).decode('ascii')}", *picture.size)


def _encoded(picture: Image.Image, kind: str, **options: int) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def _chunks(items: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))
