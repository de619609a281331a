"""First and second moments of vectors, accumulated by matrix products and added like numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import torch

from finc_eval.numerics.names import Precision
from finc_eval.numerics.precision import arithmetic

MOMENT_BLOCK = 400
"""Rows of a second moment that one product computes. Smaller blocks skip more of the lower triangle, larger blocks
run faster; 250 to 500 measure about the same, at 0.6 of the time of the full product."""

HELD = 1024
"""Vectors up to which Σyyᵀ waits until somebody asks for it. Sets as small as that are compared by the vectors."""


class Moments:
    """Count n and sums Σy and Σyyᵀ of vectors y.

    Only the block rows of the symmetric Σyyᵀ from the diagonal on are computed and kept, which takes half the memory.
    """

    def __init__(self, size: int, precision: Precision, device: torch.device) -> None:
        self.n = 0
        self.precision = precision
        self.first = torch.zeros(size, dtype=torch.float64 if precision == "float64" else torch.float32, device=device)
        self._second: list[torch.Tensor] = []
        self._waiting: list[torch.Tensor] = []

    @property
    def size(self) -> int:
        """Number of entries of y."""
        return len(self.first)

    def blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield the kept parts of Σyyᵀ: rows i…i+B with their columns i…size."""
        self._multiply()
        for start, block in zip(_starts(self.size), self._second, strict=True):
            yield slice(start, start + len(block)), block

    def update(self, rows: torch.Tensor) -> None:
        """Add vectors, shape (b, size), by one matrix product per block row, never by an outer product per sample.

        They may be held until their products are asked for: the caller does not change them afterwards.
        """
        self.n += len(rows)
        self.first += rows.sum(0, dtype=self.first.dtype)
        self._waiting.append(rows)
        if self._second or self.n > HELD:
            self._multiply()

    def _multiply(self) -> None:
        """Add the products of the vectors that wait."""
        if not self._second:
            self._second = [self.first.new_zeros(shape) for shape in _shapes(self.size)]
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        with arithmetic():
            for rows in (rows.to(self.first.dtype) for rows in waiting):
                for start, total in zip(_starts(self.size), self._second, strict=True):
                    total.addmm_(rows[:, start : start + len(total)].T, rows[:, start:])

    def __add__(self, other: Moments) -> Moments:
        total = Moments(self.size, self.precision, self.first.device)
        total.n = self.n + other.n
        torch.add(self.first, other.first.to(self.first.device), out=total.first)
        for (_, block), (_, mine), (_, others) in zip(total.blocks(), self.blocks(), other.blocks(), strict=True):
            torch.add(mine, others.to(mine.device), out=block)
        return total

    def to(self, device: torch.device, *, copy: bool = False) -> Self:
        """Return the same moments on another device; `copy`: with sums of their own where it is the same device."""
        moved = type(self)(0, self.precision, device)
        moved.n, moved.first = self.n, self.first.to(device, copy=copy)
        moved._second = [block.to(device, copy=copy) for block in self._second]
        moved._waiting = [rows.to(device) for rows in self._waiting]
        return moved

    def __getstate__(self) -> dict[str, Any]:
        """Return the sums as arrays, and of the symmetric sum the half: a pickle has no number twice."""
        halves = [upper(block) for block in self._second]
        arrays = {"first": [self.first], "second": halves, "waiting": self._waiting}
        held = {name: [tensor.cpu().numpy() for tensor in tensors] for name, tensors in arrays.items()}
        return held | {"n": self.n, "precision": self.precision}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.n, self.precision = state["n"], state["precision"]
        # Copies: an engine may lend the memory of arrays for reading alone.
        (self.first,) = (torch.tensor(array) for array in state["first"])
        halves = map(torch.tensor, state["second"])
        shapes = _shapes(self.size) if state["second"] else []
        self._second = [from_upper(half, *shape) for half, shape in zip(halves, shapes, strict=True)]
        self._waiting = [torch.tensor(rows) for rows in state["waiting"]]

    def mean(self) -> torch.Tensor:
        """Return E[y], shape (size,)."""
        return self.first / self.n

    def mean_square(self) -> torch.Tensor:
        """Return E[yyᵀ] as the whole symmetric matrix, shape (size, size)."""
        return weighted_sum([(1 / self.n, self)])

    def trace(self) -> float:
        """Return Σ‖y‖²."""
        return sum(float(block.diagonal().sum()) for _, block in self.blocks())

    def apply(self, columns: torch.Tensor) -> torch.Tensor:
        """Multiply E[yyᵀ] with columns: (size, t) → (size, t)."""
        columns = columns.to(self.first)
        product = torch.zeros_like(columns)
        if not self._second:
            for vectors in (rows.to(columns) for rows in self._waiting):
                product += vectors.T @ (vectors @ columns)
            return product.div_(self.n)
        for rows, block in self.blocks():
            product[rows] += block @ columns[rows.start :]
            product[rows.stop :] += block[:, len(block) :].T @ columns[rows]
        return product.div_(self.n)


def weighted_sum(terms: Sequence[tuple[float, Moments]]) -> torch.Tensor:
    """Sum w·Σyyᵀ over (w, moments) pairs into one whole symmetric matrix, shape (size, size)."""
    _, like = terms[0]
    total = torch.zeros(like.size, like.size, dtype=like.first.dtype, device=like.first.device)
    for weight, moments in terms:
        for rows, block in moments.blocks():
            total[rows, rows.start :].add_(block, alpha=weight)
    for rows, _ in like.blocks():
        total[rows.stop :, rows] = total[rows, rows.stop :].T
    return total


def upper(block: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a block row on and above the diagonal, row by row, shape (`upper_size`,)."""
    return block[torch.ones_like(block, dtype=torch.bool).triu()]


def upper_size(rows: int, columns: int) -> int:
    """Return how many numbers of a block row are on and above the diagonal."""
    return rows * columns - rows * (rows - 1) // 2


def from_upper(numbers: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Return the block row with these numbers on and above the diagonal, shape (rows, columns)."""
    block = numbers.new_zeros(rows, columns)
    block[torch.ones_like(block, dtype=torch.bool).triu()] = numbers
    block[:, :rows] += block[:, :rows].triu(1).T
    return block


def _starts(size: int) -> range:
    return range(0, size, MOMENT_BLOCK)


def _shapes(size: int) -> list[tuple[int, int]]:
    """Return the shapes of the block rows that are kept."""
    return [(min(MOMENT_BLOCK, size - start), size - start) for start in _starts(size)]
