"""Explanations of a look: a part of a set has it, or the whole set has moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.estimates.part import Interval, estimate_part
from finc_eval.estimates.shares import design_effect, share_interval
from finc_eval.naming.evidence import MOST
from finc_eval.naming.questions import enrichment_p
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import Trait
from finc_eval.numerics.families import bonferroni
from finc_eval.numerics.inference import ALPHA, wilson

Has = dict[str, NDArray[np.bool_]]  # whether each measured sample has a look, by set

TAIL = 0.05  # share of both sets together beyond which a sample is in a tail
PARTS = (0.1, 0.2, 0.3, 0.4, 0.5)  # parts of a set that may have moved alone

ALL = 2.5
"""Ratio of z of the mean to z of the clearer tail from which all samples have moved: parts of 25 % have at most 1.8."""

OTHER = {"gen": "ref", "ref": "gen"}


@dataclass(frozen=True, eq=False)
class Explained:
    """A significant trait, explained by a part of a set or by the whole set."""

    trait: Trait
    z: float  # z of its clearest column
    whole: bool
    more_in: str  # label of the set that has more of the look
    name: str | None  # words for the look; None if it is not worth a word
    order: dict[str, Array]  # how clearly each sample has the look, the largest first, by set
    threshold: float  # value of `order` from which a sample has it

    @property
    def has(self) -> Has:
        """Masks of the samples that have the look; none where the whole set has moved."""
        return {label: (values >= self.threshold) & (not self.whole) for label, values in self.order.items()}

    @property
    def shares(self) -> dict[str, float]:
        """Share of each set that clearly has the look; of a whole set, beyond the middle of both sets.

        Samples at the middle count half.
        """
        counted = {label: float((values >= self.threshold).mean()) for label, values in self.order.items()}
        if not self.whole:
            return counted
        return {label: (counted[label] + float((values > self.threshold).mean())) / 2
                for label, values in self.order.items()}  # fmt: skip

    @property
    def gap(self) -> float:
        """Share of the set that has more of it, minus the share of the other set."""
        shares = self.shares
        return shares[self.more_in] - shares[OTHER[self.more_in]]

    def estimate(self, units: Mapping[str, NDArray[np.int64]]) -> tuple[dict[str, float], Interval]:
        """Estimate the share of each set that has the look, and the interval of the share of the set that has more.

        Some samples of a part that has moved do not clearly have a look: the share of such a part is estimated
        (`estimate_part`). If most of the other set has nothing of it, samples are counted that have more than nearly
        all of that set. What the other set has as well does not count, but the share is at least that of the samples
        that clearly have the look, as that of the other set is. A look that a sample has or has not is counted, and so
        is what lies beyond the middle of both sets.

        Args:
            units: number of the unit of each sample, from 0 on, shape (n,), by set.
        """
        shares, (own, rest) = self.shares, (self.order[label] for label in (self.more_in, OTHER[self.more_in]))
        if self.whole or self.trait.least is not None:
            effect = design_effect(own >= self.threshold, units[self.more_in])
            return shares, wilson(shares[self.more_in], len(own) / effect)
        if is_at_floor(rest):
            floor = max(float(np.quantile(rest, 1 - TAIL)), float(rest.min()))
            others, ends = float((rest > floor).mean()), share_interval(own > floor, units[self.more_in])
            share, low, high = (max(0.0, (end - others) / (1 - others)) for end in ((own > floor).mean(), *ends))
            share = max(share, shares[self.more_in])
            return shares | {self.more_in: float(share)}, (low, max(high, float(share)))
        sizes = {label: float(len(of_set) ** 2 / (np.bincount(of_set) ** 2).sum()) for label, of_set in units.items()}
        share, (low, high) = estimate_part(own, rest, sizes[self.more_in], sizes[OTHER[self.more_in]])
        share = max(share, shares[self.more_in])
        return shares | {self.more_in: share}, (low, max(high, share))

    def leads_to(self, other: Explained) -> bool:
        """Return whether another look may follow from this one; see `Trait.leads_to`."""
        is_more, other_is_more = (look.more_in == "gen" for look in (self, other))
        return self.trait.leads_to(other.trait, is_more=is_more, other_is_more=other_is_more)

    def ends(self, other: Explained) -> bool:
        """Return whether samples no longer have another look as more of the generated set has this one."""
        return self.more_in == "gen" and other.more_in == "ref" and other.trait.name in self.trait.ends


def explain(trait: Trait, tail: int, z: float, largest_tail: float, values: Mapping[str, Array]) -> Explained:
    """Explain why a trait, or a tail of it, differs.

    Args:
        trait: the trait.
        tail: 0 for the mean of its values, −1 and 1 for the shares below and above a tail.
        z: difference of the generated set from the reference, in standard errors.
        largest_tail: |z| of the clearer tail of the trait: a set that has moved as a whole shows it less than the mean.
        values: values of the trait in the samples of each set, shape (n,), by set.
    """
    side = (1 if z > 0 else -1) if tail == 0 else tail
    more_in = "gen" if tail == 0 or z > 0 else "ref"
    whole = False
    if trait.least is None and tail == 0:
        whole, more_in, side, is_clear = _whole_or_part(side * values["gen"], side * values["ref"], side)
        moved = np.median(values["gen"]) != np.median(values["ref"])
        if moved and abs(z) >= ALL * largest_tail and not is_clear:
            whole, more_in, side = True, "gen", 1 if z > 0 else -1
        whole = bool(whole and moved and abs(z) > largest_tail)
        if moved and not whole and _z_of_part(side, more_in, values) < STRONG * abs(z):
            whole, more_in, side = True, "gen", 1 if z > 0 else -1  # a part alone does not explain the mean
    if whole and trait.low is None and is_at_floor(values["ref"]):
        # Samples above the floor have it, and others have none of it.
        whole = bool((values["gen"] > values["ref"].min()).mean() > 1 - TAIL)
    if trait.least is not None and trait.low is not None and values["ref"].mean() > 0.5:
        side, more_in = -side, OTHER[more_in]  # what the reference seldom has is said
    if whole and more_in == "ref":  # said of the generated set, in the other direction
        more_in, side = "gen", -side
    order = {label: side * of_set for label, of_set in values.items()}
    own, rest = order[more_in], order[OTHER[more_in]]
    if whole:
        threshold = float(np.median(np.concatenate([own, rest])))
        name = trait.more if side > 0 else trait.less
    else:
        threshold = threshold_of(own, rest) if trait.least is None else side * trait.least
        name = trait.high if side > 0 else trait.low
    return Explained(trait, z, whole, more_in, name, order, threshold)


def is_at_floor(values: Array) -> bool:
    """Return whether most samples have the least value, such as pictures without any periodic pattern."""
    return bool((values == values.min()).mean() > 0.5)


def _z_of_part(side: int, more_in: str, values: Mapping[str, Array]) -> float:
    """Return the difference of the shares that have a look, in standard errors of independent samples."""
    own, rest = side * values[more_in], side * values[OTHER[more_in]]
    threshold = threshold_of(own, rest)
    shares, sizes = np.array([(own >= threshold).mean(), (rest >= threshold).mean()]), np.array([len(own), len(rest)])
    both = float(shares @ sizes / sizes.sum())
    return float((shares[0] - shares[1]) / max(np.sqrt(both * (1 - both) * (1 / sizes).sum()), 1e-12))


def threshold_of(own: Array, rest: Array) -> float:
    """Return the value from which samples have a look, by the values of one set (n,) and of the other set (m,).

    Shares of both sets differ nearly most there, among the values that a tail of the other set exceeds at most: of
    these, it is the value that fewest of the other set exceed, so that the share is that of the look.
    """
    values = np.unique(np.concatenate([own, rest]))
    others = _above(rest, values)
    # Others count twice, so that a share holds few of them.
    gap = np.where(others <= TAIL, _above(own, values) - 2 * others, -np.inf)
    best = float(gap.max())
    if best == -np.inf:  # more than a tail of the other set has the largest value
        return float(values[-1])
    return float(values[gap >= 0.95 * best].max() if best > 0 else values[gap.argmax()])


def _above(values: Array, thresholds: Array) -> Array:
    return np.asarray(1 - np.searchsorted(np.sort(values), thresholds, "left") / len(values))


def _whole_or_part(gen: Array, ref: Array, side: int) -> tuple[bool, str, int, bool]:
    """Return whether the whole set has moved, or a part of one; the set and the side of the part; whether it is clear.

    The generated set has the higher mean. The best explanation leaves the smallest Kolmogorov–Smirnov distance: all has
    moved, a part of the generated set has moved up or is a kind of its own, or such a part of the reference is lower.
    A part is clear where its explanation is not rejected, and a move of all is: the tails of a heavy-tailed trait lie
    beyond a part, and do not show it.
    """
    middle, other = float(np.median(gen)), float(np.median(ref))
    moved = distance(gen, ref + middle - other)
    if min((gen * middle).min(), (ref * middle).min()) > 0:  # values of one sign may have been multiplied
        moved = min(moved, distance(gen, ref * (middle / other)))
    ways = [(_with_part(gen, ref), "gen", side), (_with_part(-ref, -gen), "ref", -side)]
    found, label, of_part = min(ways)
    if moved <= found + 0.02:
        return True, "gen", side, False
    limit = float(np.sqrt(-np.log(ALPHA / 2) / 2 * (1 / len(gen) + 1 / len(ref))))  # of two samples of one law
    return False, label, of_part, found <= limit < moved


def _with_part(own: Array, rest: Array) -> float:
    """Return how far a set, without or with a part of it moved back, is from the other, at best."""
    return min(_without_part(own, rest), *(_moved_part(own, rest, part) for part in PARTS))


def _without_part(own: Array, rest: Array) -> float:
    """Return how far a set is from the other without its upper part, at most half, which the other set lacks."""
    threshold = threshold_of(own, rest)
    base = float((rest >= threshold).mean())
    part = max(0.0, (float((own >= threshold).mean()) - base) / max(1 - base, 1e-9))
    if part > PARTS[-1]:
        return 1.0
    left = np.sort(own)[: max(1, round((1 - part) * len(own)))]
    return distance(left, rest)


def _moved_part(own: Array, rest: Array, part: float) -> float:
    """Return how far a set is from the other set, once a part of the other has moved so far that both means agree.

    `own` and `rest` are values of both sets, shapes (n,) and (m,); `part` is a share of the other set.
    """
    ends = np.quantile(np.concatenate([own, rest]), [0.01, 0.99])
    step = (np.clip(own, *ends).mean() - np.clip(rest, *ends).mean()) / part
    values = np.concatenate([own, rest, rest + step])
    mixed = (1 - part) * _above(rest, values) + part * _above(rest + step, values)
    return float(np.abs(_above(own, values) - mixed).max())


def distance(own: Array, rest: Array) -> float:
    """Return the Kolmogorov–Smirnov distance of two samples of numbers, shapes (n,) and (m,)."""
    values = np.concatenate([own, rest])
    return float(np.abs(_above(own, values) - _above(rest, values)).max())


ALIKE = 0.7  # part of the z, and of the share, of the clearest look from which another look may name the same cause
STRONG = 0.5
"""The same, of a trait that brings the clearest and is not brought by it; and the part of its z that a second look must
keep, and that the share of a part of a set must have."""


def name_cause(looks: list[Explained], order: list[str]) -> Explained:
    """Return the trait that names a cause, among those that show it: the first one in the order of the traits.

    The first of `looks` is the clearest, unless another ends it. Others show the same cause if they bring the clearest
    with them, or if most of the samples are the same, and the clearest does not bring them.
    """
    first = next((look for look in looks if look.ends(looks[0])), looks[0])
    same = [look for look in looks if look is first or _is_same(first, look)]
    return min(same, key=lambda look: order.index(look.trait.name))


def name_by_members(look: Explained, traits: Sequence[Trait], values: Mapping[str, Array]) -> Explained:
    """Return the look that samples have or have not, and that brings a look of a part of a set; else this look.

    Most samples of the part have it, and more of them than of all others, adjusted for all such looks. A picture of
    which half is black has the same edge as others of this kind, as a watermark has: it is said to have a bar.

    Args:
        look: the look that differs most clearly.
        traits: all traits.
        values: their values, shape (n, traits), by set.
    """
    carriers = [
        place for place, trait in enumerate(traits) if trait.least is not None and look.trait.name in trait.brings
    ]
    if look.whole or look.more_in != "gen" or not carriers:
        return look
    members = np.concatenate([look.has[label] for label in values])
    least = np.array([traits[place].least for place in carriers], float)
    has = np.concatenate([of_set[:, carriers] for of_set in values.values()]) >= least
    inside, outside = has[members].sum(0), has[~members].sum(0)
    p_values = bonferroni(enrichment_p(inside, members.sum(), outside, (~members).sum()), len(carriers))
    clear = np.flatnonzero((inside >= MOST * members.sum()) & (p_values <= ALPHA))
    if not len(clear):
        return look
    place = carriers[clear[0]]
    found = explain(traits[place], 1, look.z, 0.0, {label: of_set[:, place] for label, of_set in values.items()})
    return found if found.name is not None and found.more_in == "gen" and found.gap > 0 else look


def _is_same(first: Explained, other: Explained) -> bool:
    brings, is_brought = other.leads_to(first), first.leads_to(other)
    # Of looks that bring each other, such as blur and upscaling, the much clearer look is the cause.
    is_closer = first.trait.name in other.trait.sort_of
    least = STRONG if is_closer or (brings and not is_brought) else ALIKE
    if is_brought and not brings:
        return False
    if abs(other.z) < least * abs(first.z) or (other.whole and not first.whole):
        return False
    if first.whole:
        # A look that samples have or have not is of a whole set if most of it has the look.
        return brings and (other.whole or other.trait.least is not None or other.gap >= STRONG)
    if first.more_in != other.more_in or other.gap < least * first.gap:
        return False
    mine, theirs = first.has[first.more_in], other.has[first.more_in]
    return bool((mine & theirs).sum() >= 0.5 * min(mine.sum(), theirs.sum()))
