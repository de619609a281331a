"""The Gaussian mechanism: a statistic of known sensitivity plus unpredictable noise.

The guarantee is proved for real numbers. Computers represent them with two gaps that are closed here, and one that is
not. Noise comes from the operating system's random bytes alone, not from a generator whose state could be guessed.
The released numbers are rounded to a grid far coarser than floating point, so their last bits reveal nothing (Mironov
2012). What remains: 63 random bits decide each number, which bounds the noise at 9.1 standard deviations and makes its
tails slightly uneven. That concerns probabilities below 1e-18, far below any δ in use. Time and memory do not depend on
the data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import ndtri

from finc_eval.core.errors import DataError, check_labels
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.private.dp.fitting import check_fit
from finc_eval.private.dp.guarantee import Bound
from finc_eval.private.dp.public_values import column_array, count_texts, places_of
from finc_eval.private.hermite.hermite import HermiteFeatures

GRID_BITS = 20
"""Releases are rounded to multiples of about 2⁻²⁰ of their noise, a millionth of what is uncertain anyway."""


def add_gaussian_noise(statistic: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the statistic plus N(0, scale²) on every entry, rounded to a grid: float64, same shape, on the CPU."""
    exact = statistic.detach().double().cpu()
    if not bool(exact.isfinite().all()):
        raise DataError("a statistic that is to be released holds NaN or infinity: map such records to a constant")
    grid = 2.0 ** (math.floor(math.log2(scale)) - GRID_BITS)
    return ((exact + scale * secure_normal(exact.shape)) / grid).round() * grid


def secure_normal(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Draw independent standard normal numbers, float64, by inversion from the operating system's random bytes."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    half = ((bits >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64  # uniform in (0, 1/2]
    numbers = np.where(bits & np.uint64(1), 1.0, -1.0) * -ndtri(half)
    return torch.from_numpy(numbers).reshape(shape)


def secure_uniform(shape: torch.Size | tuple[int, ...]) -> torch.Tensor:
    """Draw independent uniform numbers, float64, in the open interval (0, 1) from the system's random bytes."""
    bits = np.frombuffer(os.urandom(8 * math.prod(shape)), np.uint64)
    return torch.from_numpy(((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def diameter_of(phi: FeatureMap, bound: Bound) -> float:
    """Return sup ‖φ(x) − φ(y)‖. It is 2, as in the paper, for maps with a norm of 1 and no other known bound."""
    return phi.diameter if bound == "tight" and isinstance(phi, HermiteFeatures) else 2.0


def class_indices(
    labels: Sequence[object], classes: Sequence[str], count: int, max_undescribed: float | None = None
) -> torch.Tensor:
    """Return the index of each label in a public list of classes, shape (count,); −1 for a label that is not in it.

    With `max_undescribed`, before a release, the owner is told of such labels, and a larger share of them is refused.
    """
    given = column_array(labels, "labels")
    check_labels((len(given),), count)
    places = places_of(given, classes, "labels")
    if max_undescribed is not None:
        check_fit({"labels": count_texts(given, places < 0)}, count, max_undescribed, "count as nothing")
    return torch.from_numpy(places)


def class_features(
    phi: HermiteFeatures, images: torch.Tensor, places: torch.Tensor | None, classes: int
) -> torch.Tensor:
    """Compute φ in float64, (b, D) → (b, q); with classes φ ⊗ onehot, (b, classes · q).

    float64, because the sensitivity is proved for real numbers: float32 would move it by a part in 10⁷.
    """
    features = phi.in_double(images)
    if places is None:
        return features
    onehot = torch.zeros(len(places), classes + 1, dtype=features.dtype)
    onehot[torch.arange(len(places)), places] = 1  # −1 is the last column, which is dropped
    return (onehot[:, :classes, None] * features[:, None, :]).flatten(1)
