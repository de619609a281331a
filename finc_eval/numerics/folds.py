"""The bit of a sample's key that is its fold, and the other bits, which draw samples."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

FOLD_BIT = np.uint64(1)
"""The bit of a key that is the fold of a sample: the last one."""


def fold_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the fold, 0 or 1, of samples with these keys."""
    return (keys & FOLD_BIT).astype(np.int64)


def without_fold(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the bits of keys that draw samples: all but the bit of the fold."""
    return keys >> FOLD_BIT


def rows_of(folds: torch.Tensor, fold: int) -> torch.Tensor:
    """Return the indices of the rows of a fold, ascending, from the fold of each row."""
    return (folds == fold).nonzero().squeeze(1)
