"""`Permutations`: labels of two sets together, as they are and permuted, with folds that know no label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.local_evidence.inputs import Indices, LocalInput

Array = NDArray[np.float64]
Scores = NDArray[np.float32]

TINY = 1e-12  # sum of weights of a label without samples

FOLDS = 5  # parts of the units: what four of them say of a threshold or of "upright" judges the fifth


@dataclass(frozen=True, eq=False)
class Permutations:
    """Samples of both sets together, unit by unit, with their labels as they are and after r permutations.

    Units are permuted whole, inside their blocks. If they have unlike numbers of samples, one sample of each is drawn:
    of 60 equal sets of groups of 1 to 6 pictures and of single pictures, 9 were called different by all samples, even
    with statistics in units of their standard errors. The difference of the sets in values x is Σ w·x, which is the
    difference of their means; of several blocks, the mean of their differences with the weights of Cochran, Mantel and
    Haenszel.

    Attributes:
        rows: place of each sample among the rows of the generated set and then of the reference, shape (n,).
        is_gen: whether each sample has the label of the generated set, the first row as it is, shape (1 + r, n).
        weights: weight w of each sample in the difference of the sets, shape (1 + r, n).
        starts: place of the first sample of each unit, shape (u,).
        apart: number of what is left out together where a sample is judged by the labels of others, shape (n,): its
            unit, or its block where there are many.
        folds: number of the fold of each sample, shape (n,).
    """

    rows: Indices
    is_gen: NDArray[np.bool_]
    weights: Scores
    starts: Indices
    apart: Indices
    folds: Indices

    @property
    def units(self) -> tuple[int, int]:
        """Number of units of both sets."""
        first = int(self.is_gen[0, self.starts].sum())
        return first, len(self.starts) - first

    def differ(self, values: NDArray[np.floating | np.bool_]) -> Array:
        """Return differences of the sets, (1 + r,), in values under each permutation, (1 + r, n).

        Values that know no labels may have the shape (1, n).
        """
        values = np.broadcast_to(values, self.weights.shape)
        return np.asarray(np.einsum("rn,rn->r", self.weights, values, dtype=np.float64))

    def shares(self, has: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the share of samples with a property, (n,), in both sets as they are, and variances of the shares."""
        weights = np.abs(self.weights[0]) * np.stack([self.is_gen[0], ~self.is_gen[0]])
        return weights @ has.astype(float) / weights.sum(1, dtype=float), self._variances(has[None], 1)[0]

    def restricted(self, places: Indices) -> Permutations:
        """Return the same permutations of the samples at some places, ascending, with weights that add up to 1 again.

        If a share of each set is left out, one label may have more of the rest than the other: compare differences in
        units of `spread`.
        """
        is_gen, weights = self.is_gen[:, places], self.weights[:, places].copy()
        for of_set in (is_gen, ~is_gen):
            total = np.abs(weights * of_set).sum(1, keepdims=True)
            weights /= np.where(of_set, np.maximum(total, TINY), 1)
        units = np.searchsorted(self.starts, places, side="right") - 1
        starts = np.unique(units, return_index=True)[1]
        return Permutations(self.rows[places], is_gen, weights, starts, self.apart[places], self.folds[places])

    @property
    def spread(self) -> Array:
        """Standard error of a difference in values of deviation 1, if all samples are independent, shape (1 + r,)."""
        return np.asarray(np.sqrt(np.square(self.weights, dtype=np.float64).sum(1)))

    def _variances(self, values: NDArray[np.floating | np.bool_], permuted: int | None = None) -> Array:
        """Return the variances of the means of both sets, (1 + r, 2), by their units (see `numerics.exchanges`)."""
        labels, size = self.is_gen[:permuted], np.abs(self.weights[:permuted])
        variances = []
        for of_set in (labels, ~labels):
            share = size * of_set
            mean = np.einsum("rn,rn->r", share, values)
            parts = np.add.reduceat(share * (values - mean[:, None]), self.starts, 1)
            units = of_set[:, self.starts].sum(1)
            variances.append((parts**2).sum(1, dtype=np.float64) * units / np.maximum(units - 1, 1))
        return np.stack(variances, 1)


def permute(gen: LocalInput, ref: LocalInput, seed: int, draws: int) -> Permutations | None:
    """Draw permutations of the units of two sets, and folds; None if no block has samples of both sets."""
    units, blocks = _units_and_blocks(gen, ref)
    is_gen = np.arange(len(units)) < gen.n
    rows = _of_both(np.arange(len(units)), blocks, is_gen)
    rng = np.random.default_rng(seed)
    # In random order: where scores are equal, the order decides, and must not know a label.
    shuffled = rng.permutation(int(units.max()) + 1)[units]
    if _are_uneven(units[rows], blocks[rows]):
        rows = rng.permutation(rows)
        rows = _of_both(rows[np.unique(shuffled[rows], return_index=True)[1]], blocks, is_gen)
    if not len(rows):
        return None
    rows = rows[np.argsort(shuffled[rows], kind="stable")]
    starts, of_sample = np.unique(shuffled[rows], return_index=True, return_inverse=True)[1:]
    found, block = np.unique(blocks[rows], return_inverse=True)
    # Samples of one prompt are alike: a classifier of a block is not asked about others of this block.
    apart = block if len(found) >= 2 * FOLDS else of_sample
    folds = (rng.permutation(apart.max() + 1) % FOLDS)[apart]
    labels = _draw_labels(is_gen[rows[starts]], block[starts], rng, draws)[:, of_sample]
    return Permutations(rows, labels, _weigh(labels, block), starts, apart, folds)


def fold_in_turn(count: int) -> Indices:
    """Return the fold whose threshold a sample of a further set is given, for each, shape (count,)."""
    return np.arange(count) % FOLDS


def _of_both(rows: Indices, blocks: Indices, is_gen: NDArray[np.bool_]) -> Indices:
    """Return the rows whose block has some of these rows of both sets."""
    both = np.intersect1d(blocks[rows[is_gen[rows]]], blocks[rows[~is_gen[rows]]])
    return rows[np.isin(blocks[rows], both)]


def _are_uneven(units: Indices, blocks: Indices) -> bool:
    """Return whether units have unlike sizes, or samples in several blocks: then a sample of each is tested."""
    if not len(units):
        return False
    _, sizes = np.unique(units, return_counts=True)
    return bool(np.ptp(sizes)) or len(np.unique(np.stack([units, blocks]), axis=1).T) > len(sizes)


def _units_and_blocks(gen: LocalInput, ref: LocalInput) -> tuple[Indices, Indices]:
    """Return the number of the unit and of the block of each sample of both sets; units of both sets are apart."""
    first, second = (np.arange(each.n) if each.units is None else each.units for each in (gen, ref))
    blocks = [np.zeros(each.n, np.int64) if each.blocks is None else each.blocks for each in (gen, ref)]
    return np.concatenate([first, second + 1 + first.max(initial=-1)]), np.concatenate(blocks)


def _draw_labels(is_gen: NDArray[np.bool_], block: Indices, rng: np.random.Generator, draws: int) -> NDArray[np.bool_]:
    """Return the labels of units, as they are and after permutations inside their blocks, shape (1 + draws, u)."""
    labels = np.empty((1 + draws, len(is_gen)), bool)
    labels[0] = is_gen
    by_block = is_gen[np.argsort(block, kind="stable")]
    for row in labels[1:]:
        row[np.argsort(block + rng.random(len(block)))] = by_block
    return labels


def _weigh(labels: NDArray[np.bool_], block: Indices) -> Scores:
    """Return the weight of each sample in the difference of both sets, shape (1 + r, n)."""
    order = np.argsort(block, kind="stable")
    starts = np.unique(block[order], return_index=True)[1]
    gen = np.add.reduceat(labels[:, order], starts, 1, dtype=np.float64)
    size = np.bincount(block)
    weight = gen * (size - gen) / size  # 1 / (1/n + 1/m)
    weight /= weight.sum(1, keepdims=True)
    return np.where(labels, (weight / gen)[:, block], -(weight / (size - gen))[:, block]).astype(np.float32)
