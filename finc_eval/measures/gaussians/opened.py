"""Sets of metrics: embeddings, or the Gaussian statistics that are all that a Fréchet distance uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opened import Form, OpenedSet
from finc_eval.embeddings.opening import Opener, form_of, open_embedded
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, blocks_of_sketches, from_embeddings
from finc_eval.measures.gaussians.reference_statistics import read_statistics
from finc_eval.sketches.opening import open_sketch

MetricSet = Embeddings | GaussianStatistics


def open_set(source: object, name: str) -> MetricSet:
    """Open a set as embeddings or, if there are none, as its Gaussian statistics.

    Embeddings are arrays, tensors or caches; sketches, `GaussianStatistics` and paths of all of these are sets, too.
    """
    return OF_METRICS.get(form_of(source), open_embedded)(source, name).held


def _open_sums(source: object, name: str) -> OpenedSet[GaussianStatistics]:
    sketch = open_sketch(source)
    return OpenedSet(name, blocks_of_sketches([sketch], sketch.name or name).statistics())


def _open_statistics(source: object, name: str) -> OpenedSet[GaussianStatistics]:
    statistics = read_statistics(on_disk(source)) if isinstance(source, str | Path) else source
    return OpenedSet(name, cast(GaussianStatistics, statistics))


OF_METRICS: Mapping[Form, Opener[MetricSet]] = {
    "embeddings": open_embedded,
    "sketch": _open_sums,
    "statistics": _open_statistics,
}
"""Functions that open sets of metrics, by the form of the set."""


def gaussian_statistics(source: object, name: str = "embeddings", *, run: Run | None = None) -> GaussianStatistics:
    """Fit a Gaussian to a set, in one pass and bounded memory."""
    opened = open_set(source, name)
    return from_embeddings(opened, run=run) if isinstance(opened, Embeddings) else opened
