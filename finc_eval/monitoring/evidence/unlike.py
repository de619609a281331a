"""`Unlike`: samples of kinds that the reference lacks, by mean kernels; see `finc_eval.monitoring.evidence.asked`.

The score of a sample is the logarithm of its mean kernel with samples of the past, less that with the bag without
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.embeddings.base import Embeddings
from finc_eval.monitoring.evidence.asked import Asked, Mask
from finc_eval.monitoring.exchange import Array, Counts
from finc_eval.naming.classes import probabilities

MOST_REFERENCE = 1000
"""Samples of the reference that are kept, and asked about: 4.6 MB in a file, and half of the time of an evaluation. Of
24 new classes of 8 %, 16 had an alarm within ten evaluations with 1 000 of them, and 11 with 650."""

WIDTH = 0.8
"""σ of the kernel, in parts of the median distance of the reference. Of new classes of 8 % in 256 photographs, 69 % lie
above the 99 % point of others with .7 or .9, and 65 % with .5; without the probabilities of classes, 53 %."""

FLOOR = 1e-9  # least mean kernel: a sample that is far from everything is like nothing


def represent(embeddings: Embeddings, places: Counts) -> NDArray[np.float32]:
    """Return what samples are compared by, shape (n, d + c): embeddings, and roots of the probabilities of classes.

    The probabilities are of the extractor's last layer; without it, c = 0.
    """
    rows = embeddings.rows_at(places).cpu().float()
    chance = probabilities(embeddings, places) if len(places) else None
    parts = [rows] if chance is None else [rows, chance.float().sqrt()]
    return np.asarray(torch.cat(parts, 1).numpy())


@dataclass(frozen=True, eq=False)
class Unlike(Asked):
    """Classifiers by kernels; `near` has the sum of the kernel of each sample with those of each block but itself."""

    name: ClassVar[str] = "unlike"
    is_near: ClassVar[bool] = True

    @classmethod
    def of(cls, reference: Embeddings, place: int, seed: int) -> Self:
        """Begin with samples of the reference, at random; `place` is that of new kinds among the followed things."""
        drawn = np.random.default_rng([seed, 4]).permutation(reference.n)[:MOST_REFERENCE]
        kept = represent(reference, drawn)
        scale = np.empty(kept.shape[1], np.float32)
        for part in (slice(reference.dim), slice(reference.dim, None)):
            scale[part] = 1 / _median_distance(kept[:, part])
        scale /= np.float32(_median_distance(kept * scale))
        return cls.begun(kept, scale, place)

    def _scores(self, bag: Mask, past: Mask) -> Array:
        near, blocks = self.near[bag], np.unique(self.block)
        in_bag, in_past = np.isin(blocks, self.block[bag]), np.isin(blocks, self.block[past])
        of_past, of_bag = near[:, in_past].sum(1) / past.sum(), near[:, in_bag].sum(1) / (bag.sum() - 1)
        return np.asarray(np.log(of_past + FLOOR) - np.log(of_bag + FLOOR))

    def _near_with(self, rows: NDArray[np.float32], new: NDArray[np.float32], block: Counts, near: Array) -> Array:
        with_others, among = _kernel(new, rows), _kernel(new, new)
        np.fill_diagonal(among, 0)
        starts = np.unique(block, return_index=True)[1]
        sums = np.add.reduceat(with_others, starts, 1) if len(block) else np.empty((len(new), 0))
        return np.block([[near, with_others.sum(0)[:, None]], [sums, among.sum(1)[:, None]]])


def _kernel(rows: NDArray[np.float32], others: NDArray[np.float32]) -> Array:
    """Return exp(−‖x − y‖²/(2σ²)) of rows whose median distance is 1, shape (n, m)."""
    x, y = map(torch.from_numpy, (rows, others))
    squares = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.T
    return np.asarray(torch.exp(squares.clamp_min(0) / (-2 * WIDTH**2)).double().numpy())


def _median_distance(rows: NDArray[np.float32]) -> float:
    """Return the median distance of at most 500 rows, or 1 if most are equal or have no entries."""
    distances = torch.pdist(torch.from_numpy(rows[:500]))
    return (float(distances.median()) or 1.0) if len(distances) and rows.shape[1] else 1.0
