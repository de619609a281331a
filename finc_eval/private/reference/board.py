"""`PrivateBoard`: models ranked by their distance from private records, of which only a private sketch is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from pydantic import computed_field

from finc_eval.core.errors import UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import label_sets, open_embeddings
from finc_eval.embeddings.set_info import SetInfo, notes_on, set_info
from finc_eval.estimates.error_source import GEN, REF, ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.extractors.settings import AnyExtractor, Spaced
from finc_eval.leaderboards.assemble import noise_of, rank_column, same_samples
from finc_eval.leaderboards.board import labels_of_runs, refuse_equal_runs, runs_by_model
from finc_eval.leaderboards.columns import Column
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.settings import LeaderboardSettings
from finc_eval.leaderboards.standings import Criterion, Row, Standing, run_label
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.settings import REFERENCE
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.reference.mean_distance import compared
from finc_eval.private.reference.result import DISTANCE, DISTANCE_KEY, PrivateScore
from finc_eval.private.reference.sketch import PrivateSketch

NOISE_COVERED = "{}; the noise of the private reference counts as sampling noise"

NOT_INDEPENDENT = (
    "the samples of {} are in groups, such as windows of a video, and are taken for independent: intervals and rank "
    "sets are too narrow"
)


@dataclass(frozen=True, eq=False)
class PrivateBoard(Leaderboard):
    """Models ranked by their distance from private records. It has no kinds, looks or faults.

    Attributes:
        distances: distance of each training run of each model, with its parts by degree and class.
        guarantees: guarantee to the records of each owner.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> sketch = fe.privacy.release_sketch(ref[250:], public=ref[:250], epsilon=8, ledger=None)
        >>> board = fe.leaderboard({"a": 1 - gen, "b": gen}, sketch)  # a draws white on black
        >>> board.rank_by, [(row.name, row.rank_set) for row in board.rows]
        ('private.distance', [('b', (1, 1)), ('a', (2, 2))])
    """

    type_name: ClassVar[str] = "private-leaderboard"
    page: ClassVar[str] = "finc_eval.private.reference.board_page"
    has_profiles: ClassVar[bool] = False

    distances: tuple[PrivateScore, ...] = field(kw_only=True)
    guarantees: tuple[Guarantee, ...] = field(kw_only=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def headline(self) -> str:
        """Sentences on the first model, its distance from the private records, and their guarantee."""
        return " ".join(self.says.values())

    @property
    def headline_parts(self) -> dict[str, str]:
        """Sentences of the headline, by key."""
        return dict(self.says)


def rank_privately(
    models: Mapping[str, object] | Sequence[object],
    sketch: PrivateSketch,
    asked: LeaderboardSettings,
    extractor: AnyExtractor | Spaced,
    run: Run,
) -> PrivateBoard:
    """Rank models against a private sketch; see `leaderboard`.

    Raises:
        UsageError: there is not a model, several extractors are given, or a setting needs samples of the reference.
        IncompatibleError: a set comes from another extractor than the sketch.
        DataError: a set is too small, or the sketch has classes and a set has no labels.
    """
    asked = _asked_privately(asked)
    if isinstance(extractor, list | tuple):
        raise UsageError("a private sketch has one extractor, and a board on it has one space: pass one extractor")
    sources = runs_by_model(label_sets(models, "model", taken=REFERENCE))
    if not sources:
        raise UsageError("at least one model is needed, got none")
    sets = open_embeddings(labels_of_runs(sources), extractor, run, [sketch.space])
    labels = {name: [run_label(name, number) for number in range(len(runs))] for name, runs in sources.items()}
    refuse_equal_runs({name: [sets[label].digest for label in own] for name, own in labels.items()})
    passes = run.planned("score").over("score", [embeddings.n for embeddings in sets.values()])
    samples = {
        label: sketch.summarize(embeddings, run=each)
        for (label, embeddings), each in zip(sets.items(), passes, strict=True)
    }
    distances = {label: sketch.score(sample, name=label) for label, sample in samples.items()}
    estimates = dict(zip(samples, compared(sketch.noisy_mean, [*samples.values()]), strict=True))
    column = Column(
        key=DISTANCE_KEY,
        title=DISTANCE,
        higher_is_better=False,
        signature=sketch.signature,
        runs={name: [estimates[label] for label in own] for name, own in labels.items()},
        own={name: [_alone(distances[label], estimates[label]) for label in own] for name, own in labels.items()},
    )
    return _board(column, sketch, asked, sets, sorted(distances.values(), key=lambda distance: distance.value), run)


def _asked_privately(asked: LeaderboardSettings) -> LeaderboardSettings:
    """Return the settings of a board on a private sketch, and refuse those that need samples of the reference."""
    usual = LeaderboardSettings()
    changed = [each.name for each in fields(usual) if getattr(asked, each.name) != getattr(usual, each.name)]
    others = [name for name in changed if name != "rank_by" or asked.rank_by != DISTANCE_KEY]
    if others:
        raise UsageError(
            f"the reference is a private sketch, by which models are ranked by {DISTANCE_KEY} alone: leave out "
            f"{join_words(others)}"
        )
    return replace(asked, rank_by=DISTANCE_KEY)


def _alone(distance: PrivateScore, estimate: Estimate) -> Estimate:
    """Return the estimate of one model, whose error has all noise of the reference and not what models share of it.

    The reference's part of the error is the same for all training runs of a model, which are close to each other.
    """
    own = estimate.variance_of(GEN)
    shared = ErrorSource.of_variance(REF, max(distance.standard_error**2 - own, 0.0))
    return Estimate.of(distance.value, (ErrorSource.of_variance(GEN, own), shared), interval=distance.interval)


def _board(
    column: Column,
    sketch: PrivateSketch,
    asked: LeaderboardSettings,
    sets: Mapping[str, Embeddings],
    distances: Sequence[PrivateScore],
    run: Run,
) -> PrivateBoard:
    """Rank the models of a column, and describe the sets."""
    criterion, standings = rank_column(column, dict.fromkeys(column.runs))
    trained = {name: len(estimates) for name, estimates in column.runs.items()}
    covers, few = noise_of(trained)
    infos = {label: set_info(label, embeddings, embeddings.n, embeddings.digest) for label, embeddings in sets.items()}
    infos[REFERENCE] = SetInfo("private reference", None, sketch.m, sketch.digest, from_sketch=True)
    return PrivateBoard(
        rows=_rows(criterion, standings, trained),
        rank_by=column.key,
        criteria=(criterion,),
        covers=NOISE_COVERED.format(covers),
        kinds=(),
        headings=(),
        sets=infos,
        alpha=ALPHA,
        settings=asked,
        signature=Signature.of(
            Leaderboard.type_name,
            [*(embeddings.n for embeddings in sets.values()), sketch.m],
            sketch.space,
            *(pair for pair in sketch.signature.fields if pair[0] != "fx"),
        ),
        warnings=tuple(dict.fromkeys([*few, *_warnings(column, sets, distances)])),
        distances=tuple(distances),
        guarantees=sketch.guarantees,
        provenance=Provenance.here(run.device),
    )


def _rows(criterion: Criterion, standings: Mapping[str, Standing], trained: Mapping[str, int]) -> tuple[Row, ...]:
    """Return the rows, the nearest model first. Nobody looked for faults: these need samples of the reference."""
    return tuple(
        Row(
            name,
            standings[name].rank_set,
            standings[name].group,
            {criterion.key: standings[name]},
            trained[name],
            is_searched=False,
        )
        for name in criterion.names
    )


def _warnings(column: Column, sets: Mapping[str, Embeddings], distances: Sequence[PrivateScore]) -> Iterator[str]:
    """Yield what to know before trusting the numbers."""
    digests = ((name, sets[run_label(name, n)].digest) for name, runs in column.runs.items() for n in range(len(runs)))
    yield from same_samples(digests)
    grouped = [label for label, embeddings in sets.items() if embeddings.group_hashes() is not None]
    if grouped:
        yield NOT_INDEPENDENT.format(join_words(grouped))
    for label, embeddings in sets.items():
        yield from notes_on(label, embeddings)
    for distance in distances:
        yield from distance.notes
