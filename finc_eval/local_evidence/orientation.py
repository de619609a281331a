"""Pictures that look upright when they are flipped, by a classifier that needs no label of a set."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from finc_eval.local_evidence.inputs import Indices
from finc_eval.local_evidence.permutations import FOLDS, Array, Scores

RIDGE = 0.3  # penalty, in parts of the mean eigenvalue


def score_orientation(embeddings: Scores, flipped: Scores, folds: Indices) -> Array:
    """Score how upright pictures are, shape (n,): below 0, a picture looks upright when it is flipped.

    A ridge regression of 1 on the differences of the embeddings of a picture and of its flipped image, without an
    intercept, is fitted on the other folds of both sets together. Most pictures must be upright.

    Args:
        embeddings: embeddings of both sets, shape (n, d).
        flipped: embeddings of the flipped pictures, shape (n, d).
        folds: number of the fold of each picture, shape (n,).
    """
    differences = embeddings.astype(np.float64) - flipped
    parts = [differences[folds == fold] for fold in range(FOLDS)]
    products, sums = np.stack([part.T @ part for part in parts]), np.stack([part.sum(0) for part in parts])
    scores = np.zeros(len(folds))
    for fold, part in enumerate(parts):
        product = products.sum(0) - products[fold]
        product.flat[:: len(product) + 1] += max(RIDGE * np.trace(product) / len(product), 1e-9)
        scores[folds == fold] = part @ cho_solve(cho_factor(product), sums.sum(0) - sums[fold])
    return scores
