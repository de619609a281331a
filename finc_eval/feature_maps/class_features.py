"""Features by class: φ(x) ⊗ onehot(y), which is nothing for a sample of no listed class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    pass

from collections.abc import Sequence

from finc_eval.core.errors import FincEvalError
from finc_eval.feature_maps.hermite import HermiteFeatures


def class_indices(labels: Sequence[object], classes: Sequence[str], count: int) -> torch.Tensor:
    """The place of each label in a public list of classes, shape (count,); −1 for one that is not in it.

    Raises:
        FincEvalError: there are not as many labels as samples.
    """
    if len(labels) != count:
        raise FincEvalError(f"{count} samples came with {len(labels)} labels: give one a sample")
    places = {name: place for place, name in enumerate(classes)}
    return torch.tensor([-1 if label is None else places.get(str(label), -1) for label in labels])


def features_of(phi: HermiteFeatures, images: torch.Tensor, places: torch.Tensor | None, classes: int) -> torch.Tensor:
    """φ in float64, (b, D) → (b, q); with classes φ ⊗ onehot, (b, classes · q), zero for a sample of none of them.

    In float64, as the proof of the sensitivity is one of real numbers: float32 would move it by a part in 10⁷.
    """
    features = phi.in_double(images)
    if places is None:
        return features
    onehot = torch.zeros(len(places), classes + 1, dtype=features.dtype)
    onehot[torch.arange(len(places)), places] = 1  # −1 is the last column, which is left out
    return (onehot[:, :classes, None] * features[:, None, :]).flatten(1)


def labeled_sums(features: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """Σ φ(x_i) of the samples of each class: (n, q), (n,) → (classes, q) (eq. 14 of the paper, before the division).

    Divided by the number of all samples, not of each class, it is a mean of φ(x) ⊗ onehot(y), which holds the classes'
    shares and still has a diameter of √2: two samples of different classes are √(‖φ‖² + ‖φ'‖²) apart.
    """
    onehot = torch.nn.functional.one_hot(labels, classes).to(features.dtype)
    sums: torch.Tensor = onehot.T @ features
    return sums
