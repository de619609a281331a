"""Sets that exist only while they are read: generators, data loaders, functions that generate a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from inspect import signature
from os import PathLike
from typing import Any

from finc_eval.core.checks import check_count
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.words import plural
from finc_eval.samples.in_memory import is_batch, is_image, part, plain, to_pixels
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.source import Sample, Source, failure_digest, pixels_digest, reason

FUNCTION_BATCH = 64
"""Images that a function is asked for at once."""


class IteratorSource(Source):
    """Images of an iterator, which yields images, batches of images, or tuples of these and their labels.

    They are read once, from the first to the last; the manifest is known after that. Ids are "0" to "n-1".
    """

    kind = "iterator"
    once = True

    def __init__(
        self,
        items: Iterable[Any],
        n: int | None,
        of_batches: bool = True,
        whole: bool = False,
        reading: Reading = EVERYTHING,
    ) -> None:
        """Take the iterator; nothing is read yet.

        Reading ends after `n` images, or, if `whole`, more of them are an error. With `of_batches`, n counts images
        though the iterator yields batches.
        """
        self.reading = reading
        if n is None:
            raise UsageError("an iterator does not say how many images it has: pass their number as n")
        check_count("n", n)
        super().__init__("iterator", [str(number) for number in range(n)], {})
        self._items: Iterable[Any] | None = items
        self._of_batches, self._whole = of_batches, whole
        self._digests: list[bytes] = []

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        if list(numbers) != list(range(len(self.ids))):
            raise UsageError("an iterator can only be read whole, from its first image to its last")
        if self._items is None:
            raise UsageError("an iterator can be read only once, and this one has been read: pass a new one")
        items, self._items = self._items, None
        return self._read(items)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        if len(self._digests) < len(self.ids):
            raise UsageError(
                f"{len(self._digests)} of {len(self.ids)} images of the iterator have been read: "
                "its manifest is known after the last"
            )
        return (self._digests[number] for number in numbers)

    def _read(self, items: Iterable[Any]) -> Iterator[Sample]:
        n = len(self.ids)
        labels: list[str] = []
        images = _images(items, self._of_batches, self.reading.image_key)
        for image, label in images:
            number = len(self._digests)
            try:
                pixels, traits = to_pixels(image, f"image {number} of the iterator", self.reading)
            except (ValueError, OSError) as error:  # a Pillow image, whose file is read only now
                sample = Sample(self.ids[number], None, reason(error), content=failure_digest(reason(error)))
            else:
                sample = Sample(self.ids[number], pixels, None, traits, pixels_digest(pixels))
            self._digests.append(sample.content)
            if label is not None:
                labels.append(label)
            if number + 1 == n:
                self.labels = labels if len(labels) == n else None
                if self._whole and next(images, None) is not None:
                    raise DataError(f"the iterator yields more than the {n} images that its length says: pass n")
            yield sample
            if number + 1 == n:
                return
        raise DataError(f"the iterator ended after {len(self._digests)} of {n} images: pass n={len(self._digests)}")


def iterate(source: Any, n: int | None, reading: Reading = EVERYTHING) -> IteratorSource:
    """Open an iterable of images or batches, or a function that takes a number and returns a batch of that size."""
    if callable(source) and not isinstance(source, Iterable):
        if n is None:
            raise UsageError("a function does not say how many images there are: pass their number as n")
        try:
            signature(source).bind(n)
        except ValueError:
            pass  # a function that is not written in Python may not tell
        except TypeError:
            raise UsageError(
                f"a function must take the number of images to return, got one of {signature(source)}: "
                "write def make(count) -> a batch of count images"
            ) from None
        return IteratorSource(_call(source, n, reading.image_key), n, reading=reading)
    if n is None and hasattr(source, "dataset"):
        # The length of a data loader is its number of batches.
        drawn = _count_drawn(source) if hasattr(source.dataset, "__len__") else None
        return IteratorSource(source, drawn, whole=True, reading=reading)
    if n is None and hasattr(source, "__len__"):
        return IteratorSource(source, len(source), of_batches=False, whole=True, reading=reading)
    return IteratorSource(source, n, reading=reading)


def _count_drawn(loader: Any) -> int:
    """Return the number of samples that a data loader draws: its sampler's number, which may repeat its dataset."""
    size, sampler = getattr(loader, "batch_size", None), getattr(loader, "sampler", None)
    if size is None or not isinstance(sampler, Sized):
        return len(loader.dataset)
    n = len(sampler)
    return n // size * size if getattr(loader, "drop_last", False) else n


def _call(function: Callable[[int], Any], n: int, key: str | None) -> Iterator[Any]:
    done = 0
    while done < n:
        count = min(FUNCTION_BATCH, n - done)
        batch = function(count)
        images, _ = part(batch, "the batch of the function", key)
        if not is_batch(images) or not len(images):
            raise DataError(
                f"the function, asked for {count} images, gave {_describe(batch)}: return a batch of images"
            )
        done += len(images)
        yield batch


def _images(items: Iterable[Any], of_batches: bool, key: str | None) -> Iterator[tuple[Any, str | None]]:
    """Yield every image and its label, or None."""
    for item in items:
        if of_batches and _is_list_of_items(item, key):
            yield from _images(item, of_batches, key)
            continue
        batch, labels = part(item, "an item of the iterator", key)
        if is_image(batch) or isinstance(batch, bytes | PathLike):
            yield batch, _name(plain(labels))
        elif not is_batch(batch):
            raise DataError(
                f"the iterator yields {_describe(item)}: it must yield images (PIL, uint8 arrays or tensors) or batches"
            )
        elif not of_batches:
            raise UsageError(
                "the iterator yields batches, and its length counts batches: pass the number of images as n"
            )
        else:
            names = [None] * len(batch) if labels is None else [_name(label) for label in plain(labels)]
            if len(names) != len(batch):
                raise DataError(
                    f"the iterator yields {plural(len(batch), 'image')} with {plural(len(names), 'label')}: "
                    "give each one"
                )
            yield from zip(batch, names, strict=True)


def _is_list_of_items(item: Any, key: str | None) -> bool:
    """Return whether a loader that collates nothing yields this: a list of dictionaries, or of images and labels."""
    if not isinstance(item, list) or not item or is_batch(item):
        return False
    if all(isinstance(one, Mapping) for one in item):
        return len(set(map(frozenset, item))) == 1 and not is_batch(part(item[0], "an item of the iterator", key)[0])
    return all(isinstance(one, tuple) and one and is_image(one[0]) and not is_batch(one) for one in item)


def _name(label: Any) -> str | None:
    return None if label is None else str(label)


def _describe(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"a {type(item).__name__}" + ("" if shape is None else f" of shape {tuple(shape)}")
