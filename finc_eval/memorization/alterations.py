"""Altered copies, planted on purpose: how near training pictures remain to themselves by their hashes."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import Embeddings
from finc_eval.memorization.hashes import (
    CROPPED,
    MAX_STEPS,
    PICTURES_HELD,
    SHIFT,
    Views,
    nearest_hashes,
    pictures_at,
    view_hashes,
)
from finc_eval.memorization.power import calibrated_distances
from finc_eval.samples import ahead

MAX_ALTERED = 100
"""Number of training pictures that are altered, in each way."""

NOISE_DEVIATION = 8
"""Standard deviation of the noise, of 255."""

JPEG_QUALITY = 30


def noisy(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Add Gaussian noise to every channel of every pixel."""
    pixels = np.asarray(image) + NOISE_DEVIATION * rng.standard_normal((image.height, image.width, 3))
    return Image.fromarray(np.rint(pixels).clip(0, 255).astype(np.uint8))


def recompress(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Compress the picture as JPEG."""
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=JPEG_QUALITY)
    return Image.open(stream).convert("RGB")


def crop(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Crop the picture anywhere, and bring the crop to its size."""
    width, height = image.size
    left, upper = rng.uniform(0, 1 - CROPPED, 2)
    box = (left * width, upper * height, (left + CROPPED) * width, (upper + CROPPED) * height)
    return image.resize(image.size, Image.Resampling.BICUBIC, box)


def shift(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Shift the picture by up to two pixels of a digit along each axis, not by none, and repeat the edge."""
    steps = [0, 0]
    while not any(steps):
        steps = rng.integers(-MAX_STEPS, MAX_STEPS + 1, 2).tolist()
    x, y = (
        int(np.sign(step)) * max(round(abs(step) * SHIFT * side), 1) if step else 0
        for step, side in zip(steps, image.size, strict=True)
    )
    most = max(abs(x), abs(y))
    padded = np.pad(np.asarray(image), ((most, most), (most, most), (0, 0)), mode="edge")
    return Image.fromarray(padded[most + y : most + y + image.height, most + x : most + x + image.width])


def mirror(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Exchange left and right."""
    return ImageOps.mirror(image)


ALTERATIONS: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    f"noise of {NOISE_DEVIATION}/255": noisy,
    f"JPEG {JPEG_QUALITY}": recompress,
    f"crop of {percent(CROPPED)}": crop,
    "shift": shift,
    "mirrored": mirror,
}
"""Alterations of a copy, by their names in the table of the power."""


def altered_distances(
    train: Embeddings, base: NDArray[np.uint8], k: int, views: Views, seed: int, run: Run
) -> dict[str, NDArray[np.float64]]:
    """Return calibrated distances by hash of altered copies of some training pictures, by alteration."""
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(train.n, min(MAX_ALTERED, train.n), replace=False))
    hashes: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in ALTERATIONS}
    for start in range(0, len(drawn), PICTURES_HELD):
        rows = drawn[start : start + PICTURES_HELD]
        images = [image.convert("RGB") for image in pictures_at(train, rows, "train")]
        for name, alter in ALTERATIONS.items():
            hashes[name] += ahead(lambda image: view_hashes(image, views), [alter(image, rng) for image in images])
        run.progress("altered copies", start + len(rows), len(drawn))
    return {
        name: calibrated_distances(nearest_hashes(np.stack(found), base, k, run).distances)
        for name, found in hashes.items()
    }
