"""Pictures of a few samples: from memory, or read again from where the samples were embedded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.samples import Source, fingerprint, open_source
from finc_eval.samples.clips import Clip


def source_at(path: str, clip: Clip | None) -> Source | None:
    """Open the set of samples at a path; None where it has gone, or never was a path."""
    try:
        return open_source(path, clip=clip) if Path(path).is_absolute() else None
    except FincEvalError:
        return None


def pictures_of(
    source: Source, ids: Sequence[str], content: npt.NDArray[np.uint64] | None = None
) -> list[Image.Image] | None:
    """Read the pictures of samples; None if one of them is missing, cannot be read or has changed.

    Args:
        source: the set.
        ids: ids of the samples.
        content: digest of each decoded sample as it was; default: not known.
    """
    found = source.read(ids)
    if not found.keys() >= set(ids):
        return None
    if content is not None and any(fingerprint(found[name]) != was for name, was in zip(ids, content, strict=True)):
        return None
    return [picture(found[name]) for name in ids]


def picture(image: object) -> Image.Image:
    """Return an image as a PIL image, of a clip its middle frame.

    Args:
        image: PIL image, or uint8 array of shape (h, w), (h, w, 3) or (frames, h, w, 3).

    Raises:
        UsageError: it is neither.
    """
    if isinstance(image, Image.Image):
        return image
    pixels: npt.NDArray[np.uint8] = np.asarray(image)
    if pixels.ndim == 4:
        pixels = pixels[len(pixels) // 2]
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (1,), (3,)):
        raise UsageError(
            f"an image must be a PIL image or uint8 of shape (h, w) or (h, w, 3), got {pixels.dtype} of shape "
            f"{pixels.shape}"
        )
    return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
