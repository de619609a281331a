"""Near-repeats in sets, such as frames of one video: samples that are not independent, found without metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.embeddings.search.neighbors import Neighbors, draw_rows, nearest
from finc_eval.embeddings.subset import Subset

QUERIES, NEAR, FAR = 256, 10, 20
"""Samples whose neighborhoods are examined, ranks of neighbors that can be near-repeats, and ranks that are seen."""

GAP = 5.5  # normalized spacing that is a gap: independent samples have it in exp(−5.5) = 0.4 % of spacings
STANDARD_ERRORS = 3.0  # standard errors that make the set of first neighbors differ from the sets of other neighbors

TOLD_APART = 0.9  # chance that all near neighbors are of one set above which the other sets are too small to judge


def near_repeat_warnings(sets: Mapping[str, Embeddings], run: Run | None = None) -> list[str]:
    """Warn of sets without groups in which many samples have a near-copy, such as frames of one video.

    A sample that a sketch kept shows few of the near-copies of its set.
    """
    free = [
        label
        for label, embeddings in sets.items()
        if embeddings.group_hashes() is None and embeddings.stands_for is None
    ]
    # 0.1: share of a set's samples with a near-repeat from which a warning is given.
    return [
        f"about {percent(share)} of the samples of {label} have a near-copy in {label}: if they are frames of one "
        "video, augmentations of one image or images of one prompt, name the groups (groups=…, --groups)"
        for label, share in near_repeats(sets, free, run).items()
        if share >= 0.1
    ]


def near_repeats(sets: Mapping[str, Embeddings], labels: Sequence[str], run: Run | None = None) -> dict[str, float]:
    """Estimate the share of the samples of some sets that have a near-copy in theirs, from the neighborhoods of some.

    The neighbors of a sample are found in all sets together. Around independent samples the normalized spacings
    j·log(d_{j+1}/d_j) of their distances are exponential with the local dimension as their rate, whatever the density
    (Rényi; Hill's estimator). A sample has near-repeats where one of the first spacings is a gap; they are copies where
    all neighbors within the gap are of its own set more often than sizes explain. Sets that have too few neighbors to
    say anything are left out. Equal samples are one: a picture that a set has many times would else fill the
    neighborhoods of the other sets with its own copies.
    """
    run = Run.of(run)
    sets = _distinct(sets, run)
    sizes = {label: embeddings.n for label, embeddings in sets.items()}
    total = sum(sizes.values()) - 1
    if not labels or len(sets) < 2 or min(sizes.values()) < 2 or total < 2 * FAR:
        return {}
    chosen = {label: draw_rows(sets[label], QUERIES) for label in labels}
    queries = torch.cat([sets[label].rows_at(rows).cpu() for label, rows in chosen.items()])
    neighbors_by_set = {
        label: nearest(queries, base, min(FAR + 1, base.n), device=run.torch_device) for label, base in sets.items()
    }
    shares, start = {}, 0
    for label, rows in chosen.items():
        part = slice(start, start := start + len(rows))
        of_part = {
            name: Neighbors(neighbors.distances[part], neighbors.indices[part])
            for name, neighbors in neighbors_by_set.items()
        }
        of_part[label].distances[of_part[label].indices == rows[:, None]] = np.inf
        shares[label] = _near_copies(of_part, label, (sizes[label] - 1) / total)
    return shares


def _distinct(sets: Mapping[str, Embeddings], run: Run) -> dict[str, Embeddings]:
    """Return the first of all equal samples of each set, in the order of the set."""
    distinct = dict(sets)
    for label, hashes in sample_hashes(sets, replace(run, progress=silent)).items():
        first = np.sort(np.unique(hashes, return_index=True)[1])
        if len(first) < sets[label].n:
            distinct[label] = Subset(sets[label], first)
    return distinct


def _near_copies(neighbors: Mapping[str, Neighbors], label: str, chance: float) -> float:
    """Estimate the share of queries from one set that have a near-copy in it.

    A query is infinitely far from itself; `chance` is the share of its set among all other samples.
    """
    all_neighbors, among = list(neighbors.values()), list(neighbors).index(label)
    # Of neighbors at the last distance that is seen of a set, some may be unseen.
    seen = np.min(
        [
            each.distances[:, -1] if each.distances.shape[1] > FAR else np.full(len(each.distances), np.inf)
            for each in all_neighbors
        ],
        axis=0,
    )
    distances = np.concatenate([each.distances for each in all_neighbors], axis=1)
    is_of_set = np.concatenate([np.full(each.distances.shape[1], at == among) for at, each in enumerate(all_neighbors)])
    # Neighbors at one distance come in any order, whatever their set.
    ties = np.random.default_rng(0).random(distances.shape)
    order = np.lexsort((ties, distances), axis=1)[:, : FAR + 1]
    logs = np.log(np.take_along_axis(distances, order, 1).clip(np.finfo(np.float32).tiny))
    spacings = np.arange(1, FAR + 1) * np.diff(logs, axis=1)
    # The dimension around a sample, from the neighbors further off, but not more than around most samples.
    mean = spacings[:, NEAR:].mean(1)
    scale = np.maximum(mean, np.median(mean))
    surely = np.take_along_axis(distances, order, 1) < seen[:, None]
    return max(_by_gap(spacings, scale, is_of_set[order], chance), _by_rank(spacings, scale, is_of_set[order], surely))


def _by_rank(
    spacings: NDArray[np.float64], scale: NDArray[np.float64], is_of_set: NDArray[np.bool_], surely: NDArray[np.bool_]
) -> float:
    """Return how much more often the first neighbor is of the own set than those further off.

    Sets of unlike laws show this without copies, but then the first neighbor is not nearer than the spacings of the
    others let expect. Shapes: `spacings` (q, FAR), their means `scale` (q,), and `own` and `surely` (q, FAR + 1),
    nearest first: whether a neighbor is of the own set, and whether none as near is unseen.
    """
    if not surely[:, NEAR:].any():
        return 0.0
    first, far = is_of_set[:, 0].mean(), is_of_set[:, NEAR:][surely[:, NEAR:]].mean()
    # Where nearly all neighbors are of the own set, the first of them shows nothing.
    if far > TOLD_APART or not first:
        return 0.0
    error = np.sqrt(max(first * (1 - first), far * (1 - far)) / len(is_of_set))
    near = spacings[is_of_set[:, 0], 0].sum() / scale[is_of_set[:, 0]].sum().clip(np.finfo(float).tiny)
    copied = first - far > STANDARD_ERRORS * error and near > 1 + STANDARD_ERRORS / np.sqrt(is_of_set[:, 0].sum())
    return float((first - far) / (1 - far)) if copied else 0.0


def _by_gap(
    spacings: NDArray[np.float64], scale: NDArray[np.float64], is_of_set: NDArray[np.bool_], chance: float
) -> float:
    """Return the share of samples that have neighbors of the own set alone before a gap.

    Arguments are as in `_by_rank`.
    """
    gaps = spacings[:, :NEAR] > GAP * scale[:, None]
    gapped = gaps.any(1)
    if not gapped.any():
        return 0.0
    first = gaps.argmax(1)[gapped]
    inside = np.arange(NEAR) <= first[:, None]
    alone = float((is_of_set[gapped, :NEAR] | ~inside).all(1).mean())
    by_chance = float((chance ** (first + 1)).mean())
    if by_chance > TOLD_APART:
        return float(gapped.mean()) * alone
    error = np.sqrt(by_chance * (1 - by_chance) / len(first))
    excess = (alone - by_chance) / (1 - by_chance) if alone - by_chance > STANDARD_ERRORS * error else 0.0
    return float(gapped.mean()) * excess
