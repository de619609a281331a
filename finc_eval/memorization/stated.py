"""A stated guarantee held against attacks: what (ε, δ) allows the best attacker, and whether an attack got more.

An attack can show that a statement is false. That none does shows nothing: these attacks are far from the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1
from typing import TYPE_CHECKING, Any

from finc_eval.core.errors import FincEvalError
from finc_eval.privacy.dp.accounting import Ceilings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finc_eval.memorization.attacks import Attack, AttackName


@dataclass(frozen=True)
class Stated:
    """A statement that a generator was trained with (ε, δ)-differential privacy, for each training sample.

    Attributes:
        epsilon, delta: as stated by whoever trained it.
        ceilings: what any (ε, δ)-private mechanism allows, whichever it is.
        falsified_by: attacks whose lower bounds exceed what it allows, all at the level of the audit together.
    """

    epsilon: float
    delta: float
    ceilings: Ceilings
    falsified_by: tuple[AttackName, ...]

    @property
    def is_falsified(self) -> bool:
        """Whether some attack got more than the statement allows."""
        return bool(self.falsified_by)

    def to_dict(self) -> dict[str, Any]:
        """The statement and its ceilings as plain JSON types."""
        most = self.ceilings
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "ceilings": {
                "auc": most.auc,
                "advantage": most.advantage,
                "tpr_at_1_percent": most.tpr_at_1_percent,
                "tpr_at_01_percent": most.tpr_at_01_percent,
            },
            "falsified": self.is_falsified,
            "falsified_by": list(self.falsified_by),
        }


def stated(epsilon: float, delta: float, attacks: Sequence[Attack]) -> Stated:
    """Hold a statement against attacks, by the bound of ε and by that of the AUC.

    An attack whose control is not sound is passed over: it tells members from others by more than membership.

    Raises:
        FincEvalError: ε is negative or infinite, or δ not in [0, 1).
    """
    most = ceilings_of(epsilon, delta)
    falsified_by = tuple(
        attack.name
        for attack in attacks
        if attack.control_is_sound
        and (attack.statistics.epsilon_lower_bound > epsilon or attack.statistics.auc_interval[0] > most.auc)
    )
    return Stated(epsilon, delta, most, falsified_by)


def check_stated(epsilon: float | None, delta: float | None) -> None:
    """Raise FincEvalError unless both are given and in range, or neither."""
    if (epsilon is None) != (delta is None):
        raise FincEvalError("a stated guarantee is an epsilon with a delta (0 if it is pure): pass both, or neither")
    if epsilon is not None and delta is not None:
        ceilings_of(epsilon, delta)


def ceilings_of(epsilon: float, delta: float) -> Ceilings:
    """What (ε, δ) allows: TPR ≤ min(e^ε α + δ, 1 − e^−ε (1 − δ − α)) at false positives α (Kairouz et al. 2015).

    That is two straight lines, which meet at α = (1 − δ)/(1 + e^ε). A Gaussian mechanism of the same (ε, δ) allows
    less (`accounting.ceilings`), but nobody has said that it is one.

    Raises:
        FincEvalError: ε is negative or infinite, or δ not in [0, 1).
    """
    if not 0 <= epsilon < 500:
        raise FincEvalError(f"a stated epsilon must lie between 0 and 500, got {epsilon}")
    if not 0 <= delta < 1:
        raise FincEvalError(f"a stated delta must lie in [0, 1), got {delta}")
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
