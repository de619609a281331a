"""The Gaussian fitted to a set of embeddings, which is all that a Fréchet distance uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.of_statistic import random_blocks
from finc_eval.numerics.moments import Moments
from finc_eval.sketches.sketch import Sketch

MAX_COVARIANCE_SIZE = 16_384  # largest number of rows of a covariance matrix, which then takes 2 GB in float64


@dataclass(frozen=True, eq=False)
class GaussianStatistics:
    """Mean and covariance of a set of embeddings, in float64."""

    type_name: ClassVar[str] = "statistics"

    n: int | None  # number of samples; None if another tool's file does not state it
    mean: torch.Tensor  # mean, shape (d,)
    # covariance, shape (d, d), with n − 1 in the denominator as in numpy.cov; None: it follows from `rows`
    stated: torch.Tensor | None
    name: str  # name of the set in messages
    space: str  # extractor, as name@digest
    # (x − mean)/√(n − 1), shape (n, d), kept if n ≤ d: a factor of the covariance without rounding
    rows: torch.Tensor | None = None
    is_foreign: bool = False  # whether another tool's file states them, which does not name the extractor

    @property
    def dim(self) -> int:
        """Number of entries of an embedding, d."""
        return len(self.mean)

    @cached_property
    def covariance(self) -> torch.Tensor:
        """Covariance, shape (d, d); of few samples it is much larger than they are, and made if it is asked for."""
        if self.stated is not None:
            return self.stated
        rows = self.root
        return rows.T @ rows

    @property
    def trace(self) -> torch.Tensor:
        """Trace of the covariance."""
        return self.covariance.trace() if self.rows is None else self.rows.square().sum()

    @property
    def is_constant(self) -> bool:
        """True if nothing varies."""
        return not (self.covariance if self.rows is None else self.rows).any()

    def times(self, columns: torch.Tensor) -> torch.Tensor:
        """Multiply the covariance with columns: (d, t) → (d, t)."""
        return self.covariance @ columns if self.rows is None else self.rows.T @ (self.rows @ columns)

    @cached_property
    def root(self) -> torch.Tensor:
        """Factor F of the covariance, shape (rank, d), with FᵀF = covariance.

        For few samples these are the samples themselves, otherwise F is Cholesky's factor. If the covariance is nearly
        singular, F comes from the eigenvalues: those below rounding, d · eps times the largest, count as zero, because
        their square roots would not be small.
        """
        if self.rows is not None:
            return self.rows
        lower, failed = torch.linalg.cholesky_ex(self.covariance)
        # 1e-8: least part of an entry's variance that the entries before it must leave for Cholesky's factor to be
        # exact.
        if not failed and (lower.diagonal().square() > 1e-8 * self.covariance.diagonal()).all():
            transposed: torch.Tensor = lower.T
            return transposed
        values, vectors = torch.linalg.eigh(self.covariance)
        kept = positive(values) > 0
        factor: torch.Tensor = values[kept].sqrt()[:, None] * vectors[:, kept].T
        return factor

    @property
    def has_full_rank(self) -> bool:
        """True for more samples than dimensions, and variance in every direction."""
        return self.rows is None and len(self.root) == self.dim

    def divided_by_n(self) -> GaussianStatistics:
        """Return the statistics with n in place of n − 1 in the denominator; unchanged if n is not known."""
        factor = 1.0 if self.n is None else (self.n - 1) / self.n
        stated, rows = self.stated, self.rows
        return replace(
            self, stated=None if stated is None else stated * factor, rows=None if rows is None else rows * factor**0.5
        )

    def to(self, device: torch.device) -> GaussianStatistics:
        """Return the statistics on a device."""
        if self.mean.device == device:
            return self
        stated, rows = (None if tensor is None else tensor.to(device) for tensor in (self.stated, self.rows))
        return replace(self, mean=self.mean.to(device), stated=stated, rows=rows)


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
        return from_moments(sum(rest, first), self.center, self.name, self.space)


def from_embeddings(embeddings: Embeddings, *, run: Run | None = None) -> GaussianStatistics:
    """Fit a Gaussian to embeddings."""
    run, n, dim = Run.of(run), embeddings.n, embeddings.dim
    _check_size(n, dim, embeddings.name)
    if n > dim:
        center, (moments,) = block_moments(embeddings, torch.zeros(n), 1, run)
        return from_moments(moments, center, embeddings.name, embeddings.space)
    rows = torch.cat([rows for _, rows in row_blocks(embeddings, run.torch_device, run.portion)])
    mean = rows.mean(0)
    rows.sub_(mean).div_((n - 1) ** 0.5)
    return GaussianStatistics(n, mean, None, embeddings.name, embeddings.space, rows)


def blocks_of_sketches(sketches: Sequence[Sketch], name: str = "the sketch") -> MomentBlocks:
    """Use the sketches of disjoint parts of a set as its blocks."""
    parts = []
    for sketch in sketches:
        sketches[0].check_comparable(sketch)
        if sketch.embedding is None:
            raise DataError(
                f"{name} keeps no moments of its embeddings, which have {sketch.dim} entries: take the embeddings"
            )
        parts.append(sketch.embedding)
    return MomentBlocks(sketches[0].feature_map.center.double(), tuple(parts), name, sketches[0].space)


def blocks_of_embeddings(embeddings: Embeddings, count: int, *, run: Run | None = None) -> MomentBlocks:
    """Cut a set into `count` random blocks."""
    _check_size(embeddings.n, embeddings.dim, embeddings.name)
    center, parts = block_moments(embeddings, random_blocks(embeddings, count), count, Run.of(run))
    return MomentBlocks(center, parts, embeddings.name, embeddings.space)


def block_moments(
    embeddings: Embeddings, block_of: torch.Tensor, count: int, run: Run
) -> tuple[torch.Tensor, tuple[Moments, ...]]:
    """Sum the moments of each block of a set in one pass, relative to a point near its mean.

    That point is returned, too; so Σxxᵀ − n·μμᵀ does not cancel.
    """
    where = run.torch_device
    parts = tuple(Moments(embeddings.dim, "float64", where) for _ in range(count))
    center = torch.empty(0)
    for here, rows in row_blocks(embeddings, where, run.portion):
        center = rows.mean(0) if here.start == 0 else center
        of_rows = block_of[here].to(where)
        for block, part in enumerate(parts):
            part.update(rows[of_rows == block] - center)
    return center, parts


def row_blocks(
    embeddings: Embeddings, where: torch.device, size: int, start: int = 0
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield the rows from `start` on in float64, as (their indices, rows), each time `size` of them."""
    for first in range(start, embeddings.n, size):
        here = slice(first, min(first + size, embeddings.n))
        yield here, embeddings.rows_at(np.arange(here.start, here.stop)).to(where, torch.double)


def positive(values: torch.Tensor) -> torch.Tensor:
    """Return ascending eigenvalues, with those below rounding set to zero: their roots would not be small."""
    return values.where(values > len(values) * torch.finfo(values.dtype).eps * values[-1:], 0.0)


def symmetric(matrix: torch.Tensor) -> torch.Tensor:
    """Return the symmetric part of a product that is symmetric but for rounding."""
    return (matrix + matrix.T).div_(2)


def frechet_terms(
    mean: torch.Tensor, trace: torch.Tensor, other: GaussianStatistics, common: torch.Tensor
) -> tuple[float, float]:
    """Return ‖μ₁ − μ₂‖² and tr Σ₁ + tr Σ₂ − 2 tr (Σ₁^½ Σ₂ Σ₁^½)^½, given the last trace as `common`."""
    return float((mean - other.mean).square().sum()), float(trace + other.trace) - 2 * float(common)


def from_moments(moments: Moments, center: torch.Tensor, name: str, space: str) -> GaussianStatistics:
    """Return the Gaussian of samples x from the moments of x − center."""
    n = moments.n
    _check_size(n, moments.size, name)
    offset = moments.mean()
    covariance = moments.mean_square().addr_(offset, offset, alpha=-1).mul_(n / (n - 1))
    return GaussianStatistics(n, center.to(offset) + offset, covariance, name, space)


def _check_size(n: int, dim: int, name: str) -> None:
    if n < 2:
        raise DataError(f"{name} has {plural(n, 'sample')}: a covariance needs at least two")
    if dim > MAX_COVARIANCE_SIZE:
        raise DataError(
            f"{name} has embeddings of {dim} entries, whose covariance needs {8e-9 * dim**2:.0f} GB: use an extractor "
            f"of at most {MAX_COVARIANCE_SIZE}"
        )
