"""Accuracy and AUCs of distances to classes, for samples of known classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.kahm.models import matching_scores
from finc_eval.numerics.attack_statistics import auc


@dataclass(frozen=True)
class ClassificationQuality(Record):
    """Accuracy of the nearest class, and the AUC of each class-matching score.

    Attributes:
        n: number of samples.
        accuracy: share of the samples whose nearest class is their own (Definition 7). A sample without a distance to
            any class has no nearest class.
        aucs: for each class, the probability that a sample of it has a larger matching score (Definition 8) than a
            sample of another class: the area under the curve of the paper's Table 4. None if all samples are on one
            side.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.ClassificationQuality(n=100, accuracy=0.97, aucs=(0.99, 0.98)).accuracy
        0.97
    """

    n: int
    accuracy: float
    aucs: tuple[float | None, ...]


def classification_quality(
    distances: ArrayLike, classes: Sequence[Hashable], labels: ArrayLike
) -> ClassificationQuality:
    """Compute accuracy and AUCs of distances to classes.

    Args:
        distances: distance of each sample and class, shape (n, classes).
        classes: labels of the columns.
        labels: true label of each sample, shape (n,).

    Raises:
        DataError: there is not one label for each sample.

    Example:
        >>> import finc_eval as fe
        >>> far_and_near = [[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]]
        >>> fe.kahm.classification_quality(far_and_near, ("a", "b"), ["a", "b", "b"])
        ClassificationQuality(n=3, accuracy=1.0, aucs=(1.0, 1.0))
    """
    values, known = np.asarray(distances, np.float64), np.asarray(labels)
    if known.shape != (len(values),):
        raise DataError(f"labels must have one entry for each sample, shape ({len(values)},), got {known.shape}")
    scores, nearest, near = matching_scores(values), values.argmin(1), np.isfinite(values.min(1))
    found = near & [classes[place] == label for place, label in zip(nearest, known.tolist(), strict=True)]
    return ClassificationQuality(
        n=len(values),
        accuracy=float(found.mean()),
        aucs=tuple(_auc(scores[:, place], known == label) for place, label in enumerate(classes)),
    )


def _auc(scores: NDArray[np.float64], own: NDArray[np.bool_]) -> float | None:
    return auc(scores[own], scores[~own]) if own.any() and not own.all() else None
