"""Checks against other libraries: for each, their code and ours, computing the same numbers from the same arrays.

Other libraries are imported where their code runs, if they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.baselines.ken import ken_score, ken_spectrum, novelty
from finc_eval.embeddings.search.neighbors import radii
from finc_eval.measures.authenticity import authpct
from finc_eval.measures.frechet import frechet_distance
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.kid import kid, kid_interval
from finc_eval.measures.mmd import mmd
from finc_eval.measures.precision_recall import precision_recall
from finc_eval.measures.vendi import gaussian_vendi, vendi
from finc_eval.numerics.kernels import gaussian_kernel

Array = NDArray[np.floating[Any]]

PARITY_SIGMA = 6.0
"""Bandwidth of the Gaussian kernels, about as large as distances in the arrays."""

VENDI_ORDERS = (1, 2, 3, inf)
"""Orders of the Vendi scores that are compared."""


@dataclass(frozen=True)
class Library:
    """Another library."""

    name: str
    package: str

    @property
    def version(self) -> str | None:
        """Installed version; None if it is not installed."""
        if find_spec(self.package) is None:
            return None
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return "unknown"


@dataclass(frozen=True)
class Check:
    """One metric that finc-eval and another library both compute.

    Attributes:
        code: Python code that defines `their(x, y)`: from two float64 arrays (n, d) and (m, d) to a list of numbers.
        ours: function that returns the same numbers.
        min_samples: minimum number of samples of each set.
        note: settings under which the numbers differ.
        tolerance: largest relative difference that counts as agreement.
    """

    metric: str
    library: Library
    code: str
    ours: Callable[[Array, Array], Sequence[float]]
    min_samples: int = 2
    note: str = ""
    tolerance: float = 1e-6


def _fd(x: Array, y: Array) -> list[float]:
    return [frechet_distance(x, y).value]


def _kid_of_subsets(x: Array, y: Array) -> list[float]:
    found = kid(x, y, subsets=20, subset_size=min(len(x), len(y), 100), seed=7)
    return [found.mean, found.std]


def _kid_of_all(x: Array, y: Array) -> list[float]:
    n = min(len(x), len(y))
    return [kid_interval(x[:n], y[:n]).value]


def _mmd(x: Array, y: Array) -> list[float]:
    return [mmd(x, y, PARITY_SIGMA).value]


def _inception_score(x: Array, _: Array) -> list[float]:
    found = inception_score(x, splits=min(10, len(x) // 2))
    return [found.mean, found.std]


def _precision_recall(x: Array, y: Array) -> list[float]:
    found = precision_recall(x, y, convention="kynkaanniemi")
    return [found.precision, found.recall]


def _prdc(x: Array, y: Array) -> list[float]:
    found = precision_recall(x, y, convention="prdc")
    return [found.precision, found.recall, found.density, found.coverage]


def _vendi(x: Array, _: Array) -> list[float]:
    return [vendi(x, order=order) for order in VENDI_ORDERS]


def _gaussian_vendi(x: Array, _: Array) -> list[float]:
    return [gaussian_vendi(x, PARITY_SIGMA, order=order) for order in VENDI_ORDERS]


def _ken(x: Array, y: Array) -> list[float]:
    rows, others = (torch.from_numpy(one).double() for one in (x, y))
    kernel = partial(gaussian_kernel, sigma=PARITY_SIGMA)
    of_eigen = ken_score(ken_spectrum(rows, others, kernel, form="eigen"))
    return [novelty(x, y, sigma=PARITY_SIGMA).score, of_eigen]


def _radii(x: Array, y: Array) -> list[float]:
    return [float(radius) for radius in radii(y, min(3, len(y) - 1)).squared ** 0.5]


def _authpct(x: Array, y: Array) -> list[float]:
    return [authpct(x, y).percent]


TORCH_FIDELITY = Library("torch-fidelity", "torch_fidelity")
PYTORCH_FID = Library("pytorch-fid", "pytorch_fid")
CLEAN_FID = Library("clean-fid", "cleanfid")
PRDC = Library("prdc", "prdc")
VENDI_SCORE = Library("vendi-score", "vendi_score")
SCIKIT_LEARN = Library("scikit-learn", "sklearn")

# torch-fidelity computes the mean in the type of the features, off by 1e-7 in float32: it gets float64.
TORCH_FIDELITY_FD = """
import torch
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
def their(x, y):
    statistics = [fid_features_to_statistics(torch.from_numpy(a)) for a in (x, y)]
    return [fid_statistics_to_metric(*statistics, False)["frechet_inception_distance"]]
"""
TORCH_FIDELITY_KID = """
import torch
from torch_fidelity.metric_kid import kid_features_to_metric
def their(x, y):
    size, x, y = min(len(x), len(y), 100), torch.from_numpy(x), torch.from_numpy(y)
    found = kid_features_to_metric(x, y, kid_subsets=20, kid_subset_size=size, rng_seed=7, verbose=False)
    return [found["kernel_inception_distance_mean"], found["kernel_inception_distance_std"]]
"""
TORCH_FIDELITY_SCORE = """
import torch
from torch_fidelity.metric_isc import isc_features_to_metric
def their(x, y):
    found = isc_features_to_metric(torch.from_numpy(x), splits=min(10, len(x) // 2), rng_seed=2020)
    return [found["inception_score_mean"], found["inception_score_std"]]
"""
TORCH_FIDELITY_PRECISION = """
import torch
from torch_fidelity.metric_prc import prc_features_to_metric
def their(x, y):
    found = prc_features_to_metric(torch.from_numpy(x), torch.from_numpy(y), prc_neighborhood=3, verbose=False)
    return [found["precision"], found["recall"]]
"""
PYTORCH_FID_FD = """
from pytorch_fid.fid_score import calculate_frechet_distance
def their(x, y):
    return [float(calculate_frechet_distance(*(m for a in (x, y) for m in (a.mean(0), np.cov(a, rowvar=False)))))]
"""
CLEAN_FID_FD = """
from cleanfid.fid import frechet_distance
def their(x, y):
    return [float(frechet_distance(*(m for a in (x, y) for m in (a.mean(0), np.cov(a, rowvar=False)))))]
"""
CLEAN_FID_KID = """
from cleanfid.fid import kernel_distance
def their(x, y):
    n = min(len(x), len(y))
    return [float(kernel_distance(x[:n], y[:n], num_subsets=1, max_subset_size=n))]
"""
PRDC_ALL = """
import contextlib, sys
from prdc import compute_prdc
def their(x, y):
    with contextlib.redirect_stdout(sys.stderr):
        found = compute_prdc(real_features=y, fake_features=x, nearest_k=5)
    return [float(found[name]) for name in ("precision", "recall", "density", "coverage")]
"""
# Its score_X ignores the order and passes q = 1 on, so their number comes from the kernel matrix.
VENDI_SCORE_COSINE = """
from vendi_score.vendi import score_K
def their(x, y):
    u = x / np.linalg.norm(x, axis=1)[:, None]
    return [float(score_K(u @ u.T, q=q)) for q in (1, 2, 3, "inf")]
"""
VENDI_SCORE_GAUSSIAN = f"""
from vendi_score.vendi import score_K
def their(x, y):
    squared = np.square(x[:, None] - x).sum(2)
    return [float(score_K(np.exp(-squared / (2 * {PARITY_SIGMA}**2)), q=q)) for q in (1, 2, 3, "inf")]
"""
UNBIASED = """
def unbiased(xx, yy, xy):
    own = [(k.sum() - np.trace(k)) / (len(k) * (len(k) - 1)) for k in (xx, yy)]
    return [float(sum(own) - 2 * xy.mean())]
"""
SCIKIT_LEARN_KID = f"""
from sklearn.metrics.pairwise import polynomial_kernel
{UNBIASED}
def their(x, y):
    n = min(len(x), len(y))
    x, y = x[:n], y[:n]
    return unbiased(*(polynomial_kernel(a, b, degree=3, coef0=1) for a, b in ((x, x), (y, y), (x, y))))
"""
SCIKIT_LEARN_MMD = f"""
from sklearn.metrics.pairwise import rbf_kernel
{UNBIASED}
def their(x, y):
    return unbiased(*(rbf_kernel(a, b, gamma=1 / (2 * {PARITY_SIGMA}**2)) for a, b in ((x, x), (y, y), (x, y))))
"""
# By definition, the eigenvalues of the operator C_X - C_Y are the eigenvalues of diag(w) K.
SCIKIT_LEARN_KEN = f"""
from sklearn.metrics.pairwise import rbf_kernel
def their(x, y):
    both = np.concatenate([x, y])
    weights = np.concatenate([np.full(len(x), 1 / len(x)), np.full(len(y), -1 / len(y))])
    values = np.linalg.eigvals(weights[:, None] * rbf_kernel(both, gamma=1 / (2 * {PARITY_SIGMA}**2))).real
    values = values[values > 1e-12]
    return 2 * [float((values * np.log(values.sum() / values)).sum())]
"""
SCIKIT_LEARN_RADII = """
from sklearn.neighbors import NearestNeighbors
def their(x, y):
    k = min(3, len(y) - 1)
    return NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(y).kneighbors()[0][:, -1].tolist()
"""
SCIKIT_LEARN_AUTHPCT = """
from sklearn.neighbors import NearestNeighbors
def their(x, y):
    tree = NearestNeighbors(n_neighbors=1, algorithm="kd_tree").fit(y)
    (distances, nearest), (spacings, _) = tree.kneighbors(x), tree.kneighbors()
    return [100 * float((distances[:, 0] > spacings[nearest[:, 0], 0]).mean())]
"""

PREPROCESSING = (
    "computed from the same embeddings; FIDs of images differ by the resize, which torchmetrics antialiases from 1.8 "
    "on, clean-fid always, torch-fidelity and pytorch-fid never"
)
CONVENTIONS = "precision and recall have two conventions: k = 3 with the surface of the balls, k = 5 without"

CHECKS = (
    Check("fd", TORCH_FIDELITY, TORCH_FIDELITY_FD, _fd, note=PREPROCESSING),
    Check(
        "kid", TORCH_FIDELITY, TORCH_FIDELITY_KID, _kid_of_subsets, note="in float32 it is off by 1e-7 of the kernel"
    ),
    Check("inception_score", TORCH_FIDELITY, TORCH_FIDELITY_SCORE, _inception_score),
    Check(
        "precision_recall", TORCH_FIDELITY, TORCH_FIDELITY_PRECISION, _precision_recall, min_samples=4, note=CONVENTIONS
    ),
    Check("fd", PYTORCH_FID, PYTORCH_FID_FD, _fd, note=PREPROCESSING),
    Check("fd", CLEAN_FID, CLEAN_FID_FD, _fd, note=PREPROCESSING),
    Check(
        "kid",
        CLEAN_FID,
        CLEAN_FID_KID,
        _kid_of_all,
        min_samples=3,
        note="its subsets are not seeded: all pairs are compared",
    ),
    Check("prdc", PRDC, PRDC_ALL, _prdc, min_samples=6, note=CONVENTIONS),
    Check(
        "vendi",
        VENDI_SCORE,
        VENDI_SCORE_COSINE,
        _vendi,
        note="its score_X treats any order as 1: computed from the kernel matrix",
    ),
    Check("gaussian_vendi", VENDI_SCORE, VENDI_SCORE_GAUSSIAN, _gaussian_vendi),
    Check("kid", SCIKIT_LEARN, SCIKIT_LEARN_KID, _kid_of_all, min_samples=3),
    Check("mmd", SCIKIT_LEARN, SCIKIT_LEARN_MMD, _mmd, min_samples=3),
    Check("ken", SCIKIT_LEARN, SCIKIT_LEARN_KEN, _ken),
    Check("radii", SCIKIT_LEARN, SCIKIT_LEARN_RADII, _radii),
    Check("authpct", SCIKIT_LEARN, SCIKIT_LEARN_AUTHPCT, _authpct, note="the code of FLD subtracts 50 from it"),
)
"""All checks, by library."""
