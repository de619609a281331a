"""Scores against a private sketch: features of generated samples, and `mean_distance` of them, in all and by parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings, as_embeddings, check_same_space
from finc_eval.feature_maps.class_features import class_indices, features_of
from finc_eval.numerics.inference import holm, normal_interval
from finc_eval.privacy.reference import mean_distance
from finc_eval.privacy.reference.mean_distance import NoisyMean, SampleMean
from finc_eval.privacy.reference.result import PairedDifference, Part, PrivateComparison, PrivateScore

if TYPE_CHECKING:
    from finc_eval.privacy.reference.sketch import PrivateSketch


def sampled(sketch: PrivateSketch, gen: object, labels: Sequence[object] | None, progress: Progress) -> SampleMean:
    """Mean and covariance of the features of generated samples, in one pass: see `PrivateSketch.sampled`."""
    embeddings = as_embeddings(gen, "the generated set")
    check_same_space("the generated set", embeddings.space, "the private sketch", sketch.space)
    if embeddings.n < 2:
        raise FincEvalError("a score against a private sketch needs two samples at least, got one")
    return mean_distance.sample_mean(_features(sketch, embeddings, labels, progress))


def scored(sketch: PrivateSketch, gen: SampleMean, name: str, level: float) -> PrivateScore:
    """The score of one generator and its parts."""
    ref = sketch.noisy_mean
    whole = _part("all", ref, gen, level)
    hidden = any(release.sampling < 0 for release in sketch.releases)
    return PrivateScore(
        name=name,
        n=gen.n,
        value=whole.value,
        standard_error=whole.standard_error,
        interval=whole.interval,
        noise_interval=mean_distance.noise_interval(ref, gen, level),
        level=level,
        smallest_detected=mean_distance.smallest_detected(ref, level),
        degrees=_parts(ref, gen, _by_degree(sketch), level),
        classes=_parts(ref, gen, _by_class(sketch), level),
        guarantees=sketch.guarantees,
        signature=sketch.signature,
        notes=("the noise hides how much the records vary: they are too few for this epsilon",) if hidden else (),
    )


def compared(sketch: PrivateSketch, gens: Mapping[str, SampleMean], level: float) -> PrivateComparison:
    """All scores, the nearest first, and the differences of all pairs with p-values adjusted by Holm."""
    ref = sketch.noisy_mean
    scores = sorted((scored(sketch, gen, name, level) for name, gen in gens.items()), key=lambda score: score.value)
    estimates = []
    for first, second in combinations([score.name for score in scores], 2):
        value = mean_distance.difference(ref, gens[first], gens[second])
        error = sqrt(mean_distance.difference_variance(ref, gens[first], gens[second]))
        estimates.append((first, second, value, error))
    adjusted = holm(torch.tensor([mean_distance.two_sided(value, error) for *_, value, error in estimates]))
    pairs = tuple(
        PairedDifference(*estimate, normal_interval(*estimate[2:], level), float(p))
        for estimate, p in zip(estimates, adjusted, strict=True)
    )
    return PrivateComparison(tuple(scores), pairs, level, sketch.guarantees, sketch.signature)


def _features(
    sketch: PrivateSketch, embeddings: Embeddings, labels: Sequence[object] | None, progress: Progress
) -> Iterator[torch.Tensor]:
    """φ of generated samples, batch by batch, (b, A)."""
    places = None
    if sketch.classes is not None:
        known = embeddings.cache.labels if isinstance(embeddings, CachedEmbeddings) else None
        given = known if labels is None else labels
        if given is None:
            raise FincEvalError(
                f"the private sketch is by class ({', '.join(sketch.classes)}), and {embeddings.name} has no labels"
            )
        places = class_indices(given, sketch.classes, embeddings.n)
    for batch in embeddings.batches():
        stop = batch.start + len(batch.rows)
        here = None if places is None else places[batch.start : stop]
        yield features_of(sketch.feature_map, sketch.transform(batch.rows.cpu()), here, len(sketch.classes or (1,)))
        progress("score", stop, embeddings.n)


def _by_degree(sketch: PrivateSketch) -> dict[str, torch.Tensor]:
    """The entries of each degree."""
    degrees = sketch.feature_map.degrees.repeat(len(sketch.classes or (1,)))
    return {f"degree {degree}": (degrees == degree).nonzero()[:, 0] for degree in sorted(set(degrees.tolist()))}


def _by_class(sketch: PrivateSketch) -> dict[str, torch.Tensor]:
    """The entries of each class."""
    entries = torch.arange(sketch.size).view(-1, sketch.feature_map.size)
    return {f"class {name}": entries[place] for place, name in enumerate(sketch.classes or ())}


def _parts(ref: NoisyMean, gen: SampleMean, groups: Mapping[str, torch.Tensor], level: float) -> tuple[Part, ...]:
    return tuple(_part(name, *mean_distance.part(ref, gen, entries), level) for name, entries in groups.items())


def _part(name: str, ref: NoisyMean, gen: SampleMean, level: float) -> Part:
    value = mean_distance.squared_distance(ref, gen)
    error = sqrt(mean_distance.variance(ref, gen))
    return Part(name, len(ref.mean), value, error, mean_distance.interval(ref, gen, level))
