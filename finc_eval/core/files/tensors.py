"""Tensors by name in files of PyTorch and safetensors, mapped or read whole; pickled code never runs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from finc_eval.core.doors import pin
from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import open_zip_file
from finc_eval.core.words import plural

if TYPE_CHECKING:
    import torch

TENSOR_SUFFIXES = (".pt", ".pth", ".safetensors")
"""Suffixes of files of tensors by name."""


def tensors_in(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a file by name; a tensor that has no name is called "embeddings".

    Raises:
        DataError: a tensor shows more numbers than the file holds of it.
        Exception: almost any, for damaged bytes.
    """
    return _safetensors(path) if path.suffix.lower() == ".safetensors" else _torch(path)


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


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        with pin(path) as place:
            return load_file(place)
    except SafetensorError as error:
        raise ValueError(error) from error
