"""NDB: the number of statistically different bins (Richardson and Weiss 2018, arXiv 1805.12462)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.measures.inputs import Metric, MetricInputs, split_reference
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import normal_quantile
from finc_eval.partitions.kmeans import Cells, pool_samples

BINS = 100
"""Bins of the paper."""

MIN_SAMPLES_PER_BIN = 5
"""Samples of the reference per bin, below which there are fewer bins."""

FIT_SAMPLES_PER_BIN = 50
"""Samples of the reference that the bins are fitted to, per bin."""

SIGNIFICANCE = 0.05
"""Level of the test of each bin, as in the paper: without a correction, so of equal laws it counts 5 in 100."""


def different_bins(gen: NDArray[np.int64], ref: NDArray[np.int64]) -> int:
    """Return the number of bins whose shares differ by a two-proportion z-test, from the counts of two sets."""
    n, m = gen.sum(), ref.sum()
    pooled = (gen + ref) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return int((np.abs(gen / n - ref / m) > normal_quantile(1 - SIGNIFICANCE) * error).sum())


def ndb(gen: Embeddings, ref: Embeddings, bins: int = BINS, run: Run | None = None) -> tuple[int, int]:
    """Return the number of different bins, and the number of bins, which k-means of the reference makes.

    A reference of fewer than five samples a bin gets fewer bins.
    """
    rows = pool_samples([ref], FIT_SAMPLES_PER_BIN * bins)
    bins = max(min(bins, len(rows) // MIN_SAMPLES_PER_BIN), 2)
    cells = Cells.fit(rows, bins, [0], run)
    x, y = (cells.count(one, run)[0] for one in (gen, ref))
    return different_bins(x, y), bins


def _ndb(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    found, bins = ndb(gen, ref, run=inputs.run)
    part, rest = split_reference(ref, gen.n)
    floor, floor_bins = ndb(part, rest, bins, inputs.run)
    notes: tuple[str, ...] = (f"one law gives about {SIGNIFICANCE * bins:g} of {bins} bins",)
    if bins < BINS:
        notes += (f"{ref.name} has {ref.n} samples, enough for {bins} bins; the paper has {BINS}",)
    signature = inputs.signature(bins=bins, significance=SIGNIFICANCE)
    return [
        Score("ndb", found, signature, higher_is_better=False, notes=notes),
        Score("ndb_over_k", found / bins, signature, floor=floor / floor_bins, higher_is_better=False, notes=notes),
    ]


METRICS = (Metric("ndb", "number of statistically different bins of 100, and their share", _ndb),)
