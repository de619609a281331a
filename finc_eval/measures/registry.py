"""Metrics by name. Each is declared beside its mathematics, in the tuple `METRICS` of its module."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.measures.inputs import Metric

MODULES = (
    "frechet",
    "kid",
    "mind",
    "mmd",
    "precision_recall",
    "inception_score",
    "vendi",
    "prompted",
    "baseline_scores",
    "authenticity",
    "histograms",
)
"""Modules that declare metrics, in the order shown to users: a new metric is one line here."""


METRICS: dict[str, Metric] = {
    metric.name: metric for name in MODULES for metric in import_module(f"finc_eval.measures.{name}").METRICS
}
"""All metrics, by name."""


def get_metric(name: str) -> Metric:
    """Return the metric of this name, in capitals or not."""
    found = METRICS.get(name.lower())
    if found is None:
        raise UsageError(f'unknown metric "{name}"{did_you_mean(name, METRICS)}: choose from {", ".join(METRICS)}')
    return found


def say_substitute(metrics: Iterable[Metric]) -> str:
    """Say which metrics compute the same in the space of any extractor: "; fd is the same by any extractor, …"."""
    found = [
        f"; {other.name} is the same by any extractor, and not {one.name}"
        for one in metrics
        for other in METRICS.values()
        if one.extractor is not None and other.extractor is None and other.compute is one.compute
    ]
    return "".join(dict.fromkeys(found))
