"""Samples as KAHM models take them: arrays in their own precision, or caches read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings, as_embeddings
from finc_eval.embeddings.cache import EmbeddingCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PreciseRows(ArrayEmbeddings):
    """An array or tensor whose rows stay what they are: float64 is not rounded to float32."""

    def _finite(self, rows: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
        rows = rows.detach()
        if not (finite := rows.isfinite().all(1)).all():
            row = numbers[int((~finite).nonzero()[0])]
            raise FincEvalError(f"{self.name}: row {row} is not finite (NaN or Inf): leave it out")
        return rows


def as_rows(source: object, name: str) -> Embeddings:
    """The samples of an array, tensor, cache or cache file.

    Raises:
        FincEvalError: when it is none of these, or holds none.
    """
    if isinstance(source, Embeddings | str | Path | EmbeddingCache):
        return as_embeddings(source, name)
    return PreciseRows(source, name)  # type: ignore[arg-type]  # anything else must be an array
