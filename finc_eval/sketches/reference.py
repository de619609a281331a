"""The feature map that a reference set gets: bandwidth, center and number of frequencies from a sample of the set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from finc_eval.embeddings.base import Embeddings
from finc_eval.feature_maps.approximation import enough_features
from finc_eval.feature_maps.base import CosineFeatures, FeatureMap
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.arrays import without_fold
from finc_eval.numerics.kernels import BANDWIDTH_FACTOR, median_bandwidth
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.folds import FAR, SAMPLE_SIZE
from finc_eval.sketches.settings import SketchSettings

ERROR_SAMPLE = 500  # samples on which the error of the kernel is measured, of all sets together


@arithmetic()
def reference_feature_map(
    reference: Sequence[Embeddings], settings: SketchSettings, device: torch.device
) -> tuple[FeatureMap, str]:
    """Make the feature map of a reference, and say how its bandwidth was chosen.

    Bandwidth and center come from the 2000 samples with the smallest id hashes, so they do not depend on the order of
    the set.
    """
    if settings.kernel == "cosine":
        return CosineFeatures(reference[0].dim, device), "the cosine kernel has none"
    sample = torch.cat([bottom_rows(embeddings, SAMPLE_SIZE // len(reference)) for embeddings in reference]).cpu()
    sigma = median_bandwidth(sample) if settings.sigma is None else settings.sigma
    make = partial(center_features, sample, sigma=sigma, settings=settings, device=device)
    features = settings.features
    phi = enough_features(make, sample[:ERROR_SAMPLE]) if features == "auto" else make(features)
    rule = f"{BANDWIDTH_FACTOR} x median distance of {len(sample)} reference samples"
    return phi, rule if settings.sigma is None else "given"


def center_features(
    sample: torch.Tensor, features: int, sigma: float, settings: SketchSettings, device: torch.device
) -> RandomFourierFeatures:
    """Make random Fourier features centered on the mean of a sample of the reference, shape (m, d).

    Rows farther than `FAR` do not count: a center that one broken sample decides costs all others their digits.
    """
    rows = sample.double()
    away = torch.linalg.vector_norm(rows - rows.median(0).values, dim=1)
    within = away <= FAR * away.median()
    center = (rows[within] if away.median() > 0 else rows).mean(0).float()
    return RandomFourierFeatures(
        sample.shape[1],
        features,
        sigma=sigma,
        seed=settings.seed,
        orthogonal=settings.frequencies == "orthogonal",
        center=center,
        device=device,
    )


def bottom_rows(embeddings: Embeddings, capacity: int = SAMPLE_SIZE) -> torch.Tensor:
    """Return the rows of the set's bottom-k sample, without sketching the set."""
    return embeddings.rows_at(without_fold(embeddings.id_keys()).argsort(kind="stable")[:capacity])
