"""`SeenSamples`: traces of the reference and of earlier evaluations, by which one that is repeated is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.monitoring.exchange import Array

COPY = 0.02
"""Part of the median nearest distance of the reference within which two samples are copies. Of 240 photographs and
EfficientNet-Lite0, half precision moves traces by .0004 of it at most, bfloat16 by .003, batches of other sizes by
2e-6, and JPEG of quality 98 by .04 to .3. A generator that has learned a sample moves it by more than JPEG."""

BY_CHANCE = 1e-6
"""Probability that as many copies are by chance, in a law that repeats itself: 3 samples of a reference of 400 without
repeats are copies at this level, and 2 are not."""

MOSTLY = 0.5  # half of an evaluation: with as many samples of the reference, the evaluation is left out as a whole
MARKED = 16  # samples of each evaluation that are remembered: 8 of them again are the same evaluation

Traces = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SeenSamples:
    """Traces of samples that a monitor has seen: random projections, whose distances are about those of embeddings.

    A law with few values repeats its samples, within an evaluation and across evaluations alike. So copies count only
    if there are more of them than an evaluation, and the reference, have of themselves.
    """

    radius: float  # distance within which two traces are of copies
    reference: Traces  # traces of all samples of the reference, shape (n, 16)
    marked: Traces  # traces of the first samples of each evaluation, NaN where it has fewer, shape (t, 16, 16)

    @classmethod
    def of(cls, traces: Array, radius: float) -> Self:
        """Begin with the traces of the reference."""
        none = np.empty((0, MARKED, traces.shape[1]), np.float32)
        return cls(float(radius), traces.astype(np.float32), none)

    @cached_property
    def _tree(self) -> Any:
        return cKDTree(self.reference.astype(np.float64))

    @cached_property
    def _repeated(self) -> float:
        """Share of the reference that has a copy within it, and no less than one more sample would make it."""
        return (self._repeats(self.reference) + 1) / (len(self.reference) + 2)

    def _repeats(self, traces: Traces) -> int:
        """Return how many samples have a copy among the others."""
        return int(np.count_nonzero(self._near(cKDTree(traces.astype(np.float64)), traces, 2)[:, 1]))

    def _near(self, tree: Any, traces: Traces | Array, count: int) -> NDArray[np.bool_]:
        """Return whether the nearest `count` traces of a tree are copies, shape (m, count)."""
        bound = np.nextafter(np.float64(self.radius), np.inf)
        distance, _ = tree.query(traces.astype(np.float64), [*range(1, count + 1)], distance_upper_bound=bound)
        return np.asarray(np.isfinite(distance))

    def in_reference(self, traces: Array) -> NDArray[np.bool_]:
        """Mark the samples that are samples of the reference, shape (m,); none if that may be by chance."""
        rounded = traces.astype(np.float32)
        found = self._near(self._tree, rounded, 1)[:, 0]
        if not found.any() or not self._are_copies(int(found.sum()), len(found), rounded, self._repeated):
            return np.zeros(len(found), bool)
        return found

    def _are_copies(self, found: int, of: int, evaluation: Traces, repeated: float = 0.0) -> bool:
        from scipy.stats import binom  # slow to import

        expected = max(repeated, self._repeats(evaluation) / len(evaluation))
        return bool(binom.sf(found - 1, of, expected) < BY_CHANCE)

    def same_evaluation(self, traces: Array, steps: Sequence[float]) -> float | None:
        """Return which of the steps so far has an evaluation with the same samples; None if none has."""
        rounded = traces.astype(np.float32)
        if not len(rounded) or not len(steps):
            return None
        marked = self.marked.reshape(-1, self.marked.shape[-1])
        known = np.isfinite(marked).all(1)
        near = np.zeros(len(marked), bool)
        near[known] = self._near(cKDTree(rounded.astype(np.float64)), marked[known], 1)[:, 0]
        found, of = (marks.reshape(len(steps), MARKED).sum(1) for marks in (near, known))
        for evaluation in np.flatnonzero((of > 0) & (found >= MOSTLY * of)).tolist():
            if self._are_copies(int(found[evaluation]), int(of[evaluation]), rounded):
                return steps[evaluation]
        return None

    def with_evaluation(self, traces: Array) -> Self:
        """Return the same with an evaluation added."""
        own = np.full((1, *self.marked.shape[1:]), np.nan, np.float32)
        own[0, : len(traces)] = traces[:MARKED]
        return replace(self, marked=np.concatenate([self.marked, own]))

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header["seen"] = {"radius": self.radius}
        file.array("seen/reference", self.reference)
        file.array("seen/marked", self.marked)

    @classmethod
    def read(cls, file: StoredFile, evaluations: int, entries: int) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        radius = float(file.header["seen"]["radius"])
        reference = file.array("seen/reference", None, entries)
        marked = file.array("seen/marked", evaluations, MARKED, entries)
        if not (len(reference) and np.isfinite(reference).all() and 0 <= radius < np.inf):
            raise ValueError("what it has seen is not of samples")
        return cls(radius, reference, marked)
