"""Metrics of the samples of each class alone: intra-class distances (Miyato and Koyama 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.run import Run
from finc_eval.core.words import counted, listed
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.measures.inputs import Metric, MetricInputs, MetricSet
from finc_eval.measures.score import Score
from finc_eval.numerics.names import SearchIndex

MAX_NAMED = 5
"""Classes without a value that a note names."""

Rows = dict[str, NDArray[np.int64]]
"""Rows of the samples of each class; those of samples without a class are under ""."""


def rows_by_class(one: MetricSet, column: str) -> Rows:
    """Return the rows of each class of a set.

    Raises:
        UsageError: the set does not have this column.
        IncompatibleError: it is moments, whose samples have no classes.
    """
    if not isinstance(one, Embeddings):
        raise IncompatibleError(f"by={column!r} needs the samples of {one.name}, which holds moments: pass its samples")
    values = np.array(one.column(column))
    return {str(value): np.flatnonzero(values == value) for value in np.unique(values)}


def scores_by_class(
    metric: Metric, sets: Mapping[str, MetricSet], classes: Mapping[str, Rows], index: SearchIndex, run: Run
) -> tuple[list[Score], tuple[str, ...]]:
    """Compute a metric for the samples of each class, and say in notes which classes have no value, and why.

    Args:
        metric: the metric.
        sets: sets that it takes, by label.
        classes: rows of each class of each set; empty: no class.
        index: how neighbors are found.
        run: device and portions.
    """
    rows = {label: classes[label] for label in sets if label in classes}
    found: list[Score] = []
    without: dict[str, str] = {}
    for name in sorted(set().union(*rows.values()) - {""}):
        lacking = [label for label, own in rows.items() if name not in own]
        if lacking:
            without[name] = f"no sample of {listed(lacking)}"
            continue
        parts = {label: Subset(one, rows[label][name]) for label, one in sets.items() if isinstance(one, Embeddings)}
        try:
            made = metric.compute(MetricInputs(metric.name, **parts, run=run, index=index))
        except (DataError, IncompatibleError) as error:
            without[name] = str(error)
            continue
        found += [replace(score, of=name) for score in made]
    notes = [
        f"{counted(len(own['']), 'sample')} of {label} {'has' if len(own['']) == 1 else 'have'} no class, and "
        "count in whole sets alone"
        for label, own in rows.items()
        if "" in own
    ]
    if without:
        named = [f"{name} ({why})" for name, why in list(without.items())[:MAX_NAMED]]
        more = len(without) - len(named)
        notes.append("not computed for " + listed([*named, *([f"{more} other classes"] if more else [])]))
    return found, tuple(notes)
