"""Rarity as a metric: mean of the scores of `finc_eval.baselines.rarity`, and the share of samples without a score."""

from __future__ import annotations

from finc_eval.baselines.rarity import rarity
from finc_eval.core.errors import DataError
from finc_eval.embeddings.search.neighbors import recall_notes
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.precision_recall import ball_notes
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import mean_interval, wilson


def _rarity(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    found = rarity(gen, ref, run=inputs.run, index=inputs.index)
    scores, outside = found.scores[found.inside], found.outside / gen.n
    if not len(scores):
        raise DataError(
            f"all {gen.n} samples of {gen.name} lie outside every ball of the reference, where rarity has no score: "
            "take prdc, or finc_eval.baselines.rarity for their distances"
        )
    note = f"of the {len(scores)} samples inside a ball: rarity_outside is the share of those that have no score"
    notes, interval = (note, *ball_notes(ref), *recall_notes(found.recall)), mean_interval(scores)
    return [
        Score("rarity", float(scores.mean()), found.signature, interval=interval, notes=notes),
        Score("rarity_outside", outside, found.signature, interval=wilson(outside, gen.n)),
    ]


METRICS = (Metric("rarity", "mean rarity of the samples that have a score, and share of those without one", _rarity),)
