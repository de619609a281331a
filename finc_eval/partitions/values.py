"""Shares by the values of a column, such as labels: each value is a kind, counted and tested as kinds are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record
from finc_eval.core.shown import Shown
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import Name
from finc_eval.naming.properties import MAX_VALUES, missing_value
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.counts import Counted, Counts, draw_members, tally_sets
from finc_eval.partitions.kind import Kind, describe_kinds
from finc_eval.partitions.tests import test_kinds, test_within_blocks


@dataclass(frozen=True, eq=False)
class CountedValues:
    """Samples of sets, counted by the values of a column.

    Attributes:
        values: the values, sorted; "" for samples without one.
        counted: counts of each set, by label.
        cells: place of the value of each sample, shape (n,), by label.
    """

    values: tuple[str, ...]
    counted: dict[str, Counted]
    cells: dict[str, NDArray[np.int32]]

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

    def _frame_rows(self) -> tuple[Kind, ...]:
        return self.kinds

    def _summary(self) -> str:
        return f"column={self.column!r}, values={len(self.kinds)}"


def count_values(sets: Mapping[str, Embeddings], column: str) -> CountedValues:
    """Count sets by the values of a column; samples without a value count as those of one value.

    Raises:
        UsageError: a set does not have the column.
    """
    values = {label: np.array(one.column(column)) for label, one in sets.items()}
    kinds = np.unique(np.concatenate(list(values.values())))
    counted: dict[str, Counted] = {}
    cells: dict[str, NDArray[np.int32]] = {}
    for label, one in sets.items():
        cells[label] = np.searchsorted(kinds, values[label]).astype(np.int32)
        own = cells[label][:, None]
        counts = Counts.of((len(kinds),), own, one.group_hashes())
        drawn = draw_members(own, counts.levels)
        counted[label] = Counted(counts, drawn, drawn)
    return CountedValues(tuple(kinds.tolist()), counted, cells)


def shares_by(
    sets: Mapping[str, Embeddings],
    column: str,
    *,
    pairing: Pairing | None = None,
    rho: float = 1.0,
    part: float = 1.0,
    seed: int = 0,
) -> SharesBy:
    """Compare the shares of all values of a column: exact tests, adjusted together, with intervals as kinds have them.

    Args:
        sets: the sets by label; those of a pairing, if there is one.
        column: the column, such as "label".
        pairing: how the sets are paired.
        rho: ρ, factor that the share must exceed.
        part: part of the family-wise error that the tests may spend.
        seed: random seed of exchanges within blocks.

    Raises:
        UsageError: a set does not have the column, or it has more than 1 000 values.
    """
    found = count_values(sets, column)
    if len(found.values) - ("" in found.values) > MAX_VALUES:
        raise UsageError(
            f"the column {column!r} has {len(found.values):,} different values, and shares by a column take at most "
            f"{MAX_VALUES:,}: name a column that repeats its values, such as label"
        )
    tests = test_kinds(tally_sets({label: one.counts for label, one in found.counted.items()}), rho, part)
    if pairing is not None:
        tests = test_within_blocks(tests, found.within(pairing, seed), part)
    kinds = describe_kinds(
        tests,
        range(len(found.values)),
        {number: Name(value or missing_value(column)) for number, value in enumerate(found.values)},
        lambda label, number: found.counted[label].examples(sets[label], number),
        lambda number: f"{column}={found.values[number]}",
    )
    return SharesBy(column, tuple(sorted(kinds, key=lambda one: (one.p_value, -abs(one.difference)))))
