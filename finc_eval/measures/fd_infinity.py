"""FD-infinity (Chong and Forsyth, CVPR 2020, arXiv 1911.07023): the Fréchet distance of infinitely many samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Subset
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.space import check_alike
from finc_eval.measures.frechet import distance_of_gaussians, size_warnings
from finc_eval.measures.gaussian import from_embeddings
from finc_eval.measures.inputs import Metric, MetricInputs, gaussian_statistics
from finc_eval.measures.score import Score

SUBSET_SIZES = 15
MAX_SMALLEST_SUBSET = 5000
"""Number of subset sizes, and the smallest of them, that Chong and Forsyth take for 50 000 samples."""


@dataclass(frozen=True)
class FrechetInfinity:
    """The Fréchet distance of infinitely many generated samples, extrapolated."""

    value: float  # intercept of the line; it may be slightly negative
    slope: float  # growth of the distance with 1/N
    sizes: tuple[int, ...]  # sizes of the subsets that the line was fitted to
    distances: tuple[float, ...]  # distances of these subsets
    seed: int  # random seed of the subsets
    warnings: tuple[str, ...] = ()  # what to know before trusting the number


def fd_infinity(gen: object, ref: object, *, seed: int = 0, run: Run | None = None) -> FrechetInfinity:
    """Compute FD-infinity: the intercept of a line through the distances of random subsets against 1/N.

    There are 15 subset sizes, evenly spaced from min(5000, n/10) to all samples, each with a fresh subset of the
    generated set. The reference is used whole, so the bias from its own finite size remains.
    """
    x = as_embeddings(gen, "the generated set")
    y = gaussian_statistics(ref, "the reference", run=run).to(Run.of(run).torch_device)
    check_alike(x.name, x, y.name, y)
    smallest = min(MAX_SMALLEST_SUBSET, x.n // 10)
    if smallest < 2 or x.n - smallest < SUBSET_SIZES:
        raise DataError(
            f"FD-infinity of {SUBSET_SIZES} sizes needs at least {2 * SUBSET_SIZES} samples, {x.name} has {x.n}: embed "
            "more, or take the corrected distance of frechet_interval"
        )
    numbers = np.linspace(smallest, x.n, SUBSET_SIZES).astype(np.int64)
    rng = np.random.default_rng(seed)
    distances = []
    for number in numbers:
        subset = rng.choice(x.n, number, replace=False)
        distances.append(distance_of_gaussians(from_embeddings(Subset(x, np.sort(subset)), run=run), y).value)
    slope, intercept = np.polyfit(1 / numbers, distances, 1)
    warnings = size_warnings(y)
    if smallest <= x.dim:
        warnings.append(
            f"the smallest subset has {smallest} samples in {x.dim} dimensions: below that number the distance is not "
            "linear in 1/N, and the extrapolation overshoots or falls short"
        )
    return FrechetInfinity(
        float(intercept), float(slope), tuple(map(int, numbers)), tuple(distances), seed, tuple(warnings)
    )


def _fd_infinity(inputs: MetricInputs) -> list[Score]:
    found = fd_infinity(inputs.gen, inputs.ref, run=inputs.run)
    signature = inputs.signature(sizes=len(found.sizes), seed=found.seed)
    return [Score(inputs.name, found.value, signature, higher_is_better=False, notes=found.warnings)]


METRICS = (Metric("fd_infinity", "Fréchet distance, extrapolated to infinitely many samples", _fd_infinity),)
