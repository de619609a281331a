"""Shares of faults that a gate would have found in a release, for a reader of PASS without a finding."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.core.run import Run
from finc_eval.findings.visible import Visible, find_visible
from finc_eval.gates.sets import GEN, GateSets
from finc_eval.gates.verdict import CLEAR
from finc_eval.naming.measured import MeasuredSets, PictureLooks, measure_sets
from finc_eval.partitions.answer import Answer

COPIES_ARE_NOT_ASKED = 1  # equal samples that are taken as given: a gate compares a release with an older one


def measure_pair(sets: GateSets, old: str, pictures: Mapping[str, PictureLooks | None]) -> MeasuredSets:
    """Measure the samples of a release and of an older one, labelled "ref".

    `pictures` has what was measured of the pictures of sets, by label, as far as it was.
    """
    known = {label: pictures[name] for label, name in ((GEN, GEN), ("ref", old)) if name in pictures}
    return measure_sets({GEN: sets.gen, "ref": sets.all[old]}, known)


def find_visible_change(
    sets: GateSets, answer: Answer, old: str, measured: MeasuredSets, seed: int, run: Run
) -> Visible:
    """Return what a gate that found no difference from an older release would have found, at the level of PASS.

    Copies of an older release are not asked for.
    """
    pair = {GEN: sets.gen, "ref": sets.all[old]}
    return find_visible(
        pair, measured, answer.choice.tests.detectable(CLEAR), seed, equal=COPIES_ARE_NOT_ASKED, run=run
    )
