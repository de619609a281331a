"""Varimax: the rotation of an eigenspace in which each sample lies on as few directions as possible."""

from __future__ import annotations

import torch


def varimax(loadings: torch.Tensor, iterations: int = 500, tolerance: float = 1e-8) -> torch.Tensor:
    """The orthogonal R, shape (t, t), that maximizes Σ_j Var_i[((S R)_ij)²] for loadings S, shape (n, t).

    Eigenvectors with near-equal eigenvalues are only defined up to a rotation, so that one eigenvector shows
    a mixture of clusters; after varimax a direction scores high on few samples and near zero on the rest
    (Kaiser 1958; iterated by singular value decompositions, in float64).
    """
    scores = loadings.double()
    rotation = torch.eye(scores.shape[1], dtype=scores.dtype, device=scores.device)
    reached = 0.0
    for _ in range(iterations):
        rotated = scores @ rotation
        gradient = scores.T @ (rotated**3 - rotated * rotated.square().mean(0))
        left, singular, right = torch.linalg.svd(gradient)
        rotation = left @ right
        if float(singular.sum()) <= reached * (1 + tolerance):
            break
        reached = float(singular.sum())
    return rotation.to(loadings.dtype)
