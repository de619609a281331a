"""`SharedSteps`: measurements of two trainings at the steps that both have, and the scores of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from finc_eval.monitoring.basis import TRACES, Basis
from finc_eval.monitoring.columns import FollowedColumn
from finc_eval.monitoring.evaluations import RECENT, EvaluationPart, means_of, squared_distance
from finc_eval.monitoring.evidence.change_points import ChangePoint, estimate_change
from finc_eval.monitoring.exchange import BINS, Array, Counts, bins_of, score_of_ranks, score_of_shares
from finc_eval.monitoring.measuring import with_repeats
from finc_eval.monitoring.seen import SeenRepeats, SeenSamples

NO_DIFFERENCE = np.array([0.0, 1e12])
"""Reference of a difference: before it begins, both trainings are the same. The weight stands for certainty."""


@dataclass(eq=False)
class SharedSteps:
    """Measurements of two trainings: one part of each at each step.

    Attributes:
        basis: what is held fixed.
        columns: columns of the user.
        shares: number of followed shares, which come before scores.
        shown: means of all samples of each training, shape (2, things) at each step.
        samples: number of samples of each training, shape (2,) at each step.
        units: sums and numbers of independent units, and sums of squares, shape (2, things, 3) at each step.
        scores: score of the first training among the samples of both, shape (things,) at each step.
        shared: what two things share, of each training, at the last steps; see `causes.count_shared`.
        apart: squared distance of both in φ at each step.
    """

    basis: Basis
    columns: Sequence[FollowedColumn]
    shares: int
    shown: list[Array] = field(default_factory=list)
    samples: list[tuple[int, int]] = field(default_factory=list)
    units: list[Array] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    shared: list[Counts] = field(default_factory=list)
    apart: list[float] = field(default_factory=list)

    def add(self, first: EvaluationPart, second: EvaluationPart, seed: int) -> tuple[EvaluationPart, EvaluationPart]:
        """Add a step, and return its parts with their repeats.

        Under the null hypothesis, the samples of the first training are a random part of the samples of both. If both
        trainings have the same seeds, pairs of one seed lie in both parts: then repeats, which pairs make, say nothing.
        All other scores are smaller than without such pairs.
        """
        rng, none = np.random.default_rng([seed, len(self.scores)]), np.empty((0, TRACES))
        nothing = SeenRepeats.of(none, self.basis.repeat)
        second, others, _ = with_repeats(second, self.basis, nothing, rng)
        first, _, repeats = with_repeats(first, self.basis, others, rng)
        draws, of_scores = rng.bit_generator.state, []
        for own, before in zip(first.scores, second.scores, strict=True):
            rng.bit_generator.state = draws  # random parts of a bag serve all scores whose bags have one size
            of_scores.append(score_of_ranks(bins_of(own), np.bincount(bins_of(before), minlength=BINS), rng))
        scores = np.concatenate([score_of_shares(first.shares, second.shares, rng), of_scores])
        scores[[*repeats]] = np.nan if self.have_same_seeds(first, second) else [*repeats.values()]
        self.scores.append(scores)
        parts = (first, second)
        self.shown.append(means_of(np.array([part.sums for part in parts])))
        self.samples.append((first.n, second.n))
        self.units.append(np.array([self._units_of(part) for part in parts]))
        self.shared = [*self.shared, np.array([part.shared for part in parts])][-RECENT:]
        self.apart.append(squared_distance(*(np.append(part.phi, part.n) for part in parts)))
        return first, second

    def have_same_seeds(self, first: EvaluationPart, second: EvaluationPart) -> bool:
        """Return whether samples of the first training show those of the second, more often than either repeats."""
        seen = SeenSamples.of(second.traces, self.basis.repeat)
        return bool(len(first.traces) and seen.in_reference(first.traces).any())

    def _units_of(self, part: EvaluationPart) -> Array:
        """Return sums, numbers, and sums of squares of independent units, (things, 3), in the units that are shown."""
        scales = {column.name: (column.middle, column.scale) for column in self.columns if not column.is_flag}
        moved = [(0.0, 1.0)] * (len(part.scores) - len(scales)) + [*scales.values()]
        values = [middle + scale * own for (middle, scale), own in zip(moved, part.scores, strict=True)]
        shares = np.column_stack([part.shares, part.shares[:, 0]])
        return np.concatenate([shares, np.array([(own.sum(), len(own), (own**2).sum()) for own in values])])

    @property
    def is_followed(self) -> NDArray[np.bool_]:
        """Mark the things that any step compares, shape (things,)."""
        return np.asarray(np.isfinite(np.array(self.scores)).any(0))

    def change_of(self, thing: int, seen: int) -> ChangePoint:
        """Estimate since when both differ in a thing, whose evidence sufficed at the step of the number `seen`."""
        sums, variance = self._units_of_thing(thing)
        counts = np.maximum(sums[..., 1], 1)
        weight = np.where((sums[..., 1] > 0).all(1), 1 / (variance * (1 / counts).sum(1)), 0.0)
        apart = (sums[..., 0] / counts) @ [1, -1]
        return estimate_change(np.column_stack([apart * weight, weight]), NO_DIFFERENCE, seen, 1.0)

    def now(self, thing: int) -> tuple[float, float, tuple[float, float]]:
        """Return the value of each training at the last step, and the interval of their difference.

        Each value has an interval, by all steps of its training; both make that of their difference by the square
        rule (Newcombe 1998, Statistics in Medicine 17, method 10).
        """
        sums, variance = self._units_of_thing(thing)
        of_means = None if thing < self.shares else float(variance[-1])
        a, b = (estimate_change(sums[:, own], np.zeros(2), len(sums) - 1, of_means) for own in (0, 1))
        low = np.hypot(a.now - a.low, b.high - b.now)
        high = np.hypot(a.high - a.now, b.now - b.low)
        return a.now, b.now, (float(a.now - b.now - low), float(a.now - b.now + high))

    def _units_of_thing(self, thing: int) -> tuple[Array, Array]:
        """Return the sums and numbers of independent units, (t, training, 2), and the variance of a unit, (t,).

        Of a share, it is that of all units of a step, with half a unit more of either kind. Of a mean, it is the same
        at all steps.
        """
        own = np.array(self.units)[:, :, thing]
        total, count, squares = np.moveaxis(own, 2, 0)
        if thing < self.shares:
            share = (total.sum(1) + 0.5) / (count.sum(1) + 1)
            return own[..., :2], share * (1 - share)
        within = (squares - total**2 / np.maximum(count, 1)).sum() / max(float((count - (count > 0)).sum()), 1)
        return own[..., :2], np.full(len(own), max(float(within), 1e-12))
