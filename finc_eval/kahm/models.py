"""Models of classes from kernel affine hull machines: conditionally deep, wide, one a class; distances and scores.

A deep model passes a point through machines of fewer and fewer components, and takes the nearest of its images. A wide
one is the union of models of clusters, and the nearest counts. Classes are told apart by which model is nearest (Kumar,
Moser, Fischer, JAIR 79, 2024, Definitions 3 to 8).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import Subset
from finc_eval.kahm.machine import GUARD, Kahm, Settings, fit_layers
from finc_eval.kahm.rows import as_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from finc_eval.embeddings.base import Embeddings

PER_BRANCH = 1000
"""Samples of a branch, about: a machine costs the cube of them."""

ENTRIES = 1 << 22
"""Numbers of a batch of queries and of their kernel values: 32 MiB each."""

CLUSTERED = 50_000
"""Samples that k-means sees at most; the others join the nearest cluster."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of points to models.

    Attributes:
        values: shape (n, models), or (n,) for one; infinite where a point has no image in any branch.
        guarded: how many images were refused: a machine's denominator was about zero or negative there.
    """

    values: NDArray[np.float64]
    guarded: int

    @property
    def undefined(self) -> int:
        """Points that are infinitely far from every model."""
        values = self.values if self.values.ndim == 2 else self.values[:, None]
        return int(np.isinf(values).all(1).sum())


@dataclass(frozen=True, eq=False)
class WideKahm:
    """The model of one class: branches, each of layers.

    Attributes:
        branches: machines of a branch, of n, n − 1, … components.
    """

    branches: tuple[tuple[Kahm, ...], ...]

    @property
    def dim(self) -> int:
        """p, entries of a sample."""
        return self.branches[0][0].dim

    @property
    def n(self) -> int:
        """Samples in all branches."""
        return sum(layers[0].n for layers in self.branches)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.branches[0][0].mean.device

    @property
    def batch_size(self) -> int:
        """Queries whose images and kernel values fit in the memory set aside for them."""
        return max(ENTRIES // (self.dim + max(layers[0].n for layers in self.branches)), 1)

    @classmethod
    def union(cls, models: Sequence[WideKahm]) -> WideKahm:
        """The model with the branches of all: its distance is the least of theirs.

        Raises:
            FincEvalError: none are given, or they are of unlike dimensions.
        """
        if not models or len({model.dim for model in models}) != 1:
            raise FincEvalError(
                f"models to join must be at least one and of one dimension, got {[m.dim for m in models]}"
            )
        return cls(tuple(branch for model in models for branch in model.branches))

    def distances(self, queries: object, guard: float = GUARD) -> Distances:
        """Γ(x), the least ‖x − A(x)‖ over branches and layers, of every query; streamed.

        Args:
            queries: shape (n, p): array, tensor, cache or the path of one.
            guard: denominators below it, relative to that of a lone sample at distance 0, give no image.

        Raises:
            FincEvalError: another dimension, or a row that is not finite.
        """
        found = _distances((self,), queries, guard)
        return Distances(found.values[:, 0], found.guarded)

    def of_batch(self, points: torch.Tensor, guard: float = GUARD) -> tuple[torch.Tensor, int]:
        """The distances of one batch, (b, p) → (b,), and the number of refused images."""
        nearest = torch.full((len(points),), inf, dtype=torch.double, device=points.device)
        guarded = 0
        for layers in self.branches:
            images, sound = points, torch.ones(len(points), dtype=torch.bool, device=points.device)
            for machine in layers:
                images, denominators = machine.images(images, guard)
                refused = sound & ~(denominators >= guard)
                guarded += int(refused.sum())
                sound &= ~refused  # a point without an image has none in deeper layers either
                distances = torch.linalg.vector_norm(points - images, dim=1)
                nearest = torch.where(sound, torch.minimum(nearest, distances), nearest)
        return nearest, guarded


@dataclass(frozen=True, eq=False)
class ClassModels:
    """A model of each class.

    Attributes:
        models: by class.
        settings: what each was made with.
    """

    models: Mapping[Hashable, WideKahm]
    settings: Settings

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """In the order of the columns of distances."""
        return tuple(self.models)

    def distances(self, queries: object, guard: float = GUARD) -> Distances:
        """Γ of every query and class: values of shape (n, classes); streamed."""
        return _distances(tuple(self.models.values()), queries, guard)

    def predict(self, queries: object) -> NDArray[np.intp]:
        """The place of the nearest class of every query, shape (n,); the first of several."""
        nearest: NDArray[np.intp] = self.distances(queries).values.argmin(1)
        return nearest


def fit_wide(samples: object, settings: Settings, device: str | torch.device | None = "cpu") -> WideKahm:
    """The model of one class.

    Args:
        samples: shape (N, p): array, tensor, cache or the path of one. A cluster at a time is held in float64.
        settings: of the model.
        device: where it is computed and stays; None for the default one.

    Raises:
        FincEvalError: no samples, a row that is not finite, or no such device.
    """
    rows, where = as_rows(samples, "samples"), usable_device(device)
    count = ceil(rows.n / PER_BRANCH) if settings.branches is None else settings.branches
    smallest = max(2, settings.components + 1)
    members = clusters(rows, min(count, rows.n), smallest, settings.seed)
    return WideKahm(tuple(fit_layers(rows.rows_at(part).to(where), settings) for part in members))


def fit_classes(
    samples: object, labels: ArrayLike, settings: Settings, device: str | torch.device | None = "cpu"
) -> ClassModels:
    """A model of each class, in the order of sorted labels.

    Args:
        samples: shape (N, p), all classes together.
        labels: shape (N,).
        settings: of the models.
        device: where they are computed and stay.

    Raises:
        FincEvalError: not one label a sample, or what `fit_wide` refuses.
    """
    rows, where = as_rows(samples, "samples"), usable_device(device)
    codes = np.asarray(labels)
    if codes.shape != (rows.n,):
        raise FincEvalError(f"labels must be one a sample, shape ({rows.n},), got {codes.shape}")
    models = {
        label.item(): fit_wide(Subset(rows, np.flatnonzero(codes == label)), settings, where)
        for label in np.unique(codes)
    }
    return ClassModels(models, settings)


def matching_scores(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(−Γ_c² / Σ_c Γ_c²) of every class (Definition 8): (n, classes), in [e⁻¹, 1].

    A ranking score and no probability: its values do not sum to 1, and no model stands behind them.
    """
    scores: NDArray[np.float64] = np.exp(-relative_squares(distances))
    return scores


def relative_squares(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Γ_c² / Σ_c Γ_c², and what it tends to where distances are infinite or all 0: (n, classes), rows sum to 1."""
    infinite = np.isinf(distances)
    # Among infinite distances the finite ones count as nothing, and all 0 are as equal as any.
    ends = np.where(infinite.any(1, keepdims=True), infinite, 1.0).astype(np.float64)
    largest = np.where(infinite.any(1), inf, distances.max(1))[:, None]
    usual = np.isfinite(largest) & (largest > 0)
    scaled = np.where(usual, np.divide(distances, largest, out=ends.copy(), where=usual), ends)
    squares = np.square(scaled)
    shares: NDArray[np.float64] = squares / squares.sum(1, keepdims=True)
    return shares


def clusters(rows: Embeddings, count: int, smallest: int, seed: int) -> list[NDArray[np.int64]]:
    """Rows by k-means cluster; one with fewer than `smallest` members joins the cluster of the nearest center.

    Args:
        rows: the samples.
        count: clusters asked for.
        smallest: members at least, as far as there are that many samples.
        seed: of k-means.
    """
    if count == 1:
        return [np.arange(rows.n)]
    from sklearn.cluster import KMeans

    drawn = np.arange(rows.n)
    if rows.n > CLUSTERED:
        drawn = np.sort(np.random.default_rng(seed).choice(rows.n, CLUSTERED, replace=False))
    sample = rows.rows_at(drawn).cpu().numpy()
    count = min(count, len(np.unique(sample, axis=0)))  # copies make no clusters of their own
    means = KMeans(count, n_init=1, random_state=seed).fit(sample)
    labels = np.concatenate([means.predict(batch.rows.cpu().numpy().astype(sample.dtype)) for batch in rows.batches()])
    centers, kept = means.cluster_centers_.astype(np.float64), list(range(count))
    sizes = np.bincount(labels, minlength=count)
    while len(kept) > 1 and sizes[kept].min() < smallest:
        small = min(kept, key=lambda label: int(sizes[label]))
        kept.remove(small)
        target = kept[int(np.linalg.norm(centers[kept] - centers[small], axis=1).argmin())]
        total = sizes[target] + sizes[small]
        if total:
            centers[target] = (sizes[target] * centers[target] + sizes[small] * centers[small]) / total
        labels[labels == small], sizes[target] = target, total
    return [np.flatnonzero(labels == label) for label in kept]


def _distances(models: tuple[WideKahm, ...], queries: object, guard: float) -> Distances:
    rows = as_rows(queries, "queries")
    if rows.dim != models[0].dim:
        raise FincEvalError(f"queries have {rows.dim} entries, the model's samples {models[0].dim}: use the same space")
    values, guarded = np.empty((rows.n, len(models))), 0
    for batch in rows.batches(min(model.batch_size for model in models)):
        points = batch.rows.to(models[0].device).double()
        for place, model in enumerate(models):
            found, refused = model.of_batch(points, guard)
            values[batch.start : batch.start + len(points), place] = found.cpu().numpy()
            guarded += refused
    return Distances(values, guarded)
