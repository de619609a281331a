"""Sets whose samples are the rows of a uint8 array, in memory or streamed; and the advice for arrays of other types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.core.files.npz import NpzFile, blocks, map_array, npy_header, refuse_objects
from finc_eval.core.files.parquet import image_columns, parquet_schema
from finc_eval.core.files.tensors import (
    LABEL_ARRAYS,
    TENSOR_SUFFIXES,
    find_labels,
    in_short,
    refuse_layers,
    refuse_means,
    tensors_in,
)
from finc_eval.core.memory import check_decoded, numbered
from finc_eval.core.places import place_of
from finc_eval.samples.clips import CLIPS
from finc_eval.samples.encoding import Encoding, is_gray, mark
from finc_eval.samples.images import as_rgb
from finc_eval.samples.reading import EVERYTHING, RANGE_SLACK, Reading
from finc_eval.samples.source import COPIES, Pixels, RandomAccessSource, Sample, Source, pixels_digest, readable

VALUES_SEEN = 64  # rows of an array that are looked at for their range, where it must be converted

ARRAY_SUFFIXES = (".npy", *TENSOR_SUFFIXES)  # suffixes of files of arrays, besides .npz
IMAGE_ARRAYS = ("arr_0", "images")  # usual names of the array of images

Check = Callable[[tuple[int, ...], np.dtype[Any], str], None]
"""Raises DataError for an array of another shape or type, which a message calls so."""


def row_encoding(pixels: Pixels, channels: int) -> Encoding:
    """Return the encoding of (height, width, 3) pixels from an array with this number of channels."""
    height, width, _ = pixels.shape
    mode = mark("L" if channels == 1 else "RGB", pixels)
    return Encoding("array", mode, width, height, is_gray(pixels))


def tensor_values(tensor: Any, who: str) -> npt.NDArray[Any]:
    """Return a tensor as an array; floats that numpy does not have become float32."""
    try:
        plain = tensor.detach().cpu().resolve_conj().resolve_neg()
        if plain.dtype.is_floating_point and plain.dtype.itemsize < 4:
            plain = plain.float()
        values: npt.NDArray[Any] = plain.numpy()
    except (TypeError, RuntimeError, NotImplementedError, AttributeError, ValueError) as error:
        kind = "meta" if tensor.device.type == "meta" else str(tensor.layout).removeprefix("torch.")
        raise DataError(
            f"{who} is a tensor of {tensor.dtype} ({kind}) that holds no plain numbers: pass a dense uint8 tensor"
        ) from error
    return values


@contextmanager
def advice_in(torch: bool) -> Iterator[None]:
    """Give the advice on types as calls of numpy, or of torch for tensors."""
    try:
        yield
    except DataError as error:
        if not torch:
            raise
        raise DataError(str(error).replace(".astype(np.uint8)", ".to(torch.uint8)")) from None


def check_dtype(
    dtype: np.dtype[Any], shape: tuple[int, ...], who: str, values: npt.NDArray[Any] | None, reading: Reading
) -> None:
    """Raise DataError for any type but uint8, and say by the values how to convert it; of a range, for no numbers."""
    if reading.range is not None and dtype.kind not in "biuf":
        raise DataError(f"{who} holds values of the type {dtype}, which are not brightnesses")
    if reading.range is None and dtype != np.uint8:
        how = _conversion(dtype, values)
        raise DataError(f"{who} has shape {shape} and dtype {dtype}, but images must be uint8: {how}")


def _conversion(dtype: np.dtype[Any], values: npt.NDArray[Any] | None) -> str:
    """Return how to turn values into 8 bits, by their range."""
    if dtype.kind == "b":
        return "pass 255 * x.astype(np.uint8)"
    if dtype.kind in "OSU":
        return "pass list(x), if it holds images or their paths"
    if dtype.kind not in "iuf":
        return f"values of the type {dtype} are not brightnesses"
    seen = np.asarray([] if values is None else np.atleast_1d(values)[:VALUES_SEEN])
    if not seen.size:
        return (
            "if its range is -1 to 1, make it 0 to 1 by (x + 1) / 2; if it is 0 to 1, "
            "pass (255 * x).round().clip(0, 255).astype(np.uint8)"
            if dtype.kind == "f"
            else "scale its range to 0 to 255, as x >> 8 does for 16 bits, then pass x.astype(np.uint8)"
        )
    low, high = float(seen.min()), float(seen.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        return "it holds NaN or infinity, which are not brightnesses"
    shown = f"its values are {low:.4g} to {high:.4g}"
    if dtype.kind == "f":
        scaled = {(0, 1): "(255 * x)", (-1, 1): "(127.5 * x + 127.5)", (0, 255): "x"}
        for (least, most), formula in scaled.items():
            if least - RANGE_SLACK <= low and high <= most + RANGE_SLACK * most:
                how = f"{formula}.round().clip(0, 255).astype(np.uint8)"
                return f"{shown}; if its range is {least} to {most}, pass {how}, or range=({least}, {most})"
        return f"{shown}: scale them to 0 to 255 first; latents of a model must be decoded to images"
    if low >= 0 and high <= 255:
        only = ", or 255 * x.astype(np.uint8) if 1 is white" if high <= 1 else ""
        return f"{shown}: pass x.astype(np.uint8){only}"
    if low >= 0:
        bits = int(high).bit_length()
        deep = 16 if 12 < bits <= 16 else bits
        return f"{shown}; if its range is {deep} bits, 0 to {2**deep - 1}, pass (x >> {deep - 8}).astype(np.uint8)"
    return f"{shown}: scale them to 0 to 255, then pass x.astype(np.uint8)"


def is_tensor(value: Any) -> bool:
    """Return whether a value is a torch tensor, without importing torch."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


class ArraySource(RandomAccessSource):
    """The rows of an array in memory."""

    kind = "array"

    def __init__(
        self,
        array: npt.NDArray[Any],
        reading: Reading = EVERYTHING,
        name: str = "array",
        labels: list[str] | None = None,
    ) -> None:
        """Take the rows, which are uint8, or numbers of the range that `reading` states."""
        super().__init__(name, numbered(len(array), name), {}, labels)
        self._array, self.reading = array, reading

    def sample(self, number: int) -> Sample:
        # A copy, so that what is decoded is what was hashed, whatever happens to the array.
        return _sample(self.name, number, self._array[number].copy(), self.reading)

    def content(self, number: int) -> bytes:
        return pixels_digest(self._array[number])


class NpzSource(Source):
    """The rows of one array in an npz file, streamed: the whole array is never in memory.

    Labels are a one-dimensional array of the same length, named "labels", "label" or, as in ADM's files, "arr_1".
    """

    kind = "npz"

    def __init__(self, path: Path, reading: Reading = EVERYTHING, check: Check | None = None) -> None:
        """Choose the array of samples; `check` refuses what is not one, by default what is not images."""
        file, self.reading = NpzFile(path), reading
        keys, key = file.names, self.reading.image_key
        if key is not None and key not in keys:
            raise DataError(f"{path} has no array {key!r}{did_you_mean(key, keys)}: it holds {', '.join(keys)}")
        chosen = key or images_in(file) or next((key for key in IMAGE_ARRAYS if key in keys), None)
        if chosen is None and len(keys) == 1:
            (chosen,) = keys
        if chosen is None:
            refuse_means({key: file.header(key).shape for key in keys}, str(path))
            raise DataError(
                f"{path} holds the arrays {', '.join(keys) or '(none)'}: call the images arr_0 or images, or name them "
                "by image_key (--image-key)"
            )
        who = f"{path}, array {chosen},"
        refuse_objects(header := file.header(chosen), who)
        shape, _, dtype = header

        def first() -> npt.NDArray[Any]:
            return next(iter(file.rows(chosen).at([0]))) if shape and shape[0] else np.empty(0, dtype)

        if check is None:
            check_rows(shape, dtype, who, first if dtype.kind in "iuf" and dtype != np.uint8 else None, reading)
        else:
            check(shape, dtype, who)
        copies = COPIES if shape[3:] and shape[-1] == 3 else 3 * COPIES
        check_decoded(copies * math.prod(shape[1:]), f"{path}: each row of {chosen}, of shape {shape[1:]},")
        self.rows = file.rows(chosen)
        ids = numbered(shape[0], str(path))
        labels = next((texts for key in LABEL_ARRAYS if key in keys and (texts := self._labels(file, key))), None)
        super().__init__(place_of(path), ids, {}, labels)

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        rows = zip(numbers, self.rows.at(numbers), strict=True)
        return (_sample(self.name, number, row, self.reading) for number, row in rows)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return map(pixels_digest, self.rows.at(numbers))

    def _labels(self, file: NpzFile, key: str) -> list[str] | None:
        """Read the labels; None if the array has another shape or type."""
        shape, _, dtype = file.header(key)
        if shape != self.rows.shape[:1] or dtype.kind not in "biuUS":
            return None
        check_decoded(shape[0] * dtype.itemsize, f"{file.path}: {key}, {shape[0]} labels of type {dtype},")
        with file.opened(key) as (stream, _):
            return [text for values in blocks(stream, shape[0], dtype) for text in map(_text, values.tolist())]


def open_array_file(path: Path, reading: Reading) -> ArraySource:
    """Open the images in an .npy, .pt, .pth or .safetensors file."""
    name, array, labels = _image_array(path, reading.image_key)
    values = images_of(array, f"{path}, array {name}," if name else str(path), reading)
    return ArraySource(values, reading, place_of(path), labels)


def images_of(array: Any, who: str, reading: Reading, *, alone: bool = False) -> npt.NDArray[Any]:
    """Return the images in an array or tensor with their channels last; `alone`: whether it may be a single image."""
    is_torch = is_tensor(array)
    if is_torch:
        array = tensor_values(array, who)
        if alone and array.ndim == 3 and array.shape[0] in (1, 3):
            array = array.transpose(1, 2, 0)
        if array.ndim == 4 and array.shape[3] not in (1, 3) and array.shape[1] in (1, 3):
            array = array.transpose(0, 2, 3, 1)
    is_single = array.ndim == 3 and array.shape[2] in (1, 3)
    values: npt.NDArray[Any] = array[None] if alone and is_single else array
    with advice_in(torch=is_torch):
        check_rows(values.shape, values.dtype, who, lambda: np.atleast_1d(array)[:VALUES_SEEN], reading)
    return values


def _image_array(path: Path, key: str | None) -> tuple[str, Any, list[str] | None]:
    """Return the name and content of the array of images in a file, and the labels beside it."""
    with readable(path):
        if path.suffix.lower() == ".npy":
            with open_file(path) as file:
                return "", map_array(file, path), None
        arrays = tensors_in(path)
    images = {name: array for name, array in arrays.items() if array.ndim >= 3}
    chosen = key or next(
        (name for name in IMAGE_ARRAYS if name in images), next(iter(images), "") if len(images) == 1 else ""
    )
    if chosen not in (key, *IMAGE_ARRAYS):
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        refuse_means(shapes, str(path))
        refuse_layers(chosen or None, shapes, str(path))
    if chosen not in images:
        held = {name: tuple(array.shape) for name, array in images.items()}
        raise DataError(
            f"{path} holds {in_short(held) or 'no array of images'}: name the images by image_key (--image-key)"
        )
    _, labels = find_labels(arrays, len(images[chosen]))
    return chosen, images[chosen], None if labels is None else [*map(_text, labels)]


def holds_images(path: Path) -> bool:
    """Return whether a file of arrays or a table holds images, and not embeddings; False if it is damaged."""
    suffix = path.suffix.lower()
    if suffix not in (*ARRAY_SUFFIXES, ".npz", ".parquet") or not path.is_file():
        return False
    try:
        if suffix == ".npz":
            return images_in(NpzFile(path)) is not None
        if suffix == ".parquet":
            return bool(image_columns(parquet_schema(path)[0]))
        if suffix == ".npy":
            with open_file(path) as file:
                return len(npy_header(file, str(path)).shape) >= 3
        axes = {tensor.ndim for tensor in tensors_in(path).values()}
        return 2 not in axes and max(axes, default=0) >= 3
    except Exception:  # whoever opens the file says what is wrong with it
        return False


def images_in(file: NpzFile) -> str | None:
    """Return the name of the array of images: the only array of 8 bits, or one of a usual name; None without any."""
    headers = {name: file.header(name) for name in file.names}
    names = [name for name, header in headers.items() if len(header.shape) >= 3 and header.dtype == np.uint8]
    return next((name for name in IMAGE_ARRAYS if name in names), names[0] if len(names) == 1 else None)


def check_rows(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    who: str,
    values: Callable[[], npt.NDArray[Any]] | None = None,
    reading: Reading = EVERYTHING,
) -> None:
    """Raise DataError for an array that is not n images, and say how to turn it into one; `values` are some of it."""
    what_it_is = f"{who} has shape {shape} and dtype {dtype}"
    forms = "images must be (n, height, width, 3) or (n, height, width)"
    if len(shape) < 3 and dtype.kind in "biuf":
        raise DataError(f"{what_it_is}, but {forms}: reshape it")
    if len(shape) == 4 and shape[3] not in (1, 3) and 4 in (shape[1], shape[3]):
        how = "drop the alpha channel, by x[..., :3]" if shape[3] == 4 else "drop the alpha channel, by x[:, :3]"
        how = "latents of a model must be decoded to images" if dtype.kind == "f" and shape[3] != 4 else how
        raise DataError(f"{what_it_is}, which are four channels, but images have one or three: {how}")
    check_dtype(dtype, shape, who, None if values is None or reading.range is not None else values(), reading)
    is_gray = len(shape) == 3
    if not is_gray and not (len(shape) == 4 and shape[3] in (1, 3)):
        how = "pass x.transpose(0, 2, 3, 1)" if len(shape) == 4 and shape[1] in (1, 3) else "reshape it"
        if len(shape) == 5:
            how = CLIPS
        raise DataError(f"{what_it_is}, but {forms}: {how}")
    if 0 in shape:
        raise DataError(f"{what_it_is}: it holds no pixels")
    if is_gray and shape[2] in (1, 3):
        raise DataError(f"{who} has shape {shape}, which is a single image: save a set of images, x[None] for one")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _sample(name: str, number: int, row: npt.NDArray[Any], reading: Reading) -> Sample:
    pixels = as_rgb(row if reading.range is None else reading.scaled(row, f"row {number} of {name}"))
    encoding = row_encoding(pixels, 1 if row.ndim == 2 else row.shape[2])
    return Sample(str(number), pixels, None, encoding, pixels_digest(row))
