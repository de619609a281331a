"""Looks and columns of both samples of pairs: those that are drawn, by their ids, as many as of any set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.columns import join_columns
from finc_eval.naming.measured import Measured, column_measurer
from finc_eval.naming.numbers import read_numbers
from finc_eval.naming.texture import marks
from finc_eval.naming.traits import SIDE, TRAITS, Trait, measure_looks
from finc_eval.same_ids.kept import KeptPairs

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

LOOKS = [f"{side}: {trait.name}" for side in ("gen", "ref") for trait in TRAITS]  # columns of the traits of a pair

RESIDUALS = [f"residuals {number}" for number in range(2 * SIDE**2 // 8)]
"""Columns of the residuals of both pictures, eight pixels each, in which marks are looked for."""

TraitsOfPairs = tuple[tuple[Trait, ...], tuple[Array, Array]]  # traits, and values of both samples, (n, traits) each


MARK_COLUMN = [trait.name for trait in TRAITS].index("mark")


class PairLooks:
    """Measures the looks of both samples of some pairs, but those that earlier runs kept."""

    def __init__(
        self, sets: tuple[Embeddings, Embeddings], rows: tuple[Rows, Rows], contents: NDArray[np.uint64] | None
    ) -> None:
        """Look for what is known.

        Args:
            sets: the new set and the reference.
            rows: rows of both samples of each of these pairs, shape (m,) each.
            contents: digests of both pictures of each of these pairs, shape (m, 2); None if they are unknown.
        """
        self._rows = rows
        self._kept = KeptPairs(contents, len(rows[0]), LOOKS + RESIDUALS)
        self._columns = [column_measurer(samples, rows_of_set) for samples, rows_of_set in zip(sets, rows, strict=True)]

    @property
    def missing(self) -> Rows:
        """Pairs that are to be measured, by their number among these pairs."""
        first, second = (column.missing for column in self._columns)
        return np.union1d(self._kept.missing, np.union1d(first, second))

    def take(self, measured: Mapping[str, Measured]) -> None:
        """Take the looks of pictures that were measured with their sets, "gen" and "ref", instead of new ones."""
        both = [measured[label] for label in ("gen", "ref") if label in measured]
        found = [of_set.pictures for of_set in both if of_set.pictures is not None]
        if len(found) < 2:
            return
        at = np.full((2, len(self._rows[0])), -1)
        for places, of_set, rows in zip(at, both, self._rows, strict=True):
            _, here, there = np.intersect1d(rows, of_set.rows, return_indices=True)
            places[here] = there
        some = np.intersect1d(np.flatnonzero((at >= 0).all(0)), self._kept.missing)
        if len(some):
            values, residuals = (
                [getattr(of_set, name)[place] for of_set, place in zip(found, at[:, some], strict=True)]
                for name in ("values", "residuals")
            )
            self._kept.add(some, np.column_stack([*values, np.concatenate(residuals, 1).view(np.float64)]))

    def add(self, some: Rows, pictures: Sequence[Sequence[Image.Image]]) -> None:
        """Measure both pictures of some pairs, given by their number."""
        measured = [measure_looks(side) for side in pictures]
        residuals = np.concatenate([apart for _, apart in measured], 1).view(np.float64)
        self._kept.add(some, np.column_stack([*(values for values, _ in measured), residuals]))
        for measurer, side in zip(self._columns, pictures, strict=True):
            measurer.add(some.tolist(), side)

    def write(self) -> None:
        """Keep on the disk what was measured."""
        self._kept.write()
        for measurer in self._columns:
            measurer.keep()

    def found(self) -> TraitsOfPairs:
        """Return the values of built-in looks and of registered columns; NaN of pairs that could not be read."""
        n = len(self._kept.values)
        traits, values = join_columns([column.found for column in self._columns], [n, n])
        looks = np.split(self._kept.values[:, : len(LOOKS)].copy(), 2, axis=1)
        known = ~np.isnan(looks[0]).any(1) & ~np.isnan(looks[1]).any(1)
        residuals = np.ascontiguousarray(self._kept.values[known, len(LOOKS) :]).view(np.int8)
        marked = marks(np.concatenate(np.split(residuals, 2, axis=1)))
        for side, values_of_side in zip(looks, np.split(marked, 2), strict=True):
            side[known, MARK_COLUMN] = values_of_side
        first, second = (np.concatenate(both, 1) for both in zip(looks, values, strict=True))
        return (*TRAITS, *traits), (first, second)


def with_numbers(
    of_pairs: TraitsOfPairs | None, sets: tuple[Embeddings, Embeddings], rows: tuple[Rows, Rows]
) -> TraitsOfPairs | None:
    """Add the columns of metadata that hold numbers in both sets; None where nothing is measured at all."""
    labels = ("gen", "ref")
    numbers = read_numbers(dict(zip(labels, sets, strict=True)), dict(zip(labels, rows, strict=True)))
    if numbers is None:
        return of_pairs
    traits, values = numbers
    if of_pairs is None:
        return traits, (values["gen"], values["ref"])
    first, second = (
        np.concatenate([of_looks, values[label]], 1) for of_looks, label in zip(of_pairs[1], labels, strict=True)
    )
    return (*of_pairs[0], *traits), (first, second)


def spread_over(of_pairs: TraitsOfPairs | None, looked: Rows, n: int) -> TraitsOfPairs | None:
    """Return the values of all n pairs, NaN for pairs that are not among those looked at."""
    if of_pairs is None:
        return None
    traits, values = of_pairs
    first, second = (np.full((n, len(traits)), np.nan) for _ in values)
    first[looked], second[looked] = values
    return traits, (first, second)
