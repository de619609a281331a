"""`RunningSets`: two sets of embeddings that come batch by batch, as in a training loop, and their metrics."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.numerics.arrays import as_rows

Found = TypeVar("Found")

BATCH = 4096  # rows that are copied at once when sets are merged


class RunningSets(Generic[Found]):
    """A generated set and a reference that grow by batches: `update`, `compute`, `reset`, `merge_state`.

    Rows go to a temporary file that nobody else can open, so that memory is bounded by the batch. `compute` gives what
    the function of whole sets gives. The object can be pickled, with all of its rows: on several ranks, gather the
    objects (`torch.distributed.all_gather_object`) and merge them in the order of the ranks.

    For the Fréchet distance alone, two sketches (`fe.Sketch`, with sample=0) keep sums instead of rows. They take
    batches by `update` and add up with `+`; `fe.metrics.fd` gives their distance without an interval.

    Args:
        judge: function of the generated set and the reference. `fe.metrics.running` makes it of names of metrics.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> running = fe.metrics.running(["fd", "prdc"])
        >>> for start in range(0, 300, 100):
        ...     running.update(gen[start : start + 100], real=False)
        ...     running.update(ref[start : start + 100], real=True)
        >>> running.compute()["fd"].value == fe.metrics.fd(gen, ref).value
        True
    """

    def __init__(self, judge: Callable[[ArrayEmbeddings, ArrayEmbeddings], Found]) -> None:
        self._judge = judge
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._gen, self._ref = _Rows("gen"), _Rows("ref")

    def update(self, rows: object, real: bool) -> None:
        """Add a batch of embeddings.

        Args:
            rows: embeddings, shape (b, d): array or tensor, on any device.
            real: True for samples of the reference, False for generated samples.

        Raises:
            DataError: the rows are not finite numbers of this shape.
            IncompatibleError: the rows have another number of entries than those before.
        """
        mine = self._ref if real else self._gen
        mine.add(as_rows(rows, mine.name, whole=False))  # type: ignore[arg-type]

    def merge_state(self, others: RunningSets[Found] | Iterable[RunningSets[Found]]) -> None:
        """Add the rows of other objects after its own, as if they had come here.

        Args:
            others: one object or several.

        Raises:
            IncompatibleError: their rows have another number of entries.
        """
        for other in [others] if isinstance(others, RunningSets) else others:
            for mine, rows in ((self._gen, other._gen), (self._ref, other._ref)):
                for start in range(0, rows.n, BATCH):
                    mine.add(torch.from_numpy(rows.array()[start : start + BATCH]))

    def compute(self) -> Found:
        """Compute what the function of whole sets computes of the rows so far.

        Raises:
            DataError: a set has no row yet, or too few for the function.
        """
        return self._judge(self._gen.embeddings(), self._ref.embeddings())


class _Rows:
    """Rows of one set, in a temporary file without a name."""

    def __init__(self, name: str) -> None:
        self.name, self.n, self.dim, self._file = name, 0, 0, tempfile.TemporaryFile()  # noqa: SIM115  # as long as the rows
        self._kept = torch.float32

    def add(self, rows: torch.Tensor) -> None:
        if self.n and rows.shape[1] != self.dim:
            raise IncompatibleError(
                f"{self.name} has {self.dim} entries per embedding, and the new rows {rows.shape[1]}: reset() it first"
            )
        # The first rows choose the type: float64 is not rounded before it is judged.
        rows = rows.detach().to(self._kept if self.n else torch.promote_types(rows.dtype, torch.float32))
        if not bool(rows.isfinite().all()):
            raise DataError(f"the new rows of {self.name} are not all finite (NaN or Inf): leave these samples out")
        self._kept = rows.dtype
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(rows.cpu().numpy()).tobytes())
        self.n, self.dim = self.n + len(rows), rows.shape[1]

    def array(self) -> NDArray[np.floating]:
        if not self.n:
            raise DataError(f"{self.name} has no samples yet: call update with them first")
        self._file.flush()
        return np.memmap(self._file, str(self._kept).removeprefix("torch."), "c", shape=(self.n, self.dim))

    def embeddings(self) -> ArrayEmbeddings:
        return ArrayEmbeddings(self.array(), self.name)

    def __getstate__(self) -> tuple[str, NDArray[np.floating] | None]:
        return self.name, np.array(self.array()) if self.n else None

    def __setstate__(self, state: tuple[str, Any]) -> None:
        name, rows = state
        _Rows.__init__(self, name)
        if rows is not None:
            self.add(torch.from_numpy(rows))
