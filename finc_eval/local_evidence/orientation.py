"""Pictures that look upright when they are flipped, by a classifier that needs no label of a set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.local_evidence.inputs import Indices
from finc_eval.local_evidence.permutations import FOLDS, Array, Permutations, Scores, fold_in_turn
from finc_eval.local_evidence.statistics import LocalStatistic, on_both_sides

SURELY = 0.6
"""Part of the median score, below 0, from which a picture is upside down: tuned on 2 000 photographs of 64 pixels, of
which 3 % score so as they are, and 70 % if they are turned. From 0 on, 13 % and 88 % do, and fewer sets are found."""

MOST_UPRIGHT = 0.1
"""Share of the other set that may look upside down where this is said. Where more do, as of things that have no top,
"upright" means too little: another mixture of kinds would be said as pictures that are turned. Of photographs of 64
pixels, 3 % look so, and of digits 17 %."""


def upright_directions(differences: Array, folds: Indices) -> Array:
    """Return the sum of the differences outside each fold, of both sets together, shape (folds, d).

    Most pictures must be upright. A ridge regression of 1 on the differences has this limit for a large penalty, and
    found no more sets with a smaller one.

    Args:
        differences: embeddings of pictures less those of the flipped pictures, shape (n, d).
        folds: number of the fold of each picture, shape (n,).
    """
    sums = np.stack([differences[folds == fold].sum(0) for fold in range(FOLDS)])
    return np.asarray(sums.sum(0) - sums)


@dataclass(frozen=True, eq=False)
class Oriented:
    """Orientation of the samples whose pictures were also embedded upside down, k of them.

    Attributes:
        places: their places among all samples, shape (k,), ascending.
        permuted: the permutations of these samples alone.
        directions: what `upright_directions` returns, shape (folds, d).
        scores: how upright each is, shape (k,): below 0, a picture looks upright when it is flipped.
    """

    places: Indices
    permuted: Permutations
    directions: Array
    scores: Array

    @classmethod
    def of(cls, embeddings: Scores, flipped: Scores, permuted: Permutations) -> Oriented | None:
        """Score the samples with a row in `flipped`, (n, d), that is not NaN; None if a set has none of them."""
        places = np.flatnonzero(~np.isnan(flipped[:, 0]))
        known = permuted.restricted(places)
        if not all(known.units):
            return None
        differences = embeddings[places].astype(np.float64) - flipped[places]
        directions = upright_directions(differences, known.folds)
        return cls(places, known, directions, np.einsum("nd,nd->n", differences, directions[known.folds]))

    def score(self, embeddings: Scores, flipped: Scores) -> Array:
        """Return how upright the pictures of a further set are, shape (m,); NaN where they were not turned."""
        differences = embeddings.astype(np.float64) - flipped
        return np.asarray(np.einsum("nd,nd->n", differences, self.directions[fold_in_turn(len(differences))]))

    @property
    def is_flipped(self) -> NDArray[np.bool_]:
        """Mask of the pictures that surely look upright when they are flipped, shape (k,)."""
        return np.asarray(self.scores < -SURELY * max(float(np.median(self.scores)), 0.0))

    def statistics(self) -> Iterator[LocalStatistic]:
        """Yield the difference of the shares upside down, on both sides."""
        difference = self.permuted.differ(self.is_flipped[None]) / self.permuted.spread
        yield from on_both_sides("orientation", 0, difference)
