"""Design effects: the factor by which grouped samples inform less about shares of kinds than independent samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Array = NDArray[np.float64]

MIN_INDEPENDENT = 4
"""Independent samples that a set must be equivalent to, to be tested. With fewer, in groups of unlike sizes, a kind was
significant in 12 to 41 % of simulated pairs of sets of one law; from 4 on, in 1 %."""


@dataclass(frozen=True, eq=False)
class GroupSizes:
    """Sizes of the groups of a set."""

    sizes: Array  # number of samples of a group, smallest first, each once, shape (u,)
    samples: Array  # number of samples in all groups of that size, shape (u,)

    @classmethod
    def of(cls, sizes: Array) -> GroupSizes:
        """Summarize the sizes of all groups, shape (g,)."""
        different, times = np.unique(sizes, return_counts=True)
        return cls(different, different * times)

    @property
    def n(self) -> float:
        """Number of samples."""
        return float(self.samples.sum())

    @property
    def mean(self) -> float:
        """M, mean size of the group of a sample: the design effect if groups of any size are of one kind each."""
        return float(self.sizes @ self.samples) / self.n

    def worst(self, members: Array) -> Array:
        """Return the largest design effects for numbers of members, shape (t,), all in the largest groups."""
        samples, squares = (np.cumsum([0.0, *values[::-1]]) for values in (self.samples, self.sizes * self.samples))
        members = np.maximum(members, 1.0)
        return np.asarray(np.interp(members, samples, squares) / members)


@dataclass(frozen=True, eq=False)
class GroupedShares:
    """Likeness of the samples of a group, for t shares of a set of grouped samples."""

    members: Array  # number of members of each kind, shape (t,)
    # number of groups with a member, shape (t,); with another sample, where the members are more than half
    groups: Array
    # variance of each share over the variance for as many independent samples, as the groups show it, shape (t,)
    seen: Array
    # mean size of the group of a member, shape (t,), or of another sample, as for `groups`; 1 without any
    around: Array
    sizes: GroupSizes  # sizes of all groups

    @property
    def even(self) -> Array:
        """Design effects if all kinds came in groups of the same sizes, shape (t,): 1 + ρ (M − 1).

        ρ is the correlation within the groups of a kind (Kish 1965), averaged with 1, which counts like one more group.
        A kind that by chance has only small groups looks less grouped than it is.
        """
        most = self.around - 1
        together = np.divide(np.clip(self.seen - 1, 0, most), most, out=np.ones(most.shape), where=most > 0)
        together = (self.groups * together + 1) / (self.groups + 1)
        return np.asarray(1 + together * (self.sizes.mean - 1))


@dataclass(frozen=True, eq=False)
class GroupedKinds(GroupedShares):
    """Spread of the members of t kinds over the groups of a set."""

    # number of samples in groups that are not larger than the largest with a member, shape (t,); all, without members
    within: Array

    @classmethod
    def of(cls, table: csr_matrix, size: Array) -> GroupedKinds:
        """Summarize numbers of samples by group and kind, shape (g, t), of groups of these sizes, shape (g,).

        With k_g members in groups of m_g samples, and p = Σ k_g / n, the variance of p is d times the binomial one,
        d = Σ (k_g − m_g p)² / (n p (1 − p)).
        """
        kinds, entries = table.shape[1], table.tocoo()
        k_g, kind, m_g = entries.data, entries.col, size[entries.row]
        k, kk, km = (np.asarray(np.bincount(kind, weights, kinds), float) for weights in (k_g, k_g * k_g, k_g * m_g))
        largest = np.zeros(kinds)
        np.maximum.at(largest, kind, m_g)
        largest = np.where(k > 0, largest, size.max())
        n, p, sizes = size.sum(), k / size.sum(), GroupSizes.of(size)
        # A share near 1 is as uncertain as the share of the others, near 0.
        others, whole = k > n / 2, np.bincount(kind[k_g == m_g], minlength=kinds)
        few, km_few = np.where(others, n - k, k), np.where(others, size @ size - km, km)
        binomial = k * (1 - p)
        between = kk - 2 * p * km + p**2 * (size @ size)
        return cls(
            members=k,
            groups=np.where(others, len(size) - whole, np.bincount(kind, minlength=kinds)).astype(float),
            seen=np.divide(between, binomial, out=np.full(kinds, sizes.mean), where=binomial > 0),
            around=np.divide(km_few, few, out=np.ones(kinds), where=few > 0),
            sizes=sizes,
            within=np.cumsum([0.0, *sizes.samples])[np.searchsorted(sizes.sizes, largest, side="right")],
        )

    @classmethod
    def independent(cls, members: NDArray[np.int64], n: int) -> GroupedKinds:
        """Summarize samples that stand for themselves, from their numbers by kind, shape (t,)."""
        number, ones = members.astype(float), np.ones(len(members))
        return cls(number, number, ones, ones, GroupSizes(np.ones(1), np.array([float(n)])), ones * n)


def design_effects(sets: Sequence[GroupedShares]) -> list[Array]:
    """Return the design effects of the shares of each set, shape (t,), at least 1.

    Counts divided by them are effective counts (Korn and Graubard 1998).

    A set that has a kind in few groups shows its design effect badly, and one without members not at all. So what the
    G groups of a set show is averaged with an assumed effect, which counts like one more group. The assumed effect is a
    fraction of the worst case: that the members fill the largest groups of the set. There they are as many as the set
    would have if all sets were alike. The fraction is what all sets show together, on average over members, averaged in
    turn with 1, which counts like one more group. For groups of one size m that are all alike, the effect is m.
    """
    members, groups = (np.sum([getattr(grouped, name) for grouped in sets], axis=0) for name in ("members", "groups"))
    share = members / sum(grouped.sizes.n for grouped in sets)
    worst = [grouped.sizes.worst(np.maximum(grouped.members, share * grouped.sizes.n)) for grouped in sets]
    near = np.sum(
        [grouped.members * np.minimum(grouped.seen / most, 1) for grouped, most in zip(sets, worst, strict=True)],
        axis=0,
    )
    near = np.divide(near, members, out=np.ones(members.shape), where=members > 0)
    near = (groups * near + 1) / (groups + 1)
    return [
        np.maximum((grouped.groups * grouped.seen + near * most) / (grouped.groups + 1), 1.0)
        for grouped, most in zip(sets, worst, strict=True)
    ]
