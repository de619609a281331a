"""Samples that are altered before they are embedded, and cards that resize otherwise: conventions of pixels."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from PIL import Image

from finc_eval.extractors.card import Card
from finc_eval.extractors.catalog import all_cards
from finc_eval.extractors.weights import locate
from finc_eval.samples.source import THREADS, Pixels, Result, Sample, Source, content_digest

Look = Callable[[Pixels], Pixels]

QUALITIES = (75, 95, 90)  # qualities of JPEG: the defaults of Pillow and of OpenCV, and a usual quality of data sets

SIDES = (32, 64, 128, 256, 299, 512)  # sides in pixels to which data sets are resized

RESIZES = {
    "Pillow's bilinear filter": ("pil", "bilinear", True),
    "torch's bilinear filter without antialiasing": ("torch", "bilinear", False),
    "Pillow's bicubic filter": ("pil", "bicubic", True),
    "torch's bicubic filter without antialiasing": ("torch", "bicubic", False),
    "torch's bilinear filter with antialiasing": ("torch", "bilinear", True),
    "torch's bicubic filter with antialiasing": ("torch", "bicubic", True),
    "Pillow's Lanczos filter": ("pil", "lanczos", True),
    "clean-fid's bicubic filter": ("clean", "bicubic", True),
    "TensorFlow 1's bilinear filter": ("tensorflow1", "bilinear", False),
}
"""Method, filter and antialiasing of the resizing of common codes."""


class AlteredSource(Source):
    """A set whose samples are altered by a function of their pixels; its digests differ from the set's own."""

    def __init__(self, inner: Source, name: str, look: Look) -> None:
        super().__init__(inner.name, inner.ids, inner.ignored)
        self._inner, self._name, self._look = inner, name, look
        self.kind, self.reading = inner.kind, inner.reading

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        """Yield the altered samples."""
        return map(self._altered, self._inner.take(numbers))

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        """Yield `function` of the altered samples."""
        return self._inner.mapped(lambda sample: function(self._altered(sample)), numbers, threads)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Yield digests of the samples' bytes and of the alteration."""
        return map(self._digest, self._inner.contents(numbers))

    def _altered(self, sample: Sample) -> Sample:
        pixels = None if sample.pixels is None else self._look(sample.pixels)
        return replace(sample, pixels=pixels, content=self._digest(sample.content))

    def _digest(self, content: bytes) -> bytes:
        return content_digest(content + self._name.encode())


def looks_of(side: int, is_square: bool) -> dict[str, Look]:
    """Return the alterations of pictures whose short side has so many pixels, by what they are called."""
    looks: dict[str, Look] = {f"JPEG, quality {quality}": partial(_jpeg, quality=quality) for quality in QUALITIES}
    looks["red and blue exchanged"] = _exchanged
    # 4: of images that were shrunk more, hardly anything is left.
    sides = [known for known in SIDES if side / 4 <= known < side]
    for known in sides[-3:]:
        looks[f"resized to {known} pixels first"] = partial(_resized, side=known)
    if not is_square:
        looks["cropped to the central square first"] = _square
    return looks


def resized_otherwise(card: Card) -> dict[str, Card]:
    """Return a card of images with other resizing or cropping, by what that is called."""
    own = card.preprocessing
    cards: dict[str, Card] = {}

    def add(name: str, **changed: object) -> None:
        how = replace(own, **changed)  # type: ignore[arg-type]
        if how != own:
            cards[name] = replace(card, preprocessing=how, extra={}, cells=None, golden=None)

    for name, (method, interpolation, antialias) in RESIZES.items():
        rounding = "uint8" if method == "pil" else "none"
        add(f"resized by {name}", method=method, interpolation=interpolation, antialias=antialias, rounding=rounding)
    add("the whole picture squashed to the network's size", geometry="squash", crop_fraction=1.0)
    add("the largest central crop", geometry="crop", crop_fraction=1.0)
    return cards


def other_networks(card: Card) -> list[Card]:
    """Return the cards of other networks that a number may be by: of a named distance, of the same network's family."""
    family = "inception" if card.name.startswith("inception") else ""
    return [
        other
        for other in all_cards()
        if other.clip is None and other.weights is not None and other.name != card.name and family in other.name
    ]


def is_here(card: Card) -> bool:
    """Return whether the weights of a card are on this machine."""
    return card.weights is not None and locate(card.weights) is not None


def plain_card(card: Card) -> Card:
    """Return the card without outputs that no distance takes."""
    return replace(card, extra={}, cells=None)


def short_side(source: Source) -> tuple[int, bool]:
    """Return the median short side of the first readable samples in pixels, and whether they are all square."""
    numbers = range(min(16, len(source.ids)))
    shapes = [sample.pixels.shape[:2] for sample in source.take(numbers) if sample.pixels is not None]
    sides = [min(shape) for shape in shapes] or [0]
    return int(np.median(sides)), all(height == width for height, width in shapes)


def _jpeg(pixels: Pixels, quality: int) -> Pixels:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))


def _exchanged(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[..., ::-1])


def _resized(pixels: Pixels, side: int) -> Pixels:
    height, width = pixels.shape[:2]
    shrink = side / min(height, width)
    size = max(round(width * shrink), 1), max(round(height * shrink), 1)
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))


def _square(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(pixels[top : top + side, left : left + side])
