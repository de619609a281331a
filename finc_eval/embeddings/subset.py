"""`Subset`: some samples of a set, with all entries of their embeddings or some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.cells import Cells
from finc_eval.embeddings.pictures import EmbeddedSamples, HeldSamples, WithCourses

if TYPE_CHECKING:
    from PIL import Image


class Subset(Embeddings):
    """Embeddings of the samples of a set with some indices, in any order, with all their entries or some."""

    def __init__(
        self,
        source: Embeddings,
        rows: NDArray[np.int64],
        entries: NDArray[np.int64] | None = None,
        name: str | None = None,
    ) -> None:
        self.source, self.rows, self.entries = source, rows, entries
        self.n, self.dim = len(rows), source.dim if entries is None else len(entries)
        self.name, self.title, self.space = name or source.name, source.title, source.space
        self.columns, self._group_name, self.are_images = source.columns, source._group_name, source.are_images
        self._spellings, self._groups = source._spellings, None if source._groups is None else source._groups[rows]

    @property
    def digest(self) -> str:
        """Digest of the underlying set."""
        return self.source.digest

    def ids_between(self, start: int, stop: int) -> list[str]:
        return list(self.source.ids_at(self.rows[start:stop]))

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        return self.source.ids_at(self.rows[indices])

    def is_finite(self) -> NDArray[np.bool_]:
        return self.source.is_finite()[self.rows]

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        rows = self.source.rows_at(self.rows[indices])
        return rows if self.entries is None else rows[:, send(torch.from_numpy(self.entries), rows.device)]

    def _column_between(self, name: str, start: int, stop: int) -> list[str]:
        values = self.source.column(name)
        return [values[row] for row in self.rows[start:stop].tolist()]

    def missing_as(self, name: str) -> frozenset[str]:
        return self.source.missing_as(name)

    def grouped(self, column: str | None) -> Subset:
        return Subset(self.source.with_spellings(self._spellings).grouped(column), self.rows, self.entries, self.name)

    def images_at(self, indices: NDArray[np.int64]) -> list[Image.Image] | None:
        return self.source.images_at(self.rows[indices])

    def courses_at(self, indices: NDArray[np.int64]) -> WithCourses | None:
        return self.source.courses_at(self.rows[indices])

    @property
    def samples(self) -> EmbeddedSamples | HeldSamples | None:
        """Samples of the underlying set."""
        return self.source.samples

    @property
    def cells(self) -> Cells | None:
        """Cells of the samples of the subset."""
        cells = self.source.cells
        return None if cells is None else cells.take(self.rows)

    @property
    def cells_absent(self) -> str:
        """Reason why the underlying set keeps no cells."""
        return self.source.cells_absent

    def content(self) -> NDArray[np.uint64] | None:
        content = self.source.content()
        return None if content is None else content[self.rows]

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        return (self.rows_at(np.arange(start, min(start + size, self.n))) for start in range(0, self.n, size))
