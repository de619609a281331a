"""Test of training set against holdout: only sets of one distribution let nearness to the training set show copying."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.inference import holm

MAX_TESTED = 2000
"""Samples of each set that the test takes."""

NEIGHBORS = 15
"""Neighbors of each sample in both sets together. Of 20 holdouts of 300 samples that lack 2 of 20 kinds, 10, 15 and 25
neighbors find 16, 16 and 11; of 20 that lack a class of ten, 17, 20 and 20."""

PERMUTATIONS = 499
"""Random exchanges of the two sets; the least p-value is .002."""


def holdout_p_value(train: Embeddings, holdout: Embeddings, seed: int, run: Run) -> float:
    """Return the p-value of "training set and holdout have one distribution".

    The least of three p-values, adjusted (Holm 1979). One is of the neighbors of samples: the share of a set among them
    varies as much as after exchanges of the sets (Schilling 1986, squared, so that a kind that a set lacks counts). Two
    are of distances: samples of both sets are equally near to a half of either set that they are not in (Mann and
    Whitney). Tests of copying would take the difference for copies. Given that half, the distances are independent.
    Groups are exchanged whole, and count by the median distance of their samples.
    """
    rng = np.random.default_rng(seed)
    n = min(train.n, holdout.n, MAX_TESTED)
    sets = [Subset(one, np.sort(rng.permutation(one.n)[:n])) for one in (train, holdout)]
    hashes = [one.group_hashes() for one in sets]
    groups = [np.arange(n) if one is None else np.unique(one, return_inverse=True)[1] for one in hashes]
    p_values = [_neighbors_p(sets, groups, rng, run)]
    p_values += [_distance_p(place, sets, groups, rng, run) for place in (0, 1)]
    return float(holm(torch.tensor(p_values, dtype=torch.float64)).min())


def _neighbors_p(sets: list[Subset], groups: list[NDArray[np.int64]], rng: np.random.Generator, run: Run) -> float:
    rows = torch.cat([one.rows_at(np.arange(one.n)) for one in sets])
    # Equal samples are found in the order of rows, which must not tell the set.
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    rows = rows[order].to(run.torch_device)
    distances = torch.cdist(rows, rows)
    distances.fill_diagonal_(torch.inf)
    found = distances.topk(min(NEIGHBORS, len(rows) // 4), largest=False).indices.cpu().numpy()
    group = np.concatenate([groups[0], groups[1] + groups[0].max() + 1])[order]
    of_group = np.arange(group.max() + 1) > groups[0].max()

    def spread(labels: NDArray[np.bool_]) -> float:
        return float(np.square(labels[group][found].mean(1) - 0.5).mean())

    seen = spread(of_group)
    exchanged = [spread(rng.permutation(of_group)) for _ in range(PERMUTATIONS)]
    return (1 + sum(one >= seen for one in exchanged)) / (1 + PERMUTATIONS)


def _distance_p(
    place: int, sets: list[Subset], groups: list[NDArray[np.int64]], rng: np.random.Generator, run: Run
) -> float:
    """Test whether samples of both sets are equally near to a half of one of them, which they are not in."""
    from scipy.stats import mannwhitneyu

    count = groups[place].max() + 1
    is_target = (rng.permutation(count) < count // 2)[groups[place]]
    half = Subset(sets[place], np.flatnonzero(is_target))
    samples = []
    for number, (one, group) in enumerate(zip(sets, groups, strict=True)):
        rows = np.flatnonzero(~is_target) if number == place else np.arange(one.n)
        found = nearest(Subset(one, rows), half, 1, device=run.torch_device).distances[:, 0]
        own = group[rows]
        samples.append(
            [np.median(found[own == name]) for name in np.unique(own)] if len(set(own)) < len(own) else found
        )
    return float(mannwhitneyu(*samples, method="asymptotic").pvalue)
