"""The multi-view distance: altered views of the most suspicious samples are embedded, and the nearest view counts.

Generated and fresh samples are screened together, by scores that know the training set alone. So if no sample is
copied, the two remain exchangeable, and the exact test of `tails` holds for the new distances as it does for the old.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.catalog import card_again, load_card
from finc_eval.extractors.preprocess import resize_frames
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
from finc_eval.memorization.tails import calibrated_distances
from finc_eval.samples.source import Pixels, ahead

if TYPE_CHECKING:
    from finc_eval.extractors.network import CardNetwork


WIDENED = 1 / 18
"""Mirrored border of the widened view, in sides: the picture is 0.9 of it, as a crop is of its original."""

SUSPECTS = 200  # suspicious samples, generated and fresh, whose views are embedded: ten embeddings of each

MAX_ALTERED = 100  # number of training pictures that are altered, in each way
NOISE_DEVIATION = 8  # standard deviation of the noise, of 255

JPEG_QUALITY = 30


def altered_views(pixels: Pixels) -> Iterator[Pixels]:
    """Yield views of a picture (h, w, 3): mirrored, widened, and shifted by a step in eight directions."""
    yield np.ascontiguousarray(pixels[:, ::-1])
    height, width, _ = pixels.shape
    y, x = ceil(WIDENED * height), ceil(WIDENED * width)
    yield np.pad(pixels, ((y, y), (x, x), (0, 0)), mode="symmetric")
    y, x = max(round(SHIFT * height), 1), max(round(SHIFT * width), 1)
    padded = np.pad(pixels, ((y, y), (x, x), (0, 0)), mode="edge")
    for upper in (0, y, 2 * y):
        for left in (0, x, 2 * x):
            if (upper, left) != (y, x):
                yield padded[upper : upper + height, left : left + width]


def suspects(screens: Sequence[NDArray[np.float64]], most: int) -> NDArray[np.int64]:
    """Return the samples that are lowest on one of several scores, each (n,), at most `most` of them.

    Whether a sample is taken does not depend on its place. So none of several equal samples is taken where only some
    could be: copies whose score is 0 need no other view.
    """
    share = most // len(screens)
    taken = [
        np.flatnonzero(scores < np.sort(scores)[share]) if share < len(scores) else np.arange(len(scores))
        for scores in screens
    ]
    return np.unique(np.concatenate(taken))


def multi_view_distances(
    sets: Mapping[str, Embeddings],
    calibrated: Sequence[NDArray[np.float64]],
    by_hash: Sequence[NDArray[np.float64]],
    train: Embeddings,
    k: int,
    most: int,
    run: Run,
) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Return the calibrated distances of each set's samples, of suspects the least over their views, shape (n,).

    With them comes the nearest training sample of that view, shape (n,); −1 if no other view is nearer. `calibrated`
    and `by_hash` are the distances without views, shape (n,), by which suspects are chosen.
    """
    card, precision = _extractor_of(train)
    chosen = suspects([np.concatenate(calibrated), np.concatenate(by_hash)], most)
    # Seconds of import, which embeddings alone do not need.
    from finc_eval.extractors.network import CardNetwork

    embed = CardNetwork(card, run.torch_device, precision)
    parts, start = [], 0
    for (label, samples), plain in zip(sets.items(), calibrated, strict=True):
        rows = chosen[(chosen >= start) & (chosen < start + samples.n)] - start
        distances, partners = plain.copy(), np.full(samples.n, -1)
        if len(rows):
            views = _embed_views(samples, label, rows, card, embed, run)
            near = nearest(views, train, k, device=run.torch_device)
            moved = calibrated_distances(near.distances).reshape(len(rows), -1)
            best = moved.argmin(1)
            least, owner = moved.min(1), near.indices[:, 0].reshape(moved.shape)[np.arange(len(rows)), best]
            nearer = least < plain[rows]
            distances[rows[nearer]], partners[rows[nearer]] = least[nearer], owner[nearer]
        parts.append((distances, partners))
        start += samples.n
    return parts


def _embed_views(
    samples: Embeddings, label: str, rows: NDArray[np.int64], card: Card, embed: CardNetwork, run: Run
) -> torch.Tensor:
    """Return the embeddings of all views of some samples, grouped by sample: (samples * views, d)."""
    parts = []
    for done in range(0, len(rows), PICTURES_HELD):
        images = pictures_at(samples, rows[done : done + PICTURES_HELD], label)
        views = [view for image in images for view in altered_views(np.asarray(image.convert("RGB")))]
        pixels = torch.from_numpy(np.stack([resize_frames(view, card.preprocessing) for view in views]))
        parts.append(embed(pixels)[:, : card.output.dimension].cpu())
        run.progress(f"views of suspects of {label}", done + len(images), len(rows))
    return torch.cat(parts)


def _extractor_of(train: Embeddings) -> tuple[Card, NetworkPrecision]:
    """Return the card and the precision that made embeddings."""
    source = train
    while isinstance(source, Subset):
        source = source.source
    if not isinstance(source, CachedEmbeddings):
        raise DataError("the extractor of embeddings in memory is not known")
    cache = source.cache
    try:
        card = load_card(card_again(cache.extractor))
        precision = cache.recipe["precision"]
        same = recipe_of(card, precision) == cache.recipe
    except (DataError, UsageError) as error:
        raise DataError(f"the extractor {cache.extractor} cannot be used again ({error})") from error
    if not same:
        raise DataError(f"the extractor {cache.extractor} is not the one that made the embeddings any more")
    if card.clip is not None:
        raise DataError(f"the extractor {cache.extractor} takes clips, and views are made of images only")
    return card, precision


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


ALTERATIONS: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    f"noise of {NOISE_DEVIATION}/255": noisy,
    f"JPEG {JPEG_QUALITY}": recompress,
    f"crop of {percent(CROPPED)}": crop,
    "shift": shift,
    "mirrored": lambda image, _: ImageOps.mirror(image),
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
        name: calibrated_distances(nearest_hashes(np.stack(views_of), base, k, run).distances)
        for name, views_of in hashes.items()
    }
