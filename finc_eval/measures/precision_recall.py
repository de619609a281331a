"""Precision, recall, density, coverage and realism, by the two conventions in use, exactly and in one pass.

The ball of a sample reaches to its k-th nearest neighbor in its own set. The metrics count which balls of one set
contain which samples of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, check_choice
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import open_pair
from finc_eval.embeddings.search.distance_blocks import Key, Smallest, blocks
from finc_eval.embeddings.search.neighbors import check_enough, index_signature, least_recall, radii, recall_notes
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.estimates.shares import share_interval
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.score import Score
from finc_eval.numerics.names import SearchIndex

Convention = Literal["kynkaanniemi", "prdc"]
PRDCMetric = Literal["precision", "recall", "density", "coverage"]

CONVENTION_NEIGHBORS = {"kynkaanniemi": 3, "prdc": 5}  # k of each convention

RELATIVE_DISTANCE = Key(lambda squared, radii: (squared / radii).masked_fill_(radii <= 0, torch.inf), 0)
"""‖x − y‖² / radius², smallest where realism is largest; balls without a radius take no part."""


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Result of `precision_recall`. All shares lie between 0 and 1; density can exceed 1."""

    precision: float  # share of generated samples in at least one ball of the reference
    recall: float  # share of reference samples in at least one ball of the generated set
    density: float  # mean number of reference balls that contain a generated sample, divided by k
    coverage: float  # share of reference samples whose ball contains a generated sample
    # number of reference balls that contain each generated sample, shape (n,). Precision counts the positive numbers;
    # density averages them.
    balls: NDArray[np.int64]
    recalled: NDArray[np.bool_]  # reference samples that lie in a ball of the generated set, as a mask of shape (m,)
    covered: NDArray[np.bool_]  # reference balls that contain a generated sample, as a mask of shape (m,)
    # realism of each generated sample, shape (n,): the largest radius over distance, over the half of the reference's
    # balls that are not larger than the median. It is at least 1 inside one of them, infinite for a copy of a center,
    # and 0 if all these balls have radius 0.
    realism: NDArray[np.float64]
    convention: Convention  # "kynkaanniemi" includes the surface of a ball (≤), "prdc" does not (<)
    k: int  # number of the neighbor that a ball reaches to, the sample itself not counted
    signature: Signature  # everything that changes the numbers, except the generated set
    # share of the exact neighbors that were found for the radii; None if all are exact
    found_neighbors: float | None = None
    # number of the unit of each sample, such as a video, shapes (n,) and (m,); None where each is its own
    gen_units: NDArray[np.int64] | None = None
    ref_units: NDArray[np.int64] | None = None

    def interval(self, metric: PRDCMetric, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval of a metric over other samples of the set that it averages over, all balls unchanged.

        Precision and density average over the generated set, recall and coverage over the reference. The balls belong
        to sets of this size. They would shrink with more samples, which the interval does not cover. Shares have
        Wilson's interval. Density has Student's interval of a mean. Samples of a group count as one as far as they are
        alike.
        """
        check_choice("metric", metric, get_args(PRDCMetric))
        if metric == "density":
            low, high = Estimate.of_mean(self.balls / self.k, self.gen_units).interval_at(confidence)
            return max(low, 0.0), high
        if metric == "precision":
            return share_interval(self.balls > 0, self.gen_units, confidence)
        return share_interval(self.recalled if metric == "recall" else self.covered, self.ref_units, confidence)


def precision_recall(
    gen: object,
    ref: object,
    *,
    convention: Convention = "prdc",
    k: int | None = None,
    run: Run | None = None,
    index: SearchIndex = "exact",
) -> PrecisionRecall:
    """Compute precision, recall, density, coverage and realism of a generated set.

    The convention "prdc" is that of Naeem et al. 2020 and their package: balls without their surface, k = 5. The
    convention "kynkaanniemi" is that of Kynkäänniemi et al. 2019, eq. 1 to 3: balls with their surface, k = 3. An
    index finds the radii alone; which balls contain a sample is exact.
    """
    check_choice("convention", convention, get_args(Convention))
    k = CONVENTION_NEIGHBORS[convention] if k is None else k
    x, y = open_pair(gen, ref, names=("gen", "ref"))
    for source in (x, y):
        check_enough(source, k)
    closed, device = convention == "kynkaanniemi", Run.of(run).torch_device
    balls_of_gen, balls_of_ref = radii(x, k, device, index), radii(y, k, device, index)
    gen_radii, ref_radii = balls_of_gen.squared, balls_of_ref.squared
    found_neighbors = least_recall(balls_of_gen.recall, balls_of_ref.recall)
    balls = np.zeros(x.n, np.int64)
    recalled, covered = np.zeros(y.n, bool), np.zeros(y.n, bool)
    small = np.where(ref_radii <= np.median(ref_radii), ref_radii, 0)
    nearest = Smallest(x.n, 1, RELATIVE_DISTANCE, small)
    for block in blocks(x, y, device):
        rows, columns = block.within(column_radii=ref_radii[block.columns], closed=closed)
        balls[block.rows] += np.bincount(rows, minlength=len(block.x.rows))
        covered[block.columns][columns] = True
        _, columns = block.within(row_radii=gen_radii[block.rows], closed=closed)
        recalled[block.columns][columns] = True
        nearest.update(block)
    with np.errstate(divide="ignore"):
        realism = 1 / np.sqrt(nearest.keys[:, 0])
    settings = (("convention", convention), ("neighbors", str(k)), *index_signature(found_neighbors))
    return PrecisionRecall(
        precision=float((balls > 0).mean()),
        recall=float(recalled.mean()),
        density=float(balls.mean()) / k,
        coverage=float(covered.mean()),
        balls=balls,
        recalled=recalled,
        covered=covered,
        realism=realism,
        convention=convention,
        k=k,
        signature=Signature.of("precision-recall", (x.n, y.n), y.space, *settings),
        found_neighbors=found_neighbors,
        gen_units=units_of(x),
        ref_units=units_of(y),
    )


def ball_notes(*sets: Embeddings) -> tuple[str, ...]:
    """Return a note for each set that has so few samples that its balls are large."""
    # 1000: number of samples of a set below which the size of its balls says more than what they contain.
    return tuple(
        f"{embeddings.name} has {embeddings.n} samples: the balls of so few are large, so compare at equal n only; "
        "10 000 are usual"
        for embeddings in sets
        if embeddings.n < 1000
    )


def _shares_of(convention: Convention, keys: tuple[PRDCMetric, ...]) -> Callable[..., list[Score]]:
    def compute(inputs: MetricInputs, *, k: int | None = None) -> list[Score]:
        gen, ref = inputs.embeddings()
        shares = precision_recall(gen, ref, convention=convention, k=k, run=inputs.run, index=inputs.index)
        notes = ball_notes(gen, ref) + recall_notes(shares.found_neighbors)
        return [
            Score(
                key,
                getattr(shares, key),
                shares.signature,
                interval=shares.interval(key),
                higher_is_better=True,
                notes=notes,
            )
            for key in keys
        ]

    return compute


def _realism(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    shares = precision_recall(gen, ref, convention="kynkaanniemi", run=inputs.run, index=inputs.index)
    rows = np.flatnonzero(np.isfinite(shares.realism))
    finite = shares.realism[rows]
    copies = gen.n - len(finite)
    if copies == gen.n:
        raise DataError(f"all {gen.n} samples of {gen.name} are copies of reference samples: their realism is infinite")
    notes = ball_notes(ref) + recall_notes(shares.found_neighbors)
    if copies:
        notes += (f"{copies} samples of infinite realism, copies of reference samples, are left out",)
    interval = Estimate.of_mean(finite, units_of(gen, rows)).within(0.0, inf) if len(finite) > 1 else None
    signature = replace(shares.signature, metric="realism")
    return [Score("realism", float(finite.mean()), signature, interval=interval, higher_is_better=True, notes=notes)]


_OF_GENERATED_BALLS = frozenset({"recall", "coverage"})
"""Shares of the reference that generated samples reach: samples of one group reach the same."""

METRICS = (
    Metric(
        "precision_recall",
        "precision and recall of Kynkäänniemi et al.: k = 3, balls with their surface",
        _shares_of("kynkaanniemi", ("precision", "recall")),
        depends_on_groups=_OF_GENERATED_BALLS.__contains__,
    ),
    Metric(
        "prdc",
        "precision, recall, density, coverage of the package prdc: k = 5, balls without their surface",
        _shares_of("prdc", get_args(PRDCMetric)),
        depends_on_groups=_OF_GENERATED_BALLS.__contains__,
    ),
    Metric("realism", "mean realism of generated samples, by Kynkäänniemi et al.", _realism),
)
