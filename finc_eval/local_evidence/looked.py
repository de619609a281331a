"""`Looked`: two sets that were looked at in all ways, with the statistics of one family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finc_eval.local_evidence.cell_scores import CellScores, score_cells
from finc_eval.local_evidence.inputs import Indices, LocalInput
from finc_eval.local_evidence.orientation import Oriented
from finc_eval.local_evidence.pairs import find_pairs, pair_statistics
from finc_eval.local_evidence.permutations import Permutations, Scores
from finc_eval.local_evidence.placed_scores import MOST_SAMPLES, score_places
from finc_eval.local_evidence.statistics import LocalStatistic, cell_statistics, likeness_statistics
from finc_eval.naming.near_pairs import NearPairs


@dataclass(frozen=True, eq=False)
class Looked:
    """Two sets that were looked at, sample by sample in the order of `permuted`.

    Attributes:
        permuted: labels, weights and folds.
        n_gen: number of samples of the generated set, by which row numbers of the reference are shifted.
        statistics: the family.
        cells: scores of cells.
        likeness: likeness of pictures to themselves, shape (n, k).
        pairs: near pairs.
        embeddings: embeddings, shape (n, d).
        apart: number of what has no pairs inside, shape (n,).
        oriented: orientation of the samples that were turned.
        others: further sets, in which parts are looked for.
    """

    permuted: Permutations
    n_gen: int
    statistics: tuple[LocalStatistic, ...]
    cells: CellScores | None
    likeness: Scores | None
    pairs: NearPairs | None
    embeddings: Scores | None
    apart: Indices
    oriented: Oriented | None
    others: tuple[LocalInput, ...] = ()

    def rows(self, places: Indices, *, of_gen: bool) -> tuple[int, ...]:
        """Return the row numbers, in their set, of samples at some places."""
        return tuple((self.permuted.rows[places] - (0 if of_gen else self.n_gen)).tolist())


def look(arrays: Mapping[str, NDArray[Any]], gen: LocalInput, ref: LocalInput, permuted: Permutations) -> Looked:
    """Look at two sets in all ways that their arrays, of both sets together, allow."""
    given = {name: array[permuted.rows] for name, array in arrays.items()}
    apart = _apart(gen, ref, permuted)
    statistics: list[LocalStatistic] = []
    cells = score_cells(given["cells"], permuted) if "cells" in given else None
    if cells is not None:
        statistics += cell_statistics((cells.mean, cells.high, cells.low), permuted)
        few = permuted.restricted(np.arange(min(len(permuted.rows), MOST_SAMPLES)))  # units are in random order
        statistics += cell_statistics([score_places(given["cells"][: len(few.rows)], few)], few, ["average"])
    likeness = given.get("likeness")
    if likeness is not None:
        statistics += likeness_statistics(likeness, permuted)
    embeddings, flipped, oriented = given.get("embeddings"), given.get("flipped"), None
    pairs = None if embeddings is None else find_pairs(embeddings, apart, _digests(gen, ref, permuted), permuted)
    if pairs is not None:
        statistics += pair_statistics(pairs)
    if embeddings is not None and flipped is not None:
        oriented = Oriented.of(embeddings, flipped, permuted)
    if oriented is not None:
        statistics += oriented.statistics()
    return Looked(permuted, gen.n, tuple(statistics), cells, likeness, pairs, embeddings, apart, oriented)


def _apart(gen: LocalInput, ref: LocalInput, permuted: Permutations) -> Indices:
    """Return the number of what has no near pairs inside: of the block of a sample, or else of its unit."""
    if gen.blocks is not None and ref.blocks is not None:
        return np.unique(np.concatenate([gen.blocks, ref.blocks])[permuted.rows], return_inverse=True)[1].reshape(-1)
    return np.searchsorted(permuted.starts, np.arange(len(permuted.rows)), side="right") - 1


def _digests(gen: LocalInput, ref: LocalInput, permuted: Permutations) -> NDArray[np.uint64]:
    """Return digests of samples that are equal for equal samples; all unlike if a set has none."""
    if gen.digests is None or ref.digests is None:
        return np.arange(len(permuted.rows), dtype=np.uint64)
    return np.concatenate([gen.digests, ref.digests])[permuted.rows]
