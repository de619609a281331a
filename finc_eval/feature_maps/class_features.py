"""Features by class, φ(x) ⊗ onehot(y); they are zero for a sample without a listed class."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from finc_eval.core.errors import DataError
from finc_eval.feature_maps.hermite import HermiteFeatures


def class_indices(labels: Sequence[object], classes: Sequence[str], count: int) -> torch.Tensor:
    """Return the index of each label in a public list of classes, shape (count,); −1 for a label that is not in it.

    Raises:
        DataError: the numbers of labels and samples differ.
    """
    if len(labels) != count:
        noun = "label" if len(labels) == 1 else "labels"
        raise DataError(f"{count} samples came with {len(labels)} {noun}: give one label per sample")
    places = {name: place for place, name in enumerate(classes)}
    return torch.tensor([-1 if label is None else places.get(str(label), -1) for label in labels])


def features_of(phi: HermiteFeatures, images: torch.Tensor, places: torch.Tensor | None, classes: int) -> torch.Tensor:
    """Compute φ, (b, D) → (b, q), or with classes φ ⊗ onehot, (b, classes · q), zero for a sample without a class.

    In float64, because the proof of the sensitivity is about real numbers: float32 would be off by a part in 10⁷.
    """
    features = phi.in_double(images)
    if places is None:
        return features
    onehot = torch.zeros(len(places), classes + 1, dtype=features.dtype)
    onehot[torch.arange(len(places)), places] = 1  # −1 is the last column, which is cut off
    return (onehot[:, :classes, None] * features[:, None, :]).flatten(1)


def labeled_sums(features: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """Sum φ(x_i) over the samples of each class: (n, q), (n,) → (classes, q) (eq. 14 of the paper, undivided).

    Divided by the number of all samples, not of each class, it is a mean of φ(x) ⊗ onehot(y). This mean holds the
    shares of the classes, and its diameter is still √2: samples of different classes are √(‖φ‖² + ‖φ'‖²) apart.
    """
    onehot = torch.nn.functional.one_hot(labels, classes).to(features.dtype)
    sums: torch.Tensor = onehot.T @ features
    return sums
