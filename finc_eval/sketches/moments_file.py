"""Moments in files."""

from __future__ import annotations

import torch

from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.numerics.moments import Moments, from_upper, upper, upper_size


def write_moments(file: NewFile, name: str, moments: Moments) -> None:
    """Store the sums of vectors, and of their squares what is above the diagonal."""
    file.array(f"{name}/first", moments.first.cpu().numpy())
    for rows, block in moments.blocks():
        file.array(f"{name}/second/{rows.start}", upper(block.cpu()).numpy())


def read_moments(file: StoredFile, name: str, moments: Moments, n: int) -> tuple[float, float]:
    """Read sums of n vectors into empty ones, and return the sum of their squares and the largest number."""
    dtype = "<f8" if moments.first.dtype == torch.float64 else "<f4"
    moments.n = n
    moments.first.copy_(torch.from_numpy(file.array(f"{name}/first", moments.size, dtype=dtype)))
    trace, largest = 0.0, float(moments.first.abs().max())
    for rows, block in moments.blocks():
        kept = file.array(f"{name}/second/{rows.start}", upper_size(*block.shape), dtype=dtype)
        block.copy_(from_upper(torch.from_numpy(kept), *block.shape))
        trace += float(block.diagonal().sum())
        largest = max(largest, float(block.abs().max()))
        if not block.isfinite().all() or (block.diagonal() < 0).any():
            raise ValueError(f"{name} has numbers that are not finite, or negative squares")
    if not moments.first.isfinite().all():
        raise ValueError(f"{name} has numbers that are not finite")
    return trace, largest
