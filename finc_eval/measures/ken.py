"""KEN as a metric: the score of `finc_eval.baselines.novelty`."""

from __future__ import annotations

from finc_eval.baselines.novelty import novelty
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.score import Score


def _ken(inputs: MetricInputs) -> list[Score]:
    found = novelty(*inputs.embeddings())
    notes = (found.warning,) if found.warning else ()
    return [Score("ken", found.score, found.signature, notes=notes)]


METRICS = (Metric("ken", "kernel-based entropic novelty", _ken),)
