"""`Estimate`: a number of one model, with what its error shares with the errors of other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, normal_quantile, student_quantile

Array = NDArray[np.float64]

MAX_PARTS = 1024
"""Parts of the reference whose influence is kept at most. A covariance from 1,024 parts has an error of 4 %, whatever
the size of the reference, and the memory of a board does not grow with it."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate for one model against a reference.

    The error has two independent parts. The error of the model's own set is known by its variance, the error of the
    reference by the influence of each of its parts, from which the correlation of two models' errors follows.

    Attributes:
        value: the estimate.
        own_variance: variance from the sampling of the model's set.
        ref_influence: vector whose product with another model's vector is the covariance of the two from the sampling
            of the reference; one entry per random part of the reference, or per kind. None if the estimate shares
            nothing with others.
        training_variance: variance from the training of the model, if it was measured.
        degrees: degrees of freedom of the training variance; infinite if it was not measured.
        own_interval: 95 % interval of this estimate alone from sampling, where it does not follow from the variance.
    """

    value: float
    own_variance: float
    ref_influence: Array | None = None
    training_variance: float = 0.0
    degrees: float = inf
    own_interval: tuple[float, float] | None = None

    @property
    def sampling_variance(self) -> float:
        """Variance of the estimate from the sampling of both sets."""
        shared = 0.0 if self.ref_influence is None else float(self.ref_influence @ self.ref_influence)
        return self.own_variance + shared

    @property
    def variance(self) -> float:
        """Variance of the estimate from all noise that was measured."""
        return self.sampling_variance + self.training_variance

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of this estimate alone."""
        if self.own_interval is not None:
            return self.own_interval
        half = quantile(self.degrees) * self.variance**0.5
        return self.value - half, self.value + half


def quantile(degrees: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the half-width of an interval in standard errors: normal, or Student's t if degrees are few."""
    return normal_quantile(confidence) if degrees == inf else student_quantile(degrees, confidence)


def joint_covariance(estimates: Sequence[Estimate]) -> Array:
    """Return the covariance of estimates of models against one reference, shape (p, p).

    Where training noise was measured on few runs, the variance of a model's own part is wider by the square of
    Student's quantile over the normal one, both at the level of a single comparison of all p·(p − 1) (Bonferroni).
    """
    confidence = 1 - (1 - DEFAULT_CONFIDENCE) / max(len(estimates) * (len(estimates) - 1), 1)
    wider = [(quantile(one.degrees, confidence) / normal_quantile(confidence)) ** 2 for one in estimates]
    own = [factor * (one.own_variance + one.training_variance) for factor, one in zip(wider, estimates, strict=True)]
    covariance = np.diag(own).astype(float)
    places = [place for place, one in enumerate(estimates) if one.ref_influence is not None]
    if places:
        influences = np.stack([one.ref_influence for one in estimates if one.ref_influence is not None])
        covariance[np.ix_(places, places)] += influences @ influences.T
    return covariance


def unit_sums(influence: Array, groups: NDArray[np.uint64] | None) -> Array:
    """Return the summed influence of each group of samples, which are not independent; without groups, of each sample.

    Args:
        influence: influence of each sample, shape (n,).
        groups: hash of the group of each sample, shape (n,).
    """
    if groups is None:
        return influence
    _, unit = np.unique(groups, return_inverse=True)
    return np.bincount(unit, influence).astype(float)


def part_sums(units: Array) -> Array:
    """Return the summed influence of at most `MAX_PARTS` random parts of the units, always the same parts.

    Units are independent and their influence has mean 0, so that products of sums over parts have the expectation of
    the products over units. With all sums adding to 0, they are too small by one part in as many as there are.
    """
    if len(units) <= MAX_PARTS:
        return units
    part = np.random.default_rng(0).permutation(len(units)) % MAX_PARTS
    return np.asarray(np.bincount(part, units) * (MAX_PARTS / (MAX_PARTS - 1)) ** 0.5)
