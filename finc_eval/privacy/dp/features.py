"""Features that are released: by class as φ(x) ⊗ onehot(y), which is 0 for an unlisted class; their diameter."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from finc_eval.core.errors import DataError
from finc_eval.core.words import plural
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.hermite import HermiteFeatures
from finc_eval.privacy.dp.guarantee import Bound
from finc_eval.privacy.dp.public_values import column_array, places_of


def diameter_of(phi: FeatureMap, bound: Bound) -> float:
    """Return sup ‖φ(x) − φ(y)‖. It is 2, as in the paper, for maps with a norm of 1 and no other known bound."""
    return phi.diameter if bound == "tight" and isinstance(phi, HermiteFeatures) else 2.0


def class_indices(labels: Sequence[object], classes: Sequence[str], count: int) -> torch.Tensor:
    """Return the index of each label in a public list of classes, shape (count,); −1 for a label that is not in it."""
    given = column_array(labels, "labels")
    if len(given) != count:
        raise DataError(f"{plural(count, 'sample')} came with {plural(len(given), 'label')}: pass one label per sample")
    return torch.from_numpy(places_of(given, classes, "labels"))


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
