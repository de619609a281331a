"""Tensors by name in files of PyTorch and safetensors, mapped or read whole; pickled code never runs."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finc_eval.core.doors import pin
from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import open_zip_file
from finc_eval.core.words import plural

if TYPE_CHECKING:
    import torch

TENSOR_SUFFIXES = (".pt", ".pth", ".safetensors")  # suffixes of files of tensors by name
MEAN = r"mean|average|avg|center|mu|(?<![a-z])m(?![a-z])"  # parts of the name of a mean, as a pattern

LABEL_ARRAYS = ("labels", "label", "targets", "arr_1", "1")
"""Usual names of labels beside arrays of samples; the last two are what stands second without a name."""

MOST_SHOWN = 4  # arrays of a network that a message shows
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
        held = ", ".join(f"{name} {shape}" for name, shape in [*shapes.items()][:MOST_SHOWN])
        more = ", …" if len(shapes) > MOST_SHOWN else ""
        raise DataError(
            f"{where} holds {held}{more}: these look like the weights of a network, not samples: call the samples "
            "embeddings or images"
        )


def _torch(path: Path) -> dict[str, torch.Tensor]:
    import torch  # seconds of import, which sets of other forms do not need

    with pin(path) as place:
        with open_zip_file(Path(place)) as archive:
            # PyTorch packs nothing, and unpacks whatever a file has packed as a whole.
            if any(info.compress_type or info.compress_size != info.file_size for info in archive.infolist()):
                raise ValueError("it is packed, which PyTorch does not do")
        try:
            held = torch.load(place, map_location="cpu", weights_only=True, mmap=True)
        except pickle.UnpicklingError as error:
            raise DataError(
                f"{path} holds more than tensors, such as numpy arrays, and reading it could run code: save tensors "
                "alone, as torch.from_numpy makes them"
            ) from error
    tensors = {"embeddings": held} if isinstance(held, torch.Tensor) else dict(_name_tensors(held))
    for name, one in tensors.items():
        if one.layout != torch.strided or one.is_quantized or one.is_nested:
            continue
        stored = one.untyped_storage().nbytes() // one.element_size()
        if one.numel() > stored:
            shown = f"shows {plural(stored, 'number')} as {one.numel():,}"
            raise DataError(f"{path}: the tensor {name} {shown}: save its contiguous() copy")
    return tensors


def _name_tensors(held: object, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors and numbers in dictionaries and tuples, each with its path, such as "real.mu"."""
    import torch

    inside = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list | tuple) else ()
    for name, one in inside:
        if isinstance(one, torch.Tensor | int | float):
            yield f"{prefix}{name}", torch.as_tensor(one)
        else:
            yield from _name_tensors(one, f"{prefix}{name}.")
