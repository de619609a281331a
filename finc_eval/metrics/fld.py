"""FLD as a metric: the divergence of `finc_eval.baselines.fld`, and its gap."""

from __future__ import annotations

from finc_eval.baselines.fld import fld
from finc_eval.metrics.inputs import Metric, MetricInputs
from finc_eval.metrics.score import Score

Z95 = 1.959964
"""Normal quantile of a 95 % interval."""


def _fld(inputs: MetricInputs) -> list[Score]:
    found = fld(*inputs.embeddings(), inputs.test_embeddings())
    half = Z95 * found.standard_error
    notes = ("0 is as good as samples of the training set", *((found.warning,) if found.warning else ()))
    return [
        Score(
            "fld",
            found.fld,
            interval=(found.fld - half, found.fld + half),
            higher_is_better=False,
            signature=found.signature,
            notes=notes,
        ),
        Score(
            "fld_gap", found.gap, signature=found.signature, notes=("far below 0 if training samples are memorized",)
        ),
    ]


METRICS = (
    Metric(
        "fld",
        "feature likelihood divergence: --ref is the training set, --test holds unseen samples",
        _fld,
        sets=("gen", "ref", "test"),
    ),
)
