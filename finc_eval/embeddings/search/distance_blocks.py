"""Euclidean distances of two sets of any size, block by block: nothing of size n × m is ever held.

A float32 product bounds every squared distance of a block from below and above. The few pairs whose bounds leave a
question open are computed again in float64, from the differences of their entries. So the answers are exact as in
float64 (copies are at distance 0, a tie is a tie) at the cost of a float32 product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import frexp

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import Device, send, usable_device
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.keys import hash_rows
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.source import prefetch

BLOCK_ROWS = 2048
"""Rows of a block of distances, and its columns: 16 MiB, which the allocator uses again and again. Larger blocks are
fresh memory each time, and the system takes half as long to clear it as the product takes."""

HELD_BLOCKS = 8  # blocks of queries that are held while the base is read once for all of them
PAIR_ENTRIES, GPU_PAIR_ENTRIES = 1 << 17, 1 << 22
"""Entries of the embeddings of those pairs that are computed again together, on a CPU and on a GPU.

On an H200, 43 504 steps of 1 << 17 took 7.4 of the 12 seconds of precision and recall of 50 000 + 50 000 × 2 048. They
were 64 pairs each, where a block asks for about 1 500; a step takes 0.17 ms for its eight calls alone."""

HASH_COST = 20
"""Number of pairs that are computed in about the time in which one row is hashed. Copies among fewer pairs are
computed like all others."""

GROUPS_PER_NEIGHBOR = 8  # groups of columns per neighbor sought: about k / 16 more pairs are computed

SMALLEST_SQUARE = 1e-30  # smaller squares may be lost in float32, where the largest entry is about 1


@dataclass(frozen=True)
class Frame:
    """Origin and unit of the products. Neither changes a distance; both keep float32 accurate."""

    center: torch.Tensor  # approximate mean of the base, shape (d,)
    unit: float  # power of two near the largest entry

    @classmethod
    def of(cls, x: Embeddings, y: Embeddings, device: torch.device) -> Frame:
        """Return the frame of queries `x` and a base `y`, on a device."""
        means, largest = [], [torch.zeros((), device=device)]
        for source in (y, x) if x is not y else (y,):
            for _, rows in _read(source, range(0, source.n, BLOCK_ROWS), device):
                largest.append(torch.linalg.vector_norm(rows, torch.inf))
                if source is y:
                    # 16: the mean is taken of every sixteenth row: no distance depends on it.
                    means.append(rows[::16].mean(0, dtype=torch.double))
        return cls(torch.stack(means).mean(0).float(), 2.0 ** frexp(float(torch.stack(largest).max()))[1])


class Rows:
    """Consecutive rows of a set, both as they are and as they enter the products, on the device of the frame."""

    def __init__(self, start: int, rows: torch.Tensor, frame: Frame) -> None:
        self.start, self.rows = start, rows
        self.places = slice(start, start + len(rows))  # their indices in the set
        self.centered = (rows - frame.center).div_(frame.unit)
        self.norms: torch.Tensor = torch.linalg.vector_norm(self.centered, dim=1).square_()
        # Error bound of a squared distance in float32, relative to the squared norms. The error of a product of d terms
        # is about √d units in the last place of |a||b|; the largest seen on a million pairs (d = 16 to 8192) is
        # 1.03 √d. The rest is for norms, centering and radii.
        self.relative_error = float((4 * rows.shape[1] ** 0.5 + 16) * (2.0**-24))

    @cached_property
    def hashes(self) -> torch.Tensor:
        """A 64-bit hash of each row, by which copies are known without comparing the rows."""
        return hash_rows(self.rows)


class DistanceBlock:
    """Squared distances of some queries to a part of the base: bounds of all of them, exact values on demand.

    Attributes:
        x, y: the queries and the part of the base, which share a frame.
        rows, columns: their indices in their sets.
        unit: unit of the frame.
        lower: lower bounds of the squared distances, in squared units of the frame, shape (b, c).
    """

    def __init__(self, x: Rows, y: Rows, unit: float, lower: torch.Tensor | None = None) -> None:
        self.x, self.y, self.rows, self.columns, self.unit = x, y, x.places, y.places, unit
        if lower is None:
            below = 1 - x.relative_error
            with arithmetic():
                lower = torch.addmm(y.norms * below - SMALLEST_SQUARE, x.centered, y.centered.T, alpha=-2)
            lower += x.norms[:, None] * below
        self.lower = lower

    @property
    def transposed(self) -> DistanceBlock:
        """The same distances with queries and base exchanged."""
        return DistanceBlock(self.y, self.x, self.unit, self.lower.T)

    def slack(self, norms: torch.Tensor) -> torch.Tensor:
        """Return the largest amounts by which squared distances exceed `lower`, by the sums of both squared norms."""
        return 2 * self.x.relative_error * norms + 2 * SMALLEST_SQUARE

    def exact(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        """Return the squared distances of pairs in float64, in the unit of the embeddings.

        A pair has the same bits wherever it is asked for, so that equal distances compare as equal.
        """
        squared = torch.zeros(len(i), dtype=torch.double, device=i.device)
        differ = torch.arange(len(i), device=i.device)
        if len(i) > HASH_COST * (len(self.x.rows) + len(self.y.rows)):
            differ = differ[self.x.hashes[i] != self.y.hashes[j]]
        entries = GPU_PAIR_ENTRIES if self.x.rows.is_cuda else PAIR_ENTRIES
        size = max(entries // self.x.rows.shape[1], 1)
        for start in range(0, len(differ), size):
            part = differ[start : start + size]
            x, y, here, there = self.x.rows, self.y.rows, i[part], j[part]
            # Each distance is summed in an order that other pairs do not change.
            if x.is_cuda:  # where that order may depend on the shape
                here, there = (torch.nn.functional.pad(index, (0, size - len(part))) for index in (here, there))
                squared[part] = x[here].double().sub_(y[there]).square_().sum(1)[: len(part)]
            else:  # numpy: torch's threads wait for each other at every step of so little work, 5 to 50 times as long
                difference = x.numpy()[here.numpy()].astype(np.float64)
                difference -= y.numpy()[there.numpy()]
                squared[part] = torch.from_numpy(np.einsum("ij,ij->i", difference, difference))
        return squared

    def approximate(self, rows: slice, accuracy: float) -> torch.Tensor:
        """Return the squared distances of some rows in the unit of the embeddings, within this relative error."""
        slack = self.slack(self.x.norms[rows, None] + self.y.norms)
        squared: torch.Tensor = self.lower[rows] + slack / 2
        i, j = true_pairs(slack > 2 * accuracy * squared)
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
        """Return the pairs whose distance is below a radius, as (rows, columns) of the block.

        Radii are squared, one for each column (c,) or row (b,); `closed` counts distances equal to a radius.
        """
        given = column_radii if row_radii is None else row_radii
        radii = torch.from_numpy(given).to(self.lower.device)
        limits = self.scaled(radii)
        i, j = true_pairs(self.lower <= (limits if row_radii is None else limits[:, None]))
        center = j if row_radii is None else i
        inside = self.lower[i, j] + self.slack(self.x.norms[i] + self.y.norms[j]) < limits[center]
        unsure = (~inside).nonzero().squeeze(1)
        squared, radius = self.exact(i[unsure], j[unsure]), radii[center[unsure]]
        inside[unsure] = squared <= radius if closed else squared < radius
        return i[inside].cpu().numpy(), j[inside].cpu().numpy()

    def scaled(self, squared: torch.Tensor) -> torch.Tensor:
        """Return squared lengths in the unit of `lower`."""
        return torch.mul(squared, self.unit**-2).float()


def blocks(x: Embeddings, y: Embeddings, device: Device = None) -> Iterator[DistanceBlock]:
    """Yield the distances of all pairs of two sets of one dimension."""
    frame = Frame.of(x, y, usable_device(device))
    width = BLOCK_ROWS * max(1, min(BLOCK_ROWS // x.n, HELD_BLOCKS))  # as many pairs, of few queries
    for held in _hold(x, frame):
        for base in _rows(y, range(0, y.n, width), frame):
            for queries in held:
                yield DistanceBlock(queries, base, frame.unit)


def blocks_within(y: Embeddings, device: Device = None) -> Iterator[DistanceBlock]:
    """Yield the distances of all pairs of one set; every sample is infinitely far from itself.

    Each block off the diagonal is computed once and yielded twice, the second time transposed.
    """
    frame = Frame.of(y, y, usable_device(device))
    for held in _hold(y, frame):
        for base in chain(held, _rows(y, range(held[-1].places.stop, y.n, BLOCK_ROWS), frame)):
            for queries in held:
                if queries is base:
                    block = DistanceBlock(base, base, frame.unit)
                    block.lower.fill_diagonal_(torch.inf)
                    yield block
                elif queries.start < base.start:
                    block = DistanceBlock(queries, base, frame.unit)
                    yield block
                    yield block.transposed


def true_pairs(mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return where a mask is true, as (rows, columns); three to ten times as fast as torch's `nonzero` of a matrix."""
    if not mask.is_contiguous():
        columns, rows = true_pairs(mask.T.contiguous())
        return rows, columns
    flat = mask.view(-1)
    flat = flat.nonzero().squeeze(1) if flat.is_cuda else torch.from_numpy(np.flatnonzero(flat.numpy()))
    return flat // mask.shape[1], flat % mask.shape[1]


def _kth(rows: torch.Tensor, k: int) -> torch.Tensor:
    """Return the k-th smallest entry of each row, shape (b, 1); numpy is five times as fast as torch on a CPU."""
    if rows.is_cuda:
        return rows.kthvalue(k, keepdim=True).values
    return torch.from_numpy(np.partition(rows.numpy(), k - 1, 1)[:, k - 1 : k])


def _hold(source: Embeddings, frame: Frame) -> Iterator[list[Rows]]:
    step = HELD_BLOCKS * BLOCK_ROWS
    for begin in range(0, source.n, step):
        yield list(_rows(source, range(begin, min(begin + step, source.n), BLOCK_ROWS), frame))


def _rows(source: Embeddings, starts: range, frame: Frame) -> Iterator[Rows]:
    return (Rows(start, rows, frame) for start, rows in _read(source, starts, frame.center.device))


def _read(source: Embeddings, starts: range, device: torch.device) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield blocks of rows on a device, with their first index; the next block is read while one is in use."""

    def block(start: int) -> tuple[int, torch.Tensor]:
        return start, send(source.rows_at(np.arange(start, min(start + starts.step, source.n))), device)

    made = map(block, starts)
    return prefetch(made) if len(starts) > 1 else made


@dataclass(frozen=True)
class Key:
    """Function of a distance that is minimized over the base."""

    # computes keys from squared distances and from the squared radii of the balls of the base; the two broadcast. It
    # does not decrease as a distance grows.
    of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    degree: int  # power of the unit of length that a key has


SQUARED_DISTANCE = Key(lambda squared, _: squared, 2)


class Smallest:
    """The k smallest keys of every query so far, each with its row of the base; keys may depend on balls of the base.

    Attributes:
        keys: shape (n, k), ascending; infinite if there are fewer than k.
        indices: shape (n, k), of equal keys the first in the base; −1 if there are fewer than k.
    """

    def __init__(
        self, n: int, k: int, key: Key = SQUARED_DISTANCE, radii_squared: NDArray[np.float64] | None = None
    ) -> None:
        self.keys = np.full((n, k), np.inf)
        self.indices = np.full((n, k), -1, dtype=np.int64)
        self._k, self._key, self._radii = k, key, radii_squared

    def update(self, block: DistanceBlock) -> None:
        """Add the keys of a block; a pair must not come twice, and the base comes in its order."""
        where, width = block.lower.device, block.lower.shape[1]
        given = self._radii
        radii = torch.zeros(1, device=where) if given is None else send(torch.from_numpy(given[block.columns]), where)
        radii = radii.expand(width)
        scaled = block.scaled(radii)
        keys = self._key.of(block.lower, scaled)
        # Finite upper bounds of the k-th keys, shape (b, 1): the k-th key so far or, in the first block, that of the
        # least upper bounds of groups of columns: so many columns are at least as near.
        known = torch.from_numpy(self.keys[block.rows, -1:] / block.unit**self._key.degree)
        limit = send(known.to(block.lower.dtype), where)
        if limit.isinf().any() and width >= self._k:
            size = max(width // (GROUPS_PER_NEIGHBOR * self._k), 1)
            error = 2 * block.x.relative_error * block.x.norms[:, None]
            squared = torch.add(block.lower, block.slack(block.y.norms)).add_(error)
            upper = self._key.of(squared, scaled)[:, : width // size * size]
            least = upper.reshape(len(upper), size, -1).amin(1)
            limit = limit.minimum(_kth(least, self._k))
        i, j = true_pairs(keys <= limit.clamp_max(torch.finfo(limit.dtype).max))
        if not len(i):
            return
        i, order = i.sort(stable=True)
        j = j[order]
        exact = self._key.of(block.exact(i, j), radii[j]).cpu().numpy()
        rows, new = (i + block.x.start).cpu().numpy(), (j + block.y.start).cpu().numpy()
        touched, line, count = np.unique(rows, return_inverse=True, return_counts=True)
        column = self._k + np.arange(len(rows)) - (count.cumsum() - count)[line]
        merged = np.pad(self.keys[touched], ((0, 0), (0, count.max())), constant_values=np.inf)
        indices = np.pad(self.indices[touched], ((0, 0), (0, count.max())), constant_values=-1)
        merged[line, column], indices[line, column] = exact, new
        best = merged.argsort(1, kind="stable")[:, : self._k]
        self.keys[touched] = np.take_along_axis(merged, best, 1)
        self.indices[touched] = np.take_along_axis(indices, best, 1)
