"""PRD: precision and recall of distributions over kinds (Sajjadi et al. 2018, arXiv 1806.00035)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.measures.inputs import Metric, MetricInputs, split_reference
from finc_eval.measures.score import Score
from finc_eval.partitions.kmeans import Cells, pool_samples

KINDS, RUNS, ANGLES, BETA = 20, 10, 1001, 8.0
"""The paper's number of kinds, of runs of k-means, of points on the curve, and weight of recall."""

MIN_SAMPLES_PER_KIND = 20
"""Samples per kind, below which there are fewer kinds."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def prd_curve(gen: NDArray[np.float64], ref: NDArray[np.float64]) -> Curve:
    """Return precision α(λ) = Σ min(λ p, q) and recall β(λ) = α(λ) / λ (Definition 2, Theorem 3 of the paper).

    q and p are shares of kinds; λ = tan(angle) for evenly spaced angles between 0 and π/2.
    """
    slopes = np.tan(np.linspace(1e-10, np.pi / 2 - 1e-10, ANGLES))
    precision = np.minimum(ref * slopes[:, None], gen).sum(1)
    return np.clip(precision, 0, 1), np.clip(precision / slopes, 0, 1)


def best_f(curve: Curve, beta: float) -> float:
    """Return the largest F_β of a curve: for large β it is about recall, for small β about precision."""
    precision, recall = curve
    both = beta**2 * precision + recall
    return float(((1 + beta**2) * precision * recall / np.where(both > 0, both, 1)).max())


def prd(gen: Embeddings, ref: Embeddings, run: Run | None = None) -> Curve:
    """Return the PRD curve, averaged over ten runs of k-means of both sets together."""
    rows = pool_samples([gen, ref])
    cells = Cells.fit(rows, max(min(KINDS, len(rows) // MIN_SAMPLES_PER_KIND), 2), range(RUNS), run)
    x, y = (cells.count(one, run) for one in (gen, ref))
    curves = [prd_curve(one / gen.n, other / ref.n) for one, other in zip(x, y, strict=True)]
    precision, recall = np.array(curves).mean(0)
    return precision, recall


def _prd(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    found, floor = prd(gen, ref, inputs.run), prd(*split_reference(ref, gen.n), inputs.run)
    unequal = "the paper takes sets of equal size: a smaller set has noisier shares, which read as lower values"
    notes = (unequal,) if gen.n != ref.n else ()
    signature = inputs.signature(kinds=KINDS, runs=RUNS)
    return [
        Score(key, best_f(found, beta), signature, floor=best_f(floor, beta), higher_is_better=True, notes=notes)
        for key, beta in (("prd_recall", BETA), ("prd_precision", 1 / BETA))
    ]


METRICS = (Metric("prd", "precision and recall of distributions over 20 kinds: F_1/8 and F_8", _prd),)
