"""FLD as a metric: the divergence of `finc_eval.baselines.fld`, and its gap."""

from __future__ import annotations

from finc_eval.baselines.fld import fld
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import normal_interval


def _fld(inputs: MetricInputs) -> list[Score]:
    found = fld(*inputs.embeddings(), inputs.test_embeddings(), run=inputs.run)
    interval = normal_interval(found.fld, found.standard_error)
    notes = ("0 is as good as samples of the training set", *((found.warning,) if found.warning else ()))
    gap_notes = ("far below 0 if training samples are memorized",)
    return [
        Score("fld", found.fld, found.signature, interval=interval, higher_is_better=False, notes=notes),
        Score("fld_gap", found.gap, found.signature, notes=gap_notes),
    ]


METRICS = (
    Metric(
        "fld",
        "feature likelihood divergence: --ref is the training set, --test holds unseen samples",
        _fld,
        sets=("gen", "ref", "test"),
    ),
)
