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
from finc_eval.naming.explained import STRONG
from finc_eval.naming.traits import TRAITS, Trait
from finc_eval.numerics.inference import ALPHA, share_bounds
from finc_eval.same_ids.pairs import PairTable

Array = NDArray[np.float64]

BAD = {"pattern": 1, "specks": 1, "noise": 1, "mosaic": 1, "blocks": 1, "sharpness": -1, "contrast": -1, "shades": 1,
       "saturation": -1, "frame": 1}  # fmt: skip
"""The bad direction of each trait of a picture: 1 where more is worse."""

LEAST_SPREADS = {"pattern": 0.05, "specks": 0.4, "noise": 0.4, "mosaic": 0.03, "blocks": 0.04, "sharpness": 0.4,
                 "contrast": 0.1, "shades": 0.1, "saturation": 0.08, "frame": 0.07}  # fmt: skip
"""Standard deviation of each trait that a reference has at least: about half of that of 300 photographs. Where a
reference has none of a trait, rounding alone would else count as many standard deviations."""

MARGIN = 0.25  # standard deviations of a trait over the pictures of the reference

SHARE_MARGIN = 0.02
"""Share of the samples that a kind may lose. With 50 kinds, 500 pairs show so little if no pair changes its kind."""

REPEATS_MARGIN = 0.01  # share of the samples that may be repeats of others, from which looks name repeats

UNSEEN = {"noise": np.log(9 / 255)}
"""Values of a trait up to which no eye sees it: noise of 4/255 in each channel of gray pictures of 64 to 512 pixels."""

Verdict = Literal["worse", "not worse", "undecided"]
What = Literal["look", "kind", "kinds", "repeats", "diversity", "fit"]


@dataclass(frozen=True)
class Margin(Record):
    """A thing in which a run may be worse, and what was shown of it.

    Attributes:
        name: how the run is called if it is worse, such as "blurrier", or the kind that it lost.
        what: whether it is a look, a kind, the kinds together, repeats, the diversity of the images of a prompt, or the
            fit of images to their prompts.
        difference: how much worse it is: of kinds and repeats a share of the samples, else in standard deviations of
            the reference; negative where it is better.
        interval: bounds of it, which hold at 95 % for all things together.
        margin: the difference up to which it counts as not worse.
        verdict: "worse" if it surely is by more than the margin, "not worse" if it surely is not, else "undecided".
    """

    name: str
    what: What
    difference: float
    interval: tuple[float, float]
    margin: float
    verdict: Verdict

    @property
    def is_share(self) -> bool:
        """True for a share of the samples, which some of them make; else all do."""
        return self.what in ("kind", "kinds", "repeats")

    @property
    def sentence_part(self) -> str:
        """The thing with its size: "blurrier (2.9 standard deviations)"."""
        if not self.is_share:
            return f"{self.name} ({self.difference:.2g} standard deviations)"
        return f"{self.name} ({percent(self.difference, 1)})"


def judge_looks(table: PairTable, units: NDArray[np.int64], error: float) -> list[Margin]:
    """Judge the looks of all pairs: those that are worse first, the clearest of these first.

    A look that is worse as it changes with another one is left out. Of looks that are about as clear, the first in the
    order of all traits is the cause.
    """
    if table.traits is None:
        return []
    found: list[tuple[Margin, Trait]] = []
    for place, trait in enumerate(TRAITS):
        if trait.name not in BAD:
            continue
        own, before = (values[:, place] for values in table.traits)
        least = UNSEEN.get(trait.name, -np.inf)
        worse = BAD[trait.name] * (np.maximum(own, least) - np.maximum(before, least))
        worse = _in_spreads(worse, before, LEAST_SPREADS[trait.name])
        name = (trait.more or trait.high) if BAD[trait.name] > 0 else (trait.less or trait.low)
        found.append((_judge_mean(name or trait.name, "look", worse, units, error), trait))
    others = [one for one, _ in found if one.verdict != "worse"]
    return [*_causes([pair for pair in found if pair[0].verdict == "worse"]), *others]


def _causes(left: list[tuple[Margin, Trait]]) -> Iterator[Margin]:
    """Yield looks that are worse, in the order of their traits, without those that change with a clearer look."""
    while left:
        clearest = max(one.interval[0] for one, _ in left)
        cause, trait = next(pair for pair in left if pair[0].interval[0] >= STRONG * clearest)
        yield cause
        left = [pair for pair in left if pair[0] is not cause and pair[1].name not in trait.brings]


def moved_looks(table: PairTable, units: NDArray[np.int64], error: float) -> list[str]:
    """Return how all pictures look otherwise by more than the margin, in what has no bad direction."""
    found: list[tuple[float, str]] = []
    for place, trait in enumerate(TRAITS if table.traits is not None else ()):
        own, before = (values[:, place] for values in table.traits or ())
        spread = float(before.std())
        if trait.name in BAD or spread == 0 or trait.less is None or trait.more is None:
            continue
        one = _judge_mean(trait.more, "look", _in_spreads(own - before, before), units, error)
        if one.interval[0] > MARGIN or one.interval[1] < -MARGIN:
            found.append((abs(one.difference), trait.more if one.difference > 0 else trait.less))
    return [name for _, name in sorted(found, reverse=True)]


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


def _judge_mean(name: str, what: What, worse: Array, units: NDArray[np.int64], error: float) -> Margin:
    """Judge the mean of differences by Student's t, of sums over independent units."""
    found = Estimate.of_mean(worse, units)
    ends = found.interval_at(1 - 2 * error)
    return Margin(name, what, found.value, ends, MARGIN, _verdict(*ends, MARGIN))


def judge_kinds(cells: tuple[NDArray[np.int64], NDArray[np.int64]], names: Sequence[str], error: float) -> list[Margin]:
    """Judge how much of its share each kind lost: the kinds that did, and then all kinds together.

    `cells` has the kind of both samples of each pair; `names` those of the kinds.
    """
    own, before = cells
    n, moved = len(own), own != before
    lost = np.bincount(before[moved], minlength=len(names))
    gained = np.bincount(own[moved], minlength=len(names))
    low, high = _flips(lost, gained, n, error)
    worse = [
        Margin(names[kind], "kind", float(lost[kind] - gained[kind]) / n, (float(low[kind]), float(high[kind])),
               SHARE_MARGIN, "worse")
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
    own, before = repeated
    n, more, fewer = len(own), int((own & ~before).sum()), int((before & ~own).sum())
    _, high = _flips(np.array([more]), np.array([fewer]), n, error)
    # Whether more samples became repeats than ceased to be: the exact sign test (McNemar 1947), inverted.
    flips = more + fewer
    low = (2 * float(share_bounds(more, flips, error)[0]) - 1) * flips / n if flips else 0.0
    difference = (more - fewer) / n
    ends = (low, float(high[0]))
    is_worse = low > 0 and difference > REPEATS_MARGIN
    verdict: Verdict = "worse" if is_worse else "not worse" if ends[1] <= REPEATS_MARGIN else "undecided"
    return [Margin(name if is_worse else "repeats", "repeats", difference, ends, REPEATS_MARGIN, verdict)]


def judge_diversity(diversity: tuple[Array, Array], error: float) -> list[Margin]:
    """Judge how much more alike the images of a prompt are; none for few prompts of several images.

    `diversity` has the mean squared distance of the images of each prompt, in both sets.
    """
    own, before = diversity
    spread = float(before.std()) if len(before) else 0.0
    if len(before) < 10 or spread == 0:  # too few for a mean
        return []
    worse = _in_spreads(before - own, before)
    return [_judge_mean("less diverse within a prompt", "diversity", worse, np.arange(len(worse)), error)]


def judge_fit(fits: tuple[Array, Array], units: NDArray[np.int64], error: float) -> list[Margin]:
    """Judge how much less images fit their prompts; `fits` has the CLIPScore of both images of each pair."""
    own, before = fits
    spread = float(before.std())
    worse = _in_spreads(before - own, before) if spread > 0 else before - own
    return [_judge_mean("less fitting to the prompts", "fit", worse, units, error)]


def _flips(more: NDArray[np.int64], fewer: NDArray[np.int64], n: int, error: float) -> tuple[Array, Array]:
    """Return bounds of (more − fewer) / n of paired samples: exact ones of both shares, each at half of the error."""
    first, second = (share_bounds(count, n, error / 2) for count in (more, fewer))
    return first[0] - second[1], first[1] - second[0]


def _verdict(low: float, high: float, margin: float) -> Verdict:
    return "worse" if low > margin else "not worse" if high <= margin else "undecided"


def error_of(questions: int, alpha: float = ALPHA) -> float:
    """Return the one-sided error of each bound, so that all hold together at 1 − `alpha`."""
    return alpha / 2 / max(questions, 1)
