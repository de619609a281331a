"""Attacks on membership: telling who was in the training set from generated samples alone.

Each attack scores samples, higher for those it takes for members. None knows the generator: whoever can train models
of the same kind, or ask the generator for likelihoods, does better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import computed_field

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.distances import SetDistances
from finc_eval.numerics.attack_statistics import AttackStatistics, attack_statistics
from finc_eval.numerics.density_difference import DensityDifference, density_difference
from finc_eval.numerics.eigen import whitening
from finc_eval.wing import has_wing, part_of_wing

AttackName = Literal["nearest", "ball", "domias", "kahm"]

ATTACK_COMPONENTS = 20  # number of principal components of densities and of machines

KAHM_ATTACK = "kahm.attack:score_by_kahm"  # part of the wing that scores by machines

PERMUTATIONS = 99  # permutations behind the p-value of the membership-inference score
MAX_DENSITY_CENTERS = 10_000  # maximum number of samples whose kernels make a density
CONTROL_AUC_RANGE = (0.45, 0.55)  # range of the AUC of a control, if members and non-members have one distribution


@dataclass(frozen=True)
class Attack(Record):
    """Success of one attack at telling members.

    Attributes:
        name: name of the attack.
        statistics: statistics of the attack by the generated set.
        control: statistics of the attack on one half of the training set by the other half, with which none succeeds.
    """

    name: AttackName
    statistics: AttackStatistics
    control: AttackStatistics

    @computed_field  # type: ignore[prop-decorator]
    @property
    def control_is_sound(self) -> bool:
        """True unless the attack also succeeds with samples that cannot be copies."""
        low, high = self.control.auc_interval
        return low < CONTROL_AUC_RANGE[1] and high > CONTROL_AUC_RANGE[0]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def succeeds(self) -> bool:
        """True if the attack distinguishes members from others beyond chance, by its rates or by their order."""
        return self.statistics.epsilon_lower_bound > 0 or self.statistics.auc_interval[0] > 0.5


@dataclass(frozen=True)
class MembershipDifference(Record):
    """The membership-inference score of Kumar, Moser and Fischer (eq. 69), on the distances of the attack by machines.

    The squared L2 difference between the densities of the distances of members and of non-members. It is not a finding
    of the audit, whose error it has no part of: it stands next to the attacks, and its p-value is its own.

    Attributes:
        generated: the score by machines of generated samples, with its p-value and its null.
        control: the score of one half of the training set by machines of the other half.
    """

    generated: DensityDifference
    control: DensityDifference


class AttackScores(NamedTuple):
    """Scores of an attack."""

    members: NDArray[np.float64]
    non_members: NDArray[np.float64]


class AttackedSets(NamedTuple):
    """The sets that an attack is tried on."""

    gen: Embeddings  # the generated set, or a set that stands in for it
    members: Embeddings
    non_members: Embeddings  # samples that were not trained on


def score_by_nearest(distances: SetDistances) -> AttackScores:
    """Score by the nearest generated sample: members have a nearer sample (Chen et al., GAN-Leaks, CCS 2020)."""
    return AttackScores(-distances.members.distances, -distances.non_members.distances)


def score_by_ball(distances: SetDistances) -> AttackScores:
    """Score by the number of generated samples within the median nearest distance (Hilprecht et al. 2019)."""
    members, non_members = distances.members.within, distances.non_members.within
    return AttackScores(members.astype(np.float64), non_members.astype(np.float64))


def density_ratio(reference: Embeddings, seed: int) -> Callable[[AttackedSets], AttackScores]:
    """Score by DOMIAS (van Breugel et al. 2023), the log-ratio of the densities of generated samples and a reference.

    Densities are sums of Gaussian kernels on principal components of the reference, of deviation 1, by Scott's rule.
    If many generated samples lie in a place because many real samples do, the ratio is not higher there.
    """
    drawn = draw_samples(reference, MAX_DENSITY_CENTERS, np.random.default_rng(seed))
    rows = drawn.rows_at(np.arange(drawn.n)).double()
    mean = rows.mean(0)
    encoder = whitening(rows - mean, ATTACK_COMPONENTS)
    background = (rows - mean) @ encoder

    def encode(samples: Embeddings) -> torch.Tensor:
        return torch.cat([(batch.rows.to(mean.device).double() - mean) @ encoder for batch in samples.batches()])

    def score(sets: AttackedSets) -> AttackScores:
        centers = encode(draw_samples(sets.gen, MAX_DENSITY_CENTERS, np.random.default_rng(seed)))
        points = map(encode, (sets.members, sets.non_members))
        return AttackScores(*((log_density(x, centers) - log_density(x, background)).cpu().numpy() for x in points))

    return score


def log_density(points: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Return the log of a sum of Gaussian kernels of Scott's bandwidth, up to a constant: (n, c), (m, c) → (n,)."""
    m, width = centers.shape
    squared_bandwidth = m ** (-2 / (width + 4))
    # 1 << 22: number of kernel values held together.
    size = max((1 << 22) // m, 1)
    halves = centers.square().sum(1) / (-2 * squared_bandwidth)
    parts = []
    for part in torch.split(points, size):
        exponents = torch.addmm(halves, part, centers.T, alpha=1 / squared_bandwidth)
        parts.append(exponents.logsumexp(1) - part.square().sum(1) / (2 * squared_bandwidth))
    return torch.cat(parts) - log(m) - width / 2 * log(squared_bandwidth)


def draw_samples(embeddings: Embeddings, most: int, rng: np.random.Generator) -> Embeddings:
    """Return the set, or that many of its samples at random if it has more."""
    if embeddings.n <= most:
        return embeddings
    return Subset(embeddings, np.sort(rng.choice(embeddings.n, most, replace=False)))


def attack_names(*, with_reference: bool) -> list[AttackName]:
    """Return the attacks that `run_attacks` runs: DOMIAS needs a reference, KAHM the wing of privacy."""
    missing = {"domias": not with_reference, "kahm": not has_wing()}
    return [name for name in get_args(AttackName) if not missing.get(name)]


def run_attacks(
    gen: tuple[SetDistances, AttackedSets],
    control: tuple[SetDistances, AttackedSets],
    reference: Embeddings | None,
    *,
    delta: float,
    confidence: float,
    seed: int,
    device: str | torch.device | None = None,
) -> tuple[tuple[Attack, ...], MembershipDifference | None]:
    """Run all attacks on the generated set and on its control, and return the membership-inference score with them.

    `control` has a control in place of the generated set; `reference` are samples of the law in neither set, which
    DOMIAS needs.
    """
    both = (gen, control)
    scored: dict[AttackName, list[AttackScores]] = {
        "nearest": [score_by_nearest(distances) for distances, _ in both],
        "ball": [score_by_ball(distances) for distances, _ in both],
    }
    if reference is not None:
        score_by_ratio = density_ratio(reference, seed)
        scored["domias"] = [score_by_ratio(sets) for _, sets in both]
    if has_wing():
        score_by_kahm = part_of_wing(KAHM_ATTACK)
        scored["kahm"] = [score_by_kahm(sets, seed, device) for _, sets in both]
    results = tuple(
        Attack(name, *(attack_statistics(*pair, delta=delta, confidence=confidence) for pair in scores))
        for name, scores in scored.items()
    )
    distances = scored.get("kahm")
    return results, membership_difference(distances[0], distances[1], seed) if distances else None


def membership_difference(generated: AttackScores, control: AttackScores, seed: int) -> MembershipDifference | None:
    """Return the membership-inference score of distances, of the generated set and of its control, each with its null.

    None if distances are infinite or equal, and so have no densities.
    """
    try:
        return MembershipDifference(*(_difference(scores, PERMUTATIONS, seed) for scores in (generated, control)))
    except DataError:
        return None


def _difference(scores: AttackScores, permutations: int, seed: int) -> DensityDifference:
    rng = np.random.default_rng(seed)
    finite = (-values[np.isfinite(values)] for values in scores)
    # 2000: distances of each side whose densities the membership-inference score compares.
    x, y = (rng.choice(values, min(len(values), 2000), replace=False) for values in finite)
    return density_difference(x, y, permutations=permutations, seed=seed)


def score_membership(
    gen: Embeddings,
    members: Embeddings,
    non_members: Embeddings,
    seed: int,
    *,
    permutations: int,
    device: str | torch.device | None = None,
) -> DensityDifference | None:
    """Return the membership-inference score of a generated set alone (eq. 69); None if distances have no densities.

    Raises:
        DataError: this copy of the package has no wing of privacy.
    """
    scores = part_of_wing(KAHM_ATTACK)(AttackedSets(gen, members, non_members), seed, device)
    try:
        return _difference(scores, permutations, seed)
    except DataError:
        return None
