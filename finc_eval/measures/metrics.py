"""`metrics`: several metrics of two sets, each in the embedding space that defines it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Never, ParamSpec, Protocol, cast, get_args, overload

from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_choice
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.files.stored import check_type
from finc_eval.core.progress import Stage
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import refuse_unknown
from finc_eval.core.run import Run
from finc_eval.embeddings.array_files import holds_statistics
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.embedding_set import take_arrays
from finc_eval.embeddings.needs import Check, needs_columns
from finc_eval.embeddings.opened import Sets
from finc_eval.embeddings.opening import form_of, name_of, open_sets
from finc_eval.embeddings.recipe import ARRAY_SPACE, extractor_of
from finc_eval.embeddings.repeats import LOOK
from finc_eval.embeddings.same_names import join_columns
from finc_eval.extractors.settings import AnyExtractor, extraction_of
from finc_eval.extractors.weights import MissingWeightsError
from finc_eval.measures.frechet import SPATIAL
from finc_eval.measures.gaussians.gaussian import GaussianStatistics
from finc_eval.measures.gaussians.opened import OF_METRICS, MetricSet
from finc_eval.measures.gaussians.reference_statistics import (
    beside_samples,
    check_place,
    note_beside,
    read_statistics,
    save_statistics_of,
)
from finc_eval.measures.inputs import (
    Metric,
    MetricInputs,
    describe_sets,
    named,
    names_of_sets,
    needs_of_any,
    rows_by_class,
    scores_by_class,
    scores_of,
)
from finc_eval.measures.protocols.conformity import by_protocol
from finc_eval.measures.registry import (
    METRICS,
    function_of,
    get_metric,
    other_space,
    parameters_of,
    refuse_other_space,
    say_substitute,
    with_parameters,
)
from finc_eval.measures.running import Found, RunningSets
from finc_eval.measures.score import Score, Scores
from finc_eval.numerics.names import SearchIndex
from finc_eval.numerics.precision import arithmetic

COMPUTE = Stage("compute metrics", cost=3)  # the cost of a single metric
"""Name in the progress."""

DEFAULT_METRICS = ("fd", "kid", "vendi")
"""Metrics of embeddings if none is named; of moments, the first alone can be computed."""


@dataclass(frozen=True)
class NamedMetric:
    """One metric as a function of two sets, with its own parameters as keywords: `fe.metrics.kid(gen, ref, degree=2)`.

    Attributes:
        metric: entry of the metric.
    """

    metric: Metric

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the metric itself."""
        return parameters_of(self.metric)

    @arithmetic()
    def __call__(
        self,
        gen: object,
        ref: object,
        *,
        test: object = None,
        by: str | None = None,
        extractor: AnyExtractor = None,
        index: SearchIndex = "exact",
        run: Run | None = None,
        **parameters: object,
    ) -> Scores:
        """Compute the metric as `fe.metrics` does; `Scores.value` is its value.

        Raises:
            UsageError: the metric does not have such a parameter, or a value is out of range.
            DataError: the metric cannot be computed of these sets.
        """
        chosen = with_parameters(self.metric, parameters)
        sources = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
        self.metric.check_sets(sources)
        return _scores([chosen], sources, extractor, index, run, by=by)


@overload
def running(judge: Sequence[str] | str | None = None) -> RunningSets[Scores]: ...
@overload
def running(judge: Callable[[Embeddings, Embeddings], Found]) -> RunningSets[Found]: ...
def running(judge: object = None) -> RunningSets[Any]:
    """Return an object that takes both sets batch by batch, see `RunningSets`: `fe.metrics.running`.

    Args:
        judge: names of metrics, or a function of both sets, such as `fe.compare` for FINC; default: fd, kid, vendi.

    Raises:
        UsageError: a name is unknown, or a metric needs a third set.
    """
    if callable(judge):
        return RunningSets(judge)
    names = [metric.name for metric in choose_metrics(judge, {"gen": None, "ref": None})]  # type: ignore[arg-type]
    return RunningSets(partial(metrics, metrics=names))


Options = ParamSpec("Options")


class WithEachMetric(Protocol[Options]):
    """The type of the function `metrics`, which has each metric as an attribute by its name."""

    running: Callable[..., RunningSets[Any]]

    def __call__(self, *args: Options.args, **options: Options.kwargs) -> Scores:
        """Compute metrics by their names."""

    def __getattr__(self, name: str) -> NamedMetric: ...


def with_each_metric(function: Callable[Options, Scores]) -> WithEachMetric[Options]:
    """Return the function with each metric, and `running`, as attributes by their names."""
    vars(function).update({name: NamedMetric(metric) for name, metric in METRICS.items()}, running=running)
    return cast(WithEachMetric[Options], function)


@with_each_metric
@arithmetic()
def metrics(
    gen: object,
    ref: object,
    metrics: Sequence[str] | str | None = None,
    *,
    protocol: str | Path | None = None,
    test: object = None,
    labels: object = None,
    by: str | None = None,
    save_statistics: str | Path | None = None,
    extractor: AnyExtractor = None,
    index: SearchIndex = "exact",
    run: Run | None = None,
    **unknown: Never,
) -> Scores:
    """Compute metrics of a generated set against a reference set by their names.

    Each metric is also a function by its name, with its own parameters: `fe.metrics.kid(gen, ref, degree=2)`. In a
    training loop, `fe.metrics.running` takes the sets batch by batch.

    Args:
        gen: generated set: embeddings (array or tensor (n, d), `EmbeddingCache` or its path), a `Sketch`,
            `GaussianStatistics`, an npz of statistics, or the path of samples, which are embedded first. Moments
            are enough for Fréchet distances only.
        ref: reference set, in the same forms. For metrics of memorization (fld, authpct) it is the training set.
        metrics: names from `METRICS`, or one name; default: fd, kid and vendi, or fd alone for moments. A metric
            that is defined on one extractor, as fid is, refuses embeddings of others.
        protocol: name of a published protocol, such as "imagenet256-adm-50k", or the path of a card: exactly its number
            is computed, or the field that does not hold is named in the error. It chooses metric and extractor.
        test: embeddings of real samples that the generator has not seen: fld needs them, authpct takes its floor
            from them.
        labels: labels of the samples of sets that are arrays, by "gen" and "ref" or as a pair: the column "label".
        by: column of metadata, such as "label": each metric is also computed for the samples of each of its values
            (intra-FID is the mean of these, Miyato and Koyama 2018); default: for whole sets alone.
        save_statistics: path of an npz for mean, covariance and number of samples of the reference (mu, sigma, n),
            by the extractor of the first metric. It is a reference later, and other tools read it.
        extractor: how to embed sets of samples; default: by the extractor that defines a metric, or else the
            extractor behind the other set.
        index: how prdc, precision_recall, realism, rarity and authpct find neighbors: "exact", or "auto" for an
            inverted file of faiss for more than 10^10 pairs. A note states its recall.
        run: device, portions, threads and progress; default: CUDA if available, silent.
        unknown: options that do not exist, which are refused.

    Returns:
        The scores. A metric that refuses these sets is in `Scores.failures` with its reason, if another does not.

    Raises:
        UsageError: a name is unknown, fld has no test set, or a set is a private sketch.
        DataError: a set cannot be opened, or none of the metrics can be computed.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> scores = fe.metrics(gen, ref, ["vendi", "prdc"])
        >>> print(f"{scores['vendi'].value:.1f} effective kinds, {scores['vendi'].floor:.1f} in the reference")
        18.4 effective kinds, 22.0 in the reference
        >>> print(f"recall {scores['recall'].value:.2f}")
        recall 0.92
        >>> fe.metrics.prdc(gen, ref, k=3)["recall"].value < scores["recall"].value
        True
    """
    refuse_unknown(unknown, OPTIONS)
    given = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
    sources, options = take_arrays(given, labels, {"by": by, "save_statistics": save_statistics})
    if protocol is not None:
        others = {"metrics": metrics, "test": test, "by": options["by"], "index": None if index == "exact" else index}
        return by_protocol(protocol, sources, others, extraction_of(extractor), partial(_scores, run=run, **options))
    return _scores(choose_metrics(metrics, sources), sources, extractor, index, run, **options)


OPTIONS = [*signature(metrics).parameters][:-1]  # names of the options


def _scores(
    chosen: Sequence[Metric],
    sources: Mapping[str, object],
    extractor: AnyExtractor,
    index: SearchIndex = "exact",
    run: Run | None = None,
    *,
    by: str | None = None,
    save_statistics: str | Path | None = None,
    about: Mapping[str, str] | None = None,
    checks: Sequence[Check] = (),
) -> Scores:
    """Compute metrics of sources, each in its own embedding space; `about` is written into the file of statistics."""
    check_choice("index", index, get_args(SearchIndex))
    check_place(save_statistics)
    how = extraction_of(extractor)
    refuse_other_space(chosen, sources, how.extractor)
    run, by_extractor = Run.of(run), defaultdict[str | None, list[Metric]](list)
    for metric in chosen:
        by_extractor[how.extractor or metric.extractor].append(metric)
    for label, source in sources.items():
        check_type(source, label, "embeddings", "sketch", "statistics")
    parts: list[Scores] = []
    for name, group in by_extractor.items():
        own_run = run if len(by_extractor) == 1 else run.prefixed(name or "any space")
        own_run = own_run.planned(LOOK, Stage.of_parts(COMPUTE, [COMPUTE] * len(group)))
        needed = [needs_columns(by), needs_of_any(group), *checks]
        try:
            sets = open_sets(sources, OF_METRICS, how, own_run, preferred=name, checks=needed)
        except (DataError, IncompatibleError) as error:
            if isinstance(error, MissingWeightsError):
                error = MissingWeightsError(f"{error}{say_substitute(group)}")
            if len(by_extractor) == 1:
                raise error from None
            gen, ref = (
                name_of(given) if isinstance(given := sources[label], str | Path) else label for label in ("gen", "ref")
            )
            reasons = dict.fromkeys((metric.name for metric in group), str(error))
            parts.append(Scores(gen, ref, (), reasons, provenance=Provenance.here(own_run.device)))
            continue
        if save_statistics is not None and not parts:
            save_statistics_of(save_statistics, sets["ref"].held, own_run, about or {})
        parts.append(compute_scores(sets, group, by, index, own_run))
    result = replace(
        parts[0],
        scores=tuple(score for part in parts for score in part.scores),
        failures={name: reason for part in parts for name, reason in part.failures.items()},
    )
    if not result.scores:
        reasons_given = (f"{name} could not be computed: {reason}" for name, reason in result.failures.items())
        raise DataError("; ".join(reasons_given))
    return result


def compute_scores(
    opened: Sets[MetricSet], chosen: Sequence[Metric], by: str | None, index: SearchIndex, run: Run
) -> Scores:
    """Compute metrics of opened sets, "gen", "ref" and perhaps "test". All metrics may be among the failures."""
    scores: list[Score] = []
    failures = {}
    held, joined = join_columns(opened.embeddings, [by or ""])
    names = names_of_sets(opened.held)
    sets = {label: named(metric_set, names[label]) for label, metric_set in {**opened.held, **held}.items()}
    of_sets = describe_sets(sets, run)
    classes = {} if by is None else {label: rows_by_class(metric_set, by) for label, metric_set in sets.items()}
    for done, metric in enumerate(chosen):
        run.progress(COMPUTE, done, len(chosen))
        try:
            used = {
                label: named(_in_space(metric, opened[label].given, sets[label]), names[label])
                for label in (*metric.sets, *metric.optional)
                if label in sets
            }
            computed = scores_of(metric, MetricInputs(metric.name, **used, run=run, index=index))
            by_class, missing = scores_by_class(metric, used, by, classes, index, run)
        except (DataError, IncompatibleError) as error:
            failures[metric.name] = str(error)
            continue
        notes = _notes(metric, opened, sets, used, run)
        about = [note for labels, notes in of_sets.items() if used.keys() >= set(labels) for note in notes]
        scores += [
            replace(score, notes=tuple(dict.fromkeys((*score.notes, *notes, *about, *joined, *missing))))
            for score in computed
        ]
        scores += by_class
    run.progress(COMPUTE, len(chosen), len(chosen))
    return Scores(
        _display_name(sets["gen"]),
        _display_name(sets["ref"]),
        tuple(scores),
        failures,
        provenance=Provenance.here(run.device),
    )


def _notes(
    metric: Metric, opened: Sets[MetricSet], sets: Mapping[str, MetricSet], used: Mapping[str, MetricSet], run: Run
) -> list[str]:
    """Return what to know of the sets of a metric: an extractor that is assumed, statistics beside embeddings."""
    assumed = [
        f"{metric_set.name} does not say which extractor made it: {metric.extractor} is assumed"
        for metric_set in used.values()
        if metric.extractor and _is_anonymous(metric_set)
    ]
    if function_of(metric) is not METRICS["fd"].compute:
        return assumed
    beside = (
        note_beside(opened[label].given, metric_set, used[label], run)
        for label, metric_set in sets.items()
        if label in used
    )
    return [*assumed, *(note for note in beside if note)]


def choose_metrics(names: Sequence[str] | str | None, given: Mapping[str, object]) -> list[Metric]:
    """Return the metrics of these names, each once.

    The default is those of `DEFAULT_METRICS` that the sets allow.
    """
    if names is None:
        moments_alone = any(form_of(source) in ("sketch", "statistics") for source in given.values())
        names = DEFAULT_METRICS[:1] if moments_alone else DEFAULT_METRICS
    names = [names] if isinstance(names, str) else [str(name) for name in names]
    if not names:
        raise UsageError(f"no metric was named: name some of {', '.join(METRICS)}")
    chosen = [get_metric(name) for name in dict.fromkeys(names)]
    for metric in chosen:
        metric.check_sets(given)
    return chosen


def _display_name(metric_set: MetricSet) -> str:
    """Return the title of a set."""
    return (metric_set.title if isinstance(metric_set, Embeddings) else None) or metric_set.name


def _in_space(metric: Metric, source: object, metric_set: MetricSet) -> MetricSet:
    """Return a set in the space that the metric is defined on. Statistics of unknown origin are assumed to be in it."""
    extractor = extractor_of(metric_set.space)
    if metric.extractor not in (None, extractor) and not _is_anonymous(metric_set):
        unknown = metric_set.space.startswith(ARRAY_SPACE)
        made_by = "do not say which extractor made them" if unknown else f"are of {extractor}"
        what, remedy = f"the embeddings of {metric_set.name} {made_by}", f"extract with --extractor {metric.extractor}"
        raise other_space(metric, what, remedy)
    is_frechet = function_of(metric) is METRICS["fd"].compute
    if is_frechet and metric.extractor is not None and isinstance(metric_set, Embeddings):
        # Published distances to a reference batch of ADM are to the whole set behind its statistics.
        spatial = metric.output == SPATIAL
        if beside_samples(source) and not (spatial and "mu_s" not in NpzFile(str(source)).names):
            stored = read_statistics(str(source), spatial=spatial)
            if spatial or stored.dim == metric_set.dim:
                return stored
    if metric.output is None:
        return metric_set
    if isinstance(metric_set, CachedEmbeddings):
        return CachedEmbeddings(metric_set.cache.output(metric.output))
    if metric.output == SPATIAL and isinstance(source, str | Path) and holds_statistics(source):
        return read_statistics(source, spatial=True)
    raise IncompatibleError(
        f"{metric.name} takes the output {metric.output} of {metric.extractor}: pass the caches of finc-eval extract"
    )


def _is_anonymous(metric_set: MetricSet) -> bool:
    """Return whether these are statistics from another tool's file, which does not name the extractor."""
    return (
        isinstance(metric_set, GaussianStatistics)
        and metric_set.is_foreign
        and metric_set.space.startswith(ARRAY_SPACE)
    )
