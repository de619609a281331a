"""Warnings to print with an audit: unequal or small sets, duplicates, unreadable files, windows, unsound controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.set_info import SetInfo
from finc_eval.memorization.attacks import CONTROL_AUC_RANGE, Attack
from finc_eval.memorization.distances import SetDistances
from finc_eval.memorization.result import AUDIT_ALPHA

MIN_RESOLVED_NON_MEMBERS = 10_000
"""Number of non-members from which on a rate of 0.1 % false positives means something."""


def set_warnings(
    infos: Mapping[str, SetInfo], overlap: int, measured: SetDistances, spacings: NDArray[np.float64]
) -> Iterator[str]:
    """Yield warnings about the sets."""
    n, m = infos["train"].n, infos["holdout"].n
    if n != m:
        yield (
            f"train has {n:,} samples and holdout {m:,}: all are used, because copies of samples that are left out "
            "would not be seen, and the DCR share is given as for equal sizes"
        )
    if m < MIN_RESOLVED_NON_MEMBERS:
        yield (
            f"holdout has {m:,} samples: rates at 0.1 % false positives are rough below "
            f"{MIN_RESOLVED_NON_MEMBERS:,} samples"
        )
    if overlap:
        yield (
            f"{overlap} of the {m:,} samples of holdout have the same embedding as a training sample: they make the "
            "control look like copies, and hide some copies"
        )
    held = int((measured.to_non_members.distances[:, 0] == 0).sum())
    if held:
        yield (
            f"{held} generated samples have the same embedding as a holdout sample: make sure that the generator was "
            "not trained on the holdout"
        )
    repeated = int((spacings == 0).sum())
    if repeated:
        yield (
            f"{repeated:,} of the {n:,} training samples are duplicates of others: AuthPct and NNDR see no near copies "
            "of them"
        )
    for label, info in infos.items():
        yield from info.warnings(label)
        if info.clip and info.clip.windows > 1:
            yield f"the windows of one video of {label} are taken for independent, so that intervals are too narrow"


def unlike_holdout(p_value: float) -> Iterator[str]:
    """Warn of a holdout of another distribution than the training set's."""
    if p_value <= AUDIT_ALPHA:
        yield (
            f"training set and holdout are not of one distribution (p = {p_value:.2g}): nearness to the training set "
            "and attacks show that as well, so no copying is concluded from them, and no guarantee is held against "
            "them; pass a holdout that was drawn as the training set was"
        )


def attack_warnings(attacks: Sequence[Attack]) -> Iterator[str]:
    """Yield warnings about the attacks."""
    for attack in attacks:
        if not attack.control_is_sound:
            yield (
                f"the attack {attack.name} also distinguishes train from holdout by samples that cannot be copies (AUC "
                f"{attack.control.auc:.3f}, not within {CONTROL_AUC_RANGE[0]} to {CONTROL_AUC_RANGE[1]}): the two are "
                "not of one distribution, and it measures that"
            )
    if "domias" not in [attack.name for attack in attacks]:
        yield (
            "the DOMIAS attack, often the strongest, is left out: it needs further samples that are in none of the "
            "sets (audit --reference)"
        )
