"""Perceptual hashes: nearest training pictures that noise, recompression, small crops, shifts and a mirror do not hide.

A hash is the signs of the lowest frequencies of a gray picture, pHash of the library ImageHash: 256 bits. The distance
of two pictures is the least number of different bits over views of both. Views of the training pictures are hashed
once, the other pictures' while they are searched, so that only the former are held: 192 bytes a picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.errors import DataError
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.search.neighbors import Neighbors
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.source import ahead

HASH_SIDE = 16  # Frequencies along each axis. Hashes of 8 x 8 bits, the usual size, do not distinguish digits.
GRAY_SIDE = 4 * HASH_SIDE  # pixels along each axis that the library transforms
LARGE_SIDE = 2 * GRAY_SIDE  # pixels along each axis to which larger pictures are first reduced
SHIFT = 1 / 28  # step of the shifted views, in sides of the picture: one pixel of a digit
MAX_STEPS = 2  # steps by which views are shifted along each axis
CROPPED = 0.9  # side of the cropped views, and of crops that are planted, in sides of the picture
PICTURES_HASHED = 256  # pictures whose hashes are passed on together
PICTURES_HELD = 8  # pictures that are held together

HASH_ROWS, HASH_QUERIES = 1024, 32
"""Training pictures and others whose distances are computed together: 20 MB of products."""


HASHES = Stage("perceptual hashes")  # stage of the progress, whose unit is a hash


class HashedView(NamedTuple):
    """A part of a picture, perhaps mirrored."""

    # left, upper, right and lower edge, in sides of the picture; beyond its edges their pixels are repeated
    box: tuple[float, float, float, float]
    mirrored: bool = False  # whether left and right are exchanged


Views = tuple[HashedView, ...]

WHOLE = HashedView((0.0, 0.0, 1.0, 1.0))

PLAIN_VIEWS = (WHOLE, HashedView(WHOLE.box, mirrored=True))  # views of a picture that is searched for

SHIFTED_VIEWS = tuple(
    HashedView((x * SHIFT, y * SHIFT, 1 + x * SHIFT, 1 + y * SHIFT))
    for x in range(-MAX_STEPS, MAX_STEPS + 1)
    for y in range(-MAX_STEPS, MAX_STEPS + 1)
    if x or y
)
"""Further views of it: with the cropped views of the other picture, also crops anywhere."""

EVERY_VIEW = (*PLAIN_VIEWS, *SHIFTED_VIEWS)

TRAIN_VIEWS = (
    WHOLE,
    *(HashedView((x, y, x + CROPPED, y + CROPPED)) for x in (0, 1 - CROPPED) for y in (0, 1 - CROPPED)),
    HashedView(((1 - CROPPED) / 2, (1 - CROPPED) / 2, (1 + CROPPED) / 2, (1 + CROPPED) / 2)),
)
"""Views of a training picture that the other picture may be a crop of."""


COSINES = np.cos(np.pi * np.outer(np.arange(HASH_SIDE), 2 * np.arange(GRAY_SIDE) + 1) / (2 * GRAY_SIDE))
"""The lowest frequencies of the discrete cosine transform, (16, 64). The library computes all 64 along each axis, which
took half of the time of a hash."""


def view_hashes(image: Image.Image, views: Views) -> NDArray[np.uint8]:
    """Return the hashes of views of a picture, shape (views, 32): 256 bits in bytes."""
    gray = image.convert("L")
    width, height = (min(side, LARGE_SIDE) for side in gray.size)
    if gray.size != (width, height):
        gray = gray.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    x, y = (ceil(MAX_STEPS * SHIFT * side) for side in (width, height))
    padded = Image.fromarray(np.pad(np.asarray(gray), ((y, y), (x, x)), mode="edge"))
    small = np.empty((len(views), GRAY_SIDE, GRAY_SIDE))
    for pixels, ((left, upper, right, lower), mirrored) in zip(small, views, strict=True):
        box = (x + left * width, y + upper * height, x + right * width, y + lower * height)
        resized = np.asarray(padded.resize((GRAY_SIDE, GRAY_SIDE), Image.Resampling.LANCZOS, box))
        pixels[:] = resized[:, ::-1] if mirrored else resized
    # 6: digits that are kept, so that frequencies that a picture does not have are exactly 0, as in the library.
    low = (COSINES @ small @ COSINES.T).round(6).reshape(len(views), -1)
    return np.packbits(low > np.median(low, axis=1, keepdims=True), axis=1)


def pictures_at(samples: Embeddings, rows: NDArray[np.int64], label: str) -> list[Image.Image]:
    """Return the pictures of samples by their rows, shape (n,), or raise DataError."""
    images = samples.images_at(rows)
    if images is None:
        raise _missing(label)
    return images


def each_picture(samples: Embeddings, rows: NDArray[np.int64], label: str) -> Iterator[Image.Image]:
    """Yield what `pictures_at` returns, of which few are held together."""
    for start in range(0, len(rows), PICTURES_HELD):
        yield from pictures_at(samples, rows[start : start + PICTURES_HELD], label)


def hash_pictures(samples: Embeddings, views: Views, label: str, run: Run) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield the hashes of all pictures of a set, as (index of the first, hashes (b, views, 32))."""
    hashed = ahead(lambda image: view_hashes(image, views), _every_picture(samples), window=1)
    for start in range(0, samples.n, PICTURES_HASHED):
        stop = min(start + PICTURES_HASHED, samples.n)
        some = list(islice(hashed, stop - start))
        if len(some) < stop - start:
            raise _missing(label)
        yield start, np.stack(some)
        run.progress(HASHES, stop, samples.n)


def _every_picture(samples: Embeddings) -> Iterator[Image.Image]:
    """Yield the pictures of a set in order, up to the first that is not at hand; samples in files are read once."""
    if isinstance(samples, CachedEmbeddings) and samples.samples is not None:
        yield from samples.samples.every_picture()
        return
    for start in range(0, samples.n, PICTURES_HELD):
        images = samples.images_at(np.arange(start, min(start + PICTURES_HELD, samples.n)))
        if images is None:
            return
        yield from images


def _missing(label: str) -> DataError:
    return DataError(f"the pictures of {label} are not at hand, or have changed since they were embedded")


def base_hashes(base: Embeddings, label: str, run: Run) -> NDArray[np.uint8]:
    """Return the hashes of all views of the pictures that others may be copies of, shape (n, views, 32)."""
    return np.concatenate([hashes for _, hashes in hash_pictures(base, TRAIN_VIEWS, label, run)])


def aligning_views(
    pictures: Iterable[Image.Image], base: NDArray[np.uint8], views: Views, run: Run
) -> list[HashedView]:
    """Return for each picture the view whose hash is nearest to that of a training picture; the first of equals."""
    hashes = np.stack([*ahead(lambda image: view_hashes(image, views), pictures)])
    partners = base[nearest_hashes(hashes, base, 1, run).indices[:, 0]]
    different = np.unpackbits(hashes[:, :, None] ^ partners[:, None], axis=3).sum(3, dtype=np.int64).min(2)
    return [views[place] for place in different.argmin(1)]


def query_views(largest: int, train: int) -> Views:
    """Return the views of pictures that are searched for among training pictures, as many as are affordable."""
    # 2e10: number of products of hashes up to which shifted views are also searched: some minutes on two cores.
    affordable = largest * train * len(EVERY_VIEW) * len(TRAIN_VIEWS) <= 2e10
    return EVERY_VIEW if affordable else PLAIN_VIEWS


def nearest_by_hash(
    samples: Embeddings, base: NDArray[np.uint8], k: int, views: Views, label: str, run: Run
) -> Neighbors:
    """Find the training pictures with the nearest hashes: distances in bits and indices, shape (n, k)."""
    parts = [nearest_hashes(hashes, base, k, run) for _, hashes in hash_pictures(samples, views, label, run)]
    return Neighbors(
        np.concatenate([part.distances for part in parts]), np.concatenate([part.indices for part in parts])
    )


def nearest_hashes(queries: NDArray[np.uint8], base: NDArray[np.uint8], k: int, run: Run) -> Neighbors:
    """Find the k nearest hashes, of equally near hashes the first; the distance is the least over views of both."""
    best = torch.empty((len(queries), 0), dtype=torch.long)
    parts = [_signs(queries[start : start + HASH_QUERIES], run) for start in range(0, len(queries), HASH_QUERIES)]
    for start in range(0, len(base), HASH_ROWS):
        block = _signs(base[start : start + HASH_ROWS], run)
        different = torch.cat([_distances(part, block) for part in parts])
        # The key of a pair orders by bits, and then by place.
        keys = different * len(base) + torch.arange(start, start + different.shape[1])
        keys = torch.cat([best, keys], 1)
        best = keys.topk(min(k, keys.shape[1]), largest=False).values
    bits, places = np.divmod(best.numpy(), len(base))
    return Neighbors(bits.astype(np.float64), places)


def _signs(hashes: NDArray[np.uint8], run: Run) -> torch.Tensor:
    """Return the bits of hashes (b, views, bytes) as −1 and 1: (views, b, bits)."""
    bits = torch.from_numpy(np.unpackbits(hashes, axis=2)).to(run.torch_device)
    return bits.float().mul_(2).sub_(1).transpose(0, 1).contiguous()


def _distances(queries: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Return the least number of different bits over views: (v, b, bits), (w, c, bits) → (b, c)."""
    with arithmetic():  # exact: sums of 256 signs
        products = queries.flatten(0, 1) @ base.flatten(0, 1).T
    most = products.view(*queries.shape[:2], *base.shape[:2]).amax((0, 2))
    return ((queries.shape[2] - most) / 2).long().cpu()
