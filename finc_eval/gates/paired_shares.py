"""Evidence on shares from pairs: samples of the same prompts and seeds in both releases.

Each kind has four counts of pairs: with both samples of it, only the old sample, only the new sample, or neither.
What both releases share cancels, so that the same numbers of samples show smaller differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import gammaincinv

from finc_eval.gates.evidence import LimitEvidence, Side
from finc_eval.gates.shares import SHARE_PART, SIDES, power_beside, ratio_bound, whole_of
from finc_eval.numerics.design_effects import GroupedKinds, design_effects
from finc_eval.numerics.inference import mover, share_bound
from finc_eval.numerics.thresholds import smallest_between

Interval = tuple[float, float, float]  # lower bound, estimate and upper bound


@dataclass(frozen=True)
class PairCounts:
    """Counts of pairs by a kind; effective numbers if pairs are grouped."""

    kept: float  # pairs with both samples of the kind
    lost: float  # pairs with only the old sample of it
    gained: float  # pairs with only the new sample of it
    size: float

    @property
    def old(self) -> float:
        """Members in the old release."""
        return self.kept + self.lost

    @property
    def share(self) -> float:
        """Share of the new release."""
        return (self.kept + self.gained) / self.size

    @property
    def old_share(self) -> float:
        """Share of the baseline."""
        return self.old / self.size

    def times(self, factor: float) -> PairCounts:
        """Return the counts multiplied by a factor."""
        return PairCounts(self.kept * factor, self.lost * factor, self.gained * factor, self.size * factor)

    @classmethod
    def of(cls, new: NDArray[np.bool_], old: NDArray[np.bool_], groups: NDArray[np.uint64] | None) -> PairCounts:
        """Count the pairs of a kind, divided by the largest design effect of its three counts."""
        cells = (new & old, old & ~new, new & ~old)
        effect = 1.0
        if groups is not None:
            _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
            tables = [csr_matrix((np.ones(len(cell)), (group, cell.astype(int))), (len(sizes), 2)) for cell in cells]
            shares = [GroupedKinds.of(table, sizes.astype(float)) for table in tables]
            effect = max(float(design_effects([share])[0][1]) for share in shares)
        kept, lost, gained = (float(cell.sum()) / effect for cell in cells)
        return cls(kept, lost, gained, len(new) / effect)


@dataclass(frozen=True, kw_only=True)
class PairedLoss(LimitEvidence):
    """Part of its share that a kind has lost, (old − new) / max(old, least), from pairs.

    A part of the old members has gone: a binomial share. The new members among what was not of the kind before are
    few against the old members: the conditional binomial test bounds that ratio. Given the number of old members, the
    two are independent, and their intervals are joined (MOVER).
    """

    most: ClassVar[float] = 1.0
    unchanged: float | None = 0.0
    counts: PairCounts
    least: float  # smallest share of the baseline that a loss is a part of

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the bound from the bounds of both parts and of the baseline's share."""
        counts, rest = self.counts.times(factor), level * SHARE_PART
        old, size = counts.old, counts.size
        low, high = (min(1.0, float(share_bound(old, size, end, rest)) / self.least) for end in SIDES)
        if old <= 0:
            return high if side == "high" else -float(share_bound(counts.gained, size, "high", level)) / self.least
        gone = _interval(counts.lost / old, *(float(share_bound(counts.lost, old, end, level - rest)) for end in SIDES))
        came = _interval(
            counts.gained / old, *(ratio_bound(counts.gained, size, old, size, end, level - rest) for end in SIDES)
        )
        left = float(mover(gone, came)[SIDES.index(side)])
        return left * (high if (left > 0) == (side == "high") else low)

    def detectable(self, level: float) -> float | None:
        """Return the loss that is called a regression with probability 0.8; None if not even a lost kind is."""
        counts = self.counts

        def with_lost(mean: float) -> PairCounts:
            return replace(counts, kept=counts.old - mean, lost=mean)

        def is_seen(mean: float) -> bool:
            few = min(_few(mean, counts.gained), counts.old)
            return replace(self, counts=with_lost(few)).bound("low", level) > self.margin

        mean = _least(is_seen, counts.old)
        share = max(counts.old / counts.size, self.least)
        return None if mean is None else (mean - counts.gained) / counts.size / share


@dataclass(frozen=True, kw_only=True)
class PairedGain(LimitEvidence):
    """Share of a kind in the new release minus that in the baseline, in parts of all samples, from pairs.

    It is the share of pairs that came minus the share that went: two cells of one multinomial law, whose exact
    intervals are joined with their correlation (MOVER).
    """

    unchanged: float | None = 0.0
    counts: PairCounts

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the bound of the difference."""
        counts = self.counts.times(factor)
        came, gone = (
            _interval(members / counts.size, *(float(share_bound(members, counts.size, end, level)) for end in SIDES))
            for members in (counts.gained, counts.lost)
        )
        p, q = came[1], gone[1]
        together = sqrt(p * q / ((1 - p) * (1 - q))) if p < 1 and q < 1 else 1.0
        near, far = (p - came[0], gone[2] - q) if side == "low" else (came[2] - p, q - gone[0])
        half = sqrt(near**2 + far**2 + 2 * together * near * far)
        return p - q - half if side == "low" else p - q + half

    def detectable(self, level: float) -> float | None:
        """Return the gain that is called a regression with probability 0.8; None if no share would be."""
        counts = self.counts

        def is_seen(mean: float) -> bool:
            few = min(_few(mean, counts.lost), counts.size - counts.lost)
            return replace(self, counts=replace(counts, gained=few)).bound("low", level) > self.margin

        mean = _least(is_seen, counts.size - counts.old)
        return None if mean is None else whole_of((mean - counts.lost) / counts.size, self.part)


def _least(is_seen: Callable[[float], bool], most: float) -> float | None:
    """Return the smallest mean number up to `most` that is seen; None if there is none."""
    return smallest_between(is_seen, 0.0, most) if most > 0 and is_seen(most) else None


def _few(mean: float, others: float) -> float:
    """Return a count of this mean that is as low as the power allows, while pairs the other way vary too."""
    return float(gammaincinv(mean, 1 - power_beside(others / mean)))


def _interval(estimate: float, low: float, high: float) -> Interval:
    return low, estimate, high
