"""Metrics by name. Each is declared beside its mathematics, in the tuple `METRICS` of its module in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules

from finc_eval import measures
from finc_eval.core.errors import IncompatibleError, UsageError, did_you_mean
from finc_eval.core.record import refuse_owned
from finc_eval.core.words import join_words
from finc_eval.embeddings.opening import form_of
from finc_eval.extractors.catalog import load_card
from finc_eval.measures.inputs import Metric
from finc_eval.measures.score import Score


class KnownMetrics(Mapping[str, Metric]):
    """All metrics by name. They are found when first asked for, as some modules of the folder need this module."""

    @cached_property
    def _found(self) -> dict[str, Metric]:
        modules = (import_module(f"{measures.__name__}.{module.name}") for module in iter_modules(measures.__path__))
        declared = (getattr(module, "METRICS", ()) for module in modules)
        metrics = {metric.name: metric for some in declared if isinstance(some, tuple) for metric in some}
        return dict(sorted(metrics.items()))

    def __getitem__(self, name: str) -> Metric:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


METRICS = KnownMetrics()
"""All metrics, in the order of their names."""


def get_metric(name: str) -> Metric:
    """Return the metric of this name, in capitals or not."""
    metric = METRICS.get(str(name).lower())
    if metric is None:
        raise UsageError(f'unknown metric "{name}"{did_you_mean(str(name), METRICS)}: choose from {", ".join(METRICS)}')
    return metric


def function_of(metric: Metric) -> Callable[..., list[Score]]:
    """Return the function of a metric, without the parameters that are chosen."""
    return metric.compute.func if isinstance(metric.compute, partial) else metric.compute


def parameters_of(metric: Metric) -> tuple[str, ...]:
    """Return the names of the parameters of the metric itself."""
    return tuple(signature(function_of(metric)).parameters)[1:]


def with_parameters(metric: Metric, parameters: Mapping[str, object]) -> Metric:
    """Return the metric with these values of its parameters; UsageError if it has no such parameter."""
    known = parameters_of(metric)
    for name in [name for name in parameters if name not in known]:
        refuse_owned(name, parameters[name])
        has = f"its parameters are {join_words(known)}" if known else "it has none of its own"
        raise UsageError(f"{metric.name} has no parameter {name!r}{did_you_mean(name, known)}: {has}")
    return replace(metric, compute=partial(metric.compute, **parameters)) if parameters else metric


def refuse_other_space(chosen: Sequence[Metric], sources: Mapping[str, object], extractor: str | None) -> None:
    """Raise IncompatibleError if all metrics are defined on other extractors than the requested extractor."""
    if extractor is None or not any(form_of(source) == "samples" for source in sources.values()):
        return
    name = load_card(extractor).name
    if all(metric.extractor not in (None, name) for metric in chosen):
        raise other_space(chosen[0], f"the samples are to be embedded by {name}", "leave the extractor out")


def other_space(metric: Metric, what: str, remedy: str) -> IncompatibleError:
    """Return the error for a metric that is defined on another extractor than embeddings are of."""
    same = [
        other.name for other in METRICS.values() if other.compute is function_of(metric) and other.extractor is None
    ]
    hint = f", or ask for {same[0]}" if same else ""
    return IncompatibleError(f"{metric.name} is defined on {metric.extractor}, and {what}: {remedy}{hint}")


def say_substitute(metrics: Iterable[Metric]) -> str:
    """Say which metrics compute the same in the space of any extractor: "; fd is the same by any extractor, …"."""
    sentences = [
        f"; {other.name} is the same by any extractor, and not {metric.name}"
        for metric in metrics
        for other in METRICS.values()
        if metric.extractor is not None and other.extractor is None and other.compute is function_of(metric)
    ]
    return "".join(dict.fromkeys(sentences))
