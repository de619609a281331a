"""The samples that names are made from: the members of all modes, and other samples to compare them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.numerics.arrays import without_fold

OTHERS_PER_SET = 1000
"""Samples of each set that members are compared with."""

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Panel:
    """Members and other samples, numbered through: the first set, then the second.

    Groups count once: of the samples of a group that are members of a mode, one drawn at random stands for all, and no
    other sample of the group is among the others. The first of each would be of one seed, where seeds are in order.
    """

    sets: Mapping[str, Embeddings]
    rows: Mapping[str, Indices]  # for each set, the indices of its samples in the panel
    members: Mask  # mask of the members of each mode, shape (modes, samples)
    others: Mask  # mask of the samples that each mode is compared with, shape (modes, samples)
    same_sets: Mask  # mask of the samples of the sets that have its members, shape (modes, samples)

    def by_set(self) -> Iterator[tuple[Embeddings, Indices, slice]]:
        """Yield each set, its indices, and their place in the panel."""
        start = 0
        for name, rows in self.rows.items():
            yield self.sets[name], rows, slice(start, start + len(rows))
            start += len(rows)


def panel_of(members: Sequence[Mapping[str, Indices]], sets: Mapping[str, Embeddings]) -> Panel:
    """Choose the others, and gather all samples."""
    drawn = {name: smallest_hashes(one, OTHERS_PER_SET) for name, one in sets.items()}
    rows = {
        name: np.unique(np.concatenate([drawn[name], *(mode[name] for mode in members if name in mode)]))
        for name in sets
    }
    groups = np.concatenate([_groups(one, rows[name], number) for number, (name, one) in enumerate(sets.items())])
    drawn_mask = np.concatenate([np.isin(rows[name], drawn[name]) for name in sets])
    order = np.concatenate([without_fold(one.id_keys()[rows[name]]) for name, one in sets.items()]).argsort()
    inside, outside, same = [], [], []
    for mode in members:
        same.append(np.concatenate([np.full(len(rows[name]), name in mode) for name in sets]))
        is_member = np.concatenate([np.isin(rows[name], mode.get(name, ())) for name in sets])
        inside.append(_one_of_each(groups, is_member, order))
        outside.append(_one_of_each(groups, drawn_mask & ~np.isin(groups, groups[is_member]), order))
    shape = (len(members), len(groups))
    return Panel(sets, rows, *(np.array(masks, bool).reshape(shape) for masks in (inside, outside, same)))


def smallest_hashes(one: Embeddings, count: int) -> Indices:
    """Return the indices of the samples with the smallest id hashes: a random sample that does not depend on order."""
    keys = without_fold(one.id_keys())
    return np.arange(len(keys)) if len(keys) <= count else np.sort(np.argpartition(keys, count)[:count])


def _groups(one: Embeddings, rows: Indices, number: int) -> NDArray[np.uint64]:
    """Return the group of each row; rows that stand for themselves get numbers of their own."""
    hashes = one.group_hashes()
    return (rows.astype(np.uint64) << np.uint64(4)) + np.uint64(number) if hashes is None else hashes[rows]


def _one_of_each(groups: NDArray[np.uint64], mask: Mask, order: Indices) -> Mask:
    """Choose of each group the sample of the mask that comes first in an order."""
    ordered = order[mask[order]]
    chosen = np.zeros(len(groups), bool)
    chosen[ordered[np.unique(groups[ordered], return_index=True)[1]]] = True
    return chosen
