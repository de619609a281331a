"""Columns of data engines, of numpy, pandas, Arrow and Daft, as lists of samples and as embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from finc_eval.core.errors import DataError, UsageError
from finc_eval.samples.in_memory import part
from finc_eval.samples.reading import IMAGE_KEYS
from finc_eval.samples.rows import is_tensor


def samples_in(batch: Any, who: str) -> Any:
    """Return a batch of samples, called `who` in messages, as an array or a list."""
    if isinstance(batch, Mapping):
        batch = _column_of_samples(batch, who)
    if isinstance(batch, str | bytes | Path | Image.Image):
        raise UsageError(f"{who} is one {type(batch).__name__}, and not a list of samples: pass [sample]")
    if isinstance(batch, np.ndarray) and batch.dtype != object:
        return batch
    if is_tensor(batch):
        return list(batch)
    return as_list(batch, who)


def _column_of_samples(batch: Mapping[str, Any], who: str) -> Any:
    """Return the column that has a usual name of images, or the only column that holds any."""
    if (usual := next((key for key in IMAGE_KEYS if key in batch), None)) is not None:
        return batch[usual]
    try:
        return part(batch, who)[0]
    except DataError as error:
        keys = ", ".join(map(str, batch)) or "nothing"
        raise UsageError(
            f"{who} is a dictionary of {keys}, and the name of its samples is not one of {', '.join(IMAGE_KEYS)}: pass "
            "the column alone"
        ) from error


def rows_in(column: Any, who: str) -> Any:
    """Return a column of embeddings, called `who` in messages, as an array or a tensor; lists of numbers are rows."""
    if is_tensor(column) or (isinstance(column, np.ndarray) and column.dtype != object):
        return column
    if hasattr(column, "to_arrow"):  # of Daft
        column = column.to_arrow()
    if hasattr(column, "combine_chunks"):  # of a table of Arrow
        column = column.combine_chunks()
    if hasattr(column, "flatten") and hasattr(column, "value_lengths"):  # lists of Arrow
        if column.null_count or len(column.value_lengths().unique()) > 1:
            raise DataError(f"{who} has embeddings of several lengths, or without numbers: leave these rows out")
        numbers = column.flatten().to_numpy(zero_copy_only=False)
        return numbers.reshape(len(column), len(numbers) // max(1, len(column)))
    items = as_list(column, who)
    try:
        return np.stack([np.asarray(item) for item in items]) if items else np.empty((0, 0), np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{who} has embeddings of several lengths: pass rows of one extractor") from error


def as_list(column: Any, who: str) -> list[Any]:
    """Return a column, called `who` in messages, as a list."""
    try:
        if hasattr(column, "to_pylist"):  # of Arrow and Daft
            return list(column.to_pylist())
        return list(column.tolist() if hasattr(column, "tolist") else column)
    except TypeError as error:
        raise UsageError(f"{who} is of the type {type(column).__name__}: pass a list or an array") from error
