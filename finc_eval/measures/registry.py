"""Metrics by name. Each is declared beside its mathematics, in the tuple `METRICS` of its module."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.measures.inputs import Metric

MODULES = (
    "frechet",
    "fd_infinity",
    "kid",
    "mind",
    "mmd",
    "precision_recall",
    "inception_score",
    "vendi",
    "prompted",
    "baseline_scores",
    "authenticity",
    "ndb",
    "prd",
)
"""Modules that declare metrics, in the order shown to users: a new metric is one line here."""


def collect(modules: Iterable[str]) -> dict[str, Metric]:
    """Return the metrics that modules of `finc_eval.measures` declare, by name."""
    return {metric.name: metric for name in modules for metric in import_module(f"finc_eval.measures.{name}").METRICS}


METRICS = collect(MODULES)
"""All metrics, by name."""


def get_metric(name: str) -> Metric:
    """Return the metric of this name."""
    if name not in METRICS:
        raise UsageError(f'unknown metric "{name}"{did_you_mean(name, METRICS)}: choose from {", ".join(METRICS)}')
    return METRICS[name]
