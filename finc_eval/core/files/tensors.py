"""Tensors by name in files of PyTorch and safetensors, mapped or read whole; pickled code never runs."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, TYPE_CHECKING, Any

from finc_eval.core.doors import pin
from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import open_zip_file, place_of_member
from finc_eval.core.files.parsed import MAX_DEPTH
from finc_eval.core.files.pickled import OtherContentError, StoredTensor, read_pickle
from finc_eval.core.memory import check_decoded
from finc_eval.core.words import plural

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

    import torch

TENSOR_SUFFIXES = (".pt", ".pth", ".safetensors")  # suffixes of files of tensors by name
MEAN = r"mean|average|avg|center|mu|(?<![a-z])m(?![a-z])"  # parts of the name of a mean, as a pattern

LABEL_ARRAYS = ("labels", "label", "targets", "arr_1", "1")
"""Usual names of labels beside arrays of samples; the last two are what stands second without a name."""

PICKLE = "data.pkl"  # member of an archive of PyTorch that says what its tensors are
MAX_TENSORS = 100_000  # tensors by name: a tensor takes 8 µs, and a file is opened several times
MAX_SHOWN = 10  # times its size that all tensors of a file may show: each is looked at as a mean or a covariance
Shapes = Mapping[str, tuple[int, ...]]  # shapes of arrays by name


def tensors_in(path: Path) -> dict[str, torch.Tensor]:
    """Return tensors by name, one without a name as "embeddings"; damaged bytes raise almost any error."""
    if path.suffix.lower() != ".safetensors":
        return _torch(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with pin(path) as place:
            return load_file(place)
    except SafetensorError as error:
        raise ValueError(error) from error


def find_labels(arrays: Mapping[str, Any], n: int) -> tuple[str | None, list[Any] | None]:
    """Return name and values of the labels of n samples among arrays: texts or whole numbers under a usual name."""
    for name in LABEL_ARRAYS:
        if name in arrays and arrays[name].shape == (n,):
            values = arrays[name].tolist()
            if all(not isinstance(one, float) or one.is_integer() for one in values):
                return name, [int(one) if isinstance(one, float) else one for one in values]
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
    with pin(path) as place, open_zip_file(Path(place)) as archive:
        state = os.fstat(archive.fp.fileno())  # type: ignore[union-attr]  # it is open
        opened = _Opened(path, archive, (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns))
        held = _described(opened)
        if isinstance(held, Exception):
            raise type(held)(*held.args)
        return _Numbers(opened).tensors(held)


@dataclass(frozen=True)
class _Opened:
    """An archive of PyTorch that is open, its members by name, and its state: equal for equal contents."""

    path: Path
    archive: ZipFile = field(compare=False)
    state: tuple[int, ...]

    @property
    def members(self) -> dict[str, ZipInfo]:
        return {info.filename.partition("/")[2]: info for info in self.archive.infolist()}


@lru_cache(maxsize=2)
def _described(opened: _Opened) -> Mapping[str, StoredTensor | float] | Exception:
    """Return the tensors and numbers in a file by name, or what is wrong with it: both are asked for several times."""
    path, members = opened.path, opened.members
    try:
        # PyTorch packs nothing, and unpacks whatever a file has packed as a whole.
        if any(info.compress_type or info.compress_size != info.file_size for info in members.values()):
            raise ValueError("it is packed, which PyTorch does not do")
        if PICKLE not in members:
            raise ValueError(f"it has no member {PICKLE}, which torch.save writes")
        # 5: bytes that a byte of a text in it takes: itself, and a letter of up to four.
        check_decoded(5 * members[PICKLE].file_size, f"{path}: its list of tensors")
        held = read_pickle(opened.archive.read(members[PICKLE]))
        return {"embeddings": held} if isinstance(held, StoredTensor) else _named(held, path)
    except OtherContentError as error:
        return DataError(f"{path} holds {error}")
    except UnpicklingError:
        return DataError(
            f"{path} holds more than tensors, such as numpy arrays, and reading it could run code: save tensors "
            "alone, as torch.from_numpy makes them"
        )
    except Exception as error:  # damaged bytes may be anything
        return error.with_traceback(None)


def _named(held: object, path: Path) -> dict[str, StoredTensor | float]:
    """Return the tensors and numbers in dictionaries, lists and tuples, each by its path, such as "real.mu".

    A dictionary that stands at several places has the name of the first. Numbers of long lists are left out.
    """
    found: dict[str, StoredTensor | float] = {}
    seen, letters = set[int](), 0

    def look(held: object, prefix: str, depth: int) -> None:
        nonlocal letters
        if not isinstance(held, dict | list | tuple) or id(held) in seen:
            return
        seen.add(id(held))
        if depth > MAX_DEPTH:
            raise DataError(f"{path} holds tables nested deeper than {MAX_DEPTH}: save one table of tensors by name")
        for name, one in held.items() if isinstance(held, dict) else enumerate(held):
            # 1000: entries of a table or list whose numbers have names: a list of labels needs none.
            if isinstance(one, StoredTensor) or (isinstance(one, int | float) and len(held) <= 1000):
                found[f"{prefix}{name}"] = one
                letters += len(prefix) + len(str(name))
                # 1 << 26: letters of all their names.
                if len(found) > MAX_TENSORS or letters > (1 << 26):
                    raise DataError(f"{path} holds more than {MAX_TENSORS:,} tensors: save them as one")
            elif isinstance(one, dict | list | tuple):
                look(one, f"{prefix}{name}.", depth + 1)

    look(held, "", 1)
    return found


class _Numbers:
    """Numbers of tensors in an archive of PyTorch: they stay in the file until they are used."""

    def __init__(self, opened: _Opened) -> None:
        self._archive, self._members, self._path = opened.archive, opened.members, opened.path
        file: IO[bytes] = opened.archive.fp  # type: ignore[assignment]  # it is open
        # Copied on write: torch takes no bytes that it must not change.
        self._bytes = mmap(file.fileno(), 0, access=ACCESS_COPY)
        order = self._archive.read(self._members["byteorder"]) if "byteorder" in self._members else b"little"
        self._is_foreign = order != sys.byteorder.encode()
        self._storages: dict[tuple[str, str], torch.Tensor] = {}

    def tensors(self, named: Mapping[str, StoredTensor | float]) -> dict[str, torch.Tensor]:
        """Return the tensors of these descriptions; numbers become tensors of one number."""
        import torch  # seconds of import, which sets of other forms do not need

        found, made, shown = {}, dict[int, torch.Tensor](), 0
        for name, one in named.items():
            if not isinstance(one, StoredTensor):
                found[name] = torch.as_tensor(one)
                continue
            if id(one) not in made:
                made[id(one)] = self._tensor(one, name)
            found[name] = made[id(one)]
            shown += found[name].nbytes
            if shown > MAX_SHOWN * len(self._bytes):
                raise DataError(
                    f"{self._path}: its tensors, up to {name}, show its numbers more than {MAX_SHOWN} times: save a "
                    "clone() of each, or fewer of them"
                )
        return found

    def _tensor(self, one: StoredTensor, name: str) -> torch.Tensor:
        import torch

        dtype = vars(torch).get(one.dtype)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"values of the type {one.dtype}")
        size = math.prod(one.shape)
        if not size:
            return torch.empty(one.shape, dtype=dtype)
        values = self._storage(one, dtype)
        if size > len(values):
            shown = f"shows {plural(len(values), 'number')} as {size:,}"
            raise DataError(f"{self._path}: the tensor {name} {shown}: save its contiguous() copy")
        values = values.as_strided(one.shape, one.strides, one.offset)
        return values.neg() if one.is_negative else values

    def _storage(self, one: StoredTensor, dtype: torch.dtype) -> torch.Tensor:
        """Return all numbers of a storage as a vector."""
        import torch

        key = (one.storage.key, one.dtype)
        if key not in self._storages:
            info = self._members[f"data/{one.storage.key}"]
            size = one.storage.count * vars(torch)[one.storage.dtype].itemsize
            if not 0 < size <= info.file_size:
                raise ValueError(f"{info.file_size:,} bytes for {plural(one.storage.count, 'number')}")
            place = place_of_member(self._archive, info)
            values = torch.frombuffer(self._bytes, dtype=dtype, count=size // dtype.itemsize, offset=place)
            if self._is_foreign:
                values = values.view(torch.uint8).view(-1, dtype.itemsize).flip(1).flatten().view(dtype)
            self._storages[key] = values
        return self._storages[key]
