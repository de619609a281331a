"""`leaderboard`: models against one reference, ranked as far as their differences are certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import settings_from
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import labeled
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.leaderboards.columns import (
    DEFAULT_METRICS,
    SHARES,
    Column,
    default_metrics,
    metric_column,
    share_columns,
)
from finc_eval.leaderboards.estimates import joint_covariance
from finc_eval.leaderboards.ranks import rank
from finc_eval.leaderboards.result import Criterion, Leaderboard, Row, Standing
from finc_eval.leaderboards.settings import LeaderboardOptions, LeaderboardSettings
from finc_eval.metrics.registry import get_metric
from finc_eval.numerics.inference import ALPHA
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.counts import Counted, count
from finc_eval.partitions.modes import Kind, reported_kinds
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.sets import open_sets
from finc_eval.partitions.tests import test_kinds

MIN_SAMPLES_PER_KIND = 10
"""Samples of the smallest set per kind, on average."""

SHOWN_KINDS = 30
"""Kinds that a board keeps: the clearest ones."""

SAMPLING_ONLY = "sampling noise only: a model trained again with another seed may rank differently"
"""Noise that ranks cover where every model was trained once."""


@arithmetic("float32")
def leaderboard(
    models: Mapping[str, object] | Sequence[object],
    ref: object,
    settings: LeaderboardSettings | None = None,
    *,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[LeaderboardOptions],
) -> Leaderboard:
    """Rank models against one reference, and say which of them cannot be told apart.

    Each number is ranked by itself: metrics, and three shares from kinds that all samples are divided into, blind to
    which set a sample is from (docs/leaderboard.md). The rank sets of a number hold together with probability 0.95.
    All models share the reference, so that their differences are more exact than their intervals suggest. A model
    without a number is not ranked by it, and nothing is averaged.

    Args:
        models: two sets or more, by label: arrays or tensors of shape (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, or paths of files. Those of a list are called "model 1", "model 2", and so on. A sketch is
            counted by the sample of embeddings that it holds.
        ref: reference set, in the same forms.
        settings: settings.
        extractor: how to embed sets of samples; default: by the extractor behind the others.
        run: device, portions and progress of the computation.
        options: fields of `LeaderboardSettings`, in place of those of `settings`.

    Raises:
        UsageError: there are fewer than two models, a model is called "ref", or a setting is out of range.
        DataError: a set has too few samples, or cannot be read.
        IncompatibleError: the sets come from unlike extractors, or have unlike dimensions.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> board = fe.leaderboard({"a": gen[:250], "b": gen[250:]}, ref)  # halves of one model
        >>> board.separable("a", "b"), [row.rank_set for row in board.rows]
        (False, [(1, 2), (1, 2)])
    """
    run, chosen = run or Run(), settings_from(LeaderboardSettings, settings, options)
    sources = labeled(models, "model", taken=REFERENCE)
    if REFERENCE in sources:
        raise UsageError(f'a model cannot be called "{REFERENCE}": pass the reference as ref, or rename the model')
    if len(sources) < 2:
        raise UsageError(f"at least two models are needed to rank, got {len(sources)}")
    _check_order(chosen.rank_by, chosen.metrics or DEFAULT_METRICS)
    opened, warnings = open_sets({**sources, REFERENCE: ref}, chosen.groups, run, extractor)
    sets = {label: one.embeddings for label, one in opened.items()}
    candidates = {label: one for label, one in sets.items() if label != REFERENCE}
    metrics = chosen.metrics or default_metrics(candidates, sets[REFERENCE])
    _check_order(chosen.rank_by, metrics)
    partition, counted = _counted(sets, chosen, run)
    shared = (("ref", sets[REFERENCE].digest[:12]), ("partition", partition.digest[:12]))
    signature = Signature.of(
        Leaderboard.type_name, [one.n for one in sets.values()], sets[REFERENCE].space, *shared, *chosen.signature()
    )
    effective = {label: one.counts.effective(0) for label, one in counted.items()}
    ref_counts = effective.pop(REFERENCE)
    columns = [
        *share_columns(effective, ref_counts, Signature("", (*shared, *chosen.signature()))),
        *(metric_column(get_metric(name), candidates, sets[REFERENCE], run) for name in metrics),
    ]
    ranked = [_ranked(one, list(candidates)) for one in columns]
    return Leaderboard(
        rows=_rows(list(candidates), ranked, chosen.rank_by),
        rank_by=chosen.rank_by,
        criteria=tuple(criterion for criterion, _ in ranked),
        covers=SAMPLING_ONLY,
        modes=_kinds(counted, sets, partition),
        sets={label: one.info() for label, one in opened.items()},
        alpha=ALPHA,
        settings=chosen,
        signature=signature,
        warnings=warnings,
        provenance=Provenance.here(run.device),
    )


def _check_order(rank_by: str, metrics: Sequence[str]) -> None:
    """Raise UsageError if rows are to be ordered by a number that is not asked for."""
    known = (*SHARES, *metrics)
    if rank_by not in known:
        hint = did_you_mean(rank_by, known)
        raise UsageError(f"rank_by must be one of {', '.join(known)}, got {rank_by!r}{hint}: add it to metrics")


def _counted(
    sets: Mapping[str, Embeddings], settings: LeaderboardSettings, run: Run
) -> tuple[Partition, dict[str, Counted]]:
    """Divide all samples into kinds, as many as the smallest set has samples for, and count each set."""
    run.progress("partition", 0, 1)
    kinds = max(2, min(settings.level, min(one.n for one in sets.values()) // MIN_SAMPLES_PER_KIND))
    in_order = [sets[label] for label in sorted(sets)]  # the order of the caller must not change a number
    partition = Partition.fit(pooled_sample(in_order), (kinds,), settings.seed, run)
    run.progress("partition", 1, 1)
    return partition, {label: count(one, partition, run=run.named(f"count {label}")) for label, one in sets.items()}


def _kinds(counted: Mapping[str, Counted], sets: Mapping[str, Embeddings], partition: Partition) -> tuple[Kind, ...]:
    """Return the kinds that a set has more of than all others together."""
    tests = test_kinds({label: one.counts for label, one in counted.items()})
    found = reported_kinds(tests, counted, sets, partition.levels, 0)
    return tuple(kind for kind in found if kind.p_value <= ALPHA)[:SHOWN_KINDS]


def _ranked(column: Column, names: Sequence[str]) -> tuple[Criterion, dict[str, Standing]]:
    """Rank the models that have an estimate, and return the standing of each model."""
    ranked = sorted(column.estimates)
    estimates = [column.estimates[name] for name in ranked]
    ranking = rank(
        np.array([one.value for one in estimates]),
        joint_covariance(estimates).reshape(len(ranked), len(ranked)),
        higher_is_better=column.higher_is_better,
        best=None if column.higher_is_better or isinf(column.bounds[0]) else column.bounds[0],
    )
    order = list(ranking.order)
    groups = tuple(tuple(ranked[place] for place in group) for group in ranking.groups)
    p_values: NDArray[np.float64] = ranking.p_values[np.ix_(order, order)]
    criterion = Criterion(
        key=column.key,
        title=column.title,
        is_share=column.key in SHARES,
        higher_is_better=column.higher_is_better,
        names=tuple(ranked[place] for place in order),
        groups=groups,
        p_values=tuple(tuple(row) for row in p_values.tolist()),
        separable_neighbors=ranking.separable_neighbors,
        separable_pairs=ranking.separable_pairs,
        smallest_separable_gap=ranking.smallest_separable_gap,
        signature=column.signature,
    )
    standings = {name: Standing(column.values.get(name), None, None, None, column.reasons.get(name)) for name in names}
    for place, name in enumerate(ranked):
        found = estimates[place]
        value, low, high = np.clip([found.value, *found.interval], *column.bounds).tolist()
        group = next(number for number, members in enumerate(groups, 1) if name in members)
        standings[name] = Standing(value, (low, high), ranking.rank_sets[place], group)
    return criterion, standings


def _rows(
    names: Sequence[str],
    ranked: Sequence[tuple[Criterion, dict[str, Standing]]],
    rank_by: str,
) -> tuple[Row, ...]:
    """Return the rows, the best estimate first, and those that are not ranked last."""
    scores = {name: {criterion.key: standings[name] for criterion, standings in ranked} for name in names}
    main = next(criterion for criterion, _ in ranked if criterion.key == rank_by)
    order = [*main.names, *(name for name in names if name not in main.names)]
    return tuple(Row(name, scores[name][rank_by].rank_set, scores[name][rank_by].group, scores[name]) for name in order)
