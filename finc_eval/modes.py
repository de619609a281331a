"""Modes: directions with their masses, intervals and samples; scoring samples on them in one streaming pass."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from finc_eval.differential import Masses

if TYPE_CHECKING:
    from numpy.typing import NDArray

Role = Literal["over", "under"]

TOP = 50
"""How many samples of each set a mode keeps per tail."""


@dataclass(frozen=True)
class Tail:
    """The samples that score highest on one side of a mode.

    Attributes:
        share: of the mode's in-sample excess, how much this side carries; the two sides add to 1.
        gen, ref: indices of the top samples of each set, best first, at most `TOP`.
        gen_ids, ref_ids: their sample ids.
        gen_scores, ref_scores: |s| = |φ(x)·v| of each, between 0 and 1.
    """

    share: float
    gen: NDArray[np.int64]
    ref: NDArray[np.int64]
    gen_ids: tuple[str, ...]
    ref_ids: tuple[str, ...]
    gen_scores: NDArray[np.float32]
    ref_scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Mode:
    """A kind of sample that one set has more of than the other.

    The mass of a set is the mean of s² over its samples, s = φ(x)·v: how much of the set resembles the mode. It is the
    share of samples of that kind when the kind is tight and unlike all others. Masses, excess and interval are
    cross-fitted: each sample is scored by the matching direction of the half of the data it is not part of.

    Attributes:
        id: stable name, from role and best sample; it does not depend on rank, batching or device.
        role: "over" when the generated set has more of it, "under" when it has less.
        excess: mass_gen − ρ·mass_ref for "over", mass_ref − ρ·mass_gen for "under".
        mass_gen, mass_ref: mass of the mode in each set, in [0, 1].
        interval: confidence interval of the excess; all intervals of a comparison hold together with
            probability 0.95 (Bonferroni).
        p_value: of "no excess", one-sided, adjusted for all directions tested (Holm).
        stability: in [0, 1], the mean squared overlap with the matching directions of the two halves.
        fitted_excess: vᵀΛv in the data the direction was fitted to, an over-estimate; for unrotated modes
            this is the eigenvalue.
        direction: v, shape (2r,), norm 1; the positive side carries most of the excess.
        tails: the positive and the negative side.
    """

    id: str
    role: Role
    excess: float
    mass_gen: float
    mass_ref: float
    interval: tuple[float, float]
    p_value: float
    stability: float
    fitted_excess: float
    direction: NDArray[np.float32]
    tails: tuple[Tail, Tail]

    @property
    def ratio(self) -> float:
        """mass_gen / mass_ref; infinite when the reference has none."""
        return self.mass_gen / self.mass_ref if self.mass_ref > 0 else float("inf")

    @property
    def top_gen(self) -> NDArray[np.int64]:
        """Indices of the generated samples that are most of this mode, best first."""
        return self.tails[0].gen

    @property
    def top_ref(self) -> NDArray[np.int64]:
        """Indices of the reference samples that are most of this mode, best first."""
        return self.tails[0].ref

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Mode({self.id}, excess={self.excess:.4f} [{low:.4f}, {high:.4f}], mass_gen={self.mass_gen:.4f}, "
            f"mass_ref={self.mass_ref:.4f}, p={self.p_value:.2g})"
        )

    def _repr_html_(self) -> str:
        low, high = self.interval
        rows = {
            "role": f"{self.role}-represented",
            "mass in gen": f"{self.mass_gen:.4f}",
            "mass in ref": f"{self.mass_ref:.4f}",
            "ratio": f"{self.ratio:.2f}",
            "excess": f"{self.excess:.4f} [{low:.4f}, {high:.4f}]",
            "p": f"{self.p_value:.2g}",
            "best in gen": ", ".join(self.tails[0].gen_ids[:5]),
            "best in ref": ", ".join(self.tails[0].ref_ids[:5]),
        }
        cells = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
        return f"<table><caption>Mode {escape(self.id)}</caption>{cells}</table>"


def mode_id(role: Role, best_sample: str) -> str:
    """The name of the mode whose best sample is this one: "over-1f09ab"."""
    return f"{role}-{hashlib.blake2b(best_sample.encode('utf-8', 'surrogateescape'), digest_size=3).hexdigest()}"


class ScorePass:
    """One pass over a set: out-of-fold masses, energies of both sides, and the best samples of each direction.

    Nothing here grows with the number of samples.

    Args:
        shown: the reported directions, shape (2r, k), fitted to all data.
        scoring: the directions that score fold 0 and those that score fold 1, each (2r, t).
    """

    def __init__(self, shown: torch.Tensor, scoring: tuple[torch.Tensor, torch.Tensor]) -> None:
        self._shown = shown
        self._scoring = scoring
        tested = scoring[0].shape[1]
        self._n = torch.zeros(2, dtype=torch.double)
        self._second = torch.zeros(2, tested, dtype=torch.double)
        self._fourth = torch.zeros(2, tested, dtype=torch.double)
        self._energy = torch.zeros(2, shown.shape[1], dtype=torch.double)
        self._best = torch.empty(2, 0, shown.shape[1])
        self._index = torch.empty(2, 0, shown.shape[1], dtype=torch.long)

    def update(self, features: torch.Tensor, folds: torch.Tensor, start: int) -> None:
        """Add φ of consecutive samples, shape (b, 2r), with their folds; `start` is the index of the first."""
        for fold, vectors in enumerate(self._scoring):
            square = (features[folds == fold] @ vectors).double().square().cpu()
            self._n[fold] += len(square)
            self._second[fold] += square.sum(0)
            self._fourth[fold] += square.square().sum(0)
        scores = (features @ self._shown).cpu()
        sides = torch.stack([scores, -scores])
        self._energy += sides.clamp_min(0).double().square().sum(1)
        # Rounded, so that the last bit of a matrix product does not decide between equal samples; a stable sort
        # then keeps the earlier one.
        candidates = torch.cat([self._best, sides.mul(1e5).round_().div_(1e5)], dim=1)
        index = torch.arange(start, start + len(scores))[None, :, None].expand_as(sides)
        index = torch.cat([self._index, index], dim=1)
        order = candidates.argsort(dim=1, descending=True, stable=True)[:, :TOP]
        self._best, self._index = candidates.gather(1, order), index.gather(1, order)

    def masses(self) -> Masses:
        """Out-of-fold masses, with the variances that were seen."""
        n = self._n[:, None]
        mean = self._second / n
        return Masses(self._n, mean, (self._fourth / n - mean.square()).clamp_min(0) * n / (n - 1))

    def energies(self) -> torch.Tensor:
        """Mean of s₊² and of s₋² over the set, shape (2, k)."""
        return self._energy / self._n.sum()

    def best(self, side: int, column: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Indices and scores of the samples furthest to one side (0: positive) of a direction, best first."""
        scores, index = self._best[side, :, column], self._index[side, :, column]
        there = scores > 0
        return index[there].numpy(), scores[there].numpy()
