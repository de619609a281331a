"""Images in memory: Pillow images, uint8 arrays and tensors; and sets that exist only while they are read."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, UsageError, check_count, did_you_mean
from finc_eval.core.memory import numbered
from finc_eval.core.words import plural
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.files import VIDEO_SUFFIXES
from finc_eval.samples.images import as_rgb, decode, rgb
from finc_eval.samples.reading import EVERYTHING, IMAGE_KEYS, Reading
from finc_eval.samples.rows import advice_in, check_dtype, is_tensor, row_encoding, tensor_values
from finc_eval.samples.source import Pixels, Sample, Source, content_digest, decoded_digest, reason

CHANNELS = (1, 3)

LABEL_KEYS = ("label", "labels", "class", "target", "targets", "cls", "y")  # keys of its labels


def to_pixels(value: Any, who: str, reading: Reading = EVERYTHING) -> tuple[Pixels, Encoding]:
    """Turn one image, called `who` in messages, into (height, width, 3) uint8 RGB.

    It is a Pillow image, the path or the bytes of an image file, or a uint8 array or tensor of shape (height, width),
    (height, width, 1 or 3) or (1 or 3, height, width). If both the first and the last axis could be the channels, the
    last is for an array and the first for a tensor. Of a stated range, arrays may have any type of numbers.
    """
    if isinstance(value, Image.Image):
        return rgb(value, reading)
    if isinstance(value, str | PathLike):
        if not Path(value).exists():
            raise DataError(f"{who} is the path {value}, which does not exist: give paths of images")
        try:
            with open_file(Path(value)) as stream:
                return decode(stream, reading)
        except UnidentifiedImageError as error:
            if Path(value).suffix.lower() not in VIDEO_SUFFIXES:
                raise
            raise DataError(
                f"{who} is the video {value}, and only images can be listed: pass the folder that holds the videos, to "
                "an extractor for clips such as motion"
            ) from error
    if isinstance(value, bytes):
        return decode(io.BytesIO(value), reading)
    named, array = who, value
    if is_tensor(value):
        named, array = f"{who} ({value.dtype})", tensor_values(value, who)
    if not isinstance(array, np.ndarray):
        raise DataError(f"{who} is of type {type(value).__name__}, but images must be uint8 arrays, tensors or PIL")
    with advice_in(torch=is_tensor(value)):
        check_dtype(array.dtype, array.shape, named, array, reading)
    array = array if reading.range is None else reading.scaled(array, named)
    rows = array if array.ndim == 2 else _channels_last(array, is_tensor(value), who)
    pixels = as_rgb(rows)
    if 0 in pixels.shape:
        raise DataError(f"{who} has shape {array.shape}: it holds no pixels")
    return pixels, row_encoding(pixels, 1 if rows.ndim == 2 else rows.shape[2])


def is_image(value: Any) -> bool:
    """Return whether a value looks like one image: it has two or three dimensions."""
    if isinstance(value, Image.Image):
        return True
    return (isinstance(value, np.ndarray) or is_tensor(value)) and value.ndim in (2, 3)


def part(item: Any, who: str, key: str | None = None) -> tuple[Any, Any]:
    """Divide an item or a batch into its images and its labels, which are None if it has none.

    It is images; a tuple of images, labels and more; a dictionary, whose images are under one of `IMAGE_KEYS` or the
    only key that has any; or an object with `images`, such as the output of a pipeline of diffusers. `who` names the
    item in messages; `key` is the key of images in dictionaries.
    """
    if is_image(item):
        return item, None
    if isinstance(item, Mapping):
        if key is not None:
            if key not in item:
                keys = ", ".join(map(str, item))
                raise DataError(f"{who} has no key {key!r}{did_you_mean(key, map(str, item))}: its keys are {keys}")
            image, _ = part(item[key], who)
            return image, next((item[name] for name in LABEL_KEYS if name in item and name != key), None)
        if {"bytes", "path"} == set(item):
            return item["bytes"] if item["bytes"] is not None else item["path"], None
        usable = [
            key
            for key, value in item.items()
            if is_image(value) or is_batch(value) or _is_file(value) or (key in IMAGE_KEYS and isinstance(value, str))
        ]
        usual = [key for key in IMAGE_KEYS if key in usable]
        if not usual and len(usable) != 1:
            keys = ", ".join(map(str, item))
            held = "several of its keys hold images" if usable else "no key holds images"
            raise DataError(f"{who} is a dictionary of {keys}, and {held}: name its images by image_key")
        image, _ = part(item[(usual or usable)[0]], who)
        return image, next((item[key] for key in LABEL_KEYS if key in item), None)
    if not hasattr(item, "__array__") and (images := getattr(item, "images", None)) is not None:
        return images, None
    if isinstance(item, tuple | list) and item and not is_batch(item):
        if key is not None and isinstance(item[0], Mapping):
            return part(item[0], who, key)
        first, _ = part(item[0], who) if isinstance(item[0], Mapping) else (item[0], None)
        if is_image(first) or is_batch(first) or _is_file(first) or _is_labeled_path(item):
            return first, item[1] if len(item) > 1 and not isinstance(item[1], Mapping) else None
    return item, None


def holds_images(items: Sequence[Any]) -> bool:
    """Return whether a list is a set of images: its first item is one, a file of one, or one of these with a label."""
    first = items[0] if items else None
    if isinstance(first, tuple | list):
        is_item = len(first) > 1 and not (is_image(first[1]) or _is_file(first[1]))
        return is_item and (_is_one_image(first[0]) or _is_file(first[0]) or _is_labeled_path(first))
    return isinstance(first, Mapping | str) or _is_file(first) or _is_one_image(first)


def is_numbered(source: Any) -> bool:
    """Return whether items can be read by number, from 0 to a known length."""
    is_mapping = isinstance(source, Mapping | str | bytes)
    is_stream = any(base.__name__ == "IterableDataset" for base in type(source).__mro__)  # inherits __getitem__
    return not is_mapping and not is_stream and hasattr(source, "__len__") and hasattr(source, "__getitem__")


def gives_images(source: Any) -> bool:
    """Return whether an object that is neither a list nor an array gives images by number, as seen from its first."""
    if not is_numbered(source) or hasattr(source, "shape") or hasattr(source, "__array__"):
        return False
    try:
        return holds_images([source[0]])
    except (LookupError, TypeError, ValueError):
        return False


def _is_one_image(value: Any) -> bool:
    """Return whether a value is one image, and not a matrix of embeddings."""
    return is_image(value) and (getattr(value, "ndim", 3) == 3 or str(getattr(value, "dtype", "")).endswith("uint8"))


def _is_labeled_path(item: Sequence[Any]) -> bool:
    """Return whether an item is the path of an image as a text, with its label."""
    # 3: its path, its label, and its number or name; a longer list of texts is of many images.
    return 1 < len(item) <= 3 and isinstance(item[0], str) and not (is_image(item[1]) or is_batch(item[1]))


def _is_file(value: Any) -> bool:
    """Return whether a value is an encoded image: bytes, or as datasets of Hugging Face have it."""
    return isinstance(value, bytes | PathLike) or (isinstance(value, Mapping) and {"bytes", "path"} == set(value))


def is_batch(value: Any) -> bool:
    """Return whether a value looks like many images: it has four dimensions, or is a sequence of images."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return len(value) > 0 and all(map(is_image, value))
    return (isinstance(value, np.ndarray) or is_tensor(value)) and value.ndim == 4


def plain(value: Any) -> Any:
    """Return numbers of numpy and torch as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value


def _channels_last(array: npt.NDArray[np.uint8], tensor: bool, who: str) -> npt.NDArray[np.uint8]:
    first, last = (array.shape[0], array.shape[-1]) if array.ndim == 3 else (0, 0)
    if last in CHANNELS and not (tensor and first in CHANNELS):
        return array
    if first in CHANNELS:
        return array.transpose(1, 2, 0)
    color = "x[..., :3]" if last == 4 else "x[:3]"
    how = f": drop the alpha channel, by {color}" if 4 in (first, last) else ""
    raise DataError(f"{who} has shape {array.shape}, but images must be (height, width, 3) or (3, height, width){how}")


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
        super().__init__("iterator", numbered(n, "the iterator"), {})
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
                pixels, encoding = to_pixels(image, f"image {number} of the iterator", self.reading)
            except (ValueError, OSError) as error:  # a Pillow image, whose file is read only now
                sample = Sample(self.ids[number], None, reason(error), content=content_digest(reason(error)))
            else:
                sample = Sample(self.ids[number], pixels, None, encoding, decoded_digest(pixels, encoding))
            self._digests.append(sample.content)
            if label is not None:
                labels.append(label)
            if number + 1 == n:
                self.labels = labels if len(labels) == n else None
                if self._whole and next(images, None) is not None:
                    raise DataError(
                        f"the iterator yields more than the {n} images that its length says: state n, their number"
                    )
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
        drawn = None
        if hasattr(source.dataset, "__len__"):
            size, sampler = getattr(source, "batch_size", None), getattr(source, "sampler", None)
            if size is None or not isinstance(sampler, Sized):
                drawn = len(source.dataset)
            else:  # the sampler may repeat the dataset
                drawn = len(sampler) // size * size if getattr(source, "drop_last", False) else len(sampler)
            _tell_part(source, drawn)
        return IteratorSource(source, drawn, whole=True, reading=reading)
    if n is None and hasattr(source, "__len__"):
        return IteratorSource(source, len(source), of_batches=False, whole=True, reading=reading)
    return IteratorSource(source, n, reading=reading)


def _tell_part(loader: Any, drawn: int) -> None:
    """Warn that a loader gives fewer or more samples than its data set has: one rank's part is not the set."""
    size, sampler = len(loader.dataset), getattr(loader, "sampler", None)
    if drawn == size:
        return
    dropped = getattr(loader, "drop_last", False) and isinstance(sampler, Sized) and len(sampler) > drawn
    cause = "drop_last leaves out a last batch that is not full" if dropped else f"by its {type(sampler).__name__}"
    warnings.warn(
        f"the loader gives {drawn:,} samples of a data set of {size:,} ({cause}): the set is taken to be these; pass a "
        "loader of all samples if a part is not what you mean",
        stacklevel=5,
    )


def _call(function: Callable[[int], Any], n: int, key: str | None) -> Iterator[Any]:
    done = 0
    while done < n:
        # 64: images that a function is asked for at once.
        count = min(64, n - done)
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
        if is_image(batch) or isinstance(batch, bytes | PathLike) or (isinstance(batch, str) and batch is not item):
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
    if all(isinstance(sample, Mapping) for sample in item):
        return len(set(map(frozenset, item))) == 1 and not is_batch(part(item[0], "an item of the iterator", key)[0])
    return all(isinstance(sample, tuple) and sample and is_image(sample[0]) and not is_batch(sample) for sample in item)


def _name(label: Any) -> str | None:
    return None if label is None else str(label)


def _describe(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"a {type(item).__name__}" + ("" if shape is None else f" of shape {tuple(shape)}")
