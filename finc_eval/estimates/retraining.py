"""Noise of training once more: replicates of the baseline differ by more than their samples explain.

Moving only the seed of the training changes the Fréchet distance 3.2 times as much as drawing other samples of one
network (arXiv 2606.20536). With R replicates the variance between them has R − 1 degrees of freedom, which is few: over
many kinds it is moderated (Smyth 2004), so that all kinds together show how much a share training.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from finc_eval.estimates.error_source import TRAINING, ErrorSource

Array = NDArray[np.float64]

MIN_REPLICATES = 3  # baselines from which on the noise of training is measured

SAMPLING_ONLY = "sampling noise only: a retrained model may differ by about three times as much"
"""The sentence of every verdict without replicates (arXiv 2606.20536 measures 3.2 times)."""

TRAINING_TOO = (
    "the noise of sampling; limits on lost and new kinds and on differences of metrics also the noise of training, "
    "from {} replicates of the baseline"
)
"""The sentence of a verdict with replicates."""


def noise_covered(replicates: int) -> str:
    """Say which noise the intervals of a verdict cover, with so many baselines."""
    return SAMPLING_ONLY if replicates < MIN_REPLICATES else TRAINING_TOO.format(replicates)


def moderate(ratios: Array, degrees: int) -> tuple[Array, float]:
    """Draw ratios of observed to expected variances towards their common value (Smyth 2004, section 6.2).

    Shapes are (t,). A ratio is NaN if nothing was observed, and takes the mean or the common value. Return the degrees
    of freedom of each ratio, too.
    """
    found = ratios[~np.isnan(ratios)]
    if len(found) < 3:
        return np.where(np.isnan(ratios), found.mean() if len(found) else 1.0, ratios), degrees
    positive = np.maximum(found, 1e-5 * max(float(np.median(found)), 1e-300))
    e = np.log(positive) - digamma(degrees / 2) + np.log(degrees / 2)
    excess = float(e.var(ddof=1) - polygamma(1, degrees / 2))
    # 1000.0: degrees of freedom beyond which a moderated variance counts as known.
    most = min(1000.0, float(degrees * len(found)))
    if excess <= 0:
        return np.full(len(ratios), float(found.mean())), most
    prior = 2 * float(brentq(lambda x: float(polygamma(1, x)) - excess, 1e-6, 1e7))
    common = float(np.exp(e.mean() + digamma(prior / 2) - np.log(prior / 2)))
    moderated = (prior * common + degrees * np.where(np.isnan(ratios), common, ratios)) / (prior + degrees)
    # The degrees of a variance that all directions give together are not more than all of them have.
    return moderated, min(prior + degrees, most)


@dataclass(frozen=True)
class Retrained:
    """Noise of shares that training once more adds, of each kind."""

    # variance that training adds to new share − share of the replicates together, in parts of p·(1 − p) at a share p,
    # shape (t,)
    training: Array
    degrees: float  # degrees of freedom of it; infinite without enough replicates


def between_shares(members: Array, sizes: Array, baselines: int | None = None) -> Retrained:
    """Return the noise of training from the shares of replicates, which adds to exact bounds (`TwoCounts`).

    `members` and `sizes` are effective numbers of R replicates and t kinds, shape (R, t). Without enough replicates the
    noise is zero, with infinite degrees of freedom.
    """
    replicates, kinds = members.shape
    if replicates < MIN_REPLICATES:
        return Retrained(np.zeros(kinds), inf)
    shares, size = members / sizes, sizes.mean(0)
    mean = shares.mean(0)
    sampling = mean * (1 - mean) / size
    # A kind that the replicates hardly have says nothing about how much training moves shares.
    observed = (members.mean(0) >= 1) & (sampling > 0)
    ratios = np.divide(shares.var(0, ddof=1), sampling, out=np.full(kinds, np.nan), where=observed)
    ratios, degrees = moderate(ratios, replicates - 1)
    return Retrained(np.maximum(ratios - 1, 0) / size * (1 + 1 / (baselines or replicates)), degrees)


def between_scores(values: Array, baselines: int | None = None) -> ErrorSource:
    """Return the error that training once more gives to a score minus the mean score of baselines.

    `values` are the scores of replicates, shape (R,). Without enough replicates it is 0, and known.
    """
    if len(values) < MIN_REPLICATES:
        return ErrorSource.of_variance(TRAINING, 0.0)
    variance = float(values.var(ddof=1)) * (1 + 1 / (baselines or len(values)))
    return ErrorSource.of_variance(TRAINING, variance, len(values) - 1.0)
