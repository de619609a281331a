"""The multi-view distance: altered views of the most suspicious samples are embedded, and the nearest view counts.

Generated and fresh samples are screened together, by scores that know the training set alone. So if no sample is
copied, the two remain exchangeable, and the exact test of `tails` holds for the new distances as it does for the old.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.places import known_folder
from finc_eval.core.progress import Progress, Stage, silent
from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.job import Job
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.catalog import card_again, load_card
from finc_eval.memorization.hashes import (
    CROPPED,
    EVERY_VIEW,
    MAX_STEPS,
    PICTURES_HELD,
    PLAIN_VIEWS,
    SHIFT,
    HashedView,
    Views,
    aligning_views,
    each_picture,
    nearest_hashes,
    pictures_at,
    view_hashes,
)
from finc_eval.memorization.tails import calibrated_distances
from finc_eval.samples.rows import row_encoding
from finc_eval.samples.source import Pixels, Sample, Source, ahead, pixels_digest

if TYPE_CHECKING:
    from finc_eval.extractors.network import CardNetwork


WIDENED = 1 / 18
"""Mirrored border of the widened view, in sides: the picture is 0.9 of it, as a crop is of its original."""

SUSPECTS = 200  # suspicious samples, generated and fresh, whose views are embedded: two or three of each

VIEWS, ALTERED = Stage("views of suspects"), Stage("altered copies")  # stages of the progress

MAX_ALTERED = 100  # number of training pictures that are altered, in each way
NOISE_DEVIATION = 8  # standard deviation of the noise, of 255

JPEG_QUALITY = 30


MIRRORED, WIDENED_VIEW = PLAIN_VIEWS[1], HashedView((-WIDENED, -WIDENED, 1 + WIDENED, 1 + WIDENED))


def views_of(alignment: HashedView) -> Views:
    """Return the views of a suspect: mirrored, widened, and as its hash is nearest to that of a training picture."""
    return (MIRRORED, WIDENED_VIEW, *({alignment} - set(PLAIN_VIEWS)))


def altered_view(pixels: Pixels, view: HashedView) -> Pixels:
    """Return a view of a picture (h, w, 3): mirrored, widened by its mirrored border, or shifted, with its edge."""
    if view.mirrored:
        return np.ascontiguousarray(pixels[:, ::-1])
    height, width, _ = pixels.shape
    if view == WIDENED_VIEW:
        y, x = ceil(WIDENED * height), ceil(WIDENED * width)
        return np.pad(pixels, ((y, y), (x, x), (0, 0)), mode="symmetric")
    left, upper = view.box[:2]
    y, x = (max(round(abs(part) * side), 1) if part else 0 for part, side in ((upper, height), (left, width)))
    padded = np.pad(pixels, ((y, y), (x, x), (0, 0)), mode="edge")
    top, start = (step + (step if part > 0 else -step) for part, step in ((upper, y), (left, x)))
    return padded[top : top + height, start : start + width]


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


class SuspectViews:
    """Embeddings of altered views of suspects, each made once: a cache in the folder of caches keeps them.

    So an audit that was stopped goes on where it was, and a second one finds them. `train` has the extractor.

    Raises:
        DataError: the extractor of the training set is not known, takes clips, or cannot be used again.
    """

    def __init__(self, train: Embeddings, run: Run) -> None:
        self._card, self._precision = _extractor_of(train)
        self._run, self._rows = run, dict[str, torch.Tensor]()
        self.network = lru_cache(self._network)

    def __call__(
        self, samples: Embeddings, label: str, views: Mapping[int, Views], progress: Progress
    ) -> tuple[torch.Tensor, NDArray[np.int64]]:
        """Return the embeddings of views of some samples, by row, grouped by sample: (views, d); and their rows."""
        source = ViewSource(samples, label, views)
        rows = np.repeat(list(views), [len(some) for some in views.values()])
        names = source.ids
        new = [number for number, name in enumerate(names) if name not in self._rows]
        if new:
            self._rows.update(
                zip([names[number] for number in new], self._embed(source.part(new), progress), strict=True)
            )
        return torch.stack([self._rows[name] for name in names]), rows

    def _embed(self, source: ViewSource, progress: Progress) -> torch.Tensor:
        """Embed views as a job does, whose file outlives a crash; without a folder of caches, in a passing file."""
        recipe = recipe_of(self._card, self._precision)
        with tempfile.TemporaryDirectory() as passing:
            out = None if known_folder("embeddings") else Path(passing, "views.h5")
            job = Job(self._card, recipe, source, self._run, self.network, out=out, strict=True)
            job.count_missing(silent)
            with job.made(silent, lambda _, done, total: progress(VIEWS, done, total)) as cache:
                return as_embeddings(cache).rows_at(np.arange(cache.n)).clone()

    def _network(self, compiled_for: int | None) -> CardNetwork:
        # Seconds of import, which embeddings alone do not need.
        from finc_eval.extractors.network import CardNetwork

        return CardNetwork(self._card, self._run.torch_device, self._precision, compiled_for)


def suspect_views(train: Embeddings, run: Run) -> SuspectViews | None:
    """Return what embeds views by the extractor of the training set; None if that cannot be had."""
    try:
        return SuspectViews(train, run)
    except DataError:
        return None


class ViewSource(Source):
    """Altered views of samples, as a set of samples: a few pictures are held together."""

    kind = "views"

    def __init__(self, samples: Embeddings, label: str, views: Mapping[int, Views]) -> None:
        self._samples, self._label = samples, label
        self._views = [(row, view) for row, some in views.items() for view in some]
        names = dict(zip(views, samples.ids_at(np.array([*views], np.int64)), strict=True))
        ids = [f"{label} {names[row]}: {_named(view)}" for row, view in self._views]
        super().__init__(f"views of {label}", ids, {})

    def part(self, numbers: Sequence[int]) -> ViewSource:
        """Return the source of some of the views."""
        views: dict[int, Views] = {}
        for row, view in (self._views[number] for number in numbers):
            views[row] = (*views.get(row, ()), view)
        return ViewSource(self._samples, self._label, views)

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        """Yield views with these increasing numbers."""
        rows = list(dict.fromkeys(self._views[number][0] for number in numbers))
        held: dict[int, Pixels] = {}
        for number in numbers:
            row, view = self._views[number]
            if row not in held:
                some = rows[(at := rows.index(row)) : at + PICTURES_HELD]
                pictures = pictures_at(self._samples, np.array(some), self._label)
                held = {row: np.asarray(image.convert("RGB")) for row, image in zip(some, pictures, strict=True)}
            pixels = altered_view(held[row], view)
            yield Sample(self.ids[number], pixels, None, row_encoding(pixels, 3), pixels_digest(pixels))

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Yield the digests of the pixels of views."""
        return (sample.content for sample in self.take(numbers))


def _named(view: HashedView) -> str:
    return "mirrored" if view.mirrored else " ".join(f"{edge:.4f}" for edge in view.box)


def multi_view_distances(
    sets: Mapping[str, Embeddings],
    screens: Sequence[Sequence[NDArray[np.float64]]],
    train: Embeddings,
    hashes: NDArray[np.uint8],
    k: int,
    most: int,
    embed: SuspectViews,
    run: Run,
    viewed: Collection[str],
) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Return the calibrated distances of each set's samples, of suspects the least over their views, shape (n,).

    With them comes the nearest training sample of that view, shape (n,); −1 if no other view is nearer. `screens` are
    the calibrated distances without views, and by hash, of each set, shape (n,), by which suspects are chosen. `hashes`
    are those of the training set. Of sets that are not `viewed`, all samples keep their distance.
    """
    chosen = suspects([np.concatenate(screen) for screen in screens], most)
    parts, starts = [], np.cumsum([0, *(samples.n for samples in sets.values())])
    parted = [chosen[(chosen >= start) & (chosen < end)] - start for start, end in pairwise(starts)]
    rows_of = [rows if label in viewed else rows[:0] for label, rows in zip(sets, parted, strict=True)]
    runs = run.over(VIEWS, [len(rows) for rows in rows_of])
    for (label, samples), plain, rows, part in zip(sets.items(), screens[0], rows_of, runs, strict=True):
        distances, partners = plain.copy(), np.full(samples.n, -1)
        if len(rows):
            pictures = each_picture(samples, rows, label)
            views = map(views_of, aligning_views(pictures, hashes, EVERY_VIEW, run))
            embedded, owners = embed(samples, label, dict(zip(rows.tolist(), views, strict=True)), part.progress)
            near = nearest(embedded, train, k, device=run.torch_device)
            moved = calibrated_distances(near.distances)
            order = np.lexsort((moved, owners))  # the least of each sample first
            first = order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
            nearer = first[moved[first] < plain[owners[first]]]
            distances[owners[nearer]], partners[owners[nearer]] = moved[nearer], near.indices[nearer, 0]
        parts.append((distances, partners))
    return parts


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
        run.progress(ALTERED, start + len(rows), len(drawn))
    return {
        name: calibrated_distances(nearest_hashes(np.stack(views_of), base, k, run).distances)
        for name, views_of in hashes.items()
    }
