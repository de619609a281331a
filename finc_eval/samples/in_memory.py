"""Images in memory: Pillow images, uint8 arrays and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.core.errors import DataError
from finc_eval.samples.images import as_rgb, rgb
from finc_eval.samples.source import Pixels
from finc_eval.samples.traits import Traits, is_gray

CHANNELS = (1, 3)


def to_pixels(value: Any, who: str) -> tuple[Pixels, Traits]:
    """Turn one image into (height, width, 3) uint8 RGB.

    Args:
        value: a Pillow image, or a uint8 array or tensor of shape (height, width), (height, width, 1 or 3) or
            (1 or 3, height, width). If both the first and the last axis could be the channels, the last is for an array
            and the first for a tensor.
        who: name of the image in messages ("item 3 of the dataset").

    Raises:
        DataError: the value has another type or shape.
        ValueError: a Pillow image has a mode without an 8-bit range.
    """
    if isinstance(value, Image.Image):
        return rgb(value)
    array = to_array(value, who)
    pixels = as_rgb(array if array.ndim == 2 else _channels_last(array, is_tensor(value), who))
    if 0 in pixels.shape:
        raise DataError(f"{who} has shape {array.shape}: it holds no pixels")
    return pixels, row_traits(pixels, 1 if array.ndim == 2 or 1 in (array.shape[0], array.shape[-1]) else 3)


def row_traits(pixels: Pixels, channels: int) -> Traits:
    """Return the traits of (height, width, 3) pixels from an array with this number of channels."""
    height, width, _ = pixels.shape
    return Traits("array", "L" if channels == 1 else "RGB", width, height, is_gray(pixels))


def to_array(value: Any, who: str) -> npt.NDArray[np.uint8]:
    """Return a uint8 array or tensor as an array."""
    if is_tensor(value):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray):
        raise DataError(f"{who} is of type {type(value).__name__}, but images must be uint8 arrays, tensors or PIL")
    check_dtype(value.dtype, f"{who} has shape {value.shape} and dtype {value.dtype}")
    return value


def check_dtype(dtype: np.dtype[Any], found: str) -> None:
    """Raise DataError for any type but uint8, and say how to convert it."""
    if dtype != np.uint8:
        how = (
            "if its range is 0 to 1, pass (255 * x).round().clip(0, 255).astype(np.uint8)"
            if dtype.kind == "f"
            else "pass 8-bit images as np.uint8"
        )
        raise DataError(f"{found}, but images must be uint8: {how}")


def is_tensor(value: Any) -> bool:
    """Return whether a value is a torch tensor, without importing torch."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def is_image(value: Any) -> bool:
    """Return whether a value looks like one image: it has two or three dimensions."""
    return isinstance(value, Image.Image) or _dimensions(value) in (2, 3)


def is_batch(value: Any) -> bool:
    """Return whether a value looks like many images: it has four dimensions, or is a sequence of images."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return len(value) > 0 and all(map(is_image, value))
    return _dimensions(value) == 4


def plain(value: Any) -> Any:
    """Return numbers of numpy and torch as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value


def _dimensions(value: Any) -> int | None:
    return value.ndim if isinstance(value, np.ndarray) or is_tensor(value) else None


def _channels_last(array: npt.NDArray[np.uint8], tensor: bool, who: str) -> npt.NDArray[np.uint8]:
    first, last = (array.shape[0], array.shape[-1]) if array.ndim == 3 else (0, 0)
    if last in CHANNELS and not (tensor and first in CHANNELS):
        return array
    if first in CHANNELS:
        return array.transpose(1, 2, 0)
    how = ": drop the alpha channel" if 4 in (first, last) else ""
    raise DataError(f"{who} has shape {array.shape}, but images must be (height, width, 3) or (3, height, width){how}")
