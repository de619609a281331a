"""Precision, recall, density, coverage and realism, by the two conventions in use, exactly and in one pass.

Each sample of a set has a ball, to its k-th nearest neighbor in its own set; what the metrics count is which balls of
the one set contain which samples of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.signature import Signature
from finc_eval.embeddings.distance_blocks import blocks
from finc_eval.embeddings.neighbors import check_enough, open_pair, squared_radii
from finc_eval.embeddings.smallest import Key, Smallest
from finc_eval.numerics.inference import mean_interval, wilson

Convention = Literal["kynkaanniemi", "prdc"]
Metric = Literal["precision", "recall", "density", "coverage"]

NEIGHBORS = {"kynkaanniemi": 3, "prdc": 5}
"""k of each convention."""

RATIO = Key(lambda squared, radii: (squared / radii).masked_fill_(radii <= 0, torch.inf), 0)
"""‖x − y‖² / radius², least where realism is largest; balls without a radius take no part."""


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """How two sets lie in each other's balls. All shares are between 0 and 1; density can exceed 1.

    Attributes:
        precision: share of generated samples in at least one ball of the reference.
        recall: share of reference samples in at least one ball of the generated set.
        density: how many balls of the reference contain a generated sample, on average, over k.
        coverage: share of reference samples whose ball contains a generated sample.
        balls: of each generated sample, how many balls of the reference contain it, shape (n,): it counts for
            precision if that is positive, and that over k is its density.
        recalled: which reference samples lie in a ball of the generated set, shape (m,).
        covered: which reference balls contain a generated sample, shape (m,).
        realism: of each generated sample, the largest radius over distance, over the half of the reference's balls that
            are not larger than the median, shape (n,); at least 1 inside one of them, infinite for a copy of a center,
            0 if all these balls have radius 0.
        convention: "kynkaanniemi" has balls with their surface (≤), "prdc" without (<).
        k: whose distance is the radius, the sample itself not counted.
        signature: pins everything that changes the numbers save the generated set.
    """

    precision: float
    recall: float
    density: float
    coverage: float
    balls: NDArray[np.int64]
    recalled: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    realism: NDArray[np.float64]
    convention: Convention
    k: int
    signature: Signature

    def interval(self, metric: Metric, confidence: float = 0.95) -> tuple[float, float]:
        """An interval for fresh samples of the set a metric averages over, all balls kept as they are.

        That set is the generated one for precision and density, the reference for recall and coverage. The balls are of
        sets of this size: with more samples they shrink, and what the metric would be then is not in the interval.
        Shares get Wilson's interval; density that of its jackknife, which is the mean's ± z standard errors.
        """
        if not 0 < confidence < 1:
            raise FincEvalError(f"confidence must lie between 0 and 1, got {confidence}")
        if metric == "density":
            return mean_interval(self.balls / self.k, confidence)
        if metric not in get_args(Metric):
            raise FincEvalError(
                f"metric must be one of {', '.join(get_args(Metric))}, got {metric!r}"
                + did_you_mean(metric, get_args(Metric))
            )
        return wilson(getattr(self, metric), len(self.balls if metric == "precision" else self.recalled), confidence)


def precision_recall(
    gen: object, ref: object, *, convention: Convention = "prdc", k: int | None = None
) -> PrecisionRecall:
    """Precision, recall, density, coverage and realism of a generated set.

    Args:
        gen: embeddings of the generated set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        ref: the reference set, likewise.
        convention: "prdc" (Naeem et al. 2020 and their package: balls without their surface, k = 5), or "kynkaanniemi"
            (Kynkäänniemi et al. 2019, eq. 1 to 3: with it, k = 3).
        k: another number of neighbors than the convention's.

    Raises:
        FincEvalError: when a set has no more than k samples, the dimensions or extractors differ, or a row is not
            finite.
    """
    if convention not in get_args(Convention):
        raise FincEvalError(
            f"convention must be one of {', '.join(get_args(Convention))}, got {convention!r}"
            + did_you_mean(convention, get_args(Convention))
        )
    k = NEIGHBORS[convention] if k is None else k
    x, y = open_pair(gen, ref, ("gen", "ref"))
    for source in (x, y):
        check_enough(source, k)
    closed = convention == "kynkaanniemi"
    gen_radii, ref_radii = squared_radii(x, k), squared_radii(y, k)
    balls = np.zeros(x.n, np.int64)
    recalled, covered = np.zeros(y.n, bool), np.zeros(y.n, bool)
    small = np.where(ref_radii <= np.median(ref_radii), ref_radii, 0)
    nearest = Smallest(x.n, 1, RATIO, small)
    for block in blocks(x, y):
        rows, columns = block.within(column_radii=ref_radii[block.columns], closed=closed)
        balls[block.rows] += np.bincount(rows, minlength=len(block.x.rows))
        covered[block.columns][columns] = True
        _, columns = block.within(row_radii=gen_radii[block.rows], closed=closed)
        recalled[block.columns][columns] = True
        nearest.update(block)
    with np.errstate(divide="ignore"):
        realism = 1 / np.sqrt(nearest.keys[:, 0])
    fields = (
        ("n", f"{x.n}/{y.n}"),
        ("fx", y.space),
        ("convention", convention),
        ("neighbors", str(k)),
        ("v", version("finc-eval")),
    )
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
        signature=Signature("precision-recall", fields),
    )
