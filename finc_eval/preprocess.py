"""From an RGB image to the array a network takes, as its card says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.cards import Preprocessing

FILTERS = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "lanczos": Image.Resampling.LANCZOS,
}


def preprocess(image: npt.NDArray[np.uint8], how: Preprocessing) -> npt.NDArray[np.float32]:
    """Resize to `how.size`, scale to [0, 1], subtract the mean and divide by the standard deviation.

    Args:
        image: (height, width, 3) uint8 RGB.
        how: the card's preprocessing.

    Returns:
        (3, *how.size) float32. Pixels of an image that has the size already are not resampled.
    """
    sized = image if image.shape[:2] == how.size else _resize(image, how)
    mean, std = np.array(how.mean, np.float32), np.array(how.std, np.float32)
    return np.ascontiguousarray(((sized / np.float32(255) - mean) / std).transpose(2, 0, 1))


def _resize(image: npt.NDArray[np.uint8], how: Preprocessing) -> npt.NDArray[np.uint8]:
    height, width = how.size
    # Pillow widens its filters when it shrinks, so all of them are antialiased.
    resample, picture = FILTERS[how.interpolation], Image.fromarray(np.ascontiguousarray(image))
    if how.geometry == "squash":
        return np.asarray(picture.resize((width, height), resample))
    scale = max(height / picture.height, width / picture.width)
    # Rounding may fall a pixel short of the side that decides the scale.
    larger = (max(width, round(picture.width * scale)), max(height, round(picture.height * scale)))
    left, top = (larger[0] - width) // 2, (larger[1] - height) // 2
    return np.asarray(picture.resize(larger, resample).crop((left, top, left + width, top + height)))
