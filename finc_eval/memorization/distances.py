"""Distances of an audit: every two sets are passed once, for neighbors both ways and for the numbers in balls.

For the control, one half of the training set stands in for the generated set, and is held against the other half: a
generator of the training set's distribution that copied nothing, whatever the holdout is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.progress import Progress, Stage, divide_stage
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.distance_blocks import Smallest, blocks
from finc_eval.embeddings.search.neighbors import (
    Neighbors,
    Radii,
    by_index,
    inverted_file,
    least_recall,
    nearest,
    radii,
)
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.kept_steps import KeptSteps
from finc_eval.numerics.arrays import fold_of
from finc_eval.numerics.names import SearchIndex

STAGE = Stage("distances between samples", cost=10)  # stage of the progress, whose unit is a pair of samples


@dataclass(frozen=True, eq=False)
class AttackedDistances:
    """Distances of a set's samples to the generated samples, which attacks on membership use."""

    distances: NDArray[np.float64]  # distance to the nearest generated sample, shape (n,)
    within: NDArray[np.int64]  # number of generated samples within the radius, shape (n,)


@dataclass(frozen=True, eq=False)
class SetDistances:
    """Distances between a generated set, or a set that stands in for it, and members and non-members."""

    to_train: Neighbors  # nearest training samples of each generated sample, shape (n, k)
    to_non_members: Neighbors  # nearest non-member of each generated sample, shape (n, 1)
    members: AttackedDistances  # distances from members to the generated samples
    non_members: AttackedDistances
    radius: float  # radius of the balls that are counted


def cut_in_two(samples: Embeddings) -> tuple[Subset, Subset]:
    """Cut a set in two by a hash of the sample ids; windows of a video stay together."""
    folds = fold_of(samples.id_keys())
    first, second = (Subset(samples, np.flatnonzero(folds == fold)) for fold in (0, 1))
    return first, second


def measure_all(
    sets: Mapping[str, Embeddings],
    half: Embeddings,
    rest: Embeddings,
    k: int,
    run: Run,
    index: SearchIndex,
    keep: KeptSteps,
) -> tuple[SetDistances, SetDistances, Neighbors, Radii]:
    """Measure all distances of an audit, as one stage whose unit is a pair of samples.

    Return distances of the generated set and of the control, in which one half of the training set stands in for it;
    the k nearest training samples of the holdout; and distances of training samples to the nearest in their own set.
    """
    gen, train, holdout = sets["gen"], sets["train"], sets["holdout"]
    pairs = [gen.n * (train.n + holdout.n), half.n * (rest.n + holdout.n), holdout.n * train.n, train.n**2]
    of_gen, of_control, of_fresh, of_train = divide_stage(run.progress, STAGE, pairs)
    by_gen, by_control = (replace(run, progress=progress) for progress in (of_gen, of_control))
    measured = keep("gen", SetDistances, lambda: measure(gen, train, holdout, k, by_gen, index))
    of_gen(STAGE, 1, 1)
    control = keep("control", SetDistances, lambda: measure(half, rest, holdout, 1, by_control, index))
    of_control(STAGE, 1, 1)
    fresh = keep("fresh", Neighbors, lambda: nearest(holdout, train, k, device=run.torch_device, index=index))
    of_fresh(STAGE, 1, 1)
    spaced = keep("spaced", Radii, lambda: radii(train, 1, run.torch_device, index))
    of_train(STAGE, 1, 1)
    return measured, control, fresh, spaced


def measure(
    gen: Embeddings, train: Embeddings, non_members: Embeddings, k: int, run: Run, index: SearchIndex = "exact"
) -> SetDistances:
    """Measure all distances of a set: one pass with the training set, one with the non-members."""
    # The median squared distance to the nearest generated sample, over some samples of both sets.
    # 1000: number of members, and of non-members, whose median distance to the generated set is the radius of the
    # balls.
    some = [
        Subset(embeddings, np.linspace(0, embeddings.n - 1, min(1000, embeddings.n)).astype(np.int64))
        for embeddings in (train, non_members)
    ]
    distances = [nearest(sample, gen, 1, device=run.torch_device).distances for sample in some]
    squared = float(np.median(np.concatenate(distances))) ** 2
    first, second = divide_stage(run.progress, STAGE, [train.n, non_members.n])
    to_train, members = _pass(gen, train, k, squared, first, run, index)
    to_non_members, others = _pass(gen, non_members, 1, squared, second, run, index)
    return SetDistances(to_train, to_non_members, members, others, float(np.sqrt(squared)))


def _pass(
    gen: Embeddings, base: Embeddings, k: int, squared_radius: float, progress: Progress, run: Run, index: SearchIndex
) -> tuple[Neighbors, AttackedDistances]:
    if by_index(index, gen.n, base.n):  # the same by two inverted files, one of either set
        near = nearest(gen, base, k, device=run.torch_device, index="auto")
        progress(STAGE, 1, 2)
        inverted, recall = inverted_file(base, gen, 1, device=run.torch_device)
        squared, _ = inverted.search(base, 1)
        counts = inverted.within(base, squared_radius)
        progress(STAGE, 2, 2)
        least = least_recall(near.recall, recall)
        return Neighbors(near.distances, near.indices, least), AttackedDistances(np.sqrt(squared[:, 0]), counts)
    to_base, from_base = Smallest(gen.n, k), Smallest(base.n, 1)
    within, done = np.zeros(base.n, np.int64), 0
    for block in blocks(gen, base, run.torch_device):
        to_base.update(block)
        from_base.update(block.transposed)
        width = len(block.y.rows)
        _, columns = block.within(column_radii=np.full(width, squared_radius), closed=True)
        within[block.columns] += np.bincount(columns, minlength=width)
        done += block.lower.numel()
        progress(STAGE, done, gen.n * base.n)
    return Neighbors(np.sqrt(to_base.keys), to_base.indices), AttackedDistances(np.sqrt(from_base.keys[:, 0]), within)
