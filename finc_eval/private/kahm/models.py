"""Models of classes from kernel affine hull machines: conditionally deep, wide, one for each class.

A deep model passes a point through machines of fewer and fewer components, and takes the nearest of its images. A wide
model is the union of models of clusters, and the nearest counts. The class of a point is the class of the nearest model
(Kumar, Moser, Fischer, JAIR 79, 2024, Definitions 3 to 8).
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_labels
from finc_eval.core.words import plural
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE, check_same_space
from finc_eval.embeddings.search.neighbors import Neighbors
from finc_eval.embeddings.subset import Subset
from finc_eval.private.kahm.machine import Kahm, fit_deep
from finc_eval.private.kahm.settings import KahmSettings

MAX_BATCH_ENTRIES = 1 << 22  # numbers of a batch of queries and of their kernel values: 32 MiB each
MAX_CLUSTERED = 50_000  # maximum number of samples that k-means sees; the others join the nearest cluster

EQUAL = 1e-6
"""Distance, as a part of a sample's length, up to which two samples are equal: float32 rounds entries by 6e-8."""


class PreciseRows(ArrayEmbeddings):
    """An array or tensor that keeps its precision: float64 is not rounded to float32."""

    _is_precise = True

    def _finite(self, rows: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
        """Return rows (n, d), or raise DataError with the number of the first row that is not finite."""
        rows = rows.detach()
        if not (finite := rows.isfinite().all(1)).all():
            row = numbers[int((~finite).nonzero()[0])]
            raise DataError(f"{self.name}: row {row} is not finite (NaN or Inf): leave it out")
        return rows


def precise_rows(source: object, name: str) -> Embeddings:
    """Return the samples of an array, tensor, cache or cache file; arrays keep their precision."""
    if isinstance(source, Embeddings | str | Path | EmbeddingCache):
        return as_embeddings(source, name)
    return PreciseRows(source, name)  # type: ignore[arg-type]  # anything else must be an array


def count_repeated(near: Neighbors, base: Embeddings) -> int:
    """Return how many samples are also samples of a base, from their nearest neighbors in it."""
    parts = [torch.linalg.vector_norm(batch.rows.float(), dim=1).cpu().numpy() for batch in base.batches()]
    return int((near.distances[:, 0] <= EQUAL * np.concatenate(parts)[near.indices[:, 0]]).sum())


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of points to models."""

    values: NDArray[np.float64]  # shape (n, models), or (n,) for one model; infinite if a point has no image
    poles: int  # number of images whose divisor is decided by rounding: they are far away, but nobody knows where

    @property
    def undefined(self) -> int:
        """Number of points that are infinitely far from every model."""
        values = self.values if self.values.ndim == 2 else self.values[:, None]
        return int(np.isinf(values).all(1).sum())


@dataclass(frozen=True, eq=False)
class WideKahm:
    """The model of one class: a union of branches, each of one or more layers, made by `fit_wide`.

    Attributes:
        branches: machines of each branch, of n, n − 1, … components.

    Example:
        >>> import finc_eval as fe
        >>> branch = fe.kahm.fit_deep([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]])
        >>> fe.kahm.WideKahm((branch,)).distances([[1.5, 2.0], [9.0, 9.0]]).values.round(1).tolist()
        [0.1, 8.7]
    """

    branches: tuple[tuple[Kahm, ...], ...]

    @property
    def dim(self) -> int:
        """p, number of entries of a sample."""
        return self.branches[0][0].dim

    @property
    def n(self) -> int:
        """Number of samples in all branches."""
        return sum(layers[0].n for layers in self.branches)

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.branches[0][0].mean.device

    @classmethod
    def union(cls, models: Sequence[WideKahm]) -> WideKahm:
        """Join models: the distance to the union is the least of theirs.

        Raises:
            UsageError: no models are given.
            IncompatibleError: the models have different dimensions.
        """
        if not models:
            raise UsageError("models to join must be at least one, got none")
        if len({model.dim for model in models}) != 1:
            raise IncompatibleError(f"models to join must have one dimension, got {[model.dim for model in models]}")
        return cls(tuple(branch for model in models for branch in model.branches))

    def distances(self, queries: object) -> Distances:
        """Return Γ(x), the least ‖x − A(x)‖ over branches and layers, for every query; queries are streamed.

        Args:
            queries: points, shape (n, p): array, tensor, cache or its path.

        Raises:
            IncompatibleError: the queries have another dimension than the samples of the model.
            DataError: a row is not finite.
        """
        distances = _distances((self,), queries)
        return Distances(distances.values[:, 0], distances.poles)


@dataclass(frozen=True, eq=False)
class ClassModels:
    """A model for each class, made by `fit_classes`.

    Attributes:
        models: model of each class, by label.
        settings: settings that each model was made with.
        space: extractor of the samples, as name@digest; "" if unknown.
        source: digest of the samples; "" if unknown.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.kahm.KahmSettings(components=1)
        >>> wide = {"a": fe.kahm.fit_wide([[0.0], [1.0]], settings), "b": fe.kahm.fit_wide([[5.0], [6.0]], settings)}
        >>> fe.kahm.ClassModels(wide, settings).predict([[0.5], [5.5]]).tolist()
        [0, 1]
    """

    models: Mapping[Hashable, WideKahm]
    settings: KahmSettings
    space: str = ""
    source: str = ""

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """Labels, in the order of the columns of distances."""
        return tuple(self.models)

    def distances(self, queries: object) -> Distances:
        """Return Γ for every query and class: values of shape (n, classes). See `WideKahm.distances`."""
        rows = precise_rows(queries, "queries")
        check_same_space(rows.name, rows.space, "the samples of the models", self.space or ARRAY_SPACE)
        return _distances(tuple(self.models.values()), rows)

    def predict(self, queries: object) -> NDArray[np.intp]:
        """Return the index of the nearest class of every query, shape (n,) (Definition 7); the first of several."""
        nearest: NDArray[np.intp] = self.distances(queries).values.argmin(1)
        return nearest


def fit_wide(
    samples: object, settings: KahmSettings | None = None, *, device: str | torch.device | None = "cpu"
) -> WideKahm:
    """Make the model of one class: a branch of machines for each k-means cluster.

    Args:
        samples: samples, shape (N, p): array, tensor, cache or its path; one cluster at a time is held in float64.
        settings: settings of the model.
        device: device where the model is computed and stays; None for CUDA if available.

    Raises:
        DataError: the set is empty, or a row is not finite.
        UsageError: the device does not exist.

    Warns:
        UserWarning: components is more than the samples can have; the model has as many as they can.

    Example:
        >>> import finc_eval as fe
        >>> model = fe.kahm.fit_wide([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]])
        >>> model.distances([[1.5, 2.0], [9.0, 9.0]]).values.round(1).tolist()
        [0.1, 8.7]
    """
    settings, rows = settings or KahmSettings(), precise_rows(samples, "samples")
    tell_fewer_components(settings, rows.dim, rows.n)
    return _wide(rows, settings, device)


def fit_classes(
    samples: object,
    labels: ArrayLike,
    settings: KahmSettings | None = None,
    *,
    device: str | torch.device | None = "cpu",
) -> ClassModels:
    """Make a model of each class, in the order of sorted labels.

    Args:
        samples: samples of all classes together, shape (N, p): array, tensor, cache or its path.
        labels: label of each sample, shape (N,).
        settings: settings of the models.
        device: device where the models are computed and stay; None for CUDA if available.

    Raises:
        DataError: there is not one label for each sample, no sample, or a row that is not finite.
        UsageError: the device does not exist.

    Warns:
        UserWarning: components is more than the samples of a class can have; their model has as many as they can.

    Example:
        >>> import finc_eval as fe
        >>> models = fe.kahm.fit_classes([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
        >>> models.classes, models.predict([[0.5], [5.5]]).tolist()
        (('high', 'low'), [1, 0])
    """
    settings, rows = settings or KahmSettings(), precise_rows(samples, "samples")
    members = class_members(labels, rows.n)
    tell_fewer_components(settings, rows.dim, min(map(len, members.values())))
    models = {label: _wide(Subset(rows, chosen), settings, device) for label, chosen in members.items()}
    return ClassModels(models, settings, known_space(rows), rows.digest)


def tell_fewer_components(settings: KahmSettings, dim: int, smallest: int) -> None:
    """Warn if a model cannot have as many components as somebody asked for: the default means "at most"."""
    most = min(dim, smallest - 1)
    if settings.components > most and settings.components != KahmSettings.components:
        warnings.warn(
            f"components is {settings.components}, but {plural(smallest, 'sample')} of {plural(dim, 'entry')} have "
            f"at most {most}: a model of them has these",
            stacklevel=3,
        )


def _wide(rows: Embeddings, settings: KahmSettings, device: str | torch.device | None) -> WideKahm:
    where = usable_device(device)
    return WideKahm(
        tuple(fit_deep(rows.rows_at(members).to(where), settings) for members in branch_members(rows, settings))
    )


def known_space(rows: Embeddings) -> str:
    """Return the extractor of a set, as name@digest; "" for arrays, whose extractor is unknown."""
    return "" if rows.space.startswith(ARRAY_SPACE) else rows.space


def class_members(labels: ArrayLike, n: int) -> dict[Hashable, NDArray[np.int64]]:
    """Return the rows of each class, in the order of sorted labels."""
    codes = np.asarray(labels)
    check_labels(codes.shape, n)
    return {label.item(): np.flatnonzero(codes == label) for label in np.unique(codes)}


def matching_scores(distances: ArrayLike) -> NDArray[np.float64]:
    """Return exp(−Γ_c² / Σ_c Γ_c²) for every class (Definition 8), in [e⁻¹, 1].

    The scores rank classes. They are not probabilities: they do not sum to 1, and no statistical model stands behind
    them.

    Args:
        distances: Γ of each query and class, shape (n, classes); infinite values are allowed.

    Returns:
        Scores, shape (n, classes); larger is nearer.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.matching_scores([[1.0, 2.0, 2.0]]).round(3).tolist()
        [[0.895, 0.641, 0.641]]
    """
    scores: NDArray[np.float64] = np.exp(-relative_squares(np.asarray(distances, np.float64)))
    return scores


def relative_squares(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Γ_c² / Σ_c Γ_c², and its limit if distances are infinite or all 0: (n, classes), rows sum to 1."""
    infinite = np.isinf(distances)
    # Among infinite distances the finite distances count as nothing, and all 0 are as equal as any.
    ends = np.where(infinite.any(1, keepdims=True), infinite, 1.0).astype(np.float64)
    largest = np.where(infinite.any(1), inf, distances.max(1))[:, None]
    usual = np.isfinite(largest) & (largest > 0)
    scaled = np.where(usual, np.divide(distances, largest, out=ends.copy(), where=usual), ends)
    squares = np.square(scaled)
    shares: NDArray[np.float64] = squares / squares.sum(1, keepdims=True)
    return shares


def branch_members(rows: Embeddings, settings: KahmSettings) -> list[NDArray[np.int64]]:
    """Return the rows of each branch, a k-means cluster; a cluster that is too small joins the nearest cluster."""
    seed, smallest = settings.seed, max(2, settings.components + 1)
    # 1000: samples of a branch, about: a machine costs the cube of them.
    count = min(settings.branches or ceil(rows.n / 1000), rows.n)
    if count == 1:
        return [np.arange(rows.n)]
    from sklearn.cluster import KMeans  # scikit-learn takes a second to import, and most models have one branch

    drawn = np.arange(rows.n)
    if rows.n > MAX_CLUSTERED:
        drawn = np.sort(np.random.default_rng(seed).choice(rows.n, MAX_CLUSTERED, replace=False))
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


def _distances(models: tuple[WideKahm, ...], queries: object) -> Distances:
    rows = precise_rows(queries, "queries")
    if rows.dim != models[0].dim:
        raise IncompatibleError(
            f"these samples have {rows.dim} entries, the models' {models[0].dim}: embed both by one extractor "
            "(on the command line, --extractor)"
        )
    values, poles = np.empty((rows.n, len(models))), 0
    largest = max(layers[0].n for model in models for layers in model.branches)
    for batch in rows.batches(max(MAX_BATCH_ENTRIES // (rows.dim + largest), 1)):
        points = batch.rows.to(models[0].device).double()
        for column, model in enumerate(models):
            nearest = torch.full((len(points),), inf, dtype=torch.double, device=points.device)
            undecided = torch.zeros((), dtype=torch.long, device=points.device)
            for layers in model.branches:
                images = points
                for machine in layers:
                    images, _, at_pole = machine.images(images)
                    distances = torch.linalg.vector_norm(points - images, dim=1)
                    nearest = torch.where(distances < nearest, distances, nearest)  # a distance may be NaN
                    undecided += at_pole.sum()
            values[batch.start : batch.start + len(points), column] = nearest.cpu().numpy()
            poles += int(undecided)
    return Distances(values, poles)
