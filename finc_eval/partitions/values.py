"""Shares by the values of a column, such as labels: each value is a kind, counted and tested as kinds are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.forms import join_names
from finc_eval.core.record import Record
from finc_eval.core.serialize import Shown
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.needs import Check, Known, needs_columns
from finc_eval.naming.evidence import Name
from finc_eval.naming.properties import MAX_VALUES, missing_value
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.counts import Counted, Counts, Examples, draw_members, tally_sets
from finc_eval.partitions.kind import Kind, describe_kinds
from finc_eval.partitions.tests import KindTests, Tally, test_kinds, test_within_blocks


@dataclass(frozen=True, eq=False)
class CountedValues:
    """Samples of sets, counted by the values of a column."""

    values: tuple[str, ...]  # the values, sorted; "" for samples without one
    counted: dict[str, Counted]  # counts of each set, by label
    cells: dict[str, NDArray[np.int32]]  # place of the value of each sample, shape (n,), by label

    def within(self, pairing: Pairing, seed: int) -> WithinBlocks:
        """Return the differences of the values within the blocks of a pairing."""
        cells = np.concatenate([self.cells[label] for label in pairing.sets])
        return WithinBlocks.of(pairing.blocked, cells, np.eye(len(self.values), dtype=bool), seed)


@dataclass(frozen=True)
class SharesBy(Record, Shown):
    """Shares of the values of a column in each set: `to_frame` has a row for each value.

    Attributes:
        column: the column.
        kinds: each value as a kind that is called by it, the most certain differences first. Their tests are a family
            of their own, and the shares of each set add to 1.
    """

    column: str
    kinds: tuple[Kind, ...]

    def _frame_rows(self) -> list[dict[str, Any]]:
        return [kind.frame_row() for kind in self.kinds]

    def _summary(self) -> str:
        return f"column={self.column!r}, values={len(self.kinds)}"


def count_values(sets: Mapping[str, Embeddings], column: str) -> CountedValues:
    """Count sets by the values of a column; samples without a value count as one value."""
    values = {label: np.array(embeddings.column(column)) for label, embeddings in sets.items()}
    kinds = np.unique(np.concatenate(list(values.values())))
    _check_number(column, set(kinds.tolist()))
    counted: dict[str, Counted] = {}
    cells: dict[str, NDArray[np.int32]] = {}
    for label, embeddings in sets.items():
        cells[label] = np.searchsorted(kinds, values[label]).astype(np.int32)
        drawn = draw_members(cells[label], len(kinds))
        counted[label] = Counted(Counts.of(len(kinds), cells[label], embeddings.group_hashes()), drawn, drawn)
    return CountedValues(tuple(kinds.tolist()), counted, cells)


def needs_values(column: str | None) -> Check:
    """Return the check that all sets have a column whose values repeat; None is not a column."""

    def check(sets: Mapping[str, Known]) -> None:
        if column is not None:
            needs_columns(column)(sets)
            _check_number(column, {value for embeddings in sets.values() for value in embeddings.column(column)})

    return check


def _check_number(column: str, values: set[str]) -> None:
    """Raise UsageError if a column has too many values."""
    if len(values - {""}) > MAX_VALUES:
        raise UsageError(
            f"the column {column!r} has {len(values):,} different values, and shares by a column take at most "
            f"{MAX_VALUES:,}: name a column that repeats its values, such as label"
        )


def shares_by(
    sets: Mapping[str, Embeddings], column: str, *, pairing: Pairing | None = None, rho: float = 1.0, seed: int = 0
) -> SharesBy:
    """Compare the shares of all values of a column: exact tests, adjusted together, with intervals as kinds have them.

    The sets are those of the pairing, if there is one.
    """
    counted = count_values(sets, column)
    tests = test_kinds(tally_sets({label: counted_set.counts for label, counted_set in counted.counted.items()}), rho)
    if pairing is not None:
        tests = test_within_blocks(tests, counted.within(pairing, seed))
    return _describe(
        column, counted.values, tests, lambda label, number: counted.counted[label].examples(sets[label], number)
    )


@dataclass(frozen=True)
class ValueCounts(Record):
    """Samples of a set by the values of a column, as a board keeps them.

    Attributes:
        values: the values, sorted; "" for samples without one.
        members, effects, even, within: as in a `Tally`, of each value, and last of a value that the set lacks.
        n: number of samples.
        examples: samples of each value.
    """

    values: tuple[str, ...]
    members: tuple[int, ...]
    effects: tuple[float, ...]
    even: tuple[float, ...]
    within: tuple[float, ...]
    n: int
    examples: tuple[Examples, ...]

    def __post_init__(self) -> None:
        if len(self.examples) != len(self.values) or len(self.members) != len(self.values) + 1:
            raise DataError("its numbers of samples by value do not match its values")
        if sum(self._tally.members.tolist()) != self.n or len(set(self.values)) < len(self.values):
            raise DataError(f"its numbers of samples by value do not add up to its {self.n:,} samples")

    @classmethod
    def of(cls, samples: Embeddings, column: str) -> ValueCounts:
        """Count a set; see `shares_by` for errors."""
        counted = count_values({"": samples}, column)
        counts, values = counted.counted[""].counts, counted.values
        lacking = np.eye(len(values) + 1, len(values), dtype=bool)  # one more value, without samples
        tally = tally_sets({"": counts.of_unions(lacking)})[""]
        return cls(
            values,
            tuple(tally.members.tolist()),
            tuple(tally.effects.tolist()),
            tuple(tally.even.tolist()),
            tuple(tally.within.tolist()),
            tally.n,
            tuple(counted.counted[""].examples(samples, number) for number in range(len(values))),
        )

    def at(self, values: Sequence[str]) -> Tally:
        """Return the tally of these values, in their order."""
        number_of = {value: number for number, value in enumerate(self.values)}
        return self._tally.at(np.array([number_of.get(value, len(number_of)) for value in values]))

    @property
    def _tally(self) -> Tally:
        return Tally.of_lists(self.n, self.members, self.effects, self.even, self.within)


def join_spellings(
    sets: Mapping[str, Sequence[ValueCounts]], column: str
) -> tuple[dict[str, list[ValueCounts]], tuple[str, ...]]:
    """Return counts with one spelling for each value of all sets, and sentences on what was joined."""
    same = join_names(
        {label: {value for value_counts in counts for value in value_counts.values} for label, counts in sets.items()},
        column,
    )

    def spelled(value_counts: ValueCounts) -> ValueCounts:
        values = same.of(value_counts.values)
        return replace(value_counts, values=tuple(values)) if len(set(values)) == len(values) else value_counts

    return {label: [spelled(value_counts) for value_counts in counts] for label, counts in sets.items()}, same.notes


def shares_of(sets: Mapping[str, Sequence[ValueCounts]], column: str) -> SharesBy:
    """Compare the shares of all values of a column, as `shares_by` does, from counts; several of a set are pooled."""
    values = tuple(
        sorted({value for counts in sets.values() for value_counts in counts for value in value_counts.values})
    )
    tests = test_kinds(
        {label: Tally.pooled([value_counts.at(values) for value_counts in counts]) for label, counts in sets.items()}
    )
    examples = {label: dict(zip(counts[0].values, counts[0].examples, strict=True)) for label, counts in sets.items()}
    return _describe(column, values, tests, lambda label, number: examples[label].get(values[number], Examples()))


def _describe(
    column: str, values: Sequence[str], tests: KindTests, examples: Callable[[str, int], Examples]
) -> SharesBy:
    """Return the tested values, the most certain differences first."""
    kinds = describe_kinds(
        tests,
        range(len(values)),
        {number: Name(value or missing_value(column)) for number, value in enumerate(values)},
        examples,
        lambda number: f"{column}={values[number]}",
    )
    return SharesBy(column, tuple(sorted(kinds, key=lambda kind: (kind.p_value, -abs(kind.difference)))))
