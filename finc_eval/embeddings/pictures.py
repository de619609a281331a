"""Pictures of a few samples: from memory, or read again from where the samples were embedded."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt
from PIL import Image

from finc_eval.core.errors import DataError, FincEvalError, UsageError
from finc_eval.core.files.on_disk import any_was_read
from finc_eval.core.places import is_url
from finc_eval.embeddings.cache import ID_BLOCK, EmbeddingCache
from finc_eval.samples.clips import Clip
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import Sample, Source, fingerprint
from finc_eval.samples.whole.course import ClipCourse, shrink_all

WithCourses = list[tuple[Image.Image, ClipCourse | None]]  # pictures, and small frames of the videos of clips


class EmbeddedSamples:
    """The samples that a cache was made of, held by the process or at the place that the cache names.

    Only samples that still have the same pixels are given out.

    A cache may come from somebody else, who chose the place that it names. What is read there is given out only if the
    cache holds the digest of its pixels, so that whoever wrote the file knows the picture. The cache may be closed.
    """

    def __init__(self, cache: EmbeddingCache) -> None:
        self.path, self.key, self.place, self.clip = cache.path, cache.key, cache.source, cache.clip
        self._reading, self._held = cache.reading, cache.held
        self._cache: ref[EmbeddingCache] | None = ref(cache)  # pictures that are kept do not keep the file open

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process holds: another process may not be able to have it."""
        kept = {name: value for name, value in vars(self).items() if name != "_source"}
        return kept | {"_held": None, "_cache": None}

    def read(self, ids: Iterable[str], *, with_courses: bool = False) -> Iterator[Sample]:
        """Yield the samples with these ids, except samples that are missing or have other pixels.

        Clips come with small frames of their whole videos, if these are asked for.
        """
        digests = self._digests(set(ids))
        source = self._source.with_courses() if with_courses else self._source
        for sample in source.take([number for number, name in enumerate(source.ids) if name in digests]):
            if sample.pixels is not None and fingerprint(sample.pixels) == digests[sample.id]:
                yield sample

    def pictures(self, ids: Sequence[str]) -> list[Image.Image] | None:
        """Read the pictures of samples; None if one of them cannot be had."""
        try:
            pixels = {sample.id: sample.pixels for sample in self.read(ids)}
        except FincEvalError:
            return None
        return [picture(pixels[name]) for name in ids] if pixels.keys() >= set(ids) else None

    def courses(self, ids: Sequence[str]) -> WithCourses | None:
        """Read the pictures of clips, and small frames of their whole videos; None if one of them cannot be had."""
        try:
            found = {
                sample.id: (picture(sample.pixels).copy(), sample.course)  # a copy holds no other frames
                for sample in self.read(ids, with_courses=True)
                if sample.pixels is not None
            }
        except FincEvalError:
            return None
        return [found[name] for name in ids] if found.keys() >= set(ids) else None

    def every_picture(self) -> Iterator[Image.Image]:
        """Read the pictures of all samples of the cache in one pass, in order, up to the first that cannot be had."""
        try:
            with EmbeddingCache(self.path) as cache:
                ids = cache.ids_between(0, cache.n)
            for name, sample in zip(ids, self.read(ids), strict=False):
                if sample.id != name or sample.pixels is None:
                    return
                yield picture(sample.pixels)
        except FincEvalError:
            return

    @cached_property
    def _source(self) -> Source:
        return self._held or open_stated(self.place, clip=self.clip, reading=self._reading)

    def _digests(self, wanted: set[str]) -> dict[str, int]:
        with self._opened() as cache:
            content = cache.content
            blocks = (cache.ids_between(start, start + ID_BLOCK) for start in range(0, cache.n, ID_BLOCK))
            names = (name for block in blocks for name in block)
            return {name: int(content[row]) for row, name in enumerate(names) if name in wanted}

    @contextmanager
    def _opened(self) -> Iterator[EmbeddingCache]:
        """Yield the cache: the same as long as it is open, and then its file, if it still has the same embeddings."""
        cache = self._cache and self._cache()
        if cache and cache.is_open:
            yield cache
            return
        with EmbeddingCache(self.path) as again:
            if again.key != self.key:
                raise DataError(f"{self.path} holds other embeddings by now")
            yield again


def open_stated(
    place: str, *, clip: Clip | None, n: int | None = None, seed: int = 0, reading: Reading | None = None
) -> Source:
    """Open the samples at the place that a cache names; see `open_source`."""
    from finc_eval.samples.opening import open_source  # the readers of all forms load when pictures are asked for
    from finc_eval.samples.tar import expand

    if is_url(place) and not any_was_read(expand(place)):
        raise DataError(f"{place} is not fetched because a file names it: pass it as samples")
    return open_source(place, clip=clip, n=n, seed=seed, **(reading or EVERYTHING).choices)


class HeldSamples:
    """Samples whose pictures are in memory, as `picture` takes them; of a clip all frames are shown."""

    place = "memory"

    def __init__(self, ids: Sequence[str], images: Sequence[Any] | npt.NDArray[np.uint8]) -> None:
        self._ids, self._images = ids, images

    def read(self, ids: Container[str]) -> Iterator[Sample]:
        """Yield the samples with these ids."""
        for name, image in zip(self._ids, self._images, strict=True):
            if name in ids:
                is_clip = isinstance(image, np.ndarray) and image.ndim == 4 and image.shape[3] == 3
                yield Sample(name, image if is_clip else np.asarray(picture(image).convert("RGB")))


def picture(image: object) -> Image.Image:
    """Return a PIL image, or uint8 (h, w), (h, w, 3) or (frames, h, w, 3), as a PIL image; of a clip its middle."""
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


def course_of(image: object) -> ClipCourse | None:
    """Return small frames of a clip in memory, uint8 (frames, h, w, 3); None for an image."""
    if not (isinstance(image, np.ndarray) and image.ndim == 4 and image.shape[3] == 3 and image.dtype == np.uint8):
        return None
    return shrink_all(image)
