"""Metrics of histograms over k-means cells: NDB (Richardson and Weiss 2018), PRD (Sajjadi et al. 2018).

NDB is the number of statistically different bins (arXiv 1805.12462), PRD the precision and recall of distributions
over kinds (arXiv 1806.00035).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.of_statistic import Statistic
from finc_eval.measures.inputs import Metric, MetricInputs, of_statistic, split_reference
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import normal_quantile
from finc_eval.partitions.kmeans import KMeansCells, pool_samples

NDB_BINS = 100  # bins of the paper

SIGNIFICANCE = 0.05
"""Level of the test of each bin, as in the paper: without a correction, so of equal laws it counts 5 in 100."""


def different_bins(gen: NDArray[np.int64], ref: NDArray[np.int64]) -> int:
    """Return the number of bins whose shares differ by a two-proportion z-test, from the counts of two sets."""
    n, m = gen.sum(), ref.sum()
    pooled = (gen + ref) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return int((np.abs(gen / n - ref / m) > normal_quantile(1 - SIGNIFICANCE) * error).sum())


def ndb(gen: Embeddings, ref: Embeddings, bins: int = NDB_BINS, run: Run | None = None) -> tuple[int, int]:
    """Return the number of different bins, and the number of bins, which k-means of the reference makes.

    A reference of fewer than five samples a bin gets fewer bins.
    """
    # 50: samples of the reference that the bins are fitted to, per bin.
    rows = pool_samples([ref], 50 * bins)
    if len(rows) < 2:
        raise DataError(
            f"ndb needs at least 2 independent samples of the reference, {ref.name} has {len(rows)}: samples of one "
            "group count as one"
        )
    # 5: samples of the reference per bin, below which there are fewer bins.
    bins = max(min(bins, len(rows) // 5), 2)
    cells = KMeansCells.fit(rows, bins, [0], run)
    x, y = (cells.count(embeddings, run)[0] for embeddings in (gen, ref))
    return different_bins(x, y), bins


def _ndb(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    different, bins = ndb(gen, ref, run=inputs.run)
    floor = _floor_of_ndb(ref, gen.n, bins, inputs.run)
    notes: tuple[str, ...] = (
        "no interval: it counts tests, of which more samples reject more: prd compares the same kinds of bins",
        f"one law gives about {SIGNIFICANCE * bins:g} of {bins} bins",
    )
    if bins < NDB_BINS:
        notes += (f"{ref.name} has {ref.n} samples, enough for {bins} bins; the paper has {NDB_BINS}",)
    signature = inputs.signature(bins=bins, significance=SIGNIFICANCE)
    return [
        Score("ndb", different, signature, higher_is_better=False, notes=notes),
        Score("ndb_over_k", different / bins, signature, floor=floor, higher_is_better=False, notes=notes),
    ]


def _floor_of_ndb(ref: Embeddings, n_gen: int, bins: int, run: Run) -> float | None:
    """Return the share of bins in which two parts of the reference differ; None for parts of few groups."""
    part, rest = split_reference(ref, n_gen)
    try:
        different, of = ndb(part, rest, bins, run)
    except DataError:
        return None
    return different / of


PRD_CLUSTERS, RUNS, ANGLES, BETA = 20, 10, 1001, 8.0
"""The paper's number of kinds, of runs of k-means, of points on the curve, and weight of recall."""


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


def _order(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the order of rows by their first entry, then the second …: k-means begins with rows by their number.

    So the order of a set decides nothing, and rows that change a little begin alike.
    """
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
    # Unsigned numbers in the order of the floats, whose bytes are compared from the first.
    keys = np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31)).astype(">u4")
    return keys.view(f"V{4 * keys.shape[1]}").ravel().argsort(kind="stable")


def prd_cells(gen: Embeddings, ref: Embeddings, run: Run | None = None) -> KMeansCells:
    """Return the kinds of ten runs of k-means of both sets together."""
    rows = pool_samples([gen, ref])
    rows = rows[torch.from_numpy(_order(rows.numpy()))]
    # 20: samples per kind, below which there are fewer kinds.
    return KMeansCells.fit(rows, max(min(PRD_CLUSTERS, len(rows) // 20), 2), range(RUNS), run)


def prd(gen: Embeddings, ref: Embeddings, run: Run | None = None, cells: KMeansCells | None = None) -> Curve:
    """Return the PRD curve, averaged over ten runs of k-means of both sets together, or over given kinds."""
    cells = prd_cells(gen, ref, run) if cells is None else cells
    x, y = (cells.count(embeddings, run) for embeddings in (gen, ref))
    curves = [prd_curve(shares / gen.n, other / ref.n) for shares, other in zip(x, y, strict=True)]
    precision, recall = np.array(curves).mean(0)
    return precision, recall


def _prd(gen: Embeddings, ref: Embeddings, run: Run) -> Statistic:
    cells = prd_cells(gen, ref, run)

    def statistic(gen: Embeddings, ref: Embeddings) -> dict[str, float]:
        curve = prd(gen, ref, run, cells)
        return {"prd_recall": best_f(curve, BETA), "prd_precision": best_f(curve, 1 / BETA)}

    return statistic


def _prd_notes(gen: Embeddings, ref: Embeddings) -> tuple[str, ...]:
    unequal = "the paper takes sets of equal size: a smaller set has noisier shares, which read as lower values"
    return (unequal,) if gen.n != ref.n else ()


METRICS = (
    Metric("ndb", "number of statistically different bins of 100, and their share", _ndb),
    of_statistic(
        "prd",
        "precision and recall of distributions over 20 kinds: F_1/8 and F_8",
        _prd,
        higher_is_better=True,
        bounds=(0.0, 1.0),
        notes=_prd_notes,
        kinds=PRD_CLUSTERS,
        runs=RUNS,
    ),
)
