"""`SeenSamples`: traces of the reference and of earlier evaluations, by which one that is repeated is known.

`SeenRepeats`: samples so far that show the same picture, against which the repeats of an evaluation are scored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.special import ndtri

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.monitoring.exchange import DRAWS, Array, Counts, score_among

COPY = 0.02
"""Part of the median nearest distance of the reference within which two samples are copies. Of 240 photographs and
EfficientNet-Lite0, half precision moves traces by .0004 of it at most, bfloat16 by .003, batches of other sizes by
2e-6, and JPEG of quality 98 by .04 to .3. A generator that has learned a sample moves it by more than JPEG."""

BY_CHANCE = 1e-6
"""Probability that as many copies are by chance, in a law that repeats itself: 3 samples of a reference of 400 without
repeats are copies at this level, and 2 are not."""

MOSTLY = 0.5  # half of an evaluation: with as many samples of the reference, the evaluation is left out as a whole
MANY = 32  # samples of one picture from which pairs with all of them are not listed
MARKED = 64  # samples of each evaluation that are remembered: the share of it that comes again is known to 6 points

Traces = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SeenSamples:
    """Traces of samples that a monitor has seen: random projections, whose distances are about those of embeddings.

    A law with few values repeats its samples, within an evaluation and across evaluations alike. So copies count only
    if there are more of them than an evaluation, and the reference, have of themselves.
    """

    radius: float  # distance within which two traces are of copies
    reference: Traces  # traces of all samples of the reference, shape (n, 16)
    marked: Traces  # traces of unlike samples all over each evaluation, NaN where it has fewer, shape (t, 64, 16)

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

    def seen_before(self, traces: Array, samples: Array) -> Array:
        """Return the share of the samples that are those of each evaluation so far, about, shape (t,).

        Args:
            traces: traces of the samples of an evaluation, shape (n, 16).
            samples: number of traced samples of each evaluation so far, shape (t,).
        """
        rounded, shares = traces.astype(np.float32), np.zeros(len(samples))
        if not len(rounded) or not len(samples):
            return shares
        marked = self.marked.reshape(-1, self.marked.shape[-1])
        known = np.isfinite(marked).all(1)
        near = np.zeros(len(marked), bool)
        near[known] = self._near(cKDTree(rounded.astype(np.float64)), marked[known], 1)[:, 0]
        found, of = (marks.reshape(len(samples), MARKED).sum(1) for marks in (near, known))
        for evaluation in np.flatnonzero(found).tolist():
            if self._are_copies(int(found[evaluation]), int(of[evaluation]), rounded):
                again = found[evaluation] / of[evaluation] * samples[evaluation]
                shares[evaluation] = min(1.0, again / len(rounded))
        return shares

    def with_evaluation(self, traces: Array) -> Self:
        """Return the same with an evaluation added; a sample that it repeats is marked once."""
        own = np.full((1, *self.marked.shape[1:]), np.nan, np.float32)
        unlike = np.sort(np.unique(traces, axis=0, return_index=True)[1])
        chosen = unlike[np.unique(np.linspace(0, len(unlike) - 1, MARKED).astype(int))] if len(unlike) else unlike
        own[0, : len(chosen)] = traces[chosen]
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


@dataclass(frozen=True, eq=False)
class SeenRepeats:
    """Traces of samples so far, and which of them show the same picture: the repeats of an evaluation.

    Whether two samples show the same picture depends on these two alone. So the samples so far, the bag of
    `finc_eval.monitoring.exchange`, consist of clumps of samples that show the same picture, whatever the order. Given
    the sizes of the clumps, the samples of an evaluation are a random part of the bag. How many samples of such a part
    repeat another sample of it has a known law, whether the law of the samples repeats itself or not.

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
        new, n = traces.astype(np.float32), len(self.traces)
        among = cKDTree(new.astype(np.float64)).sparse_distance_matrix
        first = np.unique(self.clump, return_index=True)[1]
        near = among(cKDTree(new.astype(np.float64)), self.radius, output_type="ndarray")
        edges = [(np.arange(n), first[self.clump]), (near["i"] + n, near["j"] + n)]
        large = np.bincount(self.clump, minlength=1) > MANY
        others = np.flatnonzero(~large[self.clump])
        near = among(cKDTree(self.traces[others].astype(np.float64)), self.radius, output_type="ndarray")
        edges.append((near["i"] + n, others[near["j"]]))
        # All pairs with a picture that came a thousand times would not fit; the nearest sample of it is enough.
        for number in np.flatnonzero(large):
            shown = cKDTree(self.traces[self.clump == number].astype(np.float64))
            is_same = shown.query(new.astype(np.float64))[0] <= self.radius
            edges.append((np.flatnonzero(is_same) + n, np.full(is_same.sum(), first[number])))
        # int32: SciPy 1.11 leaves all unlabeled if an array of links has others.
        ends = tuple(np.concatenate(side).astype(np.int32) for side in zip(*edges, strict=True))
        links = coo_array((np.ones(len(ends[0]), bool), ends), shape=(n + len(new), n + len(new)))
        clump = connected_components(links, directed=False)[1].astype(np.int64)
        return type(self)(self.radius, np.concatenate([self.traces, new]), clump)

    def count_last(self, m: int) -> int:
        """Return how many of the last m samples repeat another one of these."""
        _, often = np.unique(self.clump[len(self.clump) - m :], return_counts=True)
        return int(often[often > 1].sum())

    def score_last(self, m: int, rng: np.random.Generator) -> float:
        """Return how unusual the last m samples are, as a standard normal number; NaN if no picture came twice."""
        from scipy.stats import hypergeom  # slow to import

        sizes = np.bincount(self.clump)
        sizes = sizes[sizes > 1]
        if not len(sizes) or not 1 < m < len(self.clump):
            return float("nan")
        draws = int(np.clip(400_000 // len(sizes), 255, DRAWS))  # in 0.2 s, of a bag of many clumps fewer
        every = np.append(sizes, len(self.clump) - sizes.sum())
        drawn = rng.multivariate_hypergeometric(every, m, draws, "marginals")[:, :-1]
        own, by_chance = self.count_last(m), np.where(drawn > 1, drawn, 0).sum(1)
        score = score_among(own, by_chance, rng)
        if own <= by_chance.max():
            return score
        # Beyond all random parts, at least as many of the evaluation are of pictures that come twice: hypergeometric.
        # Twice its tail, as either number may be unusual. Of 5 841 scores of laws that repeat themselves (5 % of one
        # picture, 500 or 20 000 pictures; 32 of 200, 100 of 1 000), 5.2 %, .9 % and .07 % were beyond 5, 1 and .1 %.
        bound = 2 * float(hypergeom.sf(own - 1, len(self.clump), sizes.sum(), m))
        return max(score, float(-ndtri(np.clip(bound, 1e-12, 1))))

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
