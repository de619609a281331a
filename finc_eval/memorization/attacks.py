"""Attacks on membership: who was in the training set, judged by generated samples alone?

Each attack scores samples, higher for those it takes for members. None knows the generator: whoever can train models
of the same kind, or ask the generator for likelihoods, does better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from finc_eval.embeddings.base import Subset
from finc_eval.kahm.machine import Settings, whitening
from finc_eval.kahm.membership import kahm_distances
from finc_eval.kahm.models import fit_wide
from finc_eval.memorization.attack_statistics import AttackStatistics, attack_statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from finc_eval.embeddings.base import Embeddings
    from finc_eval.memorization.distances import Played

AttackName = Literal["nearest", "ball", "domias", "kahm"]

COMPONENTS = 20
"""Principal components of densities and of machines."""

MACHINES = Settings(COMPONENTS, lam=("relative", 2e-6))
"""λ* for samples in a unit a thousandth of theirs, which tells near copies best: 0.80 where the paper's own choice has
an AUC of 0.57. The smaller λ, the nearer the attack is to that by the nearest neighbor."""

MOST = 10_000
"""Generated samples that machines are made of, and members and non-members that they are tried on, at most: each is
held against every machine. That is enough for a false positive rate of 0.1 %."""

DENSITY_CENTERS = 10_000
"""Samples whose kernels make a density, at most."""

TOGETHER = 1 << 22
"""Kernel values held together."""

CONTROL = (0.45, 0.55)
"""Between which the AUC of a control lies, if members and non-members are of one distribution."""


@dataclass(frozen=True)
class Attack:
    """How well one attack tells members.

    Attributes:
        name: which.
        statistics: on the generated set.
        control: on fresh samples in its place, which cannot tell.
    """

    name: AttackName
    statistics: AttackStatistics
    control: AttackStatistics

    @property
    def control_is_sound(self) -> bool:
        """Whether members and non-members look alike to fresh samples, as far as that is known."""
        low, high = self.control.auc_interval
        return low < CONTROL[1] and high > CONTROL[0]

    @property
    def tells(self) -> bool:
        """Whether it tells members from others beyond chance, by its rates or by their order."""
        return self.statistics.epsilon_lower_bound > 0 or self.statistics.auc_interval[0] > 0.5

    def to_dict(self) -> dict[str, Any]:
        """The attack as plain JSON types."""
        return {
            "name": self.name,
            "tells": self.tells,
            "statistics": self.statistics.to_dict(),
            "control": self.control.to_dict(),
            "control_is_sound": self.control_is_sound,
        }


@dataclass(frozen=True, eq=False)
class Scores:
    """An attack's scores: of members, shape (n,), and of non-members, shape (m,)."""

    members: NDArray[np.float64]
    others: NDArray[np.float64]

    def statistics(self, delta: float, level: float) -> AttackStatistics:
        """What they tell."""
        return attack_statistics(self.members, self.others, delta=delta, level=level)


def by_nearest(played: Played) -> Scores:
    """The nearest generated sample: members have a nearer one (Chen et al., GAN-Leaks, CCS 2020)."""
    return Scores(-played.members.distances, -played.others.distances)


def by_ball(played: Played) -> Scores:
    """Monte Carlo: generated samples within a radius, the median distance to the nearest (Hilprecht et al. 2019)."""
    return Scores(played.members.within.astype(np.float64), played.others.within.astype(np.float64))


def by_machine(player: Embeddings, members: Embeddings, others: Embeddings, seed: int) -> Scores:
    """The distance to kernel affine hull machines that were made of generated samples."""
    rng = np.random.default_rng(seed)
    model = fit_wide(some(player, MOST, rng), MACHINES, None)
    return Scores(*(-kahm_distances(model, some(one, MOST, rng)) for one in (members, others)))


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """DOMIAS (van Breugel et al. 2023): the log-ratio of the density of generated samples and that of a reference.

    Densities are sums of Gaussian kernels on principal components of the reference, of deviation 1, by Scott's rule.
    Where many generated samples lie because many real ones do, the ratio is no higher.

    Attributes:
        mean: of the reference, shape (d,).
        encoder: to its whitened components, shape (d, c).
        reference: the encoded reference, shape (r, c).
    """

    mean: torch.Tensor
    encoder: torch.Tensor
    reference: torch.Tensor
    seed: int

    @classmethod
    def of(cls, reference: Embeddings, seed: int) -> DensityRatio:
        """Fit the components to a reference."""
        rng = np.random.default_rng(seed)
        drawn = some(reference, DENSITY_CENTERS, rng)
        rows = drawn.rows_at(np.arange(drawn.n)).double()
        mean = rows.mean(0)
        encoder = whitening(rows - mean, COMPONENTS)
        return cls(mean, encoder, (rows - mean) @ encoder, seed)

    def scores(self, player: Embeddings, members: Embeddings, others: Embeddings) -> Scores:
        """The attack with these generated samples."""
        centers = self._encoded(some(player, DENSITY_CENTERS, np.random.default_rng(self.seed)))

        def of(samples: Embeddings) -> NDArray[np.float64]:
            points = self._encoded(samples)
            return (log_density(points, centers) - log_density(points, self.reference)).cpu().numpy()

        return Scores(of(members), of(others))

    def _encoded(self, samples: Embeddings) -> torch.Tensor:
        parts = [(batch.rows.to(self.mean.device).double() - self.mean) @ self.encoder for batch in samples.batches()]
        return torch.cat(parts)


def log_density(points: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """The logarithm of a sum of Gaussian kernels, up to a constant: (n, c), (m, c) → (n,). Scott's bandwidth."""
    m, width = centers.shape
    squared_bandwidth = m ** (-2 / (width + 4))
    size = max(TOGETHER // m, 1)
    halves = centers.square().sum(1) / (-2 * squared_bandwidth)
    parts = []
    for part in torch.split(points, size):
        exponents = torch.addmm(halves, part, centers.T, alpha=1 / squared_bandwidth)
        parts.append(exponents.logsumexp(1) - part.square().sum(1) / (2 * squared_bandwidth))
    return torch.cat(parts) - log(m) - width / 2 * log(squared_bandwidth)


def some(embeddings: Embeddings, most: int, rng: np.random.Generator) -> Embeddings:
    """A set, or so many of its samples at random."""
    if embeddings.n <= most:
        return embeddings
    return Subset(embeddings, np.sort(rng.choice(embeddings.n, most, replace=False)))


def run(
    played: Played,
    control: Played,
    sets: tuple[Embeddings, Embeddings, Embeddings],
    control_sets: tuple[Embeddings, Embeddings, Embeddings],
    reference: Embeddings | None,
    *,
    delta: float,
    level: float,
    seed: int,
) -> tuple[Attack, ...]:
    """All attacks on the generated set and on its control.

    Args:
        played: distances of the generated set.
        control: those of the control.
        sets: the generated set, members and non-members.
        control_sets: the control, the same members, and its non-members.
        reference: for DOMIAS: samples of the same distribution, neither members nor non-members; without it, it is
            left out.
        delta: of the bounds of ε.
        level: at which all intervals of an attack hold, by themselves.
        seed: of what attacks draw.
    """
    scored: dict[AttackName, Callable[[Played, tuple[Embeddings, Embeddings, Embeddings]], Scores]] = {
        "nearest": lambda known, _: by_nearest(known),
        "ball": lambda known, _: by_ball(known),
    }
    if reference is not None:
        ratio = DensityRatio.of(reference, seed)
        scored["domias"] = lambda _, them: ratio.scores(*them)
    scored["kahm"] = lambda _, them: by_machine(*them, seed=seed)
    return tuple(
        Attack(
            name,
            score(played, sets).statistics(delta, level),
            score(control, control_sets).statistics(delta, level),
        )
        for name, score in scored.items()
    )
