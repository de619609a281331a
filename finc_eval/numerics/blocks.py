"""Differences within blocks, such as images of the same prompts: what all sets of a block share cancels.

With w_b the weight of block b, and n_sb its samples of set s, the difference of set s from the others is

    D = Σ_b w_b·d_b,   d_b = mean of x in set s − mean of x in the others,   w_b ∝ 1 / Σ_s (1 / n_sb),

which are the weights of Cochran, Mantel and Haenszel. Where, given its block, a sample has one law in all sets, the
labels of the sets may be exchanged inside each block: its samples are permuted, and the tests are exact if these are
independent given their block. Samples that are not, such as windows of a video, are exchanged as a whole in
blocks of two sets of one size: d_b changes its sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.exchanges import EXACT_BLOCKS, all_signs, random_signs
from finc_eval.numerics.families import TIE, smallest_p
from finc_eval.numerics.inference import POWER, detectable_share, normal_quantile

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

EXCHANGES = 1999  # random exchanges of labels behind a p-value
MIN_BLOCKS = 6  # blocks from which on a two-sided p-value can be below 0.05: 2 / 2⁶
MAX_ENTRIES = 1 << 24  # entries of the matrix of exchanges that are held at once: 128 MB

RADEMACHER = 3.1787
"""P(Σ ε_b·d_b ≥ z·‖d‖) ≤ 3.1787·(1 − Φ(z)) for random signs ε, whatever d (Bentkus and Dzindzalieta 2015)."""


@dataclass(frozen=True, eq=False)
class Blocked:
    """Samples of s sets in B blocks; every set has samples of every block."""

    block: Integers  # block of each sample, shape (n,), from 0 on
    owner: Integers  # place of the set of each sample, shape (n,)
    # whether the samples of a set in a block are exchanged together, as they are not independent
    is_whole: bool = False

    @cached_property
    def sizes(self) -> Integers:
        """Samples of each set in each block, shape (B, s)."""
        blocks, sets = int(self.block.max()) + 1, int(self.owner.max()) + 1
        return np.bincount(self.block * sets + self.owner, minlength=blocks * sets).reshape(blocks, sets)

    @cached_property
    def weights(self) -> Array:
        """Weight of each block, shape (B,); they add to 1."""
        weights = 1 / (1 / self.sizes).sum(1)
        return np.asarray(weights / weights.sum())

    @cached_property
    def contrasts(self) -> Array:
        """Weight of each sample in the difference of a set from all others, shape (c, n): one row for two sets."""
        sizes, sets = self.sizes, self.sizes.shape[1]
        rows = []
        for number in range(1 if sets == 2 else sets):
            size = sizes[:, number]
            rest = sizes.sum(1) - size
            weight = np.where(self.owner == number, 1 / size[self.block], -1 / rest[self.block])
            rows.append(weight * self.weights[self.block])
        return np.array(rows)

    @cached_property
    def flipped(self) -> NDArray[np.bool_]:
        """Blocks whose sets are exchanged as a whole, shape (B,)."""
        sizes = self.sizes
        if sizes.shape[1] != 2:
            return np.zeros(len(sizes), bool)
        return np.asarray((sizes[:, 0] == sizes[:, 1]) & (self.is_whole | (sizes[:, 0] == 1)))

    def block_sums(self, cells: Integers, count: int, weights: Array) -> Array:
        """Return the sum of weights of each block and cell, shape (B, count); `cells` and `weights` have shape (n,)."""
        cell = self.block * count + cells
        return np.asarray(np.bincount(cell, weights, len(self.sizes) * count).reshape(len(self.sizes), count), float)

    def shares(self, cells: Integers, count: int) -> Array:
        """Return the share of each cell in each set, shape (s, count): Σ_b w_b·c_sb / n_sb."""
        weight = self.weights[self.block] / self.sizes[self.block, self.owner]
        sets = self.sizes.shape[1]
        return np.asarray(np.bincount(self.owner * count + cells, weight, sets * count).reshape(sets, count), float)

    def within_variances(self, cells: Integers, count: int, kinds: Array) -> Array | None:
        """Return Σ_b w_b²·(variance of the mean of set s + of the others), shape (c, t); None if unknown."""
        sizes, sets = self.sizes, self.sizes.shape[1]
        if self.is_whole or sizes.min() < 2:
            return None
        parts = []
        for number in range(sets):
            size = sizes[:, number][:, None]
            share = self.block_sums(cells, count, (self.owner == number).astype(float)) @ kinds / size
            parts.append(share * (1 - share) * size / (size - 1))  # variance of one sample
        variances = []
        for number in range(1 if sets == 2 else sets):
            size, rest = sizes[:, number][:, None], (sizes.sum(1) - sizes[:, number])[:, None]
            others = sum(parts[each] * sizes[:, each][:, None] for each in range(sets) if each != number) / rest
            variances.append((self.weights[:, None] ** 2 * (parts[number] / size + others / rest)).sum(0))
        return np.array(variances)

    def exchanges(self, cells: Integers, count: int, seed: int) -> Iterator[Array]:
        """Yield differences of the shares of cells after exchanges, in batches of shape (r, c, count); see `EXCHANGES`.

        Where all exchanges are tried, the first is the labels as they are.
        """
        whole = [self.block_sums(cells, count, row)[self.flipped] for row in self.contrasts]
        rng = np.random.default_rng(seed)
        if self.is_exact:
            signs = all_signs(len(self.sizes))
            yield np.stack([signs @ sums for sums in whole], 1)
            return
        mixed = np.flatnonzero(~self.flipped[self.block])
        mixed = mixed[np.argsort(self.block[mixed], kind="stable")]
        batch = max(1, min(EXCHANGES, MAX_ENTRIES // max(len(mixed), int(self.flipped.sum()), 1)))
        for start in range(0, EXCHANGES, batch):
            draws = min(batch, EXCHANGES - start)
            signs = random_signs(rng, draws, int(self.flipped.sum()))
            sums_drawn = np.stack([signs @ sums for sums in whole], 1)
            if len(mixed):
                # `mixed` is in the order of its blocks, so that the samples of each block are permuted alone.
                order = np.argsort(self.block[mixed] + rng.random((draws, len(mixed))), axis=1)
                cell = (np.arange(draws)[:, None] * count + cells[mixed][order]).ravel()
                permuted = [np.bincount(cell, np.tile(row[mixed], draws), draws * count) for row in self.contrasts]
                sums_drawn += np.stack([sums.reshape(draws, count) for sums in permuted], 1)
            yield sums_drawn

    @property
    def is_exact(self) -> bool:
        """True if all exchanges are tried."""
        return bool(self.flipped.all()) and len(self.sizes) <= EXACT_BLOCKS


@dataclass(frozen=True, eq=False)
class WithinBlocks:
    """Differences of shares within blocks, of t kinds in c contrasts, and their exchanges."""

    shares: Array  # share of each kind in each set, shape (s, t)
    difference: Array  # difference of a set from all others, shape (c, t)
    # variance of each, shape (c, t): of other samples of the same blocks, where every set has two or more of each block
    # that are independent, and else of other blocks. The variance of one block under exchanges is added, so that blocks
    # that happen to be of one kind are not taken for certain.
    variance: Array
    null: Array  # variance of each under exchanges, shape (c, t); the exchanges do not change it
    drawn: NDArray[np.float32]  # differences after exchanges, in units of their standard deviations, shape (r, c, t)
    is_exact: bool
    _units: float
    samples: float  # independent samples of a set that shares are worth at most

    @classmethod
    def of(cls, blocked: Blocked, cells: Integers, members: NDArray[np.bool_], seed: int = 0) -> WithinBlocks:
        """Compare the shares of kinds, from the cell of each sample, (n,), and the cells of each kind, (t, cells)."""
        kinds, count = members.T.astype(float), members.shape[1]
        sizes, blocks, weights = blocked.sizes.sum(1), len(blocked.sizes), blocked.weights[:, None]
        flipped = blocked.flipped[:, None]
        pooled = blocked.block_sums(cells, count, np.ones(len(cells))) @ kinds / sizes[:, None]
        even = np.where(pooled * (1 - pooled) > TIE, pooled * (1 - pooled), 0)
        difference, variance, null = [], [], []
        within = blocked.within_variances(cells, count, kinds)
        for row, contrast in enumerate(blocked.contrasts):
            d = blocked.block_sums(cells, count, contrast) @ kinds
            d[np.abs(d) < TIE * weights] = 0  # equal shares, up to rounding
            total, size = d.sum(0), blocked.sizes[:, row].astype(float)
            spread = 1 / size + 1 / (sizes - size)
            # The variance of a difference of means of a permuted block.
            permuted = weights**2 * even * (spread * sizes / np.maximum(sizes - 1, 1))[:, None]
            exchanged = np.where(flipped, d**2, permuted)
            between = ((d - weights * total) ** 2).sum(0) * blocks / max(blocks - 1, 1)
            null.append(exchanged.sum(0))
            difference.append(total)
            variance.append((between if within is None else within[row]) + exchanged.max(0))
        scale = np.sqrt(np.where(np.array(null) > 0, null, np.inf))
        drawn = [((batch @ kinds) / scale).astype(np.float32) for batch in blocked.exchanges(cells, count, seed)]
        share = blocked.shares(cells, count) @ kinds
        return cls(
            shares=share,
            difference=np.array(difference),
            variance=np.array(variance),
            null=np.array(null),
            drawn=np.concatenate(drawn),
            is_exact=blocked.is_exact,
            _units=float(1 / (blocked.weights**2 / np.where(blocked.flipped, 1, blocked.sizes.min(1))).sum()),
            samples=float(1 / (blocked.weights**2 / blocked.sizes.min(1)).sum()),
        )

    @property
    def z(self) -> Array:
        """Differences in units of their standard deviations under exchanges, shape (c, t)."""
        return np.asarray(self.difference / np.sqrt(np.where(self.null > 0, self.null, np.inf)))

    def at(self, kinds: Integers) -> WithinBlocks:
        """Return the same of some kinds, by their columns."""
        names = ("shares", "difference", "variance", "null", "drawn")
        return replace(self, **{name: getattr(self, name)[..., kinds] for name in names})

    def times(self, factor: float) -> WithinBlocks:
        """Return the same differences from this many times as many blocks."""
        return replace(
            self,
            variance=self.variance / factor,
            null=self.null / factor,
            _units=self._units * factor,
            samples=self.samples * factor,
        )

    def intervals(self, confidence: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each difference, shape (c, t).

        The half-width has the normal error of the difference, and the share of a kind that may well have no sample. So
        it is not that of an `Estimate`, which has no error where no sample is of the kind.
        """
        unseen = 1 - ((1 - confidence) / 2) ** (1 / self.samples)
        half = np.sqrt(normal_quantile(confidence) ** 2 * self.variance + unseen**2)
        return np.maximum(self.difference - half, -1), np.minimum(self.difference + half, 1)

    def detectable(self, alpha: float) -> float:
        """Return the smallest share of a kind of one set alone that would be found with 80 % power."""
        largest = np.abs(self.drawn).reshape(len(self.drawn), -1).max(1)
        least = float(np.quantile(largest, 1 - alpha, method="higher")) ** 2  # m pairs of one sign have z = √m
        blocks = self._units
        return float(detectable_share(int(least) + 1, blocks, POWER)) if least < blocks else 1.0

    def p_value(self) -> Array:
        """Return the p-value of "all sets have one law, given the block", of each contrast, shape (c,).

        Two statistics see differences of many kinds and of a rare one: the sum of squares, and its largest term
        (`smallest_p`).
        """
        z = self.drawn if self.is_exact else np.concatenate([self.z[None].astype(np.float32), self.drawn])
        squares = np.round(z.astype(float) ** 2, 5)
        spread = 1 - self.shares.mean(0)
        return smallest_p(np.stack([np.round(squares @ spread, 5), squares.max(2)]))
