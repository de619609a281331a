"""Tensors by name in files of PyTorch and safetensors, mapped: `torch.load` reads weights alone, and no code runs.

Added to PyTorch here: checksums of the archive are verified, and each storage must be a member of it.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from finc_eval.core.doors import pin
from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import open_zip_file, verify_members
from finc_eval.core.files.parsed import MAX_DEPTH
from finc_eval.core.files.stated import check_stated
from finc_eval.core.words import plural

if TYPE_CHECKING:
    import torch

TENSOR_SUFFIXES = (".pt", ".pth", ".safetensors")  # suffixes of files of tensors by name
MEAN = r"mean|average|avg|center|mu|(?<![a-z])m(?![a-z])"  # parts of the name of a mean, as a pattern

LABEL_ARRAYS = ("labels", "label", "targets", "arr_1", "1")
"""Usual names of labels beside arrays of samples; the last two are what stands second without a name."""

PICKLE = "data.pkl"  # member of an archive of PyTorch that says what its tensors are
MAX_TENSORS = 100_000  # tensors by name: a tensor takes 8 µs, and a file is opened several times
Shapes = Mapping[str, tuple[int, ...]]  # shapes of arrays by name


def tensors_in(path: Path) -> dict[str, torch.Tensor]:
    """Return tensors by name, a tensor without a name as "embeddings"; damaged bytes raise almost any error."""
    if path.suffix.lower() != ".safetensors":
        return _torch(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with pin(path) as pinned:
            return load_file(pinned)
    except SafetensorError as error:
        raise ValueError(error) from error


def find_labels(arrays: Mapping[str, Any], n: int) -> tuple[str | None, list[Any] | None]:
    """Return name and values of the labels of n samples among arrays: texts or whole numbers under a usual name."""
    for name in LABEL_ARRAYS:
        if name in arrays and arrays[name].shape == (n,):
            values = arrays[name].tolist()
            if all(not isinstance(value, float) or value.is_integer() for value in values):
                return name, [int(value) if isinstance(value, float) else value for value in values]
    return None, None


def in_short(shapes: Shapes, most: int = 20) -> str:
    """Return names and shapes as a message has them: "mu (3,), sigma (3, 3)"; of many, the first."""
    shown = [f"{name} {shape}" for name, shape in islice(shapes.items(), most)]
    return ", ".join([*shown, "…"] if len(shapes) > most else shown)


def refuse_means(shapes: Shapes, where: str) -> None:
    """Raise DataError if all arrays are vectors and one is a mean: a mean needs a covariance, not variances."""
    vectors = [name for name, shape in shapes.items() if math.prod(shape) == max(shape, default=1) > 1]
    mean = next((name for name in vectors if re.search(MEAN, name.lower())), None)
    if mean and all(name in vectors or math.prod(shape) == 1 for name, shape in shapes.items()):
        size = math.prod(shapes[mean])
        raise DataError(
            f"{where} holds {', '.join(shapes)}: a mean and variances are not enough, a Fréchet distance needs the "
            f"covariance, shape ({size}, {size}): save both as mu and sigma"
        )


def refuse_layers(chosen: str | None, shapes: Shapes, where: str) -> None:
    """Raise DataError if the array that would be the samples is a layer of a network.

    It is called a weight, or other arrays are neither values of its n rows nor vectors of their size.
    """
    several = {name: shape for name, shape in shapes.items() if math.prod(shape) > 1}
    weights = [name for name in several if re.search(r"(^|[._])weight$", name)]
    if chosen is None:
        are_layers = len(weights) > 1
    else:
        n, *row = several.pop(chosen, shapes[chosen])
        unlike = (shape for shape in several.values() if shape[0] != n)
        are_layers = any(math.prod(shape) > max(shape) or max(shape) not in row for shape in unlike)
        are_layers = are_layers or (len(several) > 0 and chosen in weights)
    if are_layers:
        raise DataError(
            f"{where} holds {in_short(shapes, 4)}: these look like the weights of a network, not samples: "
            "call the samples embeddings or images"
        )


def _torch(path: Path) -> dict[str, torch.Tensor]:
    import torch  # seconds of import, which sets of other forms do not need

    with pin(path) as pinned, warnings.catch_warnings():
        storages = _storages(pinned, str(path), _state(pinned))
        try:
            warnings.simplefilter("ignore")  # of kinds of tensors that are refused below
            held = torch.load(pinned, map_location="cpu", weights_only=True, mmap=True)
        except UnpicklingError as error:
            raise DataError(
                f"{path} holds more than tensors, such as numpy arrays, and reading it could run code: save tensors "
                "alone, as torch.from_numpy makes them"
            ) from error
    named = {"embeddings": held} if isinstance(held, torch.Tensor) else dict(_named(held, path))
    return {name: _plain(torch.as_tensor(tensor), name, path, storages) for name, tensor in named.items()}


def _state(path: str) -> tuple[int, ...]:
    """Return what is another for another content: device, number, size and time of a file."""
    state = os.stat(path)  # noqa: PTH116 (the file is open already)
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


@lru_cache(maxsize=8)  # a file is opened several times, and its checksums are verified once
def _storages(pinned: str, where: str, _: tuple[int, ...]) -> frozenset[int]:
    """Return the sizes in bytes of the storages of an archive; ValueError if a checksum is wrong."""
    with open_zip_file(Path(pinned)) as archive:
        members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        # PyTorch packs nothing, and maps whatever a file has packed as it is.
        if any(info.compress_type or info.compress_size != info.file_size for info in members.values()):
            raise ValueError("it is packed, which PyTorch does not do")
        if PICKLE not in members:
            raise ValueError(f"it has no member {PICKLE}, which torch.save writes")
        check_stated("list of tensors", members[PICKLE], f"{where}: its list of tensors")
        verify_members(archive)
        return frozenset(info.file_size for name, info in members.items() if name.startswith("data/"))


def _named(held: object, path: Path) -> Iterator[tuple[str, torch.Tensor | float]]:
    """Yield the tensors and numbers in dictionaries, lists and tuples, each by its path, such as "real.mu".

    A dictionary that stands at several places has the name of the first. Numbers of long lists are left out.
    """
    import torch

    seen, waiting, count = set[int](), [(held, "", 1)], 0
    while waiting:
        inside, prefix, depth = waiting.pop()
        if not isinstance(inside, dict | list | tuple) or id(inside) in seen:
            continue
        seen.add(id(inside))
        if depth > MAX_DEPTH:
            raise DataError(f"{path} holds tables nested deeper than {MAX_DEPTH}: save one table of tensors by name")
        items = [*(inside.items() if isinstance(inside, dict) else enumerate(inside))]
        for name, value in items:
            # 1000: entries of a table or list whose numbers have names: a list of labels needs none.
            if isinstance(value, torch.Tensor) or (isinstance(value, int | float) and len(items) <= 1000):
                yield f"{prefix}{name}", value
                count += 1
                if count > MAX_TENSORS:
                    raise DataError(f"{path} holds more than {MAX_TENSORS:,} tensors: save them as one")
        tables = [
            (value, f"{prefix}{name}.", depth + 1) for name, value in items if isinstance(value, dict | list | tuple)
        ]
        waiting += reversed(tables)


OTHER_TENSORS = {
    "sparse": "a sparse tensor, not one of plain numbers: save x.to_dense()",
    "nested": "a nested tensor, not one of plain numbers: save x.to_padded_tensor(0)",
    "quantized": "a quantized tensor, not one of plain numbers: save x.dequantize()",
    "meta": "a tensor of the device meta, which has no numbers: save it from another device",
    "own": "a tensor of a class of its own, not one of plain numbers: save a plain tensor",
}
"""Tensors that are not read, each with what to do."""


def _plain(tensor: torch.Tensor, name: str, path: Path, storages: frozenset[int]) -> torch.Tensor:
    """Return a tensor as plain numbers, still in its file; an error for another kind, or for more than its storage."""
    import torch

    kind = {
        "nested": tensor.is_nested,
        "sparse": not tensor.is_nested and tensor.layout != torch.strided,
        "quantized": tensor.is_quantized,
        "meta": tensor.is_meta,
        "own": type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer),
    }
    if words_of_kind := next((words for key, words in OTHER_TENSORS.items() if kind[key]), None):
        raise DataError(f"{path} holds {words_of_kind}")
    size, numbers = tensor.untyped_storage().nbytes(), tensor.untyped_storage().nbytes() // tensor.itemsize
    if tensor.numel() > numbers:
        shown = f"shows {plural(numbers, 'number')} as {tensor.numel():,}"
        raise DataError(f"{path}: the tensor {name} {shown}: save its contiguous() copy")
    if tensor.ndim and tensor.numel() and size not in storages:
        raise ValueError(f"the tensor {name} has a storage of {size:,} bytes, which no member of the archive has")
    return tensor.detach().resolve_neg()
