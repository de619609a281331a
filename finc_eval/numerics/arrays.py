"""Arrays of embeddings as tensors: whatever numpy can hold, with one sentence on what cannot be embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import UsageError


def as_tensor(array: ArrayLike, name: str) -> torch.Tensor:
    """Return an array as a tensor, without a copy where torch can read its memory.

    Raises:
        UsageError: it has masked entries, Python objects or texts, or is not an array.
    """
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise UsageError(
            f"{name} has {int(np.ma.getmaskarray(array).sum()):,} masked entries, which embeddings cannot have: leave "
            "out the rows with np.ma.compress_rows(x), or fill them"
        )
    try:
        values = np.asarray(array)
    except (TypeError, ValueError) as error:  # such as rows of several lengths
        what = f"a {type(array).__name__} that is not one"
        raise UsageError(f"{name} must be an array of embeddings, shape (n, d), got {what}") from error
    if values.ndim == 0:
        raise UsageError(f"{name} must be an array of embeddings, a cache or a path of one, got {type(array).__name__}")
    if values.dtype.kind not in "biufc":
        what = "Python objects" if values.dtype.kind == "O" else f"values of the type {values.dtype}"
        raise UsageError(f"{name} is an array of {what}, not of numbers: convert it with x.astype('float32')")
    return torch.from_numpy(_readable(values))


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is an ordinary one: not sparse, nested, quantized, packed, complex or without content."""
    special = tensor.is_quantized or tensor.is_complex() or tensor.is_meta or tensor.is_nested
    is_packed = str(tensor.dtype).endswith("_x2")  # two numbers in a byte, with which PyTorch does not compute
    return tensor.layout == torch.strided and not special and not is_packed


def _readable(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the memory layout that torch reads: writable, forward, in the byte order of the machine."""
    if values.dtype.kind == "f" and values.dtype.itemsize > np.dtype(np.float64).itemsize:
        values = values.astype(np.float64)
    elif not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    backward = any(stride < 0 for stride in values.strides)
    return values.copy() if backward or not values.flags.writeable else values
