"""Evidence on looks: parts of a release that look as the baseline and the reference do not, and shifts of a whole set.

Looks are searched, as lost kinds beside the limited ones are: a look that is surely there, and whose estimate is beyond
the limit, is a regression. That none is beyond it is not promised; `detectable` says which change would have been seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.estimates.error_source import Integers
from finc_eval.estimates.estimate import Estimate, difference, mean_of, units_of
from finc_eval.estimates.retraining import between_scores, between_shares
from finc_eval.gates.evidence import LimitEvidence, Missing, Normal, Side
from finc_eval.gates.facts.parts import LOCAL, local_evidence
from finc_eval.gates.kinds import Gathered
from finc_eval.gates.policy import AppearanceLimits
from finc_eval.gates.scores import ScoreChange
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.naming.columns import is_look
from finc_eval.naming.explained import TAIL
from finc_eval.naming.looks import EXAMPLES
from finc_eval.naming.measured import CLIPPED, PictureLooks, measure_pictures, measure_sets
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import Trait
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.counts import Counts, tally_sets

PART, WHOLE = "appearance.part", "appearance.whole"  # rules of the limits on looks
NO_PICTURES = "the pictures of a set are not at hand: pass a folder, or what extract wrote next to its samples"
"""The reason why nothing is known of the looks of an array."""


@dataclass(frozen=True, kw_only=True)
class Beyond(LimitEvidence):
    """A gain of one look, which counts as far as it is a gain on the baseline and on the reference.

    So a release may come to look like the reference. An unchanged release is protected by the gain on the baseline, at
    the level that all limits share; one that came to the reference by the gain on the reference, at a level of its own.
    """

    trait: Trait  # what was measured
    old: LimitEvidence  # the gain on the baseline
    ref: LimitEvidence  # the gain on the reference
    shares: tuple[float, float] | None = None  # of the release and of the baseline that look so; None of a whole set
    clearest: tuple[int, ...] = ()  # rows of the release that show it, the clearest first
    # least level of the gain on the reference: α over the looks, however many limits there are
    level_of_ref: float = 0.0

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the smaller bound."""
        of_ref = max(level, self.level_of_ref) if side == "low" else level
        return min(self.old.bound(side, level, factor), self.ref.bound(side, of_ref, factor))

    def detectable(self, level: float) -> float | None:
        """Return the gain that is called a regression with probability 0.8; None if none would be."""
        found = [self.old.detectable(level), self.ref.detectable(max(level, self.level_of_ref))]
        return None if None in found else max(gain for gain in found if gain is not None)


@dataclass(frozen=True, kw_only=True)
class Clearest(LimitEvidence):
    """The look that is most surely a gain, among many; each takes an equal part of the level (Bonferroni)."""

    spends_own: ClassVar[bool] = True
    surely: float | None = 0.0
    is_search: bool = True
    looks: tuple[Beyond, ...]
    best: Beyond  # the look that is most surely beyond the limit

    @classmethod
    def of(cls, name: str, margin: float, looks: tuple[Beyond, ...], n: int) -> Clearest:
        """Return the evidence on a limit."""
        best = max(looks, key=lambda look: (look.value > margin, look.bound("low", level_of_each(ALPHA, len(looks)))))
        return cls(name=name, value=best.value, margin=margin, looks=looks, best=best, n=n, note=best.note)

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the bound of the largest gain; downwards, of those beyond the limit if there are any."""
        if side == "high":
            return max(look.bound(side, level, factor) for look in self.looks)
        beyond = [look for look in self.looks if look.value > self.margin] or self.looks
        return max(look.bound(side, level_of_each(level, len(self.looks)), factor) for look in beyond)

    def beyond(self, level: float = ALPHA) -> frozenset[Trait]:
        """Return what was measured in the looks that are beyond the limit."""
        part = level_of_each(level, len(self.looks))
        return frozenset(look.trait for look in self.looks if look.value > self.margin and look.bound("low", part) > 0)

    def detectable(self, level: float) -> float | None:
        """Return the gain of any look that is called a regression with probability 0.8; None if none would be."""
        part = level_of_each(level, len(self.looks))
        found = [look.detectable(part) for look in self.looks]
        return max((gain for gain in found if gain is not None), default=None)


def gather_on_appearance(
    gathered: Gathered, sets: GateSets, limits: AppearanceLimits, seed: int, alpha: float, run: Run
) -> None:
    """Gather the evidence on looks, and on parts of pictures."""
    gathered.pictures = pictures_of(sets, None if limits.local is None else run)
    if limits.of_looks:
        gathered.others += look_evidence(sets, limits, gathered.pictures, alpha)
    if limits.local is not None:
        for evidence, parts in local_evidence(sets, limits.local, gathered.pictures, seed, alpha, run):
            gathered.others.append(evidence)
            if evidence.name == LOCAL:
                gathered.parts = parts


def pictures_of(sets: GateSets, run: Run | None = None) -> dict[str, PictureLooks | None]:
    """Measure the pictures of each set, by label; with a `run`, some of them also upside down."""
    return {label: measure_pictures(samples, run) for label, samples in sets.all.items()}


def look_evidence(
    sets: GateSets, limits: AppearanceLimits, pictures: Mapping[str, PictureLooks | None], alpha: float
) -> Iterator[LimitEvidence]:
    """Yield the evidence on looks of the release, against each older release."""
    for against in sets.comparisons:
        for rule, margin in limits.of_looks.items():
            name = against.rule(f"appearance.{rule}")
            found = list(_looks(against, pictures, name, alpha))
            looks = tuple(replace(look, level_of_ref=level_of_each(alpha, len(found))) for look in found)
            clearest = Clearest.of(name, margin, looks, sets.gen.n) if looks else None
            # Columns of metadata alone may break a limit, and do not show that it holds.
            is_shown = any(is_look(look.trait.name) for look in looks) or (
                clearest is not None and clearest.beyond(alpha)
            )
            missing = Missing(name=name, margin=margin, note=NO_PICTURES)
            yield clearest if clearest is not None and is_shown else missing


def _looks(sets: GateSets, pictures: Mapping[str, PictureLooks | None], name: str, alpha: float) -> Iterator[Beyond]:
    """Yield each look of the release that has a word, of parts or of whole sets, as a gain on 0."""
    known = sets.compared
    traits, measured = measure_sets(known, pictures)
    units = {label: units_of(known[label], looked.rows) for label, looked in measured.items()}
    for place, trait in enumerate(traits):
        values = {label: looked.values[:, place] for label, looked in measured.items()}
        if np.ptp(np.concatenate([*values.values()])) == 0:
            continue
        for side in (-1, 1):
            found = None
            if name.startswith(PART) and (word := trait.high if side > 0 else trait.low):
                found = _part(sets, trait, word, {key: side * of_set for key, of_set in values.items()}, units, name)
            elif name.startswith(WHOLE) and trait.least is None and (word := trait.more if side > 0 else trait.less):
                found = _whole(sets, trait, word, values, side, units, name, alpha)
            if found is not None:
                first = np.argsort(-side * values[GEN], kind="stable")[:EXAMPLES]
                yield replace(found, clearest=tuple(measured[GEN].rows[first].tolist()))


def _part(
    sets: GateSets,
    trait: Trait,
    word: str,
    values: Mapping[str, Array],
    units: Mapping[str, Integers | None],
    name: str,
) -> Beyond:
    """Return the gain of samples that look so: of samples beyond nearly all of the reference.

    `values` has the trait of the samples of each set, shape (n,), so that more of it looks more so. `units` has the
    number of the unit of each, shape (n,); None where each sample is a unit. A share of samples whose units are alike
    in this look counts as of few samples (`design_effects`).
    """
    if trait.least is None:
        has = {label: of_set > np.quantile(values[REF], 1 - TAIL) for label, of_set in values.items()}
    else:
        side = 1 if word == trait.high else -1
        has = {label: of_set >= trait.least if side > 0 else of_set > -trait.least for label, of_set in values.items()}
    tallies = tally_sets({label: _counts(mask, units[label]) for label, mask in has.items()})
    effects = {label: float(tally.cautious[1]) for label, tally in tallies.items()}
    members = {label: float(mask.sum()) / effects[label] for label, mask in has.items()}
    sizes = {label: len(mask) / effects[label] for label, mask in has.items()}
    again, again_sizes = (np.array([[counts[label]] for label in sets.replicates]) for counts in (members, sizes))
    training = between_shares(again, again_sizes, len(sets.baselines))
    old, old_size = (sum(counts[label] for label in sets.baselines) for counts in (members, sizes))
    gains = [
        TwoCounts(members[GEN], sizes[GEN], old, old_size, float(training.training[0]), training.degrees),
        TwoCounts(members[GEN], sizes[GEN], members[REF], sizes[REF]),
    ]
    both = [
        GainedShare(name=name, value=gain.share - gain.old_share, margin=0.0, counts=gain, n=sets.gen.n)
        for gain in gains
    ]
    value = min(gain.value for gain in both)
    shares = gains[0].share, gains[0].old_share
    return Beyond(name=name, value=value, margin=0.0, trait=trait, note=word, old=both[0], ref=both[1], shares=shares)


def _counts(mask: NDArray[np.bool_], units: Integers | None) -> Counts:
    """Count the samples without and with a look, from a mask, (n,), and the number of the unit of each sample."""
    return Counts.of(2, mask.astype(np.int32), None if units is None else units.astype(np.uint64))


def _whole(
    sets: GateSets,
    trait: Trait,
    word: str,
    values: Mapping[str, Array],
    side: int,
    units: Mapping[str, Integers | None],
    name: str,
    alpha: float,
) -> Beyond:
    """Return the shift of the mean in parts of the spread of the reference (1.48 × its median deviation).

    `values` has the trait of the samples of each set, and `units` the number of the unit of each, shape (n,); None
    where each sample is a unit.
    """
    middle = np.median(values[REF])
    spread = 1.4826 * np.median(np.abs(values[REF] - middle)) or np.concatenate([*values.values()]).std()
    means = {}
    for label, of_set in values.items():
        shifted = np.clip(side * (of_set - middle) / spread, -CLIPPED, CLIPPED)
        means[label] = Estimate.of_mean(shifted, units[label])
    old = [means[label] for label in sets.baselines]
    training = between_scores(np.array([means[label].value for label in sets.replicates]), len(old))
    change = ScoreChange(means[GEN], mean_of(old), training, in_parts=False).of_other_sets(alpha)
    of_ref = difference(means[GEN], means[REF], is_paired=False)
    both = [Normal.of(estimate, name=name, margin=0.0) for estimate in (change, of_ref)]
    # A retrained release varies on the reference, too: few replicates know that as poorly.
    both[1] = replace(both[1], degrees=min(gain.degrees for gain in both))
    value = min(gain.value for gain in both)
    return Beyond(name=name, value=value, margin=0.0, trait=trait, note=word, old=both[0], ref=both[1])
