"""Shares of the reference that are missing, and of a model's samples that are novel or unmatched, from counts of kinds.

A kind counts as missing as far as the reference has more than ρ times as much of it as the model: e = q − ρ·p. The sum
of max(0, e) over kinds, put in for the shares of the laws, would be the share of the reference that is missing; of two
samples it is never 0. So kinds are chosen on one part of the samples, those where e exceeds its standard error τ there,
and e is counted on the others. The mean over all such divisions has a closed form (Rao and Blackwell), and its
expectation

    Σ e·Φ(e / τ − 1)

is at most Σ max(0, e). A model's own number chooses by half of its set and of the reference. To be ranked, all models
of a board choose by as many samples, half of the smallest set: so what is compared is one and the same number, whatever
the sizes of their sets.

What would have to change of a model's samples to make it like the reference, whatever ρ, is the total variation, as
`compare` estimates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from finc_eval.core.run import Run
from finc_eval.estimates.error_source import REF, ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.leaderboards.ranks import model_estimate
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.answer import cells_of
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.difference import paired_variation, total_variation
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.tests import EffectiveCounts

Array = NDArray[np.float64]

FACTOR = 2.0  # ρ of `missing` and `novel`: a kind that the other set has half as much of is there
CHOOSING = 0.5  # part of the smallest set, of those that are compared, that chooses the kinds

MARGIN = 1.0
"""Standard errors by which a kind must exceed ρ in the samples that choose. Without a margin, rare kinds of a set of
500 that are in truth below ρ brought the share of a perfect model to −10 %."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()  # Gauss–Hermite quadrature of a standard normal


@dataclass(frozen=True)
class ShareRule:
    """Rule by which a share is counted."""

    of_ref: bool  # whether it is a share of the reference; else of the model's samples
    factor: float  # ρ, the factor by which a kind must be more frequent


def estimate_unmatched(model: EffectiveCounts, ref: EffectiveCounts, seed: int, *, is_design: bool = False) -> Estimate:
    """Estimate the total variation between a model and the reference, with what its error shares with other models'.

    The variance belongs to the plain total variation, which moves with the share of each kind by ½ or −½. In
    simulations of 300 to 4 000 samples it gave 0.96 to 1.4 times the standard deviation of the difference of two
    models; the most where both are like the reference, where the variance of the shrunken differences is far too small.
    """
    found = total_variation(model, ref, seed, is_design=is_design)
    p, q = model.members / model.n, ref.members / ref.n
    slope = np.sign(p - q) / 2
    variance = float(model.spread * p @ (slope - slope @ p) ** 2) / model.n
    of_ref = (slope @ q - slope) * np.sqrt(ref.spread * q / ref.n)
    return model_estimate(found.value, variance, of_ref, interval=found.interval)


def estimate_unmatched_within(pairing: Pairing, kinds: KindTree, seed: int, run: Run) -> Estimate:
    """Estimate the total variation between a model and the reference within blocks, such as prompts.

    The influence of a block is what it adds to the plain total variation. All models of a board have the same blocks:
    the variance of the difference of two models comes from the differences of their blocks.
    """
    cells = cells_of(pairing, kinds, run)
    blocked, leaves = pairing.blocked, kinds.tree.leaves
    within = WithinBlocks.of(blocked, cells, np.eye(leaves, dtype=bool), seed)
    (found,) = paired_variation(within)
    by_block = blocked.block_sums(cells, leaves, blocked.contrasts[0]) @ np.sign(within.difference[0]) / 2
    shared = ErrorSource(REF, by_block - blocked.weights * by_block.sum()).summed()
    return model_estimate(found.value, 0.0, shared.parts, interval=found.interval)


def share_estimates(rule: ShareRule, models: Sequence[Array], ref: Array) -> list[Estimate]:
    """Estimate the share of each model, to be compared with the others; of one model alone, its own number.

    `models` and `ref` have the number of samples of each kind, (kinds,), effective if samples are grouped.
    """
    choosing = CHOOSING * min(float(model.sum()) for model in models), CHOOSING * float(ref.sum())
    return [_share(rule, model, ref, choosing) for model in models]


def _share(rule: ShareRule, model: Array, ref: Array, choosing: tuple[float, float]) -> Estimate:
    n, m = float(model.sum()), float(ref.sum())
    p, q, factor = model / n, ref / m, rule.factor
    # Weights of both shares in e, so that e = a·p + b·q.
    a, b = (-factor, 1.0) if rule.of_ref else (1.0, -factor)
    excess = a * p + b * q
    # A kind without samples is rare, not known to be absent.
    by_model, by_ref = a**2 * (model + 0.5) / (n + 1), b**2 * (ref + 0.5) / (m + 1)
    by_model, by_ref = by_model * (1 - p), by_ref * (1 - q)
    squared = by_model / n + by_ref / m
    # Variance of e in the part that chooses, given e in all samples.
    spread = np.sqrt(np.maximum(by_model / choosing[0] + by_ref / choosing[1] - squared, np.finfo(float).tiny))
    least_excess = MARGIN * np.sqrt(squared + spread**2)
    counted, slope = _count(excess, least_excess, squared, spread)
    of_model, of_ref = a * (slope - slope @ p), b * (slope - slope @ q)
    # Where a kind is near ρ, it is counted or not by chance, and the slope there says too little.
    drawn, _ = _count(excess + np.sqrt(squared) * NODES[:, None], least_excess, squared, spread)
    by_chance = WEIGHTS @ (drawn - WEIGHTS @ drawn) ** 2 - slope**2 * squared
    # One sample more or less: where no kind is near ρ, all of these vanish.
    least = (a / n) ** 2 + (b / m) ** 2
    variance = float(p @ of_model**2) / n + float(np.maximum(by_chance, 0).sum()) + least
    return model_estimate(float(counted.sum()), variance, of_ref * np.sqrt(q / m))


def _count(excess: Array, least: Array, squared: Array, spread: Array) -> tuple[Array, Array]:
    """Return what each kind adds to the share, and the derivative with respect to its excess.

    Arguments are by kind, shape (t,), and broadcast: excess, the least excess that counts, its variance, and the spread
    of its estimate in the part of the data that chooses.
    """
    v = (excess - least) / spread
    density = np.exp(-(v**2) / 2) / np.sqrt(2 * np.pi)
    value = excess * ndtr(v) - squared / spread * density
    return value, ndtr(v) + (excess + squared * v / spread) * density / spread
