"""The scores of KEN, FLD and Rarity as metrics: their mathematics is in `finc_eval.baselines`."""

from __future__ import annotations

from math import inf

import numpy as np

from finc_eval.baselines.fld import fld
from finc_eval.baselines.ken import novelty
from finc_eval.baselines.rarity import rarity
from finc_eval.core.errors import DataError
from finc_eval.embeddings.search.neighbors import recall_notes
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.estimates.shares import share_interval
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.precision_recall import ball_notes
from finc_eval.measures.score import Score


def _rarity(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    scored = rarity(gen, ref, run=inputs.run, index=inputs.index)
    scores, outside = scored.scores[scored.inside], scored.outside / gen.n
    if not len(scores):
        raise DataError(
            f"all {gen.n} samples of {gen.name} lie outside every ball of the reference, and have no score: take prdc, "
            "or finc_eval.baselines.rarity for their distances"
        )
    note = f"of the {len(scores)} samples inside a ball: rarity_outside is the share of samples without a score"
    notes = (note, *ball_notes(ref), *recall_notes(scored.recall))
    units = units_of(gen, np.flatnonzero(scored.inside))
    interval = Estimate.of_mean(scores, units).within(0.0, inf) if len(scores) > 1 else None
    of_outside = share_interval(~scored.inside, units_of(gen))
    return [
        Score("rarity", float(scores.mean()), scored.signature, interval=interval, notes=notes),
        Score("rarity_outside", outside, scored.signature, interval=of_outside),
    ]


def _ken(inputs: MetricInputs) -> list[Score]:
    ken = novelty(*inputs.embeddings())
    notes = (ken.warning,) if ken.warning else ()
    return [Score("ken", ken.score, ken.signature, notes=notes)]


def _fld(inputs: MetricInputs) -> list[Score]:
    scored = fld(*inputs.embeddings("gen", "ref", "test"), run=inputs.run)
    notes = ("0 is as good as samples of the training set", *((scored.warning,) if scored.warning else ()))
    interval = scored.estimate.interval
    gap_notes = ("far below 0 if training samples are memorized",)
    return [
        Score("fld", scored.fld, scored.signature, interval=interval, higher_is_better=False, notes=notes),
        Score("fld_gap", scored.gap, scored.signature, notes=gap_notes),
    ]


METRICS = (
    Metric("rarity", "mean rarity of the samples that have a score, and share of samples without a score", _rarity),
    Metric("ken", "kernel-based entropic novelty", _ken),
    Metric(
        "fld",
        "feature likelihood divergence: --ref is the training set, --test holds unseen samples",
        _fld,
        sets=("gen", "ref", "test"),
        depends_on_groups=lambda key: key == "fld",
    ),
)
