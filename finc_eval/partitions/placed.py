"""Maps without samples: places of the prototypes of a tree, on which any set can be counted, now or later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.numerics.neighbor_embedding import embed_neighbors
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.kind_tree import KindTree, directions
from finc_eval.partitions.sample_map import draw_samples

MAX_PLACES = 256
"""Prototypes on the small maps of a board, whose JSON has 8 kB of them: 1 024 would take 30 kB and .4 s."""


def lay_out(tree: KindTree) -> tuple[tuple[tuple[float, float], ...], int]:
    """Return the places of some prototypes of a tree, which depend on the tree alone, and the step between these."""
    step = -(-len(tree.prototypes) // MAX_PLACES)
    xy = embed_neighbors(tree.prototypes[::step]).double().round(decimals=3).tolist()
    return tuple((x, y) for x, y in xy), step


@dataclass(frozen=True)
class KindPlaces(Record):
    """Places of prototypes of a tree in the plane, each with its kind.

    Attributes:
        xy: places, between −1 and 1.
        kinds: id of the listed kind of each place.
    """

    xy: tuple[tuple[float, float], ...]
    kinds: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.xy) != len(self.kinds):
            raise DataError("its map has not a kind for each place")

    @classmethod
    def of(cls, tree: KindTree, place: NDArray[np.int64], ids: Sequence[str]) -> Self:
        """Lay out some prototypes of a tree, from the place of each leaf's kind among the listed kinds, (leaves,)."""
        xy, step = lay_out(tree)
        return cls(xy, tuple(ids[leaf] for leaf in place[tree.leaf[::step]].tolist()))


@dataclass(frozen=True)
class ChangedKind(Record):
    """A kind whose share surely changed from one release to the next.

    Attributes:
        id: id of the kind.
        title: its name.
        share: its share of the new release.
        before: its share of the older release.
    """

    id: str
    title: str
    share: float
    before: float


@dataclass(frozen=True)
class ReleaseMap(Record):
    """The map of a reference, and where a release and an older one lie on it.

    The places depend on the kinds of the reference alone: all releases that are judged by these kinds have the same.

    Attributes:
        digest: digest of the kinds of the reference.
        xy: places, between −1 and 1.
        shares: share of each set that is nearest to each place, by label.
        kinds: id of the kind that most samples at each place are of, if it surely changed; else "".
        changes: these kinds, the largest change first.
    """

    digest: str
    xy: tuple[tuple[float, float], ...]
    shares: dict[str, tuple[float, ...]]
    kinds: tuple[str, ...]
    changes: tuple[ChangedKind, ...]

    def __post_init__(self) -> None:
        if {len(self.kinds), *map(len, self.shares.values())} != {len(self.xy)}:
            raise DataError("its map has not a kind and a share of each set for each place")

    @classmethod
    def of(
        cls,
        tree: KindTree,
        sets: Mapping[str, Embeddings],
        kinds: Sequence[Kind],
        kinds_of: Callable[[torch.Tensor], list[str]],
        pair: tuple[str, str],
    ) -> Self:
        """Place samples of sets, drawn at random, on the map of a tree.

        Args:
            tree: the kinds of the reference.
            sets: embeddings by label.
            kinds: kinds of the pair, with the share of the new release first.
            kinds_of: function that returns the id of the kind of each row, shape (n, d).
            pair: labels of the new and the older release.
        """
        xy, step = lay_out(tree)
        known = {kind.id: kind for kind in significant(kinds, ALPHA)}
        names = {name: number for number, name in enumerate(("", *known))}
        votes, shares = np.zeros((len(xy), len(names))), dict[str, tuple[float, ...]]()
        for label, drawn in draw_samples(sets).items():
            at = tree.axes(directions(drawn.rows.float().cpu()))
            spot = nearest(at, tree.prototypes[::step], 1).indices[:, 0]
            shares_here = np.bincount(spot, minlength=len(xy)) / len(spot)
            shares[label] = tuple(shares_here.round(5).tolist())
            if label in pair:
                kinds_of_drawn = np.array([names.get(name, 0) for name in kinds_of(drawn.rows)])
                np.add.at(votes, (spot, kinds_of_drawn), 1 / len(spot))
        owner = votes.argmax(1)
        for name, number in names.items():  # a rare kind that changed has a place in any case
            if name and not (owner == number).any():
                owner[votes[:, number].argmax()] = number
        changed = sorted(known.values(), key=lambda kind: -abs(kind.difference))
        changes = [ChangedKind(kind.id, kind.title, *(part.share for part in kind.shares.values())) for kind in changed]
        return cls(tree.digest, xy, shares, tuple([*names][number] for number in owner), tuple(changes))
