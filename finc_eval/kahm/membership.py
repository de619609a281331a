"""How far a model's distances tell what it was made from: the membership-inference score, and an attack by distance.

The score of Kumar, Moser and Fischer (JAIR 79, 2024, eq. 69) is the squared L2 distance between the densities of two
sets of distances, those of the samples a model was made from and those of fresh ones. It has the unit 1/distance, no
upper bound and no direction, and it is above 0 for equal densities: read it beside its null and the attack, which say
what it cannot. It grows with the components and the scale of a model, and with any shift between the two sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from finc_eval.core.errors import FincEvalError
from finc_eval.core.serialize import Document
from finc_eval.kahm.density_difference import DensityDifference, density_difference
from finc_eval.memorization.attack_statistics import AttackStatistics, attack_statistics

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from finc_eval.kahm.models import ClassModels, WideKahm

SCHEMA = 1

Direction = Literal["members nearer", "members farther", "neither"]


@dataclass(frozen=True)
class MembershipScore(Document):
    """How unlike the distances of members and of non-members are.

    Attributes:
        difference: the score, `difference.value` in the unit 1/distance and `difference.standardized` without one,
            with its p-value and what it is for equal densities.
        attack: taking samples for members the nearer they are.
        undefined_members, undefined_non_members: samples without a distance, infinitely far for the attack and left
            out of the score.
        settings: of the model, as far as known; scores compare only where they agree.
    """

    difference: DensityDifference
    attack: AttackStatistics
    undefined_members: int
    undefined_non_members: int
    settings: str

    @property
    def direction(self) -> Direction:
        """Which of the two are nearer, where the interval of the attack's AUC excludes ½."""
        low, high = self.attack.auc_interval
        return "members nearer" if low > 0.5 else "members farther" if high < 0.5 else "neither"

    def to_dict(self) -> dict[str, Any]:
        """The score as plain JSON types."""
        found = self.difference
        return {
            "schema": SCHEMA,
            "score": found.value,
            "standardized": found.standardized,
            "p_value": found.p_value,
            "null_mean": float(np.mean(found.null)) if found.null else None,
            "threshold_95": found.threshold() if found.null else None,
            "direction": self.direction,
            "attack": self.attack.to_dict(),
            "undefined": {"members": self.undefined_members, "non_members": self.undefined_non_members},
            "settings": self.settings,
        }

    def __str__(self) -> str:
        found, attack = self.difference, self.attack
        null = "" if found.p_value is None else f" (p = {found.p_value:.3g}, equal below {found.threshold():.3g})"
        one, tenth = attack.at_1_percent, attack.at_01_percent
        return (
            f"distances of members and others differ by {found.standardized:.3g}{null} in squared L2, standardized; "
            f"{self.direction}; attack: AUC {attack.auc:.3f} [{attack.auc_interval[0]:.3f}, "
            f"{attack.auc_interval[1]:.3f}], advantage {attack.advantage:.3f}, true positives {one.tpr:.2%} at 1 % and "
            f"{tenth.tpr:.2%} at 0.1 % false ones; {self.settings or 'settings unknown'}"
        )


def membership_score(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    permutations: int = 199,
    standardize: bool = True,
    seed: int = 0,
    settings: str = "",
) -> MembershipScore:
    """The score of distances to a model, and the attack by them.

    Args:
        members: of the samples that the model was made from, shape (m,); infinite where there is none.
        non_members: of fresh samples of the same distribution, shape (n,).
        permutations: for the p-value.
        standardize: see `density_difference`.
        seed: of the estimate.
        settings: of the model.

    Raises:
        FincEvalError: fewer than two finite distances of one, all equal, or a NaN.
    """
    x, y = np.asarray(members, np.float64), np.asarray(non_members, np.float64)
    attack = attack_statistics(-x, -y)
    finite = tuple(side[np.isfinite(side)] for side in (x, y))
    if min(map(len, finite)) < 2:
        raise FincEvalError(
            f"a density needs at least two finite distances, got {len(finite[0])} of members and {len(finite[1])} of "
            "non-members"
        )
    return MembershipScore(
        difference=density_difference(*finite, standardize=standardize, permutations=permutations, seed=seed),
        attack=attack,
        undefined_members=len(x) - len(finite[0]),
        undefined_non_members=len(y) - len(finite[1]),
        settings=settings,
    )


def kahm_distances(model: ClassModels | WideKahm, queries: object) -> NDArray[np.float64]:
    """r(x), the least distance to the model of any class, of every query: shape (n,); streamed.

    As a membership attack, take samples for members the smaller it is. It is a weak one on generated samples: the
    nearest neighbor does better, which it tends to as λ → 0.
    """
    values = model.distances(queries).values
    return values if values.ndim == 1 else values.min(1)
