"""Attack on membership by kernel affine hull machines, which the audit looks up by its name."""

from __future__ import annotations

import numpy as np
import torch

from finc_eval.memorization.attacks import ATTACK_COMPONENTS, AttackedSets, AttackScores, draw_samples
from finc_eval.private.kahm.membership import nearest_distances
from finc_eval.private.kahm.models import fit_wide
from finc_eval.private.kahm.settings import KahmSettings

KAHM_SETTINGS = KahmSettings(ATTACK_COMPONENTS, lam=("relative", 2e-6))
"""λ* for samples in a unit a thousandth of theirs, which sees near copies best: 0.80 where the paper's own choice has
an AUC of 0.57. The smaller λ, the nearer the attack is to the attack by the nearest neighbor."""

MAX_KAHM_SAMPLES = 10_000
"""Maximum number of generated samples that machines are made of, and of members and non-members that they are tried on:
each is held against every machine. That is enough for a false positive rate of 0.1 %."""


def score_by_kahm(sets: AttackedSets, seed: int, device: str | torch.device | None = None) -> AttackScores:
    """Score by the distance to kernel affine hull machines made of generated samples."""
    rng = np.random.default_rng(seed)
    model = fit_wide(draw_samples(sets.gen, MAX_KAHM_SAMPLES, rng), KAHM_SETTINGS, device=device)
    drawn = (draw_samples(samples, MAX_KAHM_SAMPLES, rng) for samples in (sets.members, sets.non_members))
    return AttackScores(*(-nearest_distances(model, samples) for samples in drawn))
