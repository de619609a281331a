"""The Gaussian fitted to a set of embeddings, which is all that a Fréchet distance uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.base import WINDOW, Embeddings, sample_keys
from finc_eval.numerics.moments import Moments
from finc_eval.sketches.sketch import Sketch

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_COVARIANCE_SIZE = 16_384
"""Largest number of rows of a covariance matrix, which then takes 2 GB in float64."""


@dataclass(frozen=True, eq=False)
class GaussianStatistics:
    """Mean and covariance of a set of embeddings, in float64.

    Attributes:
        n: number of samples; None if another tool's file does not state it.
        mean: mean, shape (d,).
        covariance: covariance, shape (d, d), with n − 1 in the denominator as in numpy.cov.
        name: name of the set in messages.
        space: extractor, as name@digest.
        rows: (x − mean)/√(n − 1), shape (n, d), kept if n ≤ d: a factor of the covariance without rounding.
    """

    n: int | None
    mean: torch.Tensor
    covariance: torch.Tensor
    name: str
    space: str
    rows: torch.Tensor | None = None

    @property
    def dim(self) -> int:
        """Number of entries of an embedding, d."""
        return len(self.mean)

    @cached_property
    def root(self) -> torch.Tensor:
        """Factor F of the covariance, shape (rank, d), with FᵀF = covariance.

        For few samples these are the samples themselves, otherwise F comes from the eigenvalues. Eigenvalues below
        rounding, d · eps times the largest, count as zero: their square roots would not be small.
        """
        if self.rows is not None:
            return self.rows
        values, vectors = torch.linalg.eigh(self.covariance)
        kept = values > self.dim * torch.finfo(values.dtype).eps * values[-1]
        factor: torch.Tensor = values[kept].sqrt()[:, None] * vectors[:, kept].T
        return factor

    def to(self, device: torch.device) -> GaussianStatistics:
        """Return the statistics on a device."""
        if self.mean.device == device:
            return self
        rows = None if self.rows is None else self.rows.to(device)
        return GaussianStatistics(self.n, self.mean.to(device), self.covariance.to(device), self.name, self.space, rows)


@dataclass(frozen=True, eq=False)
class MomentBlocks:
    """A set cut into parts, each kept as the moments of x − center: the Gaussian of any union needs no samples."""

    center: torch.Tensor
    parts: tuple[Moments, ...]
    name: str
    space: str

    def statistics(self, without: int | None = None) -> GaussianStatistics:
        """Return the Gaussian of the whole set, or of all parts but one."""
        first, *rest = (part for index, part in enumerate(self.parts) if index != without)
        return _from_moments(sum(rest, first), self.center, self.name, self.space)


def from_embeddings(
    embeddings: Embeddings, indices: NDArray[np.int64] | None = None, *, device: str | torch.device | None = None
) -> GaussianStatistics:
    """Fit a Gaussian to embeddings, or to the rows at `indices`, which must be distinct."""
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
        # Relative to a point near the mean, so that Σxxᵀ − n·μμᵀ does not cancel.
        center = rows.mean(0) if center is None else center
        moments.update(rows - center)
    assert center is not None
    return _from_moments(moments, center, embeddings.name, embeddings.space)


def from_sketch(sketch: Sketch, name: str = "the sketch") -> GaussianStatistics:
    """Return the Gaussian of the embeddings behind a sketch, without any sample."""
    return blocks_of_sketches([sketch], name).statistics()


def blocks_of_sketches(sketches: Sequence[Sketch], name: str = "the sketch") -> MomentBlocks:
    """Use the sketches of disjoint parts of a set as its blocks.

    Raises:
        IncompatibleError: they are not comparable.
        DataError: they do not keep moments of the embeddings.
    """
    parts = []
    for sketch in sketches:
        sketches[0].check_comparable(sketch)
        if sketch.embedding is None:
            raise DataError(
                f"{name} keeps no moments of its embeddings, which have {sketch.dim} entries: take the embeddings"
            )
        parts.append(sketch.embedding)
    return MomentBlocks(sketches[0].feature_map.center.double(), tuple(parts), name, sketches[0].space)


def blocks_of_embeddings(
    embeddings: Embeddings, count: int, *, device: str | torch.device | None = None
) -> MomentBlocks:
    """Cut a set into `count` random blocks.

    Raises:
        DataError: there are fewer than two independent samples per block.
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
    """Assign each sample at random to one of `count` blocks of equal size, and return its block, shape (n,).

    A hash of the ids decides, so the order of the samples does not matter. The windows of one video share a block,
    because they are not independent samples.

    Raises:
        DataError: there are fewer than two independent samples per block.
    """
    units = np.empty(embeddings.n, np.uint64)
    for start in range(0, embeddings.n, 16 * BATCH_SIZE):
        ids = embeddings.ids_between(start, min(start + 16 * BATCH_SIZE, embeddings.n))
        units[start : start + len(ids)] = sample_keys([WINDOW.sub("", sample) for sample in ids])
    distinct, unit_of = np.unique(units, return_inverse=True)
    if len(distinct) < 2 * count:
        raise DataError(
            f"{embeddings.name} has {len(distinct)} independent samples, too few for {count} blocks: give at least "
            f"{2 * count}, or ask for fewer blocks"
        )
    # np.unique sorts by hash, so that the ranks are a random order of the samples.
    return torch.from_numpy(unit_of % count)


def _from_moments(moments: Moments, center: torch.Tensor, name: str, space: str) -> GaussianStatistics:
    n = moments.n
    _check_size(n, moments.size, name)
    offset = moments.mean()
    covariance = moments.mean_square().addr_(offset, offset, alpha=-1).mul_(n / (n - 1))
    return GaussianStatistics(n, center.to(offset) + offset, covariance, name, space)


def _check_size(n: int, dim: int, name: str) -> None:
    if n < 2:
        raise DataError(f"{name} has {n} sample{'s' * (n != 1)}: a covariance needs at least two")
    if dim > MAX_COVARIANCE_SIZE:
        raise DataError(
            f"{name} has embeddings of {dim} entries, whose covariance needs {8e-9 * dim**2:.0f} GB: use an extractor "
            f"of at most {MAX_COVARIANCE_SIZE}"
        )
