"""Evidence on membership: the membership-inference score of a release (KAHM, eq. 69), with its null."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.core.words import figure
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.keys import hash_rows
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.gates.evidence import LimitEvidence, Missing, Side
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.memorization.attacks import score_membership
from finc_eval.memorization.holdout import holdout_p_value
from finc_eval.memorization.membership import score_cells
from finc_eval.memorization.opening import MIN_AUDIT_SAMPLES
from finc_eval.memorization.settings import AUDIT_ALPHA
from finc_eval.wing import has_wing

MEMBERSHIP = "basics.membership"

NULL = 999
"""Permutations of a score: p-values go down to 0.001, which the level of fifty limits together asks for."""


@dataclass(frozen=True, kw_only=True)
class ScoreAboveNull(LimitEvidence):
    """A score whose null is known from permutations: it regressed if it is beyond its limit and beyond its null.

    Its own error is not known, so that a limit holds as a search does: no score beyond it was shown.
    """

    null: tuple[float, ...]  # values of the score without any difference, in its unit

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the score; as the lower end 0, or the score if that is less, where its p-value is above `level`.

        More samples (`factor`) change nothing: the null is of these.
        """
        p = (1 + sum(value >= self.value for value in self.null)) / (1 + len(self.null))
        return min(self.value, 0.0) if side == "low" and p > level else self.value


def membership_evidence(
    sets: GateSets, margin: float | None, train: object | None, seed: int, run: Run
) -> list[LimitEvidence]:
    """Return the evidence on the score of training samples against the reference; none without a limit."""
    if margin is None:
        return []
    if train is None or not has_wing():
        note = "pass train, all samples that the generator was trained on" if train is None else "the wing is missing"
        return [Missing(name=MEMBERSHIP, margin=margin, note=note)]
    run = replace(run, progress=silent)
    members = open_embeddings({"train": train}, sets.extractor, run, [sets.space])["train"]
    if (fewest := min(each.n for each in (sets.gen, members, sets.ref))) < MIN_AUDIT_SAMPLES:
        note = f"a set has {fewest} samples, and the score needs at least {MIN_AUDIT_SAMPLES} of each"
        return [Missing(name=MEMBERSHIP, margin=margin, note=note)]
    law = holdout_p_value(members, sets.ref, seed, run)
    if law <= AUDIT_ALPHA:
        return [Missing(name=MEMBERSHIP, margin=margin, note=_why_unlike(members, sets.ref, law, run))]
    found = score_membership(sets.all[GEN], members, sets.all[REF], seed, permutations=NULL, device=run.device)
    if found is None:
        return [Missing(name=MEMBERSHIP, margin=margin, note="the distances have no density to compare")]
    _, p, below, _ = score_cells(found)
    null = tuple(value / found.deviation for value in found.null)
    note = f"p = {p}; 95 % of equal densities stay below {below}"
    return [
        ScoreAboveNull(
            name=MEMBERSHIP,
            value=found.value,
            margin=margin,
            surely=0.0,
            is_search=True,
            n=sets.gen.n,
            note=note,
            null=null,
        )
    ]


def _why_unlike(train: Embeddings, ref: Embeddings, law: float, run: Run) -> str:
    """Say why a reference cannot stand for samples that the generator has not seen."""
    seen, asked = (
        np.concatenate([hash_rows(batch.rows.cpu()).numpy() for batch in embeddings.batches(run.portion)])
        for embeddings in (train, ref)
    )
    # 0.01: share of a holdout that may also be in the training set, as in audits.
    if (shared := int(np.isin(asked, seen).sum())) > 0.01 * ref.n:
        return (
            f"{shared:,} of the {ref.n:,} samples of the reference are training samples: pass a reference that the "
            "generator has not seen"
        )
    return (
        f"training set and reference are not of one distribution (p = {figure(law, '.2g')}), which also looks like "
        "membership: pass a reference that was drawn as the training set was"
    )
