"""A stated guarantee held against attacks: what (ε, δ) allows the best attacker, and the attacks that got more.

An attack can show that a statement is false. If none does, that shows nothing: these attacks are far from the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1

from pydantic import computed_field

from finc_eval.core.record import Record
from finc_eval.memorization.attacks import Attack, AttackName
from finc_eval.memorization.settings import check_guarantee
from finc_eval.privacy.dp.accounting import Ceilings


@dataclass(frozen=True)
class StatedGuarantee(Record):
    """A statement that a generator was trained with (ε, δ)-differential privacy for each training sample.

    Attributes:
        epsilon, delta: guarantee as stated by the trainer.
        ceilings: the most that any (ε, δ)-private mechanism allows an attacker.
        falsified_by: attacks whose lower bounds exceed these ceilings, at the confidence of the audit for all together.
    """

    epsilon: float
    delta: float
    ceilings: Ceilings
    falsified_by: tuple[AttackName, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_falsified(self) -> bool:
        """True if an attack got more than the statement allows."""
        return bool(self.falsified_by)


def judge_guarantee(epsilon: float, delta: float, attacks: Sequence[Attack], nearer: bool) -> StatedGuarantee:
    """Hold a stated guarantee against attacks, by their bounds of ε and of the AUC.

    An attack whose control is not sound is passed over: it distinguishes members from others by more than membership.
    So is every attack unless samples are `nearer` to the training set by the measures of copying: a holdout of another
    distribution, if the test of it missed that, takes in attacks alone.
    """
    ceilings = guarantee_ceilings(epsilon, delta)
    more = (one for one in attacks if nearer and one.control_is_sound and exceeds(one, epsilon, ceilings))
    return StatedGuarantee(epsilon, delta, ceilings, tuple(one.name for one in more))


def exceeds(attack: Attack, epsilon: float, ceilings: Ceilings) -> bool:
    """Return whether an attack got more than a guarantee allows."""
    return attack.statistics.epsilon_lower_bound > epsilon or attack.statistics.auc_interval[0] > ceilings.auc


def guarantee_ceilings(epsilon: float, delta: float) -> Ceilings:
    """Return the most that (ε, δ) allows an attacker (Kairouz et al. 2015).

    TPR ≤ min(e^ε α + δ, 1 − e^−ε (1 − δ − α)) at false positives α: two straight lines, which meet at
    α = (1 − δ)/(1 + e^ε). A Gaussian mechanism of the same (ε, δ) allows less (`accounting.ceilings`), but the
    statement does not say that it is one.
    """
    check_guarantee(epsilon, delta)
    growth = exp(epsilon)
    meet = (1 - delta) / (1 + growth)

    def tpr(alpha: float) -> float:
        return min(growth * alpha + delta, 1 - (1 - delta - alpha) / growth, 1.0)

    first = meet * (delta + tpr(meet)) / 2
    second = (1 - delta - meet) * (tpr(meet) + 1) / 2
    return Ceilings(
        auc=first + second + delta,
        advantage=(expm1(epsilon) + 2 * delta) / (growth + 1),
        tpr_at_1_percent=tpr(0.01),
        tpr_at_01_percent=tpr(0.001),
    )
