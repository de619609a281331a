"""Shares of the reference that are missing, and of a model's samples that are novel, from counts of kinds.

A kind counts as missing as far as the reference has more than ρ times as much of it as the model: e = q − ρ·p. The sum
of max(0, e) over kinds, put in for the shares of the laws, would be the share of the reference that is missing; of two
samples it is never 0. So kinds are chosen on one part of the samples, those with e > 0, and e is counted on the others.
The mean over all such divisions has a closed form (Rao and Blackwell), and its expectation

    Σ e·Φ(e / τ),    τ: standard error of e in the part that chooses,

is at most Σ max(0, e). All models of a board choose by as many samples, half of the smallest set. So their estimates
are of one and the same number, whatever the sizes of their sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from finc_eval.leaderboards.estimates import Estimate

Array = NDArray[np.float64]

FACTOR = 2.0
"""ρ of `missing` and `novel`: a kind that the other set has half as much of is there."""

CHOOSING = 0.5
"""Part of the smallest set that chooses the kinds."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Gauss–Hermite quadrature of a standard normal."""


@dataclass(frozen=True)
class ShareRule:
    """Rule by which a share is counted.

    Attributes:
        of_ref: whether it is a share of the reference; else of the model's samples.
        factor: ρ, the factor by which a kind must be more frequent.
    """

    of_ref: bool
    factor: float


def share_estimates(rule: ShareRule, models: Sequence[Array], ref: Array) -> list[Estimate]:
    """Estimate the share of each model.

    Args:
        rule: what is counted.
        models: number of samples of each kind in the set of each model, shape (kinds,); effective numbers where samples
            are grouped.
        ref: those of the reference.
    """
    choosing = CHOOSING * min(float(one.sum()) for one in models), CHOOSING * float(ref.sum())
    return [_share(rule, one, ref, choosing) for one in models]


def _share(rule: ShareRule, model: Array, ref: Array, choosing: tuple[float, float]) -> Estimate:
    n, m = float(model.sum()), float(ref.sum())
    p, q, factor = model / n, ref / m, rule.factor
    # Weights of both shares in e, so that e = a·p + b·q.
    a, b = (-factor, 1.0) if rule.of_ref else (1.0, -factor)
    excess = a * p + b * q
    by_model, by_ref = a**2 * p * (1 - p), b**2 * q * (1 - q)
    squared = by_model / n + by_ref / m
    # Variance of e in the part that chooses, given e in all samples.
    spread = np.sqrt(np.maximum(by_model / choosing[0] + by_ref / choosing[1] - squared, np.finfo(float).tiny))
    counted, slope = _counted(excess, squared, spread)
    of_model, of_ref = a * (slope - slope @ p), b * (slope - slope @ q)
    # Where a kind is near ρ, it is counted or not by chance, and the slope there says too little.
    drawn, _ = _counted(excess + np.sqrt(squared) * NODES[:, None], squared, spread)
    by_chance = WEIGHTS @ (drawn - WEIGHTS @ drawn) ** 2 - slope**2 * squared
    # One sample more or less: where no kind is near ρ, all of these vanish.
    least = (a / n) ** 2 + (b / m) ** 2
    own = float(p @ of_model**2) / n + float(np.maximum(by_chance, 0).sum()) + least
    return Estimate(float(counted.sum()), own, of_ref * np.sqrt(q / m))


def _counted(excess: Array, squared: Array, spread: Array) -> tuple[Array, Array]:
    """Return what each kind adds to the share, and the derivative with respect to its excess."""
    u = excess / spread
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    return excess * ndtr(u) - squared / spread * density, ndtr(u) + u * density * (1 + squared / spread**2)
