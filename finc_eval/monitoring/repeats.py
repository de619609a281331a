"""Repeats of an evaluation: more of its samples repeat each other than those of random parts of all samples so far.

Whether two samples show the same picture depends on these two alone. So the samples so far, the bag of
`finc_eval.monitoring.exchange`, consist of clumps of samples that show the same picture, whatever the order. Given the
sizes of the clumps, the samples of an evaluation are a random part of the bag: how many samples of such a part repeat
another sample of it has a known law, whether the law of the samples repeats itself or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.monitoring.exchange import DRAWS, Array, Counts, score_among

MOST_DRAWN = 400_000  # clumps that are drawn from, in all random parts: a fifth of a second
LEAST_DRAWS = 255  # random parts of a bag of many clumps

Traces = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SeenRepeats:
    """Traces of samples so far, and which of them show the same picture.

    Attributes:
        radius: distance of traces up to which two samples show the same picture.
        traces: traces of samples of the reference, and of each evaluation, shape (n, 16).
        clump: number of the picture of each sample, shape (n,).
    """

    radius: float
    traces: Traces
    clump: Counts

    @classmethod
    def of(cls, traces: Array, radius: float) -> Self:
        """Begin with traces of the reference."""
        none = cls(float(radius), np.empty((0, traces.shape[1]), np.float32), np.empty(0, np.int64))
        return none.with_evaluation(traces)

    def with_evaluation(self, traces: Array) -> Self:
        """Return the same with the samples of an evaluation, shape (m, 16)."""
        own = traces.astype(np.float32)
        known, new = (cKDTree(one.astype(np.float64)) for one in (self.traces, own))
        n = len(self.traces)
        edges = [np.stack([np.arange(n), np.unique(self.clump, return_index=True)[1][self.clump]])]
        for other, start in ((known, 0), (new, n)):
            near = new.sparse_distance_matrix(other, self.radius, output_type="ndarray")
            edges.append(np.stack([near["i"] + n, near["j"] + start]))
        one, other_end = np.concatenate(edges, 1)
        size = n + len(own)
        links = coo_array((np.ones(len(one), bool), (one, other_end)), shape=(size, size))
        clump = connected_components(links, directed=False)[1].astype(np.int64)
        return type(self)(self.radius, np.concatenate([self.traces, own]), clump)

    def count_last(self, m: int) -> int:
        """Return how many of the last m samples repeat another one of these."""
        _, often = np.unique(self.clump[len(self.clump) - m :], return_counts=True)
        return int(often[often > 1].sum())

    def score_last(self, m: int, rng: np.random.Generator) -> float:
        """Return how unusual the last m samples are, as a standard normal number; NaN if no picture came twice."""
        sizes = np.bincount(self.clump)
        sizes = sizes[sizes > 1]
        if not len(sizes) or not 1 < m < len(self.clump):
            return float("nan")
        draws = int(np.clip(MOST_DRAWN // len(sizes), LEAST_DRAWS, DRAWS))
        every = np.append(sizes, len(self.clump) - sizes.sum())
        drawn = rng.multivariate_hypergeometric(every, m, draws, "marginals")[:, :-1]
        return score_among(self.count_last(m), np.where(drawn > 1, drawn, 0).sum(1), rng)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header["repeats"] = {"radius": self.radius}
        file.array("repeats/traces", self.traces)
        file.array("repeats/clump", self.clump)

    @classmethod
    def read(cls, file: StoredFile, entries: int) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        radius, traces = float(file.header["repeats"]["radius"]), file.array("repeats/traces", None, entries)
        clump = file.array("repeats/clump", len(traces), dtype="<i8")
        is_numbered = len(clump) and np.array_equal(np.unique(clump), np.arange(clump.max() + 1))
        if not (is_numbered and np.isfinite(traces).all() and 0 <= radius < np.inf):
            raise ValueError("its repeats are not of samples")
        return cls(radius, traces, clump)
