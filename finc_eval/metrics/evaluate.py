"""Many metrics of two sets, each in the space that its name means, from the same caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.progress import Progress, silent
from finc_eval.core.serialize import Document
from finc_eval.core.storage import kind_of
from finc_eval.embeddings.base import ARRAY_SPACE, CachedEmbeddings
from finc_eval.metrics.gaussian import GaussianStatistics, opened
from finc_eval.metrics.inputs import Metric, Pair, Set
from finc_eval.metrics.reference_statistics import holds_statistics, read_statistics
from finc_eval.metrics.registry import METRICS, SPATIAL, metric_named
from finc_eval.metrics.score import Score
from finc_eval.privacy.reference.sketch import KIND, PrivateSketch


@dataclass(frozen=True)
class Scores(Document):
    """The scores of two sets.

    Attributes:
        gen, ref: what they are called.
        scores: in the order asked for.
        failures: by the name of the metric, why there is none.
    """

    gen: str
    ref: str
    scores: tuple[Score, ...]
    failures: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": version("finc-eval"),
            "schema": 1,
            "gen": self.gen,
            "ref": self.ref,
            "scores": [score.to_dict() for score in self.scores],
            "failures": dict(self.failures),
        }

    def __getitem__(self, key: str) -> Score:
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(f"{key}{did_you_mean(key, [score.key for score in self.scores])}")


def evaluate(
    gen: object,
    ref: object,
    metrics: Sequence[str] = ("fd", "kid", "vendi"),
    *,
    test: object = None,
    device: str | None = None,
    progress: Progress = silent,
) -> Scores:
    """Compute metrics of two sets of embeddings.

    Args:
        gen: the generated set: embeddings (array or tensor (n, d), `EmbeddingCache` or the path of one), a `Sketch`,
            `GaussianStatistics`, or an npz of statistics. Moments are enough for Fréchet distances.
        ref: the reference set, likewise; for private_mmd a `PrivateSketch` or the path of one; of metrics of
            memorization (fld, authpct), the training set.
        metrics: names of `METRICS`. Those whose name means a space, as fid does, refuse embeddings of another.
        test: for metrics of memorization, embeddings of real samples that the generator has not seen.
        device: where to compute; CUDA if there is one when left out.
        progress: called with (stage, done, total).

    Raises:
        FincEvalError: a set or a name is not usable. What a single metric refuses is in `Scores.failures`.
    """
    chosen = {name: metric_named(name) for name in metrics}
    sources = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
    private = _private(ref)
    sets = {label: opened(source, label) for label, source in sources.items() if private is None or label != "ref"}
    scores: list[Score] = []
    failures = {}
    for done, (name, metric) in enumerate(chosen.items()):
        progress("metrics", done, len(chosen))
        try:
            if private is not None and "ref" in metric.sets:
                raise FincEvalError(
                    f"{name} needs the reference's samples, and a private sketch has none: ask for private_mmd"
                )
            found = {
                label: _space_of(name, metric, sources[label], sets[label]) for label in metric.sets if label in sets
            }
            computed = metric.compute(Pair(name, found["gen"], found.get("ref"), found.get("test"), device, private))
        except FincEvalError as error:
            failures[name] = str(error)
            continue
        believed = tuple(
            f"{one.name} does not say by what it was made: it is taken to be of {metric.extractor}"
            for one in found.values()
            if metric.extractor and _is_anonymous(one)
        )
        scores += [replace(score, notes=(*score.notes, *believed)) for score in computed]
    progress("metrics", len(chosen), len(chosen))
    reference = "a private sketch" if private is not None else _called(sets["ref"])
    return Scores(_called(sets["gen"]), reference, tuple(scores), failures)


def _private(ref: object) -> PrivateSketch | None:
    """The private sketch in what was given as reference, if it is one."""
    if isinstance(ref, str | Path) and kind_of(ref) == KIND:
        return PrivateSketch.load(ref)
    return ref if isinstance(ref, PrivateSketch) else None


def _called(one: Set) -> str:
    """The name of a set: of a cache that of its samples."""
    return Path(one.cache.source).name if isinstance(one, CachedEmbeddings) else one.name


def _space_of(name: str, metric: Metric, source: object, one: Set) -> Set:
    """The set in the space that the metric's name means; statistics of others are believed to be."""
    extractor = one.space.split("@")[0]
    if metric.extractor not in (None, extractor) and not _is_anonymous(one):
        unknown = one.space.startswith(ARRAY_SPACE)
        has = "do not say by what they were made" if unknown else f"are of {extractor}"
        alike = [other for other, m in METRICS.items() if m.extractor is None and m.compute is metric.compute]
        hint = f", or ask for {alike[0]}" if alike else ""
        raise FincEvalError(
            f"{name} is defined on {metric.extractor}, and the embeddings of {one.name} {has}: extract with "
            f"--extractor {metric.extractor}{hint}"
        )
    if metric.output is None:
        return one
    if isinstance(one, CachedEmbeddings):
        return CachedEmbeddings(one.cache.output(metric.output))
    if metric.output == SPATIAL and isinstance(source, str | Path) and holds_statistics(source):
        return read_statistics(source, spatial=True)
    raise FincEvalError(f"{name} is of the {metric.output} of {metric.extractor}: give the caches of extract")


def _is_anonymous(one: Set) -> bool:
    """Whether these are the statistics in a file of others, which do not say by what they were made."""
    return isinstance(one, GaussianStatistics) and one.n is None and one.space.startswith(ARRAY_SPACE)
