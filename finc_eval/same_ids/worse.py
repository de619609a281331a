"""The judgement whether anything is worse: paired tests against a stated margin in the bad direction of each thing.

The pairs are those that are not broken. All bounds hold together at 95 % (Bonferroni). A `Margin` keeps the number and
the ends of an `Estimate` of a mean, or exact bounds of shares, beside a stated size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.core.words import percent
from finc_eval.estimates.estimate import Estimate
from finc_eval.naming.columns import is_look
from finc_eval.naming.explained import ALIKE, STRONG, TAIL
from finc_eval.naming.traits import Trait
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, share_bounds
from finc_eval.same_ids.pairs import PairTable

Array = NDArray[np.float64]

MARGIN = 0.25  # standard deviations of a trait over the pictures of the reference

SHARE_MARGIN = 0.02
"""Share of the samples that a kind may lose. With 50 kinds, 500 pairs show so little if no pair changes its kind."""

REPEATS_MARGIN = 0.01  # share of the samples that may be repeats of others, from which looks name repeats

Verdict = Literal["worse", "not worse", "undecided"]
What = Literal["look", "part", "kind", "kinds", "repeats", "diversity", "fit"]


@dataclass(frozen=True)
class Margin(Record):
    """A thing in which a run may be worse, and what was shown of it.

    Attributes:
        name: how the run is called if it is worse, such as "blurrier", or the kind that it lost.
        what: whether it is a look of all, a look that a part of the samples has, a kind, the kinds together, repeats,
            the diversity of the images of a prompt, or the fit of images to their prompts.
        difference: how much worse it is: of parts, kinds and repeats a share of the samples, else in standard
            deviations of the reference; negative where it is better.
        interval: bounds of it, which hold at 95 % for all things together.
        margin: the difference up to which it counts as not worse.
        verdict: "worse" if it surely is by more than the margin, "not worse" if it surely is not, else "undecided".
        shares: shares of the samples of the run and of the reference that have it; None where all samples move.
    """

    name: str
    what: What
    difference: float
    interval: tuple[float, float]
    margin: float
    verdict: Verdict
    shares: tuple[float, float] | None = None

    @property
    def is_share(self) -> bool:
        """True for a share of the samples, which some of them make; else all do."""
        return self.what in ("part", "kind", "kinds", "repeats")

    @property
    def sentence_part(self) -> str:
        """The thing with its size: "blurrier (2.9 standard deviations)"."""
        if not self.is_share:
            size = f"{self.difference:.2g}"
            return f"{self.name} ({size} standard deviation{'s' * (size != '1')})"
        return f"{self.name} ({percent(self.difference, 1)})"


@dataclass(frozen=True)
class MovedLook:
    """A look of all pairs that surely moved by more than the margin, in either direction."""

    trait: Trait
    is_more: bool
    margin: Margin  # how far it moved, in this direction

    @property
    def is_bad(self) -> bool:
        """True where the move is for the worse."""
        return self.trait.bad == (1 if self.is_more else -1)

    @property
    def is_of_all(self) -> bool:
        """True for a look that a sample has or has not, and nearly all have come to have."""
        return self.margin.is_share and self.is_more and self.margin.difference >= 1 - 2 * TAIL

    def leads_to(self, other: MovedLook) -> bool:
        """Return whether another look may have moved as this one did."""
        return self.trait.leads_to(other.trait, is_more=self.is_more, other_is_more=other.is_more)


def judge_looks(table: PairTable, units: NDArray[np.int64], error: float) -> list[Margin]:
    """Judge the looks of all pairs: those that are worse first, the clearest of these first.

    A look that is worse as it changes with another one is left out. Of looks that are about as clear, the first in the
    order of all traits is the cause. `units` has the number of the independent unit of each pair, shape (n,).
    """
    found: list[MovedLook] = []
    for trait, moved, before in _moves(table):
        if side := trait.bad:
            name = _word(trait, is_more=side > 0) or trait.low or trait.name
            found.append(MovedLook(trait, side > 0, _judge_look(trait, name, (moved, before), side, units, error)))
    worse_ones = [look for look in found if look.margin.verdict == "worse"]
    others = [look.margin for look in found if look.margin.verdict != "worse"]
    return [*(margin.margin for margin, _ in causes_among(worse_ones)), *others]


def find_moved(table: PairTable, units: NDArray[np.int64], error: float) -> list[MovedLook]:
    """Return the looks of all pairs that moved by more than the margin and have a word, in the order of the traits."""
    found = []
    for trait, moved, before in _moves(table):
        is_more = bool(moved.mean() > 0)
        # Where a reference does not vary, rounding alone would count as much.
        has_unit = before.std() > 0 or trait.bad or trait.least is not None or not is_look(trait.name)
        if (name := _word(trait, is_more=is_more)) and moved.any() and has_unit:
            margin = _judge_look(trait, name, (moved, before), 1 if is_more else -1, units, error)
            found += [MovedLook(trait, is_more, margin)] * (margin.verdict == "worse")
    return found


def causes_among(left: Sequence[MovedLook]) -> Iterator[tuple[MovedLook, list[MovedLook]]]:
    """Yield each look that causes others with the looks that follow from it, the clearest first.

    Of looks that are about as clear, the first in the order of all traits is the cause. A column of the user is the
    cause of what it brings, however clear that is.
    """
    while left:
        clearest = max(left, key=lambda look: look.margin.interval[0])
        asked = (look for look in left if look.trait.is_asked and look.leads_to(clearest))
        clear = (look for look in left if _is_as_clear(look, clearest))
        cause = next(asked, None) or next(clear)
        follows = [look for look in left if cause.leads_to(look)]
        yield cause, follows
        left = [look for look in left if look is not cause and look not in follows]


def _is_as_clear(look: MovedLook, clearest: MovedLook) -> bool:
    """Return whether a look is clear enough to be the cause of the clearest, with which it may have moved."""
    if look.is_of_all and look.leads_to(clearest):
        return True  # a share has no more than 1, and spreads have no end
    is_mutual = look is not clearest and look.leads_to(clearest) and clearest.leads_to(look)
    return look.margin.interval[0] >= (ALIKE if is_mutual else STRONG) * clearest.margin.interval[0]


def _moves(table: PairTable) -> Iterator[tuple[Trait, Array, Array]]:
    """Yield how each trait of each pair moved, and its value before, (n,) each, without what no eye sees."""
    for place, trait in enumerate(table.looks if table.traits is not None else ()):
        now, before = (values[:, place] for values in table.traits or ())
        if trait.least is not None:
            now, before = ((values >= trait.least).astype(float) for values in (now, before))
        yield trait, np.maximum(now, trait.unseen) - np.maximum(before, trait.unseen), before


def _judge_look(
    trait: Trait, name: str, of_pairs: tuple[Array, Array], side: int, units: NDArray[np.int64], error: float
) -> Margin:
    """Judge how far a look moved to one side: in spreads of the reference, or as a share of what a sample has or not.

    `of_pairs` has how each pair moved, and its value before, (n,) each.
    """
    moved, before = of_pairs
    if trait.least is not None:
        shares = float((before + moved).mean()), float(before.mean())
        return _judge_mean(name, "part", side * moved, units, error, SHARE_MARGIN, shares)
    least = _least_spread(trait, before + moved, before)
    in_spreads = _in_spreads(side * moved, before, least) if moved.any() else moved
    return _judge_mean(name, "look", in_spreads, units, error)


def _word(trait: Trait, *, is_more: bool) -> str | None:
    """Return the word for all pairs that have more, or less, of a trait; None without one."""
    return (trait.more or trait.high) if is_more else trait.less


def _least_spread(trait: Trait, now: Array, before: Array) -> float:
    """Return the standard deviation that a reference has at least; of a column that no sample of it has, that of both.

    That is of columns that a user registered: of built-in traits it is known.
    """
    is_known = trait.least_spread > 0 or before.std() > 0 or not trait.is_asked
    return trait.least_spread if is_known else float(np.concatenate([now, before]).std())


def _in_spreads(differences: Array, before: Array, least: float = 0.0) -> Array:
    """Return differences in standard deviations of the reference, (n,), with the error that these deviations have.

    To first order, a sample of the reference adds as much to the mean as is added here: the mean itself is the same.
    Where a reference varies less than `least`, that bound is the unit, and has no error.
    """
    spread = float(before.std())
    if spread < least:
        return differences / least
    values = differences / spread
    return np.asarray(values - values.mean() * (((before - before.mean()) / spread) ** 2 - 1) / 2)


def _judge_mean(
    name: str,
    what: What,
    worse: Array,
    units: NDArray[np.int64],
    error: float,
    margin: float = MARGIN,
    shares: tuple[float, float] | None = None,
) -> Margin:
    """Judge the mean of differences by Student's t, of sums over independent units.

    `worse` has the difference of each pair, above 0 where it is worse, and `units` the number of its unit: shape (n,).
    """
    found = Estimate.of_mean(worse, units)
    ends = found.interval_at(1 - 2 * error)
    return Margin(name, what, found.value, ends, margin, _verdict(*ends, margin), shares)


def judge_kinds(cells: tuple[NDArray[np.int64], NDArray[np.int64]], names: Sequence[str], error: float) -> list[Margin]:
    """Judge how much of its share each kind lost: the kinds that did, and then all kinds together.

    `cells` has the kind of both samples of each pair; `names` those of the kinds.
    """
    now, before = cells
    n, moved = len(now), now != before
    lost = np.bincount(before[moved], minlength=len(names))
    gained = np.bincount(now[moved], minlength=len(names))
    low, high = _flips(lost, gained, n, error)
    worse = [
        Margin(names[kind], "kind", float(lost[kind] - gained[kind]) / n, (float(low[kind]), float(high[kind])),
               SHARE_MARGIN, "worse", (float((now == kind).mean()), float((before == kind).mean())))
        for kind in np.argsort(-low, kind="stable")
        if low[kind] > SHARE_MARGIN
    ]  # fmt: skip
    if worse:
        return worse
    largest = float((lost - gained).max()) / n
    ends = float(low.max()), float(high.max())
    return [Margin("kinds", "kinds", largest, ends, SHARE_MARGIN, _verdict(*ends, SHARE_MARGIN))]


def judge_repeats(repeated: tuple[NDArray[np.bool_], NDArray[np.bool_]], name: str, error: float) -> list[Margin]:
    """Judge whether samples are repeats of others more often: any that the reference does not have are worse."""
    now, before = repeated
    n, more, fewer = len(now), int((now & ~before).sum()), int((before & ~now).sum())
    _, high = _flips(np.array([more]), np.array([fewer]), n, error)
    # Whether more samples became repeats than ceased to be: the exact sign test (McNemar 1947), inverted.
    flips = more + fewer
    low = (2 * float(share_bounds(more, flips, error)[0]) - 1) * flips / n if flips else 0.0
    difference = (more - fewer) / n
    ends = (low, float(high[0]))
    is_worse, shares = low > 0 and difference > REPEATS_MARGIN, (float(now.mean()), float(before.mean()))
    verdict: Verdict = "worse" if is_worse else "not worse" if ends[1] <= REPEATS_MARGIN else "undecided"
    return [Margin(name if is_worse else "repeats", "repeats", difference, ends, REPEATS_MARGIN, verdict, shares)]


def judge_diversity(diversity: tuple[Array, Array], error: float) -> list[Margin]:
    """Judge how much more alike the images of a prompt are; none for few prompts of several images.

    `diversity` has the mean squared distance of the images of each prompt, in both sets, shape (prompts,).
    """
    now, before = diversity
    spread = float(before.std()) if len(before) else 0.0
    if len(before) < 10 or spread == 0:  # too few for a mean
        return []
    worse = _in_spreads(before - now, before)
    return [_judge_mean("less diverse within a prompt", "diversity", worse, np.arange(len(worse)), error)]


def judge_fit(fits: tuple[Array, Array], units: NDArray[np.int64], error: float) -> list[Margin]:
    """Judge how much less images fit their prompts; `fits` has the CLIPScore of both images of each pair, (n,)."""
    now, before = fits
    spread = float(before.std())
    worse = _in_spreads(before - now, before) if spread > 0 else before - now
    return [_judge_mean("less fitting to the prompts", "fit", worse, units, error)]


def _flips(more: NDArray[np.int64], fewer: NDArray[np.int64], n: int, error: float) -> tuple[Array, Array]:
    """Return bounds of (more − fewer) / n of paired samples: exact ones of both shares, each at half of the error.

    `more` and `fewer` count the pairs of each kind, shape (kinds,), among n pairs.
    """
    first, second = (share_bounds(count, n, error / 2) for count in (more, fewer))
    return first[0] - second[1], first[1] - second[0]


def _verdict(low: float, high: float, margin: float) -> Verdict:
    return "worse" if low > margin else "not worse" if high <= margin else "undecided"


def error_of(questions: int, alpha: float = ALPHA) -> float:
    """Return the one-sided error of each bound, so that all hold together at 1 − `alpha`."""
    return level_of_each(alpha / 2, questions)
