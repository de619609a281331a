"""`assemble`: the board of measured models, from what is kept of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isinf

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.findings import clear_among
from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.signature import Signature
from finc_eval.core.words import join_words, plural, quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import GEN, REF, TRAINING
from finc_eval.findings.finding import Finding
from finc_eval.findings.visible import visible_among
from finc_eval.leaderboards.columns import SHARES, Column, metric_column, share_columns
from finc_eval.leaderboards.entry import Entry
from finc_eval.leaderboards.judged import JudgmentResults, Judgments
from finc_eval.leaderboards.judged_board import KindNames, with_judged
from finc_eval.leaderboards.ranks import joint_covariance, rank
from finc_eval.leaderboards.reference import BoardReference
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.settings import LeaderboardSettings
from finc_eval.leaderboards.standings import Criterion, Row, Standing
from finc_eval.measures.registry import METRICS
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import Choice, names_of_nodes
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.placed import KindPlaces
from finc_eval.partitions.settings import REFERENCE
from finc_eval.partitions.tests import Tally, test_kinds
from finc_eval.partitions.values import SharesBy, join_spellings, shares_of

SAMPLING_ONLY = "sampling noise only: a model trained again with another seed may rank differently"
"""Noise that ranks cover if every model was trained once."""


def assemble(
    reference: BoardReference,
    entries: Sequence[Entry],
    asked: LeaderboardSettings,
    warnings: Sequence[str],
    embeddings: Mapping[str, Embeddings] | None = None,
    judged: Judgments | None = None,
) -> Leaderboard:
    """Rank measured models, and by what others measured of them, if there is any."""
    found = JudgmentResults() if judged is None else judged.results(asked.seed)
    check_order(asked.rank_by, (*reference.settings.metrics, *(column.key for column in found.columns)))
    columns = (*_columns(reference, entries, asked), *found.columns)
    ranked = [rank_column(column, {entry.name: entry.floor(column.key) for entry in entries}) for column in columns]
    infos = {label: run.info for entry in entries for label, run in zip(entry.labels(), entry.runs, strict=True)} | {
        REFERENCE: reference.info
    }
    sizes = [run.counted for entry in entries for run in entry.runs]
    kinds, headings, places = _kinds(reference, entries, embeddings)
    covers, few = noise_of({entry.name: len(entry.runs) for entry in entries})
    by, joined = _by_values(reference, entries)
    board = Leaderboard(
        rows=_rows(entries, ranked, asked.rank_by),
        rank_by=asked.rank_by,
        criteria=tuple(criterion for criterion, _ in ranked),
        covers=covers,
        kinds=kinds,
        headings=headings,
        by=by,
        places=places,
        sets=infos,
        alpha=ALPHA,
        settings=asked,
        signature=Signature.of(
            Leaderboard.type_name, [*sizes, reference.tally.n], reference.space, *reference.shared, *asked.signature()
        ),
        warnings=_warnings(reference, entries, [*few, *warnings], [*joined, *found.notes]),
        provenance=reference.provenance,
    )
    return board if judged is None else with_judged(board, judged, found, _kind_names(reference, entries, embeddings))


def _warnings(
    reference: BoardReference, entries: Sequence[Entry], first: Sequence[str], last: Sequence[str]
) -> tuple[str, ...]:
    """Return all that is to be known before trusting the numbers, each sentence once."""
    of_entries = [text for entry in entries for text in entry.warnings]
    found = [
        *same_samples((entry.name, run.info.digest) for entry in entries for run in entry.runs),
        *first,
        *of_entries,
        *_unequal(reference, entries),
        *_unlike_columns(entries),
        *last,
    ]
    return tuple(dict.fromkeys(found))


def _unlike_columns(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a sentence on each registered column that has another function for some models than for the first."""
    known: dict[str, dict[str, str]] = {}
    for entry in entries:
        for column, digest in entry.runs[0].columns.items():
            known.setdefault(column, {})[entry.name] = digest
    for column, digests in known.items():
        first, *others = digests
        unlike = [name for name in others if digests[name] != digests[first]]
        if unlike:
            yield (
                f"the column {quote(column)} was measured of {join_words(unlike)} by another function than of {first}: "
                "their findings do not compare, so add the models again"
            )


def _columns(reference: BoardReference, entries: Sequence[Entry], asked: LeaderboardSettings) -> list[Column]:
    """Return the numbers of all models: what is unmatched, what shares of kinds say, and metrics."""
    leaves = reference.leaves([reference.tally, *(run.tally for entry in entries for run in entry.runs)])
    tallies = {entry.name: [run.tally.at(leaves) for run in entry.runs] for entry in entries}
    space = ("fx", reference.space)
    shared = (space, *reference.shared, *asked.signature())
    unmatched = {entry.name: [run.unmatched for run in entry.runs] for entry in entries}
    own = {entry.name: [run.own for run in entry.runs] for entry in entries}
    return [
        metric_column("unmatched", unmatched, Signature("unmatched", shared), (0.0, 1.0), own),
        *share_columns(tallies, reference.tally.at(leaves), shared, own),
        *(
            metric_column(
                metric,
                {entry.name: [run.measures.get(metric) for run in entry.runs] for entry in entries},
                Signature(metric, (reference.shared[0], space)),
            )
            for metric in reference.settings.metrics
        ),
    ]


def check_order(rank_by: str, metrics: Sequence[str], how: str = "add it to metrics") -> None:
    """Raise UsageError if rows are to be ordered by a number that the board does not have."""
    known = (*SHARES, *metrics)
    if rank_by in known:
        return
    choices = f"rank by {join_words(known, 'or')}"
    if rank_by in METRICS:
        raise UsageError(f"the board does not have {rank_by}: {choices}; or {how}")
    raise UsageError(f"no number is called {rank_by!r}{did_you_mean(rank_by, known)}: {choices}")


def _unequal(reference: BoardReference, entries: Sequence[Entry]) -> list[str]:
    """Warn of metrics that grow with the number of samples, of sets that have unlike numbers."""
    sizes = [run.counted for entry in entries for run in entry.runs]
    named = [name for name in reference.settings.metrics if METRICS[name].at_equal_n]
    grow = f"the values of {join_words(named)} grow with their number"
    found = []
    # Numbers that grow with the sets grow by less than that of the samples.
    if named and max(sizes) > 1.02 * min(sizes):
        found.append(f"models have {min(sizes):,} to {max(sizes):,} samples, and {grow}: compare these at equal n only")
    if named and max(sizes) > 1.02 * reference.tally.n:
        found.append(
            f"the reference has {reference.tally.n:,} samples and models up to {max(sizes):,}, and {grow}: real data "
            "of the same size would have more"
        )
    return found


def noise_of(trained: Mapping[str, int]) -> tuple[str, list[str]]:
    """Return the noise that ranks and intervals cover, and a warning if few training runs show it.

    `trained` has the number of training runs of each model.
    """
    repeated = {name: count for name, count in trained.items() if count > 1}
    if not repeated:
        return SAMPLING_ONLY, []
    runs, names = sum(repeated.values()), join_words([*repeated])
    alike = ", taken to be alike for all models" if len(repeated) < len(trained) else ""
    covers = f"sampling noise, and training noise as {plural(runs, 'run')} of {names} show it{alike}"
    if runs - len(repeated) >= 4:  # degrees of freedom, as of three runs of each of two models
        return covers, []
    return covers, [
        f"the {runs} training runs of {names} say little about the noise of training, so that all intervals and ranks "
        "are wide: three runs of each of two models are a good start"
    ]


def _kinds(
    reference: BoardReference, entries: Sequence[Entry], embeddings: Mapping[str, Embeddings] | None
) -> tuple[tuple[Kind, ...], tuple[Kind, ...], KindPlaces]:
    """Return the kinds of all samples, the headings, and a map; training runs of a model are one set."""
    tallies = {entry.name: Tally.pooled([run.tally for run in entry.runs]) for entry in entries}
    choice = Choice.of(reference.tree, test_kinds(tallies | {REFERENCE: reference.tally}))
    examples = {entry.name: entry.runs[0].examples for entry in entries} | {REFERENCE: reference.examples}
    names = reference.names
    if embeddings is not None:
        names = names_of_nodes(
            reference.tree, (*choice.differing, *choice.headings), reference.counted(entries), embeddings
        )
    kinds, headings = choice.described(names, lambda label, node: examples[label][node], reference.id_of)
    place = np.asarray(reference.tree.members[list(choice.listed)].argmax(0))
    return kinds, headings, KindPlaces.of(reference.kinds, place, [kind.id for kind in kinds])


def _kind_names(
    reference: BoardReference, entries: Sequence[Entry], embeddings: Mapping[str, Embeddings] | None
) -> KindNames:
    """Return a function from ids of kinds to their names, or the ids of those without one."""

    def names(ids: Sequence[str]) -> dict[str, str]:
        nodes = {reference.id_of(node): node for node in range(reference.tree.nodes)}
        wanted = {id: nodes[id] for id in dict.fromkeys(ids)}
        if not wanted or embeddings is None:
            return {id: id for id in wanted}
        found = names_of_nodes(reference.tree, tuple(wanted.values()), reference.counted(entries), embeddings)
        return {id: (node in found and found[node].text) or id for id, node in wanted.items()}

    return names


def _by_values(reference: BoardReference, entries: Sequence[Entry]) -> tuple[SharesBy | None, tuple[str, ...]]:
    """Return the shares of the values of a column, None if the board has none, and sentences on values."""
    if reference.by is None or reference.settings.by is None:
        return None, ()
    models = {entry.name: [run.by for run in entry.runs if run.by is not None] for entry in entries}
    counts, joined = join_spellings(models | {REFERENCE: [reference.by]}, reference.settings.by)
    return shares_of(counts, reference.settings.by), joined


def rank_column(column: Column, floors: Mapping[str, float | None]) -> tuple[Criterion, dict[str, Standing]]:
    """Rank the models that have an estimate, if several have one, and return the standing of each model.

    `floors` has what samples of the reference get instead of each model, by its name; None if that is not known.
    """
    ranked = sorted((column := column.among(len(floors))).estimates)
    estimates = [column.estimates[name] for name in ranked]
    ranking = rank(
        np.array([estimate.value for estimate in estimates]),
        joint_covariance(estimates).reshape(len(ranked), len(ranked)),
        higher_is_better=column.higher_is_better,
        best=None if column.higher_is_better or isinf(column.bounds[0]) else column.bounds[0],
    ).ordered([column.shown[name].value for name in ranked], column.bounds, column.higher_is_better)
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
        training_error=column.training_error,
        signature=column.signature,
    )
    standings = _unranked(column, floors)
    for place, name in enumerate(ranked):
        found = column.shown[name]
        training = found.source(TRAINING)
        value, low, high = np.clip([found.value, *found.interval], *column.bounds).tolist()
        standings[name] = replace(
            standings[name],
            value=value,
            interval=(low, high),
            rank_set=ranking.rank_sets[place],
            group=next(number for number, members in enumerate(groups, 1) if name in members),
            sampling_error=found.variance_of(GEN, REF) ** 0.5,
            training_error=None if training is None else training.variance**0.5,
        )
    return criterion, standings


def _unranked(column: Column, floors: Mapping[str, float | None]) -> dict[str, Standing]:
    """Return what is known of each model by a number without its estimate, by name."""
    low, high = column.bounds
    found = {}
    for name, floor in floors.items():
        value, reason = column.values.get(name), column.reasons.get(name)
        floor = None if floor is None else min(max(floor, low), high)
        interval = None
        if (estimate := column.shown.get(name)) is not None:  # known, and not comparable
            value, *ends = np.clip([estimate.value, *estimate.interval], low, high).tolist()
            interval = (ends[0], ends[1])
        found[name] = Standing(value, interval, None, None, reason, floor=floor)
    return found


def _clear(entry: Entry, models: int) -> tuple[Finding, ...] | None:
    """Return the faults of a model that stay significant among all models; None where nobody looked for them."""
    found = entry.runs[0].findings
    return None if found is None else clear_among(found, models)


def _rows(
    entries: Sequence[Entry], ranked: Sequence[tuple[Criterion, dict[str, Standing]]], rank_by: str
) -> tuple[Row, ...]:
    """Return the rows, the best estimate first, and unranked models last."""
    runs = {entry.name: len(entry.runs) for entry in entries}
    scores = {name: {criterion.key: standings[name] for criterion, standings in ranked} for name in runs}
    main = next(criterion for criterion, _ in ranked if criterion.key == rank_by)
    order = [*main.names, *(name for name in runs if name not in main.names)]
    clear = {entry.name: _clear(entry, len(entries)) for entry in entries}
    visible = {entry.name: visible_among(entry.runs[0].visible, len(entries)) for entry in entries}
    return tuple(
        Row(
            name,
            scores[name][rank_by].rank_set,
            scores[name][rank_by].group,
            scores[name],
            runs[name],
            findings=tuple(replace(finding, text=finding.say("reference")) for finding in clear[name] or ()),
            is_searched=clear[name] is not None,
            visible=visible[name] if clear[name] == () else None,
        )
        for name in order
    )


def same_samples(digests: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence on the models with the same samples, from the name of each model and a digest of its set."""
    names: dict[str, list[str]] = {}
    for name, digest in digests:
        names.setdefault(digest, []).append(name)
    return [
        f"{join_words(found)} have the same samples: remove all but one, or pass the samples of each model"
        for found in names.values()
        if len(found) > 1
    ]
