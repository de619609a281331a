"""The two operands of a comparison: whatever the caller has of a set, opened, checked and sketched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.cache import EmbeddingCache
from finc_eval.device import default_device
from finc_eval.differential import CrossFit, Masses
from finc_eval.embeddings import (
    ArrayEmbeddings,
    CachedEmbeddings,
    as_embeddings,
    check_same_space,
    sample_keys,
)
from finc_eval.errors import FincEvalError
from finc_eval.feature_maps import RandomFourierFeatures
from finc_eval.kernels import BANDWIDTH_FACTOR, median_bandwidth
from finc_eval.modes import ScorePass
from finc_eval.progress import Progress, silent
from finc_eval.results import SetInfo
from finc_eval.sketch import SAMPLE_SIZE, BottomSample, Sketch, fold_of
from finc_eval.storage import kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Operand = Sketch | ArrayEmbeddings | CachedEmbeddings

MINIMUM = 20
EXAMPLES = 20


def open_operand(source: object, label: str) -> Operand:
    """The sketch or the embeddings in an array, a tensor, an `EmbeddingCache`, a `Sketch`, or the path of a file."""
    if isinstance(source, Sketch):
        return source
    if isinstance(source, str | Path) and kind_of(source) == "sketch":
        return Sketch.load(source, default_device())
    return as_embeddings(source, label)


def check_alike(gen: Operand, ref: Operand) -> None:
    """Raise FincEvalError unless both sets are embeddings of one dimension by one extractor."""
    if gen.dim != ref.dim:
        raise FincEvalError(
            f"gen has embeddings of dimension {gen.dim}, ref of dimension {ref.dim}: use one extractor for both"
        )
    check_same_space("gen", gen.space, "ref", ref.space)


def reference_feature_map(
    reference: object,
    *,
    features: int = 2000,
    sigma: float | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> tuple[RandomFourierFeatures, str]:
    """The feature map that `compare` uses for this reference set, and where its σ came from.

    Bandwidth and centre come from the 2000 reference samples with the smallest id hashes, so they do not depend
    on the order of the set.
    """
    embeddings = as_embeddings(reference, "ref")
    sample = BottomSample(embeddings.dim, SAMPLE_SIZE)
    for batch in embeddings.batches():
        sample.update(sample_keys(batch.ids), batch.ids, batch.rows)
    rule = f"{BANDWIDTH_FACTOR} x median distance of {len(sample.rows)} reference samples"
    phi = RandomFourierFeatures(
        embeddings.dim,
        features,
        sigma=median_bandwidth(sample.rows) if sigma is None else sigma,
        seed=seed,
        center=sample.rows.mean(0),
        device=default_device() if device is None else device,
    )
    return phi, rule if sigma is None else "given"


@dataclass(frozen=True)
class Side:
    """One set of a comparison: its sketch, and its embeddings when they are at hand."""

    label: str
    sketch: Sketch
    embeddings: ArrayEmbeddings | CachedEmbeddings | None

    @classmethod
    def of(cls, operand: Operand, label: str, feature_map: RandomFourierFeatures, progress: Progress = silent) -> Side:
        """Sketch the operand unless it is a sketch.

        Raises:
            FincEvalError: when there are too few samples to split in two halves.
        """
        if isinstance(operand, Sketch):
            side = cls(label, operand, None)
        else:
            sketch = Sketch.of(operand, feature_map, progress=partial(_staged, progress, f"sketch {label}"))
            side = cls(label, sketch, operand)
        if side.sketch.n < MINIMUM or min(fold.n for fold in side.sketch.folds) < 2:
            raise FincEvalError(
                f"{label} has {side.sketch.n} samples: a comparison needs at least {MINIMUM} of each set, and "
                "hundreds to say anything with confidence"
            )
        return side

    @cached_property
    def sample(self) -> tuple[torch.Tensor, torch.Tensor]:
        """φ of the bottom-k sample, shape (m, 2r), and the fold of each row, shape (m,)."""
        features = self.sketch.feature_map(self.sketch.sample.rows)
        return features, torch.from_numpy(fold_of(self.sketch.sample.keys)).to(features.device)

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
        for batch in self.embeddings.batches():
            features = self.sketch.feature_map(batch.rows)
            folds = torch.from_numpy(fold_of(sample_keys(batch.ids))).to(features.device)
            scores.update(features, folds, batch.start)
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
        cache = self.cache
        failures = cache.failures if cache else []
        return SetInfo(
            name=Path(cache.source).name if cache else self.label,
            source=_below_here(cache.source) if cache else None,
            n=self.sketch.n,
            digest="+".join(self.sketch.sources),
            from_sketch=self.embeddings is None,
            unreadable=len(failures),
            unreadable_examples=tuple((str(i), str(reason)) for i, reason in failures[:EXAMPLES]),
        )


@dataclass(frozen=True)
class Scored:
    """A side after its score pass: the best samples of each direction, and the out-of-fold masses."""

    side: Side
    scores: ScorePass
    masses: Masses


def _staged(progress: Progress, stage: str, _: str, done: int, total: int) -> None:
    progress(stage, done, total)


def _below_here(source: str) -> str | None:
    """The source's path, from the working folder where it lies below, so that a report names no more than it must."""
    path = Path(source)
    if not path.is_absolute():
        return None
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
