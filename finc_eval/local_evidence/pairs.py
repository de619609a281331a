"""Near pairs across and inside the sets, under the permutations of local evidence: copies, and near repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.local_evidence.inputs import Indices
from finc_eval.local_evidence.permutations import Permutations, Scores
from finc_eval.local_evidence.statistics import LocalStatistic, on_both_sides
from finc_eval.naming.near_pairs import APART, REPEATED_WITHIN, NearPairs, count_near_pairs, drop_dense, find_neighbors

COPIES = 0  # number of the statistics of copies
REPEATS = 1  # number of the statistics of repeats, of 2

Mask = NDArray[np.bool_]


def find_pairs(
    embeddings: Scores, units: Indices, digests: NDArray[np.uint64], permuted: Permutations
) -> NearPairs | None:
    """Find near pairs and count them under each permutation; None for too few samples.

    Args:
        embeddings: embeddings of both sets, in the order of `permuted`, shape (n, d).
        units: number of the unit of each sample, or of its block: samples of one unit are not pairs, shape (n,).
        digests: digests, equal for equal samples, which are not pairs, shape (n,).
        permuted: labels.
    """
    near = find_neighbors(torch.from_numpy(embeddings), units, digests)
    return count_near_pairs(near, permuted.is_gen[0], units, labels=permuted.is_gen)


def pair_statistics(pairs: NearPairs) -> Iterator[LocalStatistic]:
    """Yield statistics of near pairs at each distance: copies of the reference, and repeats inside either set."""
    for across in pairs.statistics[:, 0].T:
        yield LocalStatistic.of("pairs", "more", COPIES, across)
    for inside in pairs.statistics[:, 1, REPEATED_WITHIN].T:
        yield from on_both_sides("pairs", REPEATS, inside)


def copies_of_reference(pairs: NearPairs, embeddings: Scores, units: Indices) -> tuple[Mask, float]:
    """Return the samples that nearly copy the reference, (n,), and the least share of the generated set that do.

    Their nearest sample of the reference is clearly nearer to them than to others of the reference.
    """
    rows, ref = torch.from_numpy(embeddings), np.flatnonzero(~pairs.is_gen)
    some = np.flatnonzero(pairs.across.any(0))
    apart = np.zeros(len(rows), bool)
    if len(some):
        to_ref = torch.cdist(rows[some], rows[ref])
        to_ref[torch.from_numpy(units[some, None] == units[ref])] = torch.inf
        distance, nearest = to_ref.min(1)
        from_nearest = torch.cdist(rows[ref[nearest.numpy()]], rows[ref])
        is_same = (ref == ref[nearest.numpy(), None]) | (ref == some[:, None])
        apart[some] = (
            distance < APART * from_nearest.masked_fill(torch.from_numpy(is_same), torch.inf).min(1).values
        ).numpy()
    with_apart = NearPairs(pairs.is_gen, pairs.across, pairs.near, pairs.radii, pairs.statistics, apart)
    return with_apart.copied, with_apart.least


def repeats_in(pairs: NearPairs, embeddings: Scores, *, of_gen: bool) -> Mask:
    """Return the samples of clumps of near repeats that are apart from all other samples, shape (n,)."""
    of_set = pairs.is_gen if of_gen else ~pairs.is_gen
    clump = pairs.clumps(is_first=of_gen)
    return np.asarray(drop_dense(torch.from_numpy(embeddings), clump, of_set) >= 0)
