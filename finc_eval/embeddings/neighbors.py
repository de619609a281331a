"""Exact Euclidean neighbors of sets of any size, in blocks: nothing of size n × m is ever held.

A float32 product bounds every squared distance of two blocks from below and above; the few pairs whose bounds leave a
question open are computed anew, from their differences in float64. So the answers are those of float64 (copies are at
distance 0, a tie is a tie) at the cost of a float32 product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import frexp
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import default_device
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.base import Embeddings, as_embeddings, check_same_space
from finc_eval.numerics.precision import arithmetic

ROWS = 2048
"""Rows of a block of distances, and its columns: 16 MiB, which the allocator uses again and again. Larger blocks are
fresh memory each time, and the system takes half as long to clear it as the product takes."""

HELD = 8
"""Blocks of queries that are held while the base passes, once for them all."""

PAIR_ENTRIES = 1 << 17
"""Entries of the embeddings of pairs that are computed anew together."""

HASH_COST = 20
"""Pairs that are computed in the time in which one row is hashed, about: of fewer, copies are computed like others."""

SKIPPED = 16
"""Every how many rows the mean is taken of: no distance depends on it."""

UNIT = 2.0**-24
FLOOR = 1e-30
"""Squares below it, beside the largest entry as 1, may have been lost in float32."""


@dataclass(frozen=True)
class Key:
    """What to minimize over the base.

    Attributes:
        of: the key of squared distances, not decreasing in them, given the squared radii of the balls of the base;
            the two broadcast.
        degree: the power of the unit of length that it has.
    """

    of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    degree: int


SQUARED_DISTANCE = Key(lambda squared, _: squared, 2)


class Neighbors(NamedTuple):
    """Nearest neighbors, nearest first; of equally near ones the first in the base.

    Attributes:
        distances: shape (n, k).
        indices: rows of the base, shape (n, k).
    """

    distances: NDArray[np.float64]
    indices: NDArray[np.int64]


def nearest(queries: object, base: object, k: int, *, exclude_self: bool = False) -> Neighbors:
    """The k nearest neighbors of every query among the base.

    Args:
        queries: embeddings of shape (n, d): an array, a tensor, a cache or the path of one.
        base: embeddings of shape (m, d).
        k: how many.
        exclude_self: queries and base are one set, and no sample is a neighbor of itself; its copies are.

    Raises:
        FincEvalError: when the base has no k other samples, the dimensions differ, or a row is not finite.
    """
    x, y = pair(queries, base)
    if exclude_self and x.n != y.n:
        raise FincEvalError(f"exclude_self needs the same set twice, got {x.n} queries and a base of {y.n}")
    check_enough(y, k, itself=exclude_self)
    found = Smallest(x.n, k)
    for block in blocks_within(y) if exclude_self else blocks(x, y):
        found.update(block)
    return Neighbors(np.sqrt(found.keys), found.indices)


def squared_radii(base: object, k: int) -> NDArray[np.float64]:
    """The squared distance of every sample to its k-th nearest neighbor in its own set, itself excluded: (n,).

    Squared, because that is what distances are compared by: a root and its square need not meet again.
    """
    y = as_embeddings(base)
    check_enough(y, k)
    found = Smallest(y.n, k)
    for block in blocks_within(y):
        found.update(block)
    return np.ascontiguousarray(found.keys[:, -1])


def kth_distances(base: object, k: int) -> NDArray[np.float64]:
    """The radius of every sample's ball: its distance to its k-th nearest neighbor in its own set, itself excluded."""
    return np.sqrt(squared_radii(base, k))


def containing(
    queries: object, base: object, radii_squared: NDArray[np.float64], *, closed: bool = False
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Which balls contain which queries, as pairs of (rows of queries, rows of base), a block at a time.

    Args:
        queries: shape (n, d).
        base: the centers, shape (m, d).
        radii_squared: of the balls, shape (m,), as of `squared_radii`.
        closed: whether a ball includes its surface (≤) or not (<).
    """
    for block in blocks(*pair(queries, base)):
        rows, columns = block.within(column_radii=radii_squared[block.columns], closed=closed)
        yield rows + block.x.start, columns + block.y.start


def pair(queries: object, base: object, names: tuple[str, str] = ("queries", "base")) -> tuple[Embeddings, Embeddings]:
    """Two sets of one dimension.

    Raises:
        FincEvalError: when they are no embeddings, or of unlike extractors or dimensions.
    """
    x, y = as_embeddings(queries, names[0]), as_embeddings(base, names[1])
    check_same_space(x.name, x.space, y.name, y.space)
    if x.dim != y.dim:
        raise FincEvalError(
            f"{x.name} has {x.dim} entries per embedding and {y.name} {y.dim}: extract both with the same extractor"
        )
    return x, y


def check_enough(base: Embeddings, k: int, *, itself: bool = True) -> None:
    """Raise FincEvalError unless every sample finds k neighbors in a set, of which it is one itself or not."""
    if k < 1:
        raise FincEvalError(f"k must be at least 1, got {k}")
    if base.n < k + itself:
        raise FincEvalError(
            f"{base.name} has {base.n} samples, too few for {k} neighbors of each: pass at least {k + itself}, or a "
            "smaller k"
        )


@dataclass(frozen=True)
class Frame:
    """Where the origin of products lies, and their unit: neither changes a distance, both keep float32 accurate.

    Attributes:
        center: about the mean of the base.
        unit: a power of two, about the largest entry.
    """

    center: torch.Tensor
    unit: float

    @classmethod
    def of(cls, x: Embeddings, y: Embeddings) -> Frame:
        """The frame of two sets."""
        some, largest = [], 0.0
        for source in (y, x) if x is not y else (y,):
            for start in range(0, source.n, ROWS):
                rows = _rows_from(source, start)
                largest = max(largest, float(torch.linalg.vector_norm(rows, torch.inf)))
                if source is y:
                    some.append(rows[::SKIPPED].mean(0, dtype=torch.double))
        return cls(torch.stack(some).mean(0).float(), 2.0 ** frexp(largest)[1])


class Rows:
    """Consecutive rows of a set, as they are and as they enter products."""

    def __init__(self, source: Embeddings, start: int, frame: Frame) -> None:
        device = default_device()
        self.start = start
        self.rows = _rows_from(source, start).to(device)
        self.centered = (self.rows - frame.center.to(device)).div_(frame.unit)
        self.norms: torch.Tensor = torch.linalg.vector_norm(self.centered, dim=1).square_()

    @property
    def places(self) -> slice:
        """Where in the set they are."""
        return slice(self.start, self.start + len(self.rows))

    @cached_property
    def hashes(self) -> torch.Tensor:
        """A 64-bit hash of each row, by which copies are known without a look at the rows."""
        draws = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, self.rows.shape[1])
        weights = torch.from_numpy(draws | 1).to(self.rows.device)
        bits = self.rows.contiguous().view(torch.int32)
        return torch.cat([(part.long() * weights).sum(1) for part in torch.split(bits, 256)])


@dataclass(frozen=True)
class Block:
    """The squared distances of some queries to some of the base: bounds of all, and exact ones on demand.

    Attributes:
        x, y: the queries and the part of the base.
        lower: squared distances at least, in units of the frame, shape (b, c).
        unit: of the frame.
    """

    x: Rows
    y: Rows
    lower: torch.Tensor
    unit: float

    @classmethod
    def of(cls, x: Rows, y: Rows, unit: float) -> Block:
        """The distances of rows in one frame."""
        below = 1 - _relative(x)
        with arithmetic("float32"):
            lower = torch.addmm(y.norms * below - FLOOR, x.centered, y.centered.T, alpha=-2)
        lower += x.norms[:, None] * below
        return cls(x, y, lower, unit)

    @property
    def transposed(self) -> Block:
        """The same distances, the base as queries."""
        return Block(self.y, self.x, self.lower.T, self.unit)

    @property
    def rows(self) -> slice:
        """Which of the queries."""
        return self.x.places

    @property
    def columns(self) -> slice:
        """Which of the base."""
        return self.y.places

    def slack(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        """By how much the distance of pairs may exceed `lower`."""
        slack: torch.Tensor = 2 * _relative(self.x) * (self.x.norms[i] + self.y.norms[j]) + 2 * FLOOR
        return slack

    def exact(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        """The squared distances of pairs, in float64 and in the unit of the embeddings.

        They are the same bits wherever a pair is asked for, so that equal distances compare as equal.
        """
        squared = torch.zeros(len(i), dtype=torch.double, device=i.device)
        differ = torch.arange(len(i), device=i.device)
        if len(i) > HASH_COST * (len(self.x.rows) + len(self.y.rows)):
            differ = differ[self.x.hashes[i] != self.y.hashes[j]]
        size = max(PAIR_ENTRIES // self.x.rows.shape[1], 1)
        for start in range(0, len(differ), size):
            part = differ[start : start + size]
            squared[part] = _squared(self.x.rows, i[part], self.y.rows, j[part], size)
        return squared

    def approximate(self, rows: slice, accuracy: float) -> torch.Tensor:
        """The squared distances of some rows, in the unit of the embeddings, each within this relative error."""
        norms = self.x.norms[rows, None] + self.y.norms
        slack = 2 * _relative(self.x) * norms + 2 * FLOOR
        squared: torch.Tensor = self.lower[rows] + slack / 2
        i, j = _pairs(slack > 2 * accuracy * squared)
        squared *= self.unit**2
        squared[i, j] = self.exact(i + (rows.start or 0), j).float()
        return squared

    def within(
        self,
        *,
        column_radii: NDArray[np.float64] | None = None,
        row_radii: NDArray[np.float64] | None = None,
        closed: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs that lie within the squared radius of the column, or of the row, as (rows, columns) of the block."""
        given = column_radii if row_radii is None else row_radii
        radii = torch.from_numpy(given).to(self.lower.device)
        limits = self.scaled(radii)
        i, j = _pairs(self.lower <= (limits if row_radii is None else limits[:, None]))
        mine = j if row_radii is None else i
        inside = self.lower[i, j] + self.slack(i, j) < limits[mine]
        open_ = (~inside).nonzero().squeeze(1)
        squared, radius = self.exact(i[open_], j[open_]), radii[mine[open_]]
        inside[open_] = squared <= radius if closed else squared < radius
        return i[inside].cpu().numpy(), j[inside].cpu().numpy()

    def scaled(self, squared: torch.Tensor) -> torch.Tensor:
        """Squared lengths in the unit of `lower`."""
        return torch.mul(squared, self.unit**-2).float()


def blocks(x: Embeddings, y: Embeddings) -> Iterator[Block]:
    """All pairs of two sets of one dimension."""
    frame = Frame.of(x, y)
    for held in _held(x, frame):
        for start in range(0, y.n, ROWS):
            base = Rows(y, start, frame)
            for queries in held:
                yield Block.of(queries, base, frame.unit)


def blocks_within(y: Embeddings) -> Iterator[Block]:
    """All pairs of a set with itself, every sample infinitely far from itself; half of them are transposed others."""
    frame = Frame.of(y, y)
    for held in _held(y, frame):
        later = (Rows(y, start, frame) for start in range(held[-1].places.stop, y.n, ROWS))
        for base in chain(held, later):
            for queries in held:
                if queries is base:
                    block = Block.of(base, base, frame.unit)
                    block.lower.fill_diagonal_(torch.inf)
                    yield block
                elif queries.start < base.start:
                    block = Block.of(queries, base, frame.unit)
                    yield block
                    yield block.transposed


class Smallest:
    """The k smallest keys of every query over all blocks, each with its row of the base.

    Attributes:
        keys: shape (n, k), ascending; infinite where there are fewer.
        indices: shape (n, k), the first in the base among equal keys; −1 where there are fewer.
    """

    def __init__(
        self, n: int, k: int, key: Key = SQUARED_DISTANCE, radii_squared: NDArray[np.float64] | None = None
    ) -> None:
        self.keys = np.full((n, k), np.inf)
        self.indices = np.full((n, k), -1, dtype=np.int64)
        self._k, self._key, self._radii = k, key, radii_squared

    def update(self, block: Block) -> None:
        """Add the keys of a block; no pair comes twice."""
        radii = torch.zeros(1) if self._radii is None else torch.from_numpy(self._radii[block.columns])
        radii = radii.to(block.lower.device).expand(block.lower.shape[1])
        scaled = block.scaled(radii)
        keys = self._key.of(block.lower, scaled)
        i, j = _pairs(keys <= self._limit(block, keys, scaled))
        self._merge(block, i, j, radii)

    def _limit(self, block: Block, keys: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
        """What the k-th key cannot exceed: the k-th so far or, of a first block, the largest of k; (b, 1), finite."""
        limit = torch.from_numpy(self.keys[block.rows, -1:] / block.unit**self._key.degree).to(block.lower)
        if limit.isinf().any() and keys.shape[1] >= self._k:
            columns = keys.topk(self._k, largest=False).indices
            rows = torch.arange(len(columns), device=columns.device)[:, None]
            upper = block.lower.gather(1, columns) + block.slack(rows, columns)
            limit = limit.minimum(self._key.of(upper, scaled[columns]).amax(1, keepdim=True))
        return limit.clamp_max(torch.finfo(limit.dtype).max)

    def _merge(self, block: Block, i: torch.Tensor, j: torch.Tensor, radii: torch.Tensor) -> None:
        exact = self._key.of(block.exact(i, j), radii[j]).cpu().numpy()
        rows, new = (i + block.x.start).cpu().numpy(), (j + block.y.start).cpu().numpy()
        touched = np.unique(rows)
        rows = np.concatenate([np.repeat(touched, self._k), rows])
        keys = np.concatenate([self.keys[touched].ravel(), exact])
        indices = np.concatenate([self.indices[touched].ravel(), new])
        order = np.lexsort((indices, keys, rows))
        best = order[np.searchsorted(rows[order], touched)[:, None] + np.arange(self._k)]
        self.keys[touched], self.indices[touched] = keys[best], indices[best]


def _squared(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor, j: torch.Tensor, size: int) -> torch.Tensor:
    """‖x_i − y_j‖² of at most `size` pairs in float64, every sum in an order that the other pairs do not change."""
    if x.is_cuda:  # where that order may depend on the shape
        whole = [torch.nn.functional.pad(index, (0, size - len(index))) for index in (i, j)]
        return x[whole[0]].double().sub_(y[whole[1]]).square_().sum(1)[: len(i)]
    # Numpy, because torch's threads wait for each other at every step of so little work: 5 to 50 times as long.
    difference = np.subtract(x.numpy()[i.numpy()], y.numpy()[j.numpy()], dtype=np.float64)
    return torch.from_numpy(np.einsum("ij,ij->i", difference, difference))


def _pairs(mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where a mask is true, as (rows, columns); six times as fast as `nonzero` of a matrix."""
    if not mask.is_contiguous():
        columns, rows = _pairs(mask.T.contiguous())
        return rows, columns
    flat = mask.view(-1).nonzero().squeeze(1)
    return flat // mask.shape[1], flat % mask.shape[1]


def _relative(x: Rows) -> float:
    """The error of a squared distance in float32, over the squared norms.

    That of a product of d terms is about √d units in the last place of |a||b|, the largest seen 1.03 √d on a million
    pairs (d = 16 to 8192); the rest is for norms, centering and radii.
    """
    return float((4 * x.rows.shape[1] ** 0.5 + 16) * UNIT)


def _held(source: Embeddings, frame: Frame) -> Iterator[list[Rows]]:
    for begin in range(0, source.n, HELD * ROWS):
        yield [Rows(source, start, frame) for start in range(begin, min(begin + HELD * ROWS, source.n), ROWS)]


def _rows_from(source: Embeddings, start: int) -> torch.Tensor:
    return source.rows_at(np.arange(start, min(start + ROWS, source.n)))
