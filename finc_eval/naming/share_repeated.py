"""Test of the share of samples that repeat another sample of their set: many pictures may come twice each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def p_of_share_repeated(
    numbers: tuple[Integers, Integers], units: tuple[Integers, Integers], seed: int, exchanges: int, *, is_paired: bool
) -> float:
    """Return the p-value of "the first set repeats no more of its samples than the second", by exchanges of units.

    Under it, units are of either set by chance: each exchange divides all of them anew, or exchanges both sets within
    blocks, and counts the samples that then repeat another sample of their set.

    Args:
        numbers: number of the repeat of each sample of both sets, shapes (n,) and (m,); −1 for samples without any.
        units: number of the unit of each sample, from 0 on; of paired sets, of its block, the same in both.
        seed: random seed of the exchanges.
        exchanges: number of exchanges.
        is_paired: whether units are blocks of paired sets.
    """
    repeats = max(int(one.max(initial=-1)) for one in numbers) + 1
    count = [int(one.max(initial=-1)) + 1 for one in units]
    count = [max(count)] * 2 if is_paired else count
    tables = [_count(numbers[place], units[place], count[place], repeats) for place in (0, 1)]
    table = np.concatenate(tables)
    rng, mine = np.random.default_rng(seed), count[0]
    chosen = np.zeros((1 + exchanges, len(table)), np.float32)
    chosen[0, :mine] = 1
    if is_paired:
        chosen[1:, :mine] = rng.integers(0, 2, (exchanges, mine))
        chosen[1:, mine:] = 1 - chosen[1:, :mine]
    else:
        for row in chosen[1:]:
            row[rng.choice(len(table), mine, replace=False)] = 1
    first = chosen @ table
    difference = _share_again(first) - _share_again(table.sum(0) - first)
    # 1e-9: the same samples in another order differ by rounding.
    return float((difference >= difference[0] - 1e-9).mean())


def _count(numbers: Integers, units: Integers, size: int, repeats: int) -> NDArray[np.float32]:
    """Return the samples of each unit that are of each repeat, and all its samples, shape (units, repeats + 1)."""
    found = np.zeros((size, repeats + 1), np.float32)
    np.add.at(found, (units[numbers >= 0], numbers[numbers >= 0]), 1)
    found[:, -1] = np.bincount(units, minlength=size)
    return found


def _share_again(counts: NDArray[np.float32]) -> Array:
    """Return the share of the samples that repeat another, from the counts of `_count` by exchange, shape (r,)."""
    again = np.where(counts[:, :-1] > 1, counts[:, :-1], 0).sum(1, dtype=np.float64)
    return np.asarray(again / np.maximum(counts[:, -1], 1))
