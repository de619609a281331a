"""`pool_samples`: a sample of all sets together, to which kinds are fitted blind to which set a sample is from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.keys import mix_bits
from finc_eval.numerics.folds import without_fold

FIT_SAMPLES = 10_000
"""Samples of all sets that kinds are fitted to, at most. Small planted kinds of 16 000 digits are met with a mean
Jaccard index of .50, .61, .67, .71 with 2 500, 5 000, 10 000, 16 000, in 1.0, 1.6, 4.1, 4.8 seconds."""


def pool_samples(sets: Sequence[Embeddings], capacity: int = FIT_SAMPLES) -> torch.Tensor:
    """Return the rows of a random sample of all sets together, in random order; of a group of samples, one.

    Which rows they are, and their order, follows from the ids alone: each set is in the sample in proportion to its
    size. Kinds that are fitted to it treat the sets alike, so that without a difference between them the labels
    of the samples are exchangeable given the kinds, and exact tests may use all samples. With as many rows of a small
    set as of a large one, or with copies, kinds would form around single samples of one set.
    """
    keys, owner, index = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    for number, one in enumerate(sets):
        hashes, rows = one.id_keys(), np.arange(one.n)
        groups = one.group_hashes()
        if groups is not None:
            order = hashes.argsort(kind="stable")
            rows = order[np.unique(groups[order], return_index=True)[1]]
            hashes = groups[rows]
        # A sketch has kept the samples with the smallest hashes: others decide here, without the bit of the fold.
        keys = np.concatenate([keys, mix_bits(without_fold(hashes))])
        owner, index = np.concatenate([owner, np.full(len(rows), number)]), np.concatenate([index, rows])
        kept = keys.argsort(kind="stable")[:capacity]
        keys, owner, index = keys[kept], owner[kept], index[kept]
    sample = torch.empty(len(keys), sets[0].dim)
    for number, one in enumerate(sets):
        mine = np.flatnonzero(owner == number)
        sample[torch.from_numpy(mine)] = one.rows_at(index[mine]).cpu()
    return sample
