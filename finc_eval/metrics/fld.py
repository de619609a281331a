"""FLD as a metric: the divergence of `finc_eval.baselines.fld`, and its gap."""

from __future__ import annotations

from finc_eval.baselines.fld import fld
from finc_eval.metrics.inputs import Metric, MetricInputs
from finc_eval.metrics.score import Score
from finc_eval.numerics.inference import normal_interval


def _fld(inputs: MetricInputs) -> list[Score]:
    found = fld(*inputs.embeddings(), inputs.test_embeddings())
    notes = ("0 is as good as samples of the training set", *((found.warning,) if found.warning else ()))
    return [
        Score(
            "fld",
            found.fld,
            interval=normal_interval(found.fld, found.standard_error),
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
