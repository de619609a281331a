"""Private images as records, a batch at a time, and records as images again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from finc_eval.core.files.npz import NpzRows
from finc_eval.privacy.synthesis.dp_hp import PassingRecords
from finc_eval.privacy.synthesis.released_features import Shape

PrivateImages = np.ndarray | NpzRows
"""Images (m, h, w) or (m, h, w, c), uint8, in memory or in a file."""


def image_records(images: PrivateImages, shape: Shape) -> PassingRecords:
    """Return images as records of c·h·w numbers in [0, 1], channels first."""

    def batches(size: int) -> Iterator[torch.Tensor]:
        for pixels in _batches(images, size):
            planes = pixels.reshape(len(pixels), *shape).transpose(0, 3, 1, 2)
            yield torch.from_numpy(planes.reshape(len(pixels), -1)).float() / 255

    height, width, channels = shape
    return PassingRecords(len(images), channels * height * width, batches)


def as_images(records: torch.Tensor, shape: Shape, form: tuple[int, ...]) -> np.ndarray:
    """Return records as uint8 images of this form, (h, w) or (h, w, c)."""
    height, width, channels = shape
    pixels = (records * 255).round().to(torch.uint8).numpy()
    return pixels.reshape(-1, channels, height, width).transpose(0, 2, 3, 1).reshape(-1, *form)


def _batches(images: PrivateImages, size: int) -> Iterator[np.ndarray]:
    if isinstance(images, NpzRows):
        yield from images.batches(size)
    else:
        for start in range(0, len(images), size):
            yield images[start : start + size]
