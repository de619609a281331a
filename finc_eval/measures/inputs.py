"""Inputs of a metric (`MetricInputs`), and its entry (`Metric`), which any function of two sets can have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_seed
from finc_eval.core.places import shown_place
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import words_of_missing
from finc_eval.embeddings.needs import Check, Known, check_all
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.embeddings.repeats import describe_equal, mean_group_size
from finc_eval.embeddings.set_info import notes_on, unlike_files
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.estimate import Estimate
from finc_eval.estimates.of_statistic import Statistic, estimate_statistic
from finc_eval.measures.gaussians.opened import MetricSet
from finc_eval.measures.score import Score
from finc_eval.numerics.kernels import median_bandwidth
from finc_eval.numerics.names import SearchIndex
from finc_eval.sketches.reference import bottom_rows

MIN_INTERVAL_SAMPLES = 200  # number of samples of a set from which on metrics give a resampled interval and a floor

OF_LIKE_GROUPS = "samples are in groups, and groups of other sizes give another value: compare it for like groups only"

Rows = dict[str, NDArray[np.int64]]  # rows of the samples of each class; samples without a class are under ""


@dataclass(frozen=True)
class MetricInputs:
    """Sets that one metric is computed from, all in the embedding space of the metric."""

    name: str  # name of the metric
    gen: MetricSet  # generated set
    ref: MetricSet | None = None  # reference set; None for metrics of the generated set alone
    test: MetricSet | None = None  # third set; None if it was not given, or the metric does not take one
    run: Run = field(default_factory=Run)  # device and portions
    index: SearchIndex = "exact"  # how neighbors are found: "exact", or "auto"

    def signature(self, **fields: object) -> Signature:
        """Return the signature of a value."""
        sizes = [metric_set.n for metric_set in (self.gen, self.ref) if metric_set]
        return Signature.of(self.name, sizes, self.gen.space, *((name, str(value)) for name, value in fields.items()))

    def embeddings(self, *labels: str) -> tuple[Embeddings, ...]:
        """Return sets as embeddings; default: the generated set and the reference."""
        sets = tuple(getattr(self, label) for label in labels or ("gen", "ref"))
        if all(isinstance(metric_set, Embeddings) for metric_set in sets):
            return sets
        raise IncompatibleError(
            f"{self.name} needs the embeddings of {join_words(labels) or 'both sets'}: moments are enough for Fréchet "
            "distances only"
        )


Estimator = Callable[[Embeddings, NDArray[np.int64] | None], Estimate]
"""Function that estimates a metric of a generated set; units that are not its groups have their numbers, (n,)."""


@dataclass(frozen=True)
class Metric:
    """Entry of a metric: what `metrics`, boards, gates and the command line know about it."""

    name: str  # name to ask for it by
    description: str  # what it measures, in a few words
    # function that returns its scores. Its own parameters, if it has any, are keywords.
    compute: Callable[..., list[Score]]
    extractor: str | None = None  # name of the card that defines its embedding space; None if any space will do
    output: str | None = None  # output of that card that it takes; None for the embedding
    sets: tuple[str, ...] = ("gen", "ref")  # sets that it needs. With "test", the reference is the training set.
    optional: tuple[str, ...] = ()  # sets that it uses when they are given
    needs: tuple[Check, ...] = ()  # checks of what it needs of the sets, made before any sample is embedded
    # Returns the function that estimates the first score against a reference: boards and gates stand on its influences.
    # It raises DataError where the error of a set is not known. If it is None, the interval of the score stands for it.
    estimator: Callable[[Embeddings, Run], Estimator] | None = None
    estimated: str | None = None  # what the estimator estimates, in a few words; default: the description
    higher_is_better: bool | None = False  # direction of what is estimated; None if neither is better
    bounds: tuple[float, float] = (-inf, inf)  # least and largest value of what is estimated
    # versions of finc-eval from which on its number differs, in their order. Stored numbers of earlier versions are
    # refused, and others of unlike versions compare.
    numbers_changed_in: tuple[str, ...] = ()
    at_equal_n: bool = False  # whether its number grows with the number of samples, so that unequal sets do not compare
    # function of the key of a number: whether it depends on the sizes of groups, so that sets of unlike groups do not
    # compare. Estimators of other numbers leave out what samples of one group add.
    depends_on_groups: Callable[[str], bool] = lambda key: False

    def is_for_like_groups(self, key: str) -> bool:
        """Return whether a number of this metric compares for sets in groups of like sizes only."""
        return self.at_equal_n or self.depends_on_groups(key)

    def is_defined_on(self, *sets: Embeddings) -> bool:
        """Return whether these embeddings are those that the metric is defined on."""
        return self.output is None and all(
            self.extractor in (None, extractor_of(metric_set.space)) for metric_set in sets
        )

    def check_sets(self, given: Collection[str]) -> None:
        """Raise UsageError unless all sets that the metric needs are given."""
        if "test" in self.sets and "test" not in given:
            raise UsageError(
                f"{self.name} needs a third set: real samples that the generator has not seen, as test (--test on the "
                "command line); ref is then the training set"
            )


def needs_of_any(metrics: Sequence[Metric]) -> Check:
    """Return the check that sets have what one of the metrics needs, at least: others may fail beside it."""

    def check(sets: Mapping[str, Known]) -> None:
        errors = []
        for metric in metrics:
            try:
                return check_all(metric.needs, sets)
            except DataError as error:
                errors.append(str(error))
        raise DataError("; ".join(errors))

    return check


def reference_bandwidth(ref: Embeddings) -> float:
    """Return half the median distance of the reference, the bandwidth that comparisons use too."""
    return median_bandwidth(bottom_rows(ref))


def split_reference(ref: Embeddings, n_gen: int, *, least: int = 1, seed: int = 0) -> tuple[Subset, Subset]:
    """Split the reference at random into n_gen samples (at most half of them) and the rest, to measure a floor.

    Samples of one group stay together, as far as there are two groups: the parts are independent, as two sets are. So
    the first part has nearly that many samples.
    """
    order, part = np.random.default_rng(check_seed(seed)).permutation(ref.n), min(n_gen, ref.n // 2)
    if part < least:
        raise DataError(
            f"{ref.name} has {plural(ref.n, 'sample')} for a floor at {n_gen}: it needs at least {2 * least}"
        )
    groups = ref.group_hashes()
    if groups is not None:
        _, first, group, sizes = np.unique(groups[order], return_index=True, return_inverse=True, return_counts=True)
        order = order[np.argsort(first[group], kind="stable")]  # group after group, in a random order
        ends = np.cumsum(sizes[np.argsort(first)])[:-1]
        enough = ends[(ends >= least) & (ref.n - ends >= least)]
        part = int(enough[np.abs(enough - part).argmin()]) if len(enough) else part
    return Subset(ref, np.sort(order[:part])), Subset(ref, np.sort(order[part:]))


def biased_floor(
    statistic: Callable[[Embeddings, Embeddings], float],
    ref: Embeddings,
    n_gen: int,
    *,
    least: int = 1,
    seed: int = 0,
    is_inverse: bool = True,
) -> float:
    """Return what a statistic is for n_gen samples of the reference's own law, from two parts of the reference.

    Its bias is proportional to 1/n + 1/m, and so is the value of the parts, which are smaller. Otherwise
    (`is_inverse`), it is taken for a power of that between 0 and 1, which is found from halves of the parts.
    """
    parts = split_reference(ref, n_gen, least=least, seed=seed)
    wanted, had = 1 / n_gen + 1 / ref.n, 1 / parts[0].n + 1 / parts[1].n
    value, power = statistic(*parts), 1.0
    if not is_inverse and value > 0 and parts[0].n >= 2 * least:
        halves = [split_reference(half, half.n // 2, seed=seed)[0] for half in parts]
        smaller = max(statistic(halves[0], halves[1]), value)
        power = min(log(smaller / value) / log((1 / halves[0].n + 1 / halves[1].n) / had), 1.0)
    return float(value * (wanted / had) ** power)


def scores_of(metric: Metric, inputs: MetricInputs) -> list[Score]:
    """Compute the scores of a metric, and the floors that it does not compute itself, by parts of the reference.

    Smaller parts would give another floor to metrics that depend on numbers of samples, so a note states their sizes.
    """
    scores, gen, ref = _with_notes_of_groups(metric, metric.compute(inputs), inputs.gen), inputs.gen, inputs.ref
    # A metric with another optional set takes its floor from that.
    if metric.sets != ("gen", "ref") or metric.optional or any(score.floor is not None for score in scores):
        return scores
    if not (isinstance(gen, Embeddings) and isinstance(ref, Embeddings)) or min(gen.n, ref.n) < MIN_INTERVAL_SAMPLES:
        return scores
    part, rest = split_reference(ref, gen.n)
    try:
        floors = {score.key: score.value for score in metric.compute(replace(inputs, gen=part, ref=rest))}
    except DataError:  # parts of a reference may be too small where the whole is not
        return scores
    about = (
        (f"the floor is of {part.n:,} samples of {ref.name} against its other {rest.n:,}",) if part.n < gen.n else ()
    )
    return [replace(score, floor=floors.get(score.key), notes=(*score.notes, *about)) for score in scores]


def _with_notes_of_groups(metric: Metric, scores: list[Score], gen: MetricSet | None) -> list[Score]:
    if not isinstance(gen, Embeddings) or mean_group_size(gen) == 1:
        return scores
    return [
        replace(score, notes=(OF_LIKE_GROUPS, *score.notes)) if metric.is_for_like_groups(score.key) else score
        for score in scores
    ]


def describe_sets(sets: Mapping[str, MetricSet], run: Run) -> dict[tuple[str, ...], list[str]]:
    """Return what to know of each set, and of each pair of sets, whatever the metric, by their labels."""
    held = {label: metric_set for label, metric_set in sets.items() if isinstance(metric_set, Embeddings)}
    sentences_of: dict[tuple[str, ...], list[str]] = {
        (label,): notes_on(label, embeddings) for label, embeddings in held.items()
    }
    for labels, sentence in describe_equal(held, run).items():
        sentences_of.setdefault(labels, []).append(sentence)
    for labels, sentences in unlike_files(held).items():
        sentences_of.setdefault(labels, []).extend(sentences)
    return sentences_of


def names_of_sets(sets: Mapping[str, MetricSet]) -> dict[str, str]:
    """Return the name of each set by its label, without its folders, since notes and reasons are passed on.

    Several sets of one name are called by their labels.
    """
    names = {
        label: (metric_set.title if isinstance(metric_set, Embeddings) else None) or shown_place(metric_set.name)
        for label, metric_set in sets.items()
    }
    meant = {name: {sets[label].name for label in sets if names[label] == name} for name in names.values()}
    return {label: name if len(meant[name]) == 1 else label for label, name in names.items()}


def named(metric_set: MetricSet, name: str) -> MetricSet:
    """Return the same set under another name in messages."""
    return metric_set.named(name) if isinstance(metric_set, Embeddings) else replace(metric_set, name=name)


def rows_by_class(metric_set: MetricSet, column: str) -> Rows:
    """Return the rows of each class of a set."""
    if not isinstance(metric_set, Embeddings):
        raise IncompatibleError(
            f"by={column!r} needs the samples of {metric_set.name}, which holds moments: pass its samples"
        )
    values = np.array(metric_set.column(column))
    return {str(value): np.flatnonzero(values == value) for value in np.unique(values)}


def scores_by_class(
    metric: Metric,
    sets: Mapping[str, MetricSet],
    column: str | None,
    classes: Mapping[str, Rows],
    index: SearchIndex,
    run: Run,
) -> tuple[list[Score], tuple[str, ...]]:
    """Compute a metric for the samples of each class, and say in notes which classes have no value, and why."""
    rows = {label: classes[label] for label in sets if label in classes}
    scores: list[Score] = []
    without: dict[str, str] = {}
    for name in sorted(set().union(*rows.values()) - {""}):
        lacking = [label for label, of in rows.items() if name not in of]
        if lacking:
            without[name] = f"no sample of {join_words(lacking)}"
            continue
        parts = {
            label: Subset(metric_set, rows[label][name])
            for label, metric_set in sets.items()
            if isinstance(metric_set, Embeddings)
        }
        try:
            made = scores_of(metric, MetricInputs(metric.name, **parts, run=run, index=index))
        except (DataError, IncompatibleError) as error:
            without[name] = str(error)
            continue
        scores += [replace(score, of=name) for score in made]
    notes = [_note_of_unclassed(label, sets[label], column, of) for label, of in rows.items() if "" in of]
    if without:
        named = [f"{name} ({why})" for name, why in list(without.items())[:5]]
        more = len(without) - len(named)
        notes.append("not computed for " + join_words([*named, *([f"{more} other classes"] if more else [])]))
    return scores, tuple(notes)


def _note_of_unclassed(label: str, metric_set: MetricSet, column: str | None, rows: Rows) -> str:
    written = words_of_missing(metric_set.missing_as(column)) if column and isinstance(metric_set, Embeddings) else ""
    has = "has" if len(rows[""]) == 1 else "have"
    return f"{plural(len(rows['']), 'sample')} of {label} {has} no class{written}, and count in whole sets alone"


Prepare = Callable[[Embeddings, Embeddings, Run], Statistic]
"""Function of both sets that returns the statistic; what it fits to them, such as cells, is held for the error."""


def of_statistic(
    name: str,
    description: str,
    prepare: Prepare,
    *,
    higher_is_better: bool | None,
    bounds: tuple[float, float] = (-inf, inf),
    notes: Callable[[Embeddings, Embeddings], tuple[str, ...]] = lambda gen, ref: (),
    depends_on_groups: Callable[[str], bool] = lambda key: True,
    **fields: object,
) -> Metric:
    """Return the entry of a metric whose numbers are smooth functions of two sets.

    From the function follow its interval, for other samples of the same numbers, its floor, which is its value for a
    part of the reference against the rest, its rank on boards, and its limits in gates, paired or not.

    Args:
        name: name to ask for it by.
        description: what it measures, in a few words.
        prepare: function of both sets that returns the statistic.
        higher_is_better: whether a better generator has larger values; None if neither direction is better.
        bounds: least and largest value of the metric. A statistic that goes beyond keeps its error there.
        notes: function of both sets that returns what to know before trusting the values.
        depends_on_groups: see `Metric`. Most numbers of few samples differ from those of many, and groups are as few.
        fields: settings of the metric, for its signature.
    """

    def compute(inputs: MetricInputs) -> list[Score]:
        gen, ref = inputs.embeddings()
        statistic, parts = prepare(gen, ref, inputs.run), split_reference(ref, gen.n)
        floors = prepare(*parts, inputs.run)(*parts)
        values, intervals, reason = _estimates_of(statistic, gen, ref)
        return [
            Score(
                key,
                _clip(value, bounds),
                inputs.signature(**fields),
                interval=_inside(intervals.get(key), bounds),
                floor=_clip(floors[key], bounds),
                higher_is_better=higher_is_better,
                notes=(*notes(gen, ref), *reason),
            )
            for key, value in values.items()
        ]

    def estimator(ref: Embeddings, run: Run) -> Estimator:
        def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
            _check_number(gen, ref)
            return next(iter(estimate_statistic(prepare(gen, ref, run), gen, ref, units).values()))

        return estimate

    return Metric(
        name,
        description,
        compute,
        estimator=estimator,
        higher_is_better=higher_is_better,
        bounds=bounds,
        depends_on_groups=depends_on_groups,
    )


def _estimates_of(
    statistic: Statistic, gen: Embeddings, ref: Embeddings
) -> tuple[Mapping[str, float], dict[str, tuple[float, float]], tuple[str, ...]]:
    """Return the values, their intervals, and the reason if there are none."""
    try:
        _check_number(gen, ref)
        estimates = estimate_statistic(statistic, gen, ref)
    except DataError as error:
        return statistic(gen, ref), {}, (f"no interval: {error}",)
    return (
        {key: estimate.value for key, estimate in estimates.items()},
        {key: estimate.interval for key, estimate in estimates.items()},
        (),
    )


def _clip(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _inside(interval: tuple[float, float] | None, bounds: tuple[float, float]) -> tuple[float, float] | None:
    return None if interval is None else (_clip(interval[0], bounds), _clip(interval[1], bounds))


def _check_number(gen: Embeddings, ref: Embeddings) -> None:
    if min(gen.n, ref.n) < MIN_INTERVAL_SAMPLES:
        raise DataError(f"it takes {MIN_INTERVAL_SAMPLES} samples of each set")
