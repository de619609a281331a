"""The membership-inference score of distances to models, with its null and an attack.

The membership-inference score (Kumar, Moser and Fischer, JAIR 79, 2024, eq. 69) is the squared L2 distance between the
densities of two sets of distances: of the samples a model was made from, and of fresh samples. It has the unit
1/distance, no upper bound and no direction, and it is above 0 for equal densities: read it together with its null and
the attack. It grows with the components and the scale of a model, and with any shift between the two sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import computed_field

from finc_eval.core.errors import DataError
from finc_eval.core.provenance import Provenance
from finc_eval.core.serialize import Document
from finc_eval.memorization.membership import score_sentence
from finc_eval.numerics.attack_statistics import AttackStatistics, attack_statistics
from finc_eval.numerics.density_difference import DensityDifference, density_difference
from finc_eval.private.kahm.models import ClassModels, WideKahm

MembershipDirection = Literal["members nearer", "members farther", "neither"]


@dataclass(frozen=True, eq=False)
class MembershipScore(Document):
    """Difference between the distances of members and of non-members.

    Attributes:
        difference: the score: `difference.value` in the unit 1/distance, `difference.standardized` without a unit,
            with its p-value and its null, the standardized values for equal densities.
        attack: statistics of the attack that takes samples for members the nearer they are.
        undefined_members, undefined_non_members: number of samples without a distance. They are infinitely far for the
            attack, and left out of the score.
        settings: settings of the model, as far as known; scores compare only if they agree.
    """

    type_name: ClassVar[str] = "membership-score"
    page: ClassVar[str] = "finc_eval.private.kahm.membership_page"

    difference: DensityDifference
    attack: AttackStatistics
    undefined_members: int
    undefined_non_members: int
    settings: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def direction(self) -> MembershipDirection:
        """Direction of the difference, if the interval of the attack's AUC excludes ½."""
        low, high = self.attack.auc_interval
        return "members nearer" if low > 0.5 else "members farther" if high < 0.5 else "neither"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def threshold_95(self) -> float | None:
        """Standardized score that 95 % of equal densities stay below; None without permutations."""
        return self.difference.threshold() if self.difference.null else None

    def _summary(self) -> str:
        p_value = "" if self.difference.p_value is None else f", p={self.difference.p_value:.2g}"
        return f"{self.difference.value:.3g} in 1/distance{p_value}, {self.direction}, AUC {self.attack.auc:.3f}"

    def __str__(self) -> str:
        difference, attack = self.difference, self.attack
        score = score_sentence(difference).removesuffix(".")
        at_1, at_01 = attack.at_1_percent, attack.at_01_percent
        return (
            f"{score}; standardized {difference.standardized:.3g}; "
            f"{self.direction}; attack: AUC {attack.auc:.3f} [{attack.auc_interval[0]:.3f}, "
            f"{attack.auc_interval[1]:.3f}], advantage {attack.advantage:.3f}, true positives {at_1.tpr:.2%} at 1 % "
            f"and {at_01.tpr:.2%} at 0.1 % false ones; {self.settings or 'settings unknown'}"
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
    """Compute the membership-inference score of distances to a model (eq. 69), and the attack by them.

    Args:
        members: distances of the samples that the model was made from, shape (m,); infinite if there is none.
        non_members: distances of fresh samples of the same distribution, shape (n,).
        permutations: number of permutations for the p-value.
        standardize: whether the kernel width follows the unit of the distances, see `density_difference`.
        seed: random seed of the estimate.
        settings: settings of the model, as text for the result.

    Raises:
        UsageError: the number of permutations is negative.
        DataError: either has fewer than two finite distances, all are equal, or a distance is NaN.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(400)
        >>> model = fe.kahm.fit_wide(ref[:200])
        >>> members, others = (fe.kahm.nearest_distances(model, part) for part in (ref[:200], ref[200:]))
        >>> fe.kahm.membership_score(members, others, permutations=19).direction
        'members nearer'
    """
    x, y = np.asarray(members, np.float64), np.asarray(non_members, np.float64)
    attack = attack_statistics(-x, -y)
    finite_x, finite_y = x[np.isfinite(x)], y[np.isfinite(y)]
    if min(len(finite_x), len(finite_y)) < 2:
        raise DataError(
            f"a density needs at least two finite distances, got {len(finite_x)} of members and {len(finite_y)} of "
            "non-members"
        )
    return MembershipScore(
        provenance=Provenance.here("cpu"),
        difference=density_difference(
            finite_x, finite_y, standardize=standardize, permutations=permutations, seed=seed
        ),
        attack=attack,
        undefined_members=len(x) - len(finite_x),
        undefined_non_members=len(y) - len(finite_y),
        settings=settings,
    )


def nearest_distances(model: ClassModels | WideKahm, queries: object) -> NDArray[np.float64]:
    """Return r(x), the least distance to the model of any class, for every query; queries are streamed.

    As a membership attack, take samples for members the smaller it is. It is a weak attack on generated samples: the
    nearest neighbor, to which it tends as λ → 0, does better.

    Args:
        model: model of one class, or models of several.
        queries: points, shape (n, p): array, tensor, cache or its path.

    Returns:
        Distances, shape (n,); infinite if a point has no image.

    Raises:
        IncompatibleError: the queries have another dimension than the samples of the model.
        DataError: a row is not finite.

    Example:
        >>> import finc_eval as fe
        >>> model = fe.kahm.fit_wide([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 4.0]])
        >>> fe.kahm.nearest_distances(model, [[1.5, 2.0], [9.0, 9.0]]).round(1).tolist()
        [0.1, 8.7]
    """
    values = model.distances(queries).values
    return values if values.ndim == 1 else values.min(1)
