"""Evidence on parts of pictures: a release has a part that hardly any accepted picture has (`appearance.local`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.stored.turned import LEAST_TURNED, TURNED
from finc_eval.estimates.retraining import between_shares
from finc_eval.findings.causes import Held
from finc_eval.findings.local import LocalParts, PartOfSet, find_parts, hold_part
from finc_eval.gates.evidence import LimitEvidence, Missing, Side
from finc_eval.gates.sets import GEN, REF, GateSets, independent
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.local_evidence.find import LEAST_UNITS
from finc_eval.local_evidence.find import PERMUTATIONS as FIRST_PERMUTATIONS
from finc_eval.naming.measured import LOOKED, PictureLooks, measure_pictures, measure_sets
from finc_eval.numerics.families import level_of_each

LOCAL = "appearance.local"  # rule of the limit on parts of pictures

UNLIKE_BEFORE = {"more": "a part that hardly any picture had before", "less": "a part that hardly any picture has now"}
"""Words for a part of pictures of the release, or of an older one, that nothing names."""

PERMUTATIONS = 1999
"""Random permutations behind the p-value of a limit: .0005 is the smallest, below the level of each of 80 limits."""


@dataclass(frozen=True, kw_only=True)
class NewPart(LimitEvidence):
    """The share of a release that has a part of pictures that hardly any accepted picture has; 0 if none was found.

    It counts as far as it is a gain on the baseline and on the reference, as a look does (`Beyond`). Besides, the
    pictures of the release and of its baseline must surely be unlike, by all that is local in them.
    """

    spends_own: ClassVar[bool] = True
    surely: float | None = 0.0
    is_search: bool = True
    p_value: float = 1.0  # of the part, adjusted for all that was looked at
    gains: tuple[GainedShare, GainedShare] | None = None  # gains on the baseline and on the reference
    level_of_ref: float = 0.0  # least level of the gain on the reference
    held: Held | None = None  # the part with its samples, as a finding of a release and of an older one
    times: float = 0.0  # factor by which samples are too few for a test; 0 if they are enough

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the bound of the share; without a part, no share is excluded."""
        if self.times:
            return 0.0 if side == "low" or factor >= self.times else 1.0
        if self.gains is None:
            return 0.0 if side == "low" else 1.0
        old, ref = self.gains
        if side == "high":
            return min(old.bound(side, level, factor), ref.bound(side, level, factor))
        if self.p_value > max(level, 1 / (PERMUTATIONS + 1)):
            return 0.0
        return max(min(old.bound(side, level, factor), ref.bound(side, max(level, self.level_of_ref), factor)), 0.0)


def find_release_parts(
    sets: GateSets,
    old: str,
    seed: int,
    run: Run,
    permutations: int = FIRST_PERMUTATIONS,
    others: Mapping[str, Embeddings] = MappingProxyType({}),
    pictures: Mapping[str, PictureLooks | None] = MappingProxyType({}),
) -> LocalParts:
    """Return the parts of pictures in which a release differs from an older one, labelled "ref".

    `others` are further sets, in which the parts are looked for; `pictures` has what `pictures_of` returns.
    """
    pair = {GEN: sets.gen, "ref": sets.all[old]}
    known = {label: pictures[own] for label, own in ((GEN, GEN), ("ref", old)) if own in pictures}
    measured = measure_sets(pair, known, run)
    further = {
        label: (samples, pictures[label] if label in pictures else measure_pictures(samples, run))
        for label, samples in others.items()
    }
    found = find_parts(pair, sets.blocks_with(old), seed, run, permutations, further, measured)
    named = tuple((replace(part, name=part.name or UNLIKE_BEFORE[part.side]), has) for part, has in found.parts)
    return replace(found, parts=named)


def local_evidence(
    sets: GateSets, margin: float, pictures: Mapping[str, PictureLooks | None], seed: int, alpha: float, run: Run
) -> Iterator[tuple[LimitEvidence, LocalParts | None]]:
    """Yield the evidence on parts of pictures of the release, against each older release, and all parts."""
    for against in sets.comparisons:
        name, old = against.rule(LOCAL), next(iter(against.baselines))
        few = min(independent(samples) for samples in (sets.gen, against.all[old]))
        if note := why_not_looked_at(against):
            yield Missing(name=name, margin=margin, note=note), None
        elif few < LEAST_UNITS:
            note = f"fewer than {LEAST_UNITS} independent samples of a set show nothing local in pictures"
            times = LEAST_UNITS / few
            yield (
                NewPart(name=name, value=0.0, margin=margin, n=sets.gen.n, note=note, times=times, is_search=False),
                None,
            )
        else:
            others = {label: samples for label, samples in against.compared.items() if label not in (GEN, old)}
            found = find_release_parts(against, old, seed, run, pictures=pictures)
            if found.parts:  # more permutations are worth their time where the first ones found something
                found = find_release_parts(against, old, seed + 1, run, PERMUTATIONS, others, pictures)
            surest = _surest_part(against, found, name, margin, alpha)
            unseen = _unseen_elsewhere(against, found, alpha)
            if unseen is None or surest.is_regression(alpha):
                yield surest, found
            else:
                way_out = f"pass {LEAST_TURNED} or more pictures of each"
                note = f"{unseen.words} could not be looked for in all accepted sets: {way_out}"
                yield Missing(name=name, margin=margin, note=note), found


def why_not_looked_at(sets: GateSets) -> str:
    """Return why parts of pictures of a release cannot be limited; "" if they can."""
    for label, samples in sets.compared.items():
        if samples.cells_absent:
            return f"{label} has no cells: {samples.cells_absent}"
    spaces = {cells.space for samples in sets.compared.values() if (cells := samples.cells) is not None}
    return "" if len(spaces) == 1 else "cells of the sets were made in unlike ways: embed all sets again"


def _unseen_elsewhere(sets: GateSets, found: LocalParts, alpha: float) -> PartOfSet | None:
    """Return a significant part of the release of which an accepted set does not show whether it has it, too."""
    others = sets.compared.keys() - {GEN, next(iter(sets.baselines))}
    for (part, _), shares in zip(found.parts, found.elsewhere, strict=True):
        is_limited = part.side == "more" and part.share is not None and part.kind != "pairs"
        if is_limited and part.p_value <= alpha and not others <= shares.keys():
            return part
    return None


def _surest_part(sets: GateSets, found: LocalParts, name: str, margin: float, alpha: float) -> NewPart:
    """Return the part of the release that is most surely beyond the limit; a share of 0 without any.

    Near pairs are limited as repeats and copies, and a change of all pictures has no share.
    """
    others = sets.compared.keys() - {GEN, next(iter(sets.baselines))}
    held = [
        (part, has, shares)
        for (part, has), shares in zip(found.parts, found.elsewhere, strict=True)
        if part.side == "more" and part.share is not None and part.kind != "pairs" and others <= shares.keys()
    ]
    level = level_of_each(alpha, max(len(held), 1))
    parts = [
        NewPart(
            name=name,
            value=max(min(gain.value for gain in gains), 0.0),
            margin=margin,
            n=sets.gen.n,
            note=part.words,
            p_value=part.p_value,
            gains=gains,
            level_of_ref=level,
            held=hold_part(part, has),
        )
        for part, has, shares in held
        for gains in (_gains_of_part(sets, part, shares, found.units, name),)
    ]
    nothing = NewPart(name=name, value=0.0, margin=margin, n=sets.gen.n)
    return max(parts, key=lambda part: (part.is_regression(level), part.value), default=nothing)


def _gains_of_part(
    sets: GateSets, part: PartOfSet, shares: Mapping[str, float], units: Mapping[str, int], name: str
) -> tuple[GainedShare, GainedShare]:
    """Return the gain of a part on the baselines and on the reference; samples of a unit count as one sample."""
    first, *_ = sets.baselines
    shares = {**shares, GEN: part.share_gen or 0.0, first: part.share_ref or 0.0}
    sizes = {label: float(min(independent(samples), LOOKED)) for label, samples in sets.compared.items()}
    sizes |= {GEN: float(units[GEN]), first: float(units["ref"])}
    if part.kind == "orientation":  # some samples were turned, and of their units as large a part
        sizes = {label: size * min(TURNED / min(sets.compared[label].n, LOOKED), 1) for label, size in sizes.items()}
    members = {label: share * sizes[label] for label, share in shares.items()}
    again, again_sizes = (np.array([[counts[label]] for label in sets.replicates]) for counts in (members, sizes))
    training = between_shares(again, again_sizes, len(sets.baselines))
    old, old_size = (sum(counts[label] for label in sets.baselines) for counts in (members, sizes))
    gains = (
        TwoCounts(members[GEN], sizes[GEN], old, old_size, float(training.training[0]), training.degrees),
        TwoCounts(members[GEN], sizes[GEN], members[REF], sizes[REF]),
    )
    on_old, on_ref = (
        GainedShare(name=name, value=gain.share - gain.old_share, margin=0.0, counts=gain, n=sets.gen.n)
        for gain in gains
    )
    return on_old, on_ref
