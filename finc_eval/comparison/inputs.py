"""The two operands of a comparison: whatever the caller has of a set, opened, checked and sketched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch

from finc_eval.comparison.cross_fit import CrossFit
from finc_eval.comparison.directions import Population
from finc_eval.comparison.estimates import Masses
from finc_eval.comparison.result import SetInfo
from finc_eval.comparison.score_pass import ScorePass
from finc_eval.core.device import default_device
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent, staged
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import kind_of
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings, as_embeddings, check_same_space
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.feature_maps.approximation import enough_features
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.cosine import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.bandwidth import BANDWIDTH_FACTOR, median_bandwidth
from finc_eval.numerics.precision import Precision, check_precision
from finc_eval.sketches.folds import fold_of
from finc_eval.sketches.sketch import SAMPLE_SIZE, Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Operand = Sketch | Embeddings
Kernel = Literal["gaussian", "cosine"]

MINIMUM = 20
EXAMPLES = 20

ERROR_SAMPLE = 500
"""Samples of a set on which the approximation of the kernel is checked."""


@dataclass(frozen=True)
class Sketching:
    """How sets become sketches; what a sketch that is passed brings itself, its feature map, overrides it.

    Attributes:
        kernel: "gaussian" or "cosine".
        sigma: σ of the Gaussian kernel; from the reference when None.
        features: r, the number of frequencies, or "auto" for as many as keep the kernel's error within 0.01.
        seed: of the frequencies.
        precision: of the covariances.
        batch_size: samples per matrix product.
        device: where to compute; the default device when None.

    Raises:
        FincEvalError: when a value is out of range.
    """

    kernel: Kernel = "gaussian"
    sigma: float | None = None
    features: int | Literal["auto"] = 2000
    seed: int = 0
    precision: Precision = "float32"
    batch_size: int = BATCH_SIZE
    device: str | torch.device | None = None

    def __post_init__(self) -> None:
        check_precision(self.precision)
        if self.kernel not in get_args(Kernel):
            raise FincEvalError(f'kernel must be "gaussian" or "cosine", got {self.kernel!r}')
        if isinstance(self.features, str) and self.features != "auto":
            raise FincEvalError(f'features must be a positive number or "auto", got {self.features!r}')
        numbers = {"sigma": self.sigma, "features": self.features, "batch_size": self.batch_size}
        for name, value in numbers.items():
            if isinstance(value, int | float) and not 0 < value < inf:
                raise FincEvalError(f"{name} must be a positive number, got {value}")
        if self.kernel == "cosine" and self.sigma is not None:
            raise FincEvalError(f"sigma {self.sigma} was given, but the cosine kernel has no bandwidth: leave it out")


def open_operand(source: object, label: str) -> Operand:
    """The sketch or the embeddings in an array, a tensor, an `EmbeddingCache`, a `Sketch`, or the path of a file."""
    if isinstance(source, Sketch):
        return source
    if isinstance(source, str | Path) and kind_of(source) == "sketch":
        return Sketch.load(source, default_device())
    return as_embeddings(source, label)


def open_sides(
    sources: Mapping[str, object], reference: Sequence[str], how: Sketching, progress: Progress = silent
) -> tuple[dict[str, Side], str]:
    """Open, check and sketch the sets of a comparison, all with one feature map.

    Args:
        sources: what the caller has of each set, by label.
        reference: the labels of the sets that decide bandwidth and center, unless a set is a sketch.
        how: how to sketch.
        progress: called with (stage, done, total).

    Returns:
        The sides by label, and where σ came from.

    Raises:
        FincEvalError: on sets of unlike extractors or dimensions, or sketches of unlike feature maps.
    """
    operands = {label: open_operand(source, label) for label, source in sources.items()}
    (first, one), *others = operands.items()
    for label, operand in others:
        _check_alike(first, one, label, operand)
    for label, operand in operands.items():
        if operand.n < MINIMUM:
            raise _too_few(label, operand.n)
    in_order = [*(operands[label] for label in reference), *operands.values()]
    sketched = next((operand for operand in in_order if isinstance(operand, Sketch)), None)
    if sketched is None:
        basis = [operands[label] for label in reference]
        phi, rule = _feature_map([operand for operand in basis if isinstance(operand, Embeddings)], how)
    else:
        phi, rule = sketched.feature_map, "of the sketch"
        if how.sigma not in (None, phi.sigma):
            raise FincEvalError(
                f"sigma {how.sigma} was asked for, but the sketch was made with {phi.sigma}: leave sigma out, "
                "or make the sketch again"
            )
        for operand in operands.values():
            if isinstance(operand, Sketch):
                sketched.check_comparable(operand)
    return {label: Side.of(operand, label, phi, how, progress) for label, operand in operands.items()}, rule


def reference_feature_map(
    reference: object,
    *,
    kernel: Kernel = "gaussian",
    features: int | Literal["auto"] = 2000,
    sigma: float | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> tuple[FeatureMap, str]:
    """The feature map that `compare` uses for this reference set, and where its σ came from.

    Bandwidth and center come from the 2000 reference samples with the smallest id hashes, so they do not depend
    on the order of the set.
    """
    how = Sketching(kernel=kernel, sigma=sigma, features=features, seed=seed, device=device)
    return _feature_map([as_embeddings(reference, "ref")], how)


def _feature_map(basis: Sequence[Embeddings], how: Sketching) -> tuple[FeatureMap, str]:
    device = default_device() if how.device is None else how.device
    if how.kernel == "cosine":
        return CosineFeatures(basis[0].dim, device), "the cosine kernel has none"
    sample = torch.cat([bottom_rows(embeddings, SAMPLE_SIZE // len(basis)) for embeddings in basis]).cpu()
    sigma = median_bandwidth(sample) if how.sigma is None else how.sigma

    def make(features: int) -> FeatureMap:
        return centered_features(sample, features, sigma, how.seed, device)

    phi = enough_features(make, sample[:ERROR_SAMPLE]) if how.features == "auto" else make(how.features)
    rule = f"{BANDWIDTH_FACTOR} x median distance of {len(sample)} reference samples"
    return phi, rule if how.sigma is None else "given"


def centered_features(
    sample: torch.Tensor, features: int, sigma: float, seed: int, device: str | torch.device | None
) -> RandomFourierFeatures:
    """Random Fourier features centered on the mean of a sample of the reference, shape (m, d)."""
    center = sample.double().mean(0).float()
    where = default_device() if device is None else device
    return RandomFourierFeatures(sample.shape[1], features, sigma=sigma, seed=seed, center=center, device=where)


def bottom_rows(embeddings: Embeddings, capacity: int = SAMPLE_SIZE) -> torch.Tensor:
    """The rows of the samples with the smallest id hashes: those of the set's bottom-k sample."""
    smallest, index = np.empty(0, np.uint64), np.empty(0, np.int64)
    for start, keys in embeddings.id_hashes():
        smallest = np.concatenate([smallest, keys >> np.uint64(1)])
        index = np.concatenate([index, np.arange(start, start + len(keys))])
        kept = smallest.argsort(kind="stable")[:capacity]
        smallest, index = smallest[kept], index[kept]
    return embeddings.rows_at(index)


def _check_alike(label: str, operand: Operand, other_label: str, other: Operand) -> None:
    """Raise FincEvalError unless both sets are embeddings of one dimension by one extractor."""
    if operand.dim != other.dim:
        raise FincEvalError(
            f"{label} has embeddings of dimension {operand.dim}, {other_label} of dimension {other.dim}: use one "
            "extractor for both"
        )
    check_same_space(label, operand.space, other_label, other.space)


def _too_few(label: str, n: int) -> FincEvalError:
    return FincEvalError(
        f"{label} has {n} samples: a comparison needs at least {MINIMUM} of each set, and hundreds to say anything "
        "with confidence"
    )


@dataclass(frozen=True)
class Side:
    """One set of a comparison: its sketch, and its embeddings when they are at hand."""

    label: str
    sketch: Sketch
    embeddings: Embeddings | None
    batch_size: int = BATCH_SIZE

    @classmethod
    def of(
        cls, operand: Operand, label: str, feature_map: FeatureMap, how: Sketching, progress: Progress = silent
    ) -> Side:
        """Sketch the operand unless it is a sketch.

        Raises:
            FincEvalError: when there are too few samples to split in two halves.
        """
        if isinstance(operand, Sketch):
            side = cls(label, operand, None)
        else:
            sketch = Sketch.of(
                operand,
                feature_map,
                precision=how.precision,
                batch_size=how.batch_size,
                progress=staged(progress, f"sketch {label}"),
            )
            side = cls(label, sketch, operand, how.batch_size)
        if min(fold.n for fold in side.sketch.folds) < 2:
            raise _too_few(label, side.sketch.n)
        if not all(fold.first.isfinite().all() for fold in side.sketch.folds):
            raise FincEvalError(
                f"the features of {label} overflow: its embeddings are too large for float32, scale them"
            )
        return side

    @cached_property
    def sample(self) -> tuple[torch.Tensor, torch.Tensor]:
        """φ of the bottom-k sample, shape (m, q), and the fold of each row, shape (m,), on the CPU."""
        features = self.sketch.feature_map(self.sketch.sample.rows)
        return features, torch.from_numpy(fold_of(self.sketch.sample.keys))

    @cached_property
    def population(self) -> Population:
        """The set for fitting: by its moments, and by φ of all samples where the bottom-k sample has all."""
        features, folds = self.sample
        whole = len(folds) == self.sketch.n
        return Population(self.sketch.folds, (features[folds == 0], features[folds == 1]) if whole else None)

    def score(self, fits: Sequence[CrossFit], progress: Progress = silent) -> Scored:
        """One pass over the embeddings with the directions of all fits, side by side in columns.

        Of a sketch, the best samples are found in its own sample, and the masses are exact with conservative
        variances.
        """
        shown = torch.cat([fit.full.vectors for fit in fits], 1)
        scoring = (torch.cat([fit.scoring[0] for fit in fits], 1), torch.cat([fit.scoring[1] for fit in fits], 1))
        scores = ScorePass(shown, scoring)
        if self.embeddings is None:
            scores.update(*self.sample, 0)
            return Scored(self, scores, Masses.conservative(self.sketch.folds, scoring))
        for batch in self.embeddings.batches(self.batch_size):
            folds = torch.from_numpy(fold_of(batch.keys))
            scores.update(self.sketch.feature_map(batch.rows), folds, batch.start)
            progress(f"score {self.label}", batch.start + len(batch.ids), self.embeddings.n)
        return Scored(self, scores, scores.masses())

    def typical(self, direction: torch.Tensor, count: int = 5) -> list[str]:
        """The ids of the samples furthest along the direction, best first; none when the sketch keeps no sample.

        Sought in the bottom-k sample only, so that they are the same with the embeddings and with their sketch alone.
        """
        scores = self.sample[0] @ direction
        return [self.sketch.sample.ids[row] for row in scores.topk(min(count, len(scores))).indices.tolist()]

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """The ids of the samples with these indices, as a score pass numbers them."""
        if self.embeddings is None:
            return tuple(self.sketch.sample.ids[index] for index in indices)
        return self.embeddings.ids_at(indices)

    @property
    def cache(self) -> EmbeddingCache | None:
        """The cache the embeddings come from, if they do."""
        return self.embeddings.cache if isinstance(self.embeddings, CachedEmbeddings) else None

    def info(self) -> SetInfo:
        """What a report says of the set."""
        return set_info(self.label, self.embeddings, self.sketch.n, "+".join(self.sketch.sources))


@dataclass(frozen=True)
class Scored:
    """A side after its score pass: the best samples of each direction, and the out-of-fold masses."""

    side: Side
    scores: ScorePass
    masses: Masses


def set_info(label: str, embeddings: Embeddings | None, n: int, digest: str) -> SetInfo:
    """What a report says of a set, of which there may be a sketch only."""
    cache = embeddings.cache if isinstance(embeddings, CachedEmbeddings) else None
    failures = cache.failures if cache else []
    return SetInfo(
        name=Path(cache.source).name if cache else label,
        source=_below_here(cache.source) if cache else None,
        n=n,
        digest=digest,
        from_sketch=embeddings is None,
        unreadable=len(failures),
        unreadable_examples=tuple((str(i), str(reason)) for i, reason in failures[:EXAMPLES]),
        clip=cache.clip if cache else None,
    )


def _below_here(source: str) -> str | None:
    """The source's path, from the working folder where it lies below, so that a report names no more than it must."""
    path = Path(source)
    if not path.is_absolute():
        return None
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
