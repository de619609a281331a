"""`leaderboard`: models against one reference, ranked as far as their differences are certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import settings_from, show_options
from finc_eval.core.run import Run
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.needs import Check
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.opening import label_sets, training_runs
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.embeddings.repeats import LOOK
from finc_eval.extractors.settings import AnyExtractor, Spaced, extractions_by_space
from finc_eval.extractors.weights import MissingWeightsError
from finc_eval.judges.judged_samples import check_names
from finc_eval.leaderboards.assemble import assemble, check_order
from finc_eval.leaderboards.entry import Entry
from finc_eval.leaderboards.judged import Judgments
from finc_eval.leaderboards.reference import (
    COUNT_MODELS,
    COUNT_REFERENCE,
    DEFAULT_METRICS,
    FIND_FAULTS,
    MEASURE,
    BoardReference,
)
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.settings import LeaderboardOptions, LeaderboardSettings
from finc_eval.leaderboards.standings import run_label
from finc_eval.measures.registry import get_metric, say_substitute
from finc_eval.naming.measured import left_out_columns
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.blocks import Pairing, needs_pairs, pair
from finc_eval.partitions.counts import countable_sets
from finc_eval.partitions.kind_tree import DIVIDE
from finc_eval.partitions.settings import REFERENCE
from finc_eval.partitions.values import needs_values
from finc_eval.sketches.opening import SetInput
from finc_eval.wing import has_wing, part_of_wing

_Opened = tuple[Sets[SetInput], tuple[str, ...], Pairing | None]
"""Opened sets by label, warnings, and the pairing of their samples; None without one."""


@show_options(LeaderboardSettings)
@arithmetic()
def leaderboard(
    models: Mapping[str, object] | Sequence[object],
    ref: object,
    settings: LeaderboardSettings | None = None,
    *,
    extractor: AnyExtractor | Spaced = None,
    run: Run | None = None,
    scores: object = None,
    votes: object = None,
    labels: object = None,
    **options: Unpack[LeaderboardOptions],
) -> Leaderboard:
    """Rank models against one reference, and say which of them cannot be distinguished.

    Each number is ranked by itself: metrics, and three shares from kinds that all samples are divided into, blind to
    which set a sample is from (docs/leaderboard_ranks.md). The rank sets of a number hold together with probability
    0.95. All models share the reference, so that their differences are more exact than their intervals suggest. A model
    without a number is not ranked by it, and nothing is averaged.

    Args:
        models: at least one set, by label: arrays or tensors of shape (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, paths of files, or paths of samples, which are embedded first. Sets of a list are called by the
            names of their files and folders if these differ, or else "model 1", "model 2", and so on. A sketch is
            counted by the sample of embeddings that it holds. A list of sets instead of a set is a model that was
            trained several times: a single row, with sampling and training noise apart.
        ref: reference set, in the same forms; or a private sketch or its path, for ranks by the distance from private
            records (`fe.privacy.PrivateBoard`, docs/private_reference.md).
        settings: settings.
        extractor: how to embed sets of samples; default: by the extractor behind the others. A list of several gives
            the board by the first of them, with columns for each of the others; see `Leaderboard.beside`.
        run: device, portions and progress of the computation.
        scores: scores of samples by judges (docs/judges_and_votes.md): tables by model, tables with a column "model",
            or names of columns that all sets have. A table is a path, a frame, columns by name, rows, or one number a
            sample; a list of paths is several tables of one model. Each numeric column that is a judgment is a number
            of the board.
        votes: votes between the models, a table with the columns prompt, left, right, winner and voter, or paths of
            several.
        labels: labels of people for a random part of the scored samples, in the forms of `scores`. Each column of
            numbers, with each judge, is a number of the board: "rating by clip" is what people would say of all.
        options: fields of `LeaderboardSettings`, which override `settings`.

    Raises:
        UsageError: there is not a model, a model is called "ref", or a setting is out of range.
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
    chosen, run = settings_from(LeaderboardSettings, settings, options), Run.of(run)
    if (sketch := private_reference(ref)) is not None:
        if scores is not None or votes is not None or labels is not None:
            raise UsageError("a board on a private sketch takes no scores, votes or labels: make a board of them apart")
        board: Leaderboard = part_of_wing("reference.board:rank_privately")(models, sketch, chosen, extractor, run)
        return board
    judged = read_judged(models, scores, votes, chosen, labels)
    if not isinstance(extractor, list | tuple):
        return measure_models(models, ref, chosen, extractor, run, judged=judged).board
    spaces = extractions_by_space(extractor)
    boards = {
        name: measure_models(models, ref, chosen, how, run.prefixed(name), judged=judged).board
        for name, how in spaces.items()
    }
    first = next(iter(boards))
    return boards.pop(first).beside(boards, first)


def private_reference(ref: object) -> object | None:
    """Open a reference that is a private sketch, or the path of one; None for any other."""
    return part_of_wing("reference.sketch:as_private_sketch")(ref) if has_wing() else None


@dataclass(frozen=True)
class MeasuredModels:
    """Models and the reference that they were measured by."""

    reference: BoardReference
    entries: Sequence[Entry]
    asked: LeaderboardSettings
    warnings: tuple[str, ...]
    sets: Mapping[str, Embeddings]  # embeddings of all sets by label
    is_paired: bool  # whether samples were compared within blocks, such as prompts
    provenance: Provenance
    judged: Judgments | None = None  # scores and votes, if there are any

    @property
    def board(self) -> Leaderboard:
        """The models, ranked."""
        found = assemble(self.reference, self.entries, self.asked, self.warnings, self.sets, self.judged)
        return replace(found, provenance=self.provenance)


def measure_models(
    models: Mapping[str, object] | Sequence[object],
    ref: object,
    asked: LeaderboardSettings,
    extractor: AnyExtractor,
    run: Run,
    *,
    paired: bool = True,
    judged: Judgments | None = None,
) -> MeasuredModels:
    """Open sets, divide them into kinds, and measure all models; `paired`: within blocks if sets share them."""
    sources = runs_by_model(label_sets(models, "model", taken=REFERENCE))
    if not sources:
        raise UsageError("at least one model is needed, got none")
    keys = () if judged is None else judged.keys
    check_order(asked.rank_by, (*(asked.metrics or DEFAULT_METRICS), *keys))
    run = run.planned(LOOK, DIVIDE, COUNT_REFERENCE, MEASURE, COUNT_MODELS, FIND_FAULTS)
    checks = [] if judged is None else [judged.needs]
    asked, (opened, warnings, pairing) = _open_with_weights(sources, ref, asked, run, extractor, checks)
    pairing = pairing if paired else None
    whole = {name: runs[0].at_hand for name, runs in by_model(sources, opened).items()}
    if pairing is not None:
        opened = opened.with_rows(pairing.sets)
    reference = BoardReference.of(opened, asked, run)
    check_order(asked.rank_by, (*reference.settings.metrics, *keys))  # before the work
    judged = None if judged is None else judged.joined(whole, reference, run)
    sets = opened.at_hand
    entries = reference.entries(by_model(sources, opened), sets[REFERENCE], (), run, pairing)
    made = Provenance.here(run.device)
    return MeasuredModels(reference, entries, asked, warnings, sets, pairing is not None, made, judged)


def read_judged(
    models: Mapping[str, object] | Sequence[object],
    scores: object,
    votes: object,
    asked: LeaderboardSettings,
    labels: object = None,
) -> Judgments | None:
    """Read scores and votes before the work; None if there are neither, and settings of them are refused."""
    if asked.plan and scores is None and votes is None:
        raise UsageError(
            "plan is for scores and votes, and none are given: give some (--scores, --votes), or leave it out"
        )
    sources = label_sets(models, "model", taken=REFERENCE)
    found = Judgments.read(scores, votes, [*sources], asked.lower, asked.covariates, asked.judges, labels)
    if found is not None:
        check_names(found.scores, sources)
        check_names(found.labels, sources)
    return found


def _open_with_weights(
    models: Mapping[str, Sequence[object]],
    ref: object,
    asked: LeaderboardSettings,
    run: Run,
    extractor: AnyExtractor,
    checks: Sequence[Check],
) -> tuple[LeaderboardSettings, _Opened]:
    """Open sets for the metrics that were asked for, and leave out those whose extractor has no weights here."""
    try:
        return asked, open_models(models, ref, asked, run, extractor, (), checks)
    except MissingWeightsError as error:
        rest = tuple(name for name in asked.metrics if get_metric(name).extractor is None)
        gone = [name for name in asked.metrics if name not in rest]
        if not (gone and rest) or asked.rank_by in gone:
            raise
        some = replace(asked, metrics=rest)
        opened, warnings, pairing = open_models(models, ref, some, run, extractor, (), checks)
        note = f"{join_words(gone)} {'is' if len(gone) == 1 else 'are'} left out: {error}"
        return some, (opened, (note, *warnings), pairing)


def runs_by_model(models: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the sets of each model; a list holds training runs of one model."""
    if REFERENCE in models:
        raise UsageError(f'a model cannot be called "{REFERENCE}": pass the reference as ref, or rename the model')
    found = {}
    for name, given in models.items():
        found[name] = training_runs(given)
        if not found[name]:
            raise UsageError(f"{name} is an empty list: pass a set, or one set per training run")
    return found


def labels_of_runs(models: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Return the set of each training run of each model, by label."""
    labels = {run_label(name, number): source for name, runs in models.items() for number, source in enumerate(runs)}
    if len(labels) < sum(map(len, models.values())):
        raise UsageError("a model is called as the second run of another would be: rename it")
    return labels


def refuse_equal_runs(models: Mapping[str, Sequence[str]]) -> None:
    """Raise UsageError if two training runs of a model have one digest; `models` has the digests of the runs."""
    for name, digests in models.items():
        for number, digest in enumerate(digests):
            if digest in digests[:number]:
                raise UsageError(
                    f"training runs {digests.index(digest) + 1} and {number + 1} of {name} are the same samples, which "
                    "say nothing about training: pass the samples of each run, or the set once"
                )


def open_models(
    models: Mapping[str, Sequence[object]],
    ref: object,
    settings: LeaderboardSettings,
    run: Run,
    extractor: AnyExtractor,
    spaces: Iterable[str] = (),
    checks: Sequence[Check] = (),
) -> _Opened:
    """Open the sets of all training runs, by label, and pair them; see `countable_sets` and `pair`."""
    labels = labels_of_runs(models)
    defined = [metric for name in settings.metrics if (metric := get_metric(name)).extractor is not None]
    if len(preferred := dict.fromkeys(metric.extractor for metric in defined)) > 1:
        names = join_words([f"{metric.name} by {metric.extractor}" for metric in defined])
        raise UsageError(
            f"a board has one extractor, and its metrics ask for several, {names}: make a board for each, and put them "
            "side by side (leaderboard render --beside)"
        )
    (by,) = preferred or (None,)
    try:
        opened, warnings = countable_sets(
            {**labels, REFERENCE: ref},
            settings.groups,
            run,
            extractor,
            by,
            spaces,
            checks=[needs_values(settings.by), needs_pairs(settings.pairs), *checks],
        )
    except MissingWeightsError as error:
        raise MissingWeightsError(f"{error}{say_substitute(defined)}") from None
    if by not in (None, extractor_of(opened[REFERENCE].space)):
        raise IncompatibleError(
            f"{defined[0].name} is defined on {by}, and ref is not embedded by it: pass samples, and leave the "
            f"extractor out{say_substitute(defined)}"
        )
    pairing, sentences = pair(opened.at_hand, settings.pairs, settings.groups)
    used = (settings.by, settings.groups, settings.pairs)
    warnings += (*sentences, *left_out_columns(opened.at_hand, used))
    runs_of = by_model(models, opened).items()
    refuse_equal_runs({name: [samples.at_hand.digest for samples in runs] for name, runs in runs_of})
    return opened, warnings, pairing


def by_model(
    models: Mapping[str, Sequence[object]], opened: Mapping[str, OpenedSet[SetInput]]
) -> dict[str, list[OpenedSet[SetInput]]]:
    """Return opened sets by model."""
    return {name: [opened[run_label(name, number)] for number in range(len(runs))] for name, runs in models.items()}
