"""The sets of an explanation: their embeddings, and the samples to embed otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finc_eval.conventions.altered import is_here, other_networks
from finc_eval.conventions.forms import number_of
from finc_eval.conventions.table import SETS
from finc_eval.conventions.values import Pictures, Recomputed, in_memory
from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.opened import Sets
from finc_eval.embeddings.opening import OF_EMBEDDINGS, open_sets
from finc_eval.embeddings.recipe import check_alike
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.settings import AnyExtractor, Extraction, extraction_of
from finc_eval.measures.inputs import Metric
from finc_eval.measures.registry import get_metric, other_space, refuse_other_space
from finc_eval.samples.opening import open_source

Ids = Mapping[str, Sequence[str]]


def open_values(
    gen: object, ref: object, name: str, extractor: AnyExtractor, run: Run
) -> tuple[Recomputed, Ids, tuple[str, ...]]:
    """Open both sets for a metric; return its values, the ids of the samples, and what cannot be tried."""
    metric, given, how = get_metric(name), {"gen": gen, "ref": ref}, extraction_of(extractor)
    if metric.sets != ("gen", "ref"):
        raise UsageError(
            f"{metric.name} is not a metric of a generated set and a reference alone: name fd or kid, for example"
        )
    refuse_other_space([metric], given, how.extractor)
    opened = open_sets(given, OF_EMBEDDINGS, how, run, preferred=metric.extractor)
    sets = opened.embeddings
    check_alike("gen", sets["gen"], "ref", sets["ref"])
    if not metric.is_defined_on(*sets.values()):
        raise other_space(metric, "the embeddings are of another", f"extract with --extractor {metric.extractor}")
    pictures, untried = _pictures(opened, how, run)
    values = Recomputed(
        {label: in_memory(rows, SETS[label]) for label, rows in sets.items()},
        _outputs(sets, metric),
        pictures,
        number_of(metric, run),
    )
    return values, {label: rows.ids_between(0, rows.n) for label, rows in sets.items()}, untried


def _outputs(sets: Mapping[str, Embeddings], metric: Metric) -> dict[str, dict[str, Embeddings]]:
    """Return further outputs of the network that both sets keep, by name."""
    caches = {label: rows.cache for label, rows in sets.items() if isinstance(rows, CachedEmbeddings)}
    if len(caches) < len(sets):
        return {}
    names = [name for name in caches["gen"].outputs if all(name in cache.outputs for cache in caches.values())]
    return {name: {label: CachedEmbeddings(cache.output(name)) for label, cache in caches.items()} for name in names}


def _pictures(opened: Sets[Embeddings], how: Extraction, run: Run) -> tuple[Pictures | None, tuple[str, ...]]:
    """Return the samples of both sets, and what cannot be tried."""
    embedded = [label for label, given in opened.items() if given.form != "samples"]
    if embedded:
        why = f"{join_words(embedded)} came as embeddings: pass the samples"
        return None, (f"JPEG, resizing, crops, colors and networks, since {why}",)
    # A card of the user's own is known by its path, and not by the name in a cache.
    card = load_card(how.extractor or next(iter(opened.embeddings.values())).cache.extractor)  # type: ignore[attr-defined]
    if card.clip is not None:
        return None, ("JPEG, resizing, crops, colors and networks, which are tried of images alone",)
    sources = {
        label: open_source(given.given, n=how.n, seed=how.seed, **how.reading.choices)  # type: ignore[arg-type]
        for label, given in opened.items()
    }
    if any(source.once for source in sources.values()):
        return None, ("JPEG, resizing, crops, colors and networks, since a set can be read only once",)
    missing = [other.name for other in other_networks(card) if not is_here(other)]
    untried = (f"networks whose weights are not here: {', '.join(missing)}",) if missing else ()
    return Pictures(sources, card, how.precision, run), untried
