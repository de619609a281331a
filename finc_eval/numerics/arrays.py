"""Arrays of embeddings as tensors: whatever numpy can hold, with one sentence on what cannot be embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import UsageError
from finc_eval.numerics.statistics import refuse_covariance

ROWS_SEEN = 4096
"""Rows of float64 that are looked at for digits that float32 would lose."""

MOST_LOST = 1e-3
"""Rounding of an entry by float32, in parts of its standard deviation, from which distances are wrong."""

LEAST_SPREAD = 1e-14
"""Spread of an entry, in parts of its size, that is more than the rounding of float64."""


def as_rows(array: ArrayLike | torch.Tensor, name: str) -> torch.Tensor:
    """Return embeddings as a tensor of floats, shape (n, d).

    Raises:
        UsageError: they are not, or are a covariance.
    """
    rows = array if isinstance(array, torch.Tensor) else as_tensor(array, name)
    if not is_plain(rows):
        kind = "on the device meta, without content" if rows.is_meta else "that is sparse, quantized or complex"
        raise UsageError(f"{name} is a tensor {kind}: pass a dense tensor of floats, such as x.to_dense().float()")
    if rows.ndim != 2 or 0 in rows.shape:
        raise UsageError(f"{name} must be embeddings of shape (n, d), got shape {tuple(rows.shape)}")
    if not rows.dtype.is_floating_point:
        raise UsageError(f"{name} must be floating-point embeddings, got {rows.dtype}; images go to extract()")
    refuse_covariance(rows, name)
    _refuse_lost_digits(rows, name)
    return rows


def _refuse_lost_digits(rows: torch.Tensor, name: str) -> None:
    """Raise UsageError for float64 embeddings so far from zero that float32 would lose how they differ."""
    if rows.dtype != torch.float64 or len(rows) < 2:
        return
    seen = rows.detach()[:: -(-len(rows) // ROWS_SEEN)]
    size, spread = seen.abs().amax(0), seen.std(0)
    lost = (size * torch.finfo(torch.float32).eps > MOST_LOST * spread) & (spread > size * LEAST_SPREAD)
    if lost.any() and size.isfinite().all() and float(size.max()) <= torch.finfo(torch.float32).max:
        entry = int(lost.nonzero()[0])
        raise UsageError(
            f"{name} has entries near {float(size[entry]):.3g} that differ by {float(spread[entry]):.3g}, which "
            "float32 loses: subtract one vector, such as the mean of the reference, from both sets"
        )


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
