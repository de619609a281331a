"""Exact tests of all kinds of a partition as one family, the counts that they take, and the part of unlike mixes."""

from __future__ import annotations

from bisect import bisect_left as bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.numerics.blocks import RADEMACHER, WithinBlocks
from finc_eval.numerics.design_effects import MIN_INDEPENDENT
from finc_eval.numerics.families import bonferroni, step_down
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, POWER, ShareTests, detectable_share, normal_quantile
from finc_eval.partitions.kmeans import FIT_SAMPLES

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Mix(Record):
    """The part of a difference between sets that their mixes of prompts, or other paired values, make.

    Attributes:
        plain: difference of the shares of all samples, with prompts that another set lacks.
        value: part that is due to the mixes of prompts; the difference within prompts is the rest of `plain`.
        interval: interval of it, for other images of the same prompts.
    """

    plain: float
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Mixes:
    """Parts of the mixes in the differences of t kinds, of each set from all others together."""

    plain: Array  # plain difference, shape (s, t)
    value: Array  # part of the mixes, shape (s, t)
    variance: Array  # variance of it, over other images of the same values, shape (s, t)
    # part of the mixes that a kind without a sample can make at most, given its share in both, shape (s,)
    unseen: Array
    n: Array  # samples of each set, shape (s,)

    @classmethod
    def of(cls, counts: Array, weights: Array, *, is_whole: bool = False) -> Mixes | None:
        """Divide the differences of sets; None if all have one mix.

        `counts` are samples of each set, value and kind, (s, v, t), which need not add up; `weights` the samples of
        each set and value (s, v) and W (v,), as rows. With `is_whole`, samples of a value and set are not independent.
        """
        sizes, within = weights[:-1], weights[-1]
        plain, value, variance, unseen = [], [], [], []
        for chosen in range(len(sizes)):
            rest = [other for other in range(len(sizes)) if other != chosen]
            sides = [(sizes[chosen], counts[chosen]), (sizes[rest].sum(0), counts[rest].sum(0))]
            parts = [_side(n, k, within, is_whole=is_whole) for n, k in sides]
            plain.append(parts[0][0] - parts[1][0])
            value.append(parts[0][1] - parts[1][1])
            variance.append(parts[0][2] + parts[1][2])
            unseen.append((parts[0][3] + parts[1][3]) / 2)
        # 1e-9: sum of all |π_sv − W_v| up to which the mixes of two sets are equal, up to rounding.
        if max(unseen) <= 1e-9:
            return None
        return cls(np.array(plain), np.array(value), np.array(variance), np.array(unseen), sizes.sum(1))

    def intervals(self, confidence: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each part, shape (s, t), as those of `WithinBlocks.intervals`."""
        rare = (1 - ((1 - confidence) / 2) ** (1 / self.n.min())) * self.unseen
        half = np.sqrt(normal_quantile(confidence) ** 2 * self.variance + rare[:, None] ** 2)
        return np.maximum(self.value - half, -1), np.minimum(self.value + half, 1)


def _side(n: Array, k: Array, within: Array, *, is_whole: bool) -> tuple[Array, Array, Array, float]:
    """Return the shares of kinds in a set, Σ_v (π_v − W_v)·x_v, the variance of it, and Σ_v |π_v − W_v|."""
    share = k.sum(0) / n.sum()
    inside = k / np.maximum(n, 1)[:, None]
    weight = np.where(n > 0, n / n.sum() - within, 0.0)
    # Where a value has one independent sample, its variance is unknown, on average below the whole set's.
    is_one = (n < 2) | is_whole
    known = inside * (1 - inside) / np.maximum(n - 1, 1)[:, None]
    alone = share * (1 - share)
    variance = (weight**2)[:, None] * np.where(is_one[:, None], alone, known)
    return share, weight @ inside, variance.sum(0), float(np.abs(weight).sum())


MIN_FITTED = 8
"""Samples of a kind that must be among those that kinds are fitted to, for it to be found. At 50 000 + 50 000 samples,
a tree is fitted to 10 000. There, a separate kind of 5 samples was found in 3 of 4 runs, and a kind of 10 in all 4."""


@dataclass(frozen=True, eq=False)
class KindTests:
    """Tests of every kind: has a set more of it than all other sets together, or less?

    The tests have r rows: one for each set, of having more, and
    for three sets or more, another row for each, of having less. With two sets, the second has less where the first has
    more.
    """

    labels: tuple[str, ...]  # labels of the sets
    members: NDArray[np.int64]  # samples of each kind in each set, shape (s, t)
    sizes: NDArray[np.int64]  # samples of each set, shape (s,)
    effects: Array  # design effects, shape (s, t): divide members and sizes by them for effective counts
    cautious: Array  # those for intervals, shape (s, t)
    raw: Array  # p-value of each test by itself, shape (r, t)
    adjusted: Array  # p-value adjusted for the whole family of r·t tests, shape (r, t)
    family: ShareTests  # the tests of unpaired sets
    # differences within blocks, where the sets are paired: the tests are then of these
    within: WithinBlocks | None = None
    # parts of the plain differences that unlike mixes of the paired values make; None if the mixes are equal
    mixes: Mixes | None = None

    @property
    def shares(self) -> Array:
        """Share of each kind in each set, shape (s, t)."""
        if self.within is not None:
            return self.within.shares
        return np.asarray(self.members / self.sizes[:, None])

    def detectable(self, alpha: float = 1 - DEFAULT_CONFIDENCE) -> float:
        """Return the smallest share of a separate kind, of only one set, that would be found with 80 % power.

        For paired sets it is a share of the blocks. A block is of the kind, or it is not.
        """
        if self.within is not None:
            return self.within.detectable(alpha)
        units = self.sizes / np.median(self.effects, axis=1)
        drawn = min(1.0, FIT_SAMPLES / units.sum())
        detectable = (
            [0.0]
            if drawn == 1
            else [float(detectable_share(MIN_FITTED, drawn * units_of_set, POWER)) for units_of_set in units]
        )
        for units_of_set in units:

            def found_with(count: int, units_of_set: float = units_of_set) -> bool:
                return self.family.level_of_one_set(count, units_of_set, units.sum() - units_of_set) <= alpha

            counts = range(1, int(units_of_set) + 1)
            least = bisect(counts, True, key=found_with)
            detectable.append(
                float(detectable_share(counts[least], units_of_set, POWER)) if least < len(counts) else 1.0
            )
        return max(detectable)


def test_kinds(tallies: Mapping[str, Tally], rho: float = 1.0, part: float = 1.0) -> KindTests:
    """Test all kinds: each set against all others together, in one family.

    With two sets, one row of tests says "more in the first than ρ times the second", the other the reverse. With more
    sets, each has a further row, "more in the others together than ρ times this one": what one set lacks, no other
    needs to have more of than the rest. The partition must be blind to which set a sample is from (`pool_samples`).
    Then all samples may be counted, and the family-wise error holds exactly. Grouped samples are counted by effective
    numbers. The set that has less is counted only in groups up to the size of the largest with a member: that larger
    groups have none may be chance. A set with too few independent samples is not tested: its p-values are 1. The tests
    may spend `part` of the family-wise error.
    """
    labels, sets = tuple(tallies), list(tallies.values())
    if len(sets) < 2:
        raise DataError(f"at least two sets are needed to test kinds, got {len(sets)}")
    members, effects, cautious, within = (
        np.array([getattr(tally, name) for tally in sets]) for name in ("members", "effects", "cautious", "within")
    )
    sizes = np.array([tally.n for tally in sets])
    k, n, within = members / effects, sizes[:, None] / effects, within / effects
    rest_k, rest_n, rest_within = (numbers.sum(0) - numbers for numbers in (k, n, within))
    if len(sets) > 2:
        k, rest_k = np.concatenate([k, rest_k]), np.concatenate([rest_k, k])
        n, rest_within = np.concatenate([n, rest_n]), np.concatenate([rest_within, within])
    family = ShareTests(k.ravel(), n.ravel(), rest_k.ravel(), rest_within.ravel(), rho)
    # A set is tested if it has enough independent samples.
    is_testable = np.array([tally.n >= MIN_INDEPENDENT * tally.even.max() for tally in sets])
    tested = np.tile(is_testable, 2) if len(sets) > 2 else np.full(2, is_testable.all())
    return KindTests(
        labels=labels,
        members=members,
        sizes=sizes,
        effects=effects,
        cautious=cautious,
        raw=family.p_values.reshape(-1, members.shape[1]),
        adjusted=np.where(tested[:, None], bonferroni(family.adjusted, part=part).reshape(-1, members.shape[1]), 1.0),
        family=family,
    )


def test_within_blocks(tests: KindTests, within: WithinBlocks, part: float = 1.0) -> KindTests:
    """Return tests of the same kinds by their differences within blocks.

    The p-value of a test by itself is a bound that holds for random signs of any differences, however small it is; the
    adjusted ones are from exchanges of the labels.
    """
    z = within.z
    adjusted = step_down(z.ravel(), within.drawn.reshape(len(within.drawn), -1), is_exact=within.is_exact)
    adjusted = bonferroni(adjusted.reshape(z.shape), part=part)
    raw = np.concatenate([np.minimum(RADEMACHER * ndtr(-signed), 1.0) for signed in (z, -z)])
    of_sides = np.concatenate([np.where(signed > 0, adjusted, 1.0) for signed in (z, -z)])
    return replace(tests, raw=raw, adjusted=of_sides, within=within)


test_within_blocks.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest
test_kinds.__test__ = False  # type: ignore[attr-defined]  # not a test of pytest


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Effective numbers of samples of each kind, for tests of all kinds together."""

    members: Array  # numbers of samples, all divided by one mean design effect, shape (kinds,)
    # variance of each share over the variance for as many independent samples, shape (kinds,) or 1 for all
    spread: Array
    samples: float  # number of samples that are counted

    @classmethod
    def of(cls, counts: EffectiveCounts | ArrayLike) -> EffectiveCounts:
        """Take plain numbers of samples as independent."""
        if isinstance(counts, EffectiveCounts):
            return counts
        members = np.asarray(counts, float)
        return cls(members, np.ones(()), float(members.sum()))

    @property
    def n(self) -> float:
        """Effective number of samples."""
        return float(self.members.sum())

    def __add__(self, other: EffectiveCounts) -> EffectiveCounts:
        n = self.n + other.n
        spread = (self.n * self.spread + other.n * other.spread) / n
        return EffectiveCounts(self.members + other.members, spread, self.samples + other.samples)

    def __mul__(self, factor: float) -> EffectiveCounts:
        return EffectiveCounts(self.members * factor, self.spread, self.samples * factor)


MAX_SAMPLES = 1 << 31  # samples of a set that counts may state


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers of samples of a set by kind."""

    n: int  # number of samples
    members: NDArray[np.int64]  # number of samples of each kind, shape (t,)
    effects: Array  # factor by which the samples of each kind inform less than independent samples, shape (t,)
    even: Array  # that factor if all kinds came in groups of the same sizes, shape (t,)
    # number of samples in groups that are not larger than the largest with a member of the kind, shape (t,)
    within: Array

    def __post_init__(self) -> None:
        """Refuse numbers that no samples can have: files bring tallies, too."""
        if not 1 <= self.n <= MAX_SAMPLES:
            raise DataError(f"its number of samples is {self.n:,}, not 1 to {MAX_SAMPLES:,}")
        if len({array.shape for array in (self.members, self.effects, self.even, self.within)}) > 1:
            raise DataError("its numbers of samples by kind have several lengths")
        if not ((self.members >= 0) & (self.members <= self.within) & (self.within <= self.n)).all():
            raise DataError(f"its kinds have fewer samples than 0, or more than there are of {self.n:,}")
        # 1e-9: rounding of means. A design effect is at most the size of the largest group.
        if not all(((array >= 1 - 1e-9) & (array <= 2 * self.n)).all() for array in (self.effects, self.even)):
            raise DataError(f"its design effects are not numbers from 1 to its {self.n:,} samples")

    @classmethod
    def of_lists(cls, n: int, members: Sequence[int], *factors: Sequence[float]) -> Tally:
        """Return the tally of what a record keeps in lists: members, effects, even, within."""
        try:
            return cls(n, np.array(members, np.int64), *(np.array(factor, np.float64) for factor in factors))
        except OverflowError:
            raise DataError(f"its kinds have more samples than {MAX_SAMPLES:,}") from None

    @property
    def cautious(self) -> Array:
        """Design effects for intervals: a kind that by chance has only small groups is not taken for independent."""
        return np.maximum(self.effects, self.even)

    def at(self, kinds: NDArray[np.int64]) -> Tally:
        """Return the tally of some kinds, by their numbers."""
        effects, even, within = (array[kinds] for array in (self.effects, self.even, self.within))
        return Tally(self.n, self.members[kinds], effects, even, within)

    def effective(self) -> EffectiveCounts:
        """Return effective numbers of samples of each kind; the kinds do not overlap.

        All are divided by one mean design effect, as in Rao and Scott's first-order correction (1981): by the effect
        of the one kind that has all samples.
        """
        effects, there = self.cautious, self.members > 0
        weights = 1 - self.members[there] / self.n
        mean = max(float(np.average(effects[there], weights=weights if weights.any() else None)), 1.0)
        return EffectiveCounts(self.members / mean, effects / mean, float(self.n))

    @classmethod
    def pooled(cls, tallies: Sequence[Tally]) -> Tally:
        """Return the tally of several sets together, with the mean of their effects by size."""
        n = np.array([tally.n for tally in tallies])
        members, within = (
            np.sum([getattr(tally, name) for tally in tallies], axis=0) for name in ("members", "within")
        )
        effects, even = (
            np.average([getattr(tally, name) for tally in tallies], axis=0, weights=n) for name in ("effects", "even")
        )
        return cls(int(n.sum()), members, effects, even, within)
