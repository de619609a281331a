"""The Gaussian fitted to a set of embeddings, all that a Fréchet distance knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import kind_of
from finc_eval.embeddings.base import WINDOW, Embeddings, as_embeddings, check_same_space, sample_keys
from finc_eval.numerics.moments import Moments
from finc_eval.sketches.sketch import Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 16_384
"""Entries of an embedding up to which its covariance, 2 GB of float64, is formed."""


@dataclass(frozen=True, eq=False)
class GaussianStatistics:
    """Mean and covariance of a set of embeddings, in float64.

    Attributes:
        n: how many samples; None where a file of others does not say.
        mean: shape (d,).
        covariance: shape (d, d), with n − 1 in the denominator as in numpy.cov.
        name: what messages call the set.
        space: the extractor, as name@digest.
        rows: (x − mean)/√(n − 1), shape (n, d), kept where n ≤ d: a factor of the covariance without rounding.
    """

    n: int | None
    mean: torch.Tensor
    covariance: torch.Tensor
    name: str
    space: str
    rows: torch.Tensor | None = None

    @property
    def dim(self) -> int:
        """d, entries per embedding."""
        return len(self.mean)

    @cached_property
    def root(self) -> torch.Tensor:
        """F, shape (rank, d), with FᵀF = covariance.

        The samples themselves where there are few, else from the eigenvalues. Those below rounding, d · eps times the
        largest, count as zero: their square roots would not be small.
        """
        if self.rows is not None:
            return self.rows
        values, vectors = torch.linalg.eigh(self.covariance)
        kept = values > self.dim * torch.finfo(values.dtype).eps * values[-1]
        factor: torch.Tensor = values[kept].sqrt()[:, None] * vectors[:, kept].T
        return factor

    def to(self, device: torch.device) -> GaussianStatistics:
        """The same on another device."""
        if self.mean.device == device:
            return self
        rows = None if self.rows is None else self.rows.to(device)
        return GaussianStatistics(self.n, self.mean.to(device), self.covariance.to(device), self.name, self.space, rows)


@dataclass(frozen=True, eq=False)
class MomentBlocks:
    """A set cut into parts, each as the moments of x − center: any union of them has its Gaussian without samples."""

    center: torch.Tensor
    parts: tuple[Moments, ...]
    name: str
    space: str

    def statistics(self, without: int | None = None) -> GaussianStatistics:
        """The Gaussian of the whole set, or of all but one part."""
        first, *rest = (part for index, part in enumerate(self.parts) if index != without)
        return _from_moments(sum(rest, first), self.center, self.name, self.space)


def gaussian_statistics(
    source: object, name: str = "embeddings", *, device: str | torch.device | None = None
) -> GaussianStatistics:
    """The Gaussian of whatever the caller has, in one pass and bounded memory.

    Args:
        source: embeddings (array or tensor of shape (n, d), an `EmbeddingCache`), a `Sketch`, `GaussianStatistics`,
            or the path of a cache, a sketch, or an npz of statistics.
        name: what messages call an array.
        device: where embeddings are summed; a GPU if there is one.

    Raises:
        FincEvalError: when there are fewer than two samples, or one is not finite, or the file holds none of these.
    """
    found = opened(source, name)
    return from_embeddings(found, device=device) if isinstance(found, Embeddings) else found


def opened(source: object, name: str) -> Embeddings | GaussianStatistics:
    """The embeddings, or where there are none the statistics, in what `gaussian_statistics` takes."""
    if isinstance(source, GaussianStatistics):
        return source
    if isinstance(source, Sketch):
        return from_sketch(source, name)
    if isinstance(source, str | Path):
        if Path(source).suffix.lower() in (".npz", ".pkl"):
            from finc_eval.metrics.reference_statistics import read_statistics  # which returns this module's class

            return read_statistics(source)
        if kind_of(source) == "sketch":
            return from_sketch(Sketch.load(source), str(source))
    return as_embeddings(source, name)


def from_embeddings(
    embeddings: Embeddings, indices: NDArray[np.int64] | None = None, *, device: str | torch.device | None = None
) -> GaussianStatistics:
    """The Gaussian of embeddings, or of the rows at `indices`, which must be distinct."""
    where = usable_device(device)
    wanted = np.arange(embeddings.n) if indices is None else np.sort(indices)
    n, dim = len(wanted), embeddings.dim
    _check_size(n, dim, embeddings.name)
    batches = (
        embeddings.rows_at(wanted[start : start + BATCH_SIZE]).to(where, torch.double)
        for start in range(0, n, BATCH_SIZE)
    )
    if n <= dim:
        rows = torch.cat(list(batches))
        mean = rows.mean(0)
        rows = (rows - mean) / (n - 1) ** 0.5
        return GaussianStatistics(n, mean, rows.T @ rows, embeddings.name, embeddings.space, rows)
    moments, center = Moments(dim, "float64", where), None
    for rows in batches:
        # About a point near the mean, lest Σxxᵀ − n·μμᵀ cancel.
        center = rows.mean(0) if center is None else center
        moments.update(rows - center)
    assert center is not None
    return _from_moments(moments, center, embeddings.name, embeddings.space)


def from_sketch(sketch: Sketch, name: str = "the sketch") -> GaussianStatistics:
    """The Gaussian of the embeddings behind a sketch, without any sample."""
    return blocks_of_sketches([sketch], name).statistics()


def blocks_of_sketches(sketches: Sequence[Sketch], name: str = "the sketch") -> MomentBlocks:
    """The sketches of disjoint parts of a set as its blocks.

    Raises:
        FincEvalError: when they are not comparable, or keep no moments of the embeddings.
    """
    parts = []
    for sketch in sketches:
        sketches[0].check_comparable(sketch)
        if sketch.embedding is None:
            raise FincEvalError(
                f"{name} keeps no moments of its embeddings, which have {sketch.dim} entries: take the embeddings"
            )
        parts.append(sketch.embedding)
    return MomentBlocks(sketches[0].feature_map.center.double(), tuple(parts), name, sketches[0].space)


def blocks_of_embeddings(
    embeddings: Embeddings, count: int, *, device: str | torch.device | None = None
) -> MomentBlocks:
    """A set cut into `count` random blocks.

    Raises:
        FincEvalError: when there are fewer than two samples, or independent samples, a block.
    """
    where = usable_device(device)
    _check_size(embeddings.n, embeddings.dim, embeddings.name)
    block_of = random_blocks(embeddings, count)
    parts = tuple(Moments(embeddings.dim, "float64", where) for _ in range(count))
    center: torch.Tensor | None = None
    for batch in embeddings.batches():
        rows = batch.rows.to(where, torch.double)
        center = rows.mean(0) if center is None else center
        blocks = block_of[batch.start : batch.start + len(rows)].to(where)
        for block, part in enumerate(parts):
            part.update(rows[blocks == block] - center)
    assert center is not None
    return MomentBlocks(center, parts, embeddings.name, embeddings.space)


def random_blocks(embeddings: Embeddings, count: int) -> torch.Tensor:
    """Which of `count` blocks of the same size each sample is in, shape (n,): at random by a hash of the ids.

    So the order of the samples does not matter. The windows of one video share a block, as they are no independent
    samples.

    Raises:
        FincEvalError: when there are fewer than two independent samples a block.
    """
    units = np.empty(embeddings.n, np.uint64)
    for start in range(0, embeddings.n, 16 * BATCH_SIZE):
        ids = embeddings.ids_between(start, min(start + 16 * BATCH_SIZE, embeddings.n))
        units[start : start + len(ids)] = sample_keys([WINDOW.sub("", sample) for sample in ids])
    distinct, unit_of = np.unique(units, return_inverse=True)
    if len(distinct) < 2 * count:
        raise FincEvalError(
            f"{embeddings.name} has {len(distinct)} independent samples, too few for {count} blocks: give at least "
            f"{2 * count}, or ask for fewer blocks"
        )
    # np.unique sorts by hash, so that the ranks are a random order of the samples.
    return torch.from_numpy(unit_of % count)


def check_pair(gen: GaussianStatistics | Embeddings, ref: GaussianStatistics | Embeddings) -> None:
    """Raise FincEvalError unless two sets are of one embedding space."""
    if gen.dim != ref.dim:
        raise FincEvalError(
            f"{gen.name} has embeddings of {gen.dim} entries, {ref.name} of {ref.dim}: use one extractor for both"
        )
    check_same_space(gen.name, gen.space, ref.name, ref.space)


def _from_moments(moments: Moments, center: torch.Tensor, name: str, space: str) -> GaussianStatistics:
    n = moments.n
    _check_size(n, moments.size, name)
    offset = moments.mean()
    covariance = moments.mean_square().addr_(offset, offset, alpha=-1).mul_(n / (n - 1))
    return GaussianStatistics(n, center.to(offset) + offset, covariance, name, space)


def _check_size(n: int, dim: int, name: str) -> None:
    if n < 2:
        raise FincEvalError(f"{name} has {n} sample{'s' * (n != 1)}: a covariance needs two at least")
    if dim > LARGEST:
        raise FincEvalError(
            f"{name} has embeddings of {dim} entries, whose covariance needs {8e-9 * dim**2:.0f} GB: use an extractor "
            f"of at most {LARGEST}"
        )
