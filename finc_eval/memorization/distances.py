"""The distances an audit needs, every two sets passed once: neighbors both ways, and what lies in balls.

A control plays the generator with samples that cannot have been copied: one half of the holdout, against the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from finc_eval.embeddings.base import Subset
from finc_eval.embeddings.distance_blocks import blocks
from finc_eval.embeddings.neighbors import Neighbors, nearest, squared_radii
from finc_eval.embeddings.smallest import Smallest
from finc_eval.sketches.folds import fold_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from finc_eval.core.progress import Progress
    from finc_eval.embeddings.base import Embeddings

PILOT = 1000
"""Members, and non-members, whose median distance to the generated set is the radius of the Monte-Carlo attack."""


@dataclass(frozen=True, eq=False)
class Attacked:
    """How near a set's samples are to the generated ones.

    Attributes:
        distances: to the nearest generated sample, shape (n,).
        within: generated samples within the radius, shape (n,).
    """

    distances: NDArray[np.float64]
    within: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Played:
    """What is known of a set that plays the generator, against members and non-members.

    Attributes:
        to_train: its nearest training samples, shape (n, k).
        to_others: its nearest non-members, shape (n, 1).
        members, others: how near those are to it.
        radius: of the balls that are counted.
    """

    to_train: Neighbors
    to_others: Neighbors
    members: Attacked
    others: Attacked
    radius: float


@dataclass(frozen=True, eq=False)
class Halves:
    """The holdout, cut in two by a hash of the sample ids; windows of a video stay together.

    Attributes:
        whole: the holdout.
        player, others: the half that plays the generator, and the non-members that it is held against.
    """

    whole: Embeddings
    player: Subset
    others: Subset

    @classmethod
    def of(cls, holdout: Embeddings) -> Halves:
        """Cut a holdout."""
        folds = np.concatenate([fold_of(keys) for _, keys in holdout.id_hashes()])
        player, others = (Subset(holdout, np.flatnonzero(folds == fold)) for fold in (0, 1))
        return cls(holdout, player, others)

    def joined(self, player: Neighbors, others: Neighbors) -> Neighbors:
        """The neighbors of each half, in the order of the whole."""
        distances = np.empty((self.whole.n, player.distances.shape[1]))
        indices = np.empty(distances.shape, np.int64)
        for half, found in ((self.player, player), (self.others, others)):
            distances[half.rows], indices[half.rows] = found
        return Neighbors(distances, indices)


def play_control(halves: Halves, train: Embeddings, k: int, progress: Progress) -> tuple[Played, Neighbors]:
    """What is known of one half of the holdout as the player, and the k nearest training samples of the whole."""
    control = play(halves.player, train, halves.others, k, "control", progress)
    progress("holdout against train", 0, 1)
    rest = nearest(halves.others, train, k)
    progress("holdout against train", 1, 1)
    return control, halves.joined(control.to_train, rest)


def play(player: Embeddings, train: Embeddings, others: Embeddings, k: int, name: str, progress: Progress) -> Played:
    """Everything about a set that plays the generator: one pass with the training set, one with the non-members.

    Args:
        player: the set.
        train: the members.
        others: the non-members.
        k: neighbors among the members.
        name: what the progress calls the set.
        progress: called with (stage, done, total).
    """
    squared = _squared_radius(player, train, others)
    to_train, members = _pass(player, train, k, squared, f"{name} against train", progress)
    to_others, non_members = _pass(player, others, 1, squared, f"{name} against holdout", progress)
    return Played(to_train, to_others, members, non_members, float(np.sqrt(squared)))


def spacings(train: Embeddings) -> NDArray[np.float64]:
    """The distance of every training sample to its nearest neighbor in the training set, shape (n,)."""
    return np.sqrt(squared_radii(train, 1))


def _pass(
    player: Embeddings, base: Embeddings, k: int, squared_radius: float, stage: str, progress: Progress
) -> tuple[Neighbors, Attacked]:
    to_base, from_base = Smallest(player.n, k), Smallest(base.n, 1)
    within, done, total = np.zeros(base.n, np.int64), 0, player.n * base.n
    for block in blocks(player, base):
        to_base.update(block)
        from_base.update(block.transposed)
        width = len(block.y.rows)
        _, columns = block.within(column_radii=np.full(width, squared_radius), closed=True)
        within[block.columns] += np.bincount(columns, minlength=width)
        done += block.lower.numel()
        progress(stage, done, total)
    return (
        Neighbors(np.sqrt(to_base.keys), to_base.indices),
        Attacked(np.sqrt(from_base.keys[:, 0]), within),
    )


def _squared_radius(player: Embeddings, *sets: Embeddings) -> float:
    """The median, over some of all sets, of the squared distance to the nearest sample of the player."""
    drawn = [np.linspace(0, one.n - 1, min(PILOT, one.n)).astype(np.int64) for one in sets]
    found = [nearest(Subset(one, rows), player, 1).distances for one, rows in zip(sets, drawn, strict=True)]
    return float(np.median(np.concatenate(found))) ** 2
