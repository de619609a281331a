"""MIND, the Monge inception distance (Berthet et al., arXiv 2605.06797): a sliced Wasserstein distance.

MIND = 3d · mean over directions u of W₂²(⟨u, x⟩, ⟨u, y⟩), with u uniform on the unit sphere. In one dimension W₂² is
the mean square of the differences of sorted values. The definition follows torch-fidelity, which has MIND from
version 0.5 on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, check_count, check_seed
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import open_pair
from finc_eval.estimates.error_source import GEN, REF, Array, ErrorSource
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.measures.inputs import MIN_INTERVAL_SAMPLES, Estimator, Metric, MetricInputs, split_reference
from finc_eval.measures.score import Score

PROJECTIONS = 1000
MIND_SEED = 2020  # torch-fidelity's defaults

MAX_PROJECTED = 1 << 26
"""Number of projected values held at once for each set, 256 MiB; the set is read again for the next directions."""

Sampled = tuple[NDArray[np.int64], Array]
"""Rows of a set that a distance was computed from, (n,), and the influence of each, (n,)."""


@dataclass(frozen=True)
class MongeDistance:
    """A Monge inception distance."""

    value: float  # the distance, in squared units of the embedding; above zero even for two finite sets of one law
    n: int  # number of samples used of each set: the size of the smaller set; a random part of the larger set is used
    projections: int  # number of directions
    seed: int  # random seed of the directions, and of the part of the larger set


def mind(
    gen: object, ref: object, *, projections: int = PROJECTIONS, seed: int = MIND_SEED, run: Run | None = None
) -> MongeDistance:
    """Compute MIND with the directions and the random part that torch-fidelity draws for the same seed."""
    return _estimate(gen, ref, projections, seed, run)[0]


def _estimate(
    gen: object, ref: object, projections: int, seed: int, run: Run | None
) -> tuple[MongeDistance, tuple[Sampled, Sampled]]:
    """Return the distance, and of each set the rows that were used with the influence of each.

    Along a direction, the derivative of W₂² by the weight of a sample at x is a function whose slope is 2·(x − T(x)),
    with T(x) where its mass goes.
    """
    check_count("projections", projections)
    x, y = open_pair(gen, ref, least=1)
    draw = torch.Generator().manual_seed(check_seed(seed))
    n = min(x.n, y.n)
    parts = [
        torch.randperm(embeddings.n, generator=draw)[:n].numpy() if embeddings.n > n else np.arange(n)
        for embeddings in (x, y)
    ]
    parts = [np.sort(part) for part in parts]
    directions = torch.randn(projections, x.dim, generator=draw)
    directions /= torch.linalg.vector_norm(directions, dim=1, keepdim=True)
    run, total = Run.of(run), 0.0
    where = run.torch_device
    slopes = [torch.zeros(n, dtype=torch.double, device=where) for _ in parts]
    for some in torch.split(directions, max(MAX_PROJECTED // n, 1)):
        left, right = (
            _project(embeddings, part, some.to(where), run.portion)
            for embeddings, part in zip((x, y), parts, strict=True)
        )
        gap = left.values.double() - right.values.double()
        total += float(gap.square().mean(1).sum())
        for slope, side, sign in zip(slopes, (left, right), (1, -1), strict=True):
            slope += _potential(side.values.double(), sign * gap, side.indices)
    # 3: factor, times d, that brings the number to the size of a Fréchet distance for Gaussians.
    scale = 3 * x.dim / projections
    sampled = tuple((part, (scale * slope).cpu().numpy()) for part, slope in zip(parts, slopes, strict=True))
    return MongeDistance(scale * total, n, projections, seed), (sampled[0], sampled[1])


def _potential(values: torch.Tensor, gap: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Return the derivative of Σ W₂² over directions by the weight of each row, (n,), from sorted values and gaps."""
    steps = (values[:, 1:] - values[:, :-1]) * (gap[:, 1:] + gap[:, :-1])
    along = torch.nn.functional.pad(steps, (1, 0)).cumsum(1)
    along -= along.mean(1, keepdim=True)
    return torch.zeros_like(along).scatter_(1, order, along).sum(0)


def _project(
    source: Embeddings, rows: NDArray[np.int64], directions: torch.Tensor, size: int
) -> torch.return_types.sort:
    """Return the rows along each direction, sorted, with their places, shapes (directions, rows)."""
    projected = torch.empty(len(directions), len(rows), device=directions.device)
    for start in range(0, len(rows), size):
        batch = source.rows_at(rows[start : start + size]).to(directions)
        projected[:, start : start + len(batch)] = directions @ batch.T
    return projected.sort(1)


def _mind(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    distance, sampled = _estimate(gen, ref, PROJECTIONS, MIND_SEED, inputs.run)
    part = mind(*split_reference(ref, distance.n), seed=distance.seed, run=inputs.run)
    floor, signature = (
        part.value * part.n / distance.n,
        inputs.signature(projections=distance.projections, seed=distance.seed),
    )
    notes = (
        () if gen.n == ref.n else (f"computed from {distance.n} samples of each set, drawn at random from the larger",)
    )
    score = Score(inputs.name, distance.value, signature, floor=floor, higher_is_better=False, notes=notes)
    if distance.n < MIN_INTERVAL_SAMPLES:
        return [replace(score, notes=(*notes, f"no interval: that takes {MIN_INTERVAL_SAMPLES} samples of each set"))]
    low, high = _of_units(distance, sampled, gen, ref).interval
    return [replace(score, interval=(max(low, 0.0), high))]


def _of_units(
    distance: MongeDistance,
    sampled: tuple[Sampled, Sampled],
    gen: Embeddings,
    ref: Embeddings,
    units: NDArray[np.int64] | None = None,
) -> Estimate:
    sources = []
    for name, embeddings, of_set, (rows, slopes) in ((GEN, gen, units, sampled[0]), (REF, ref, None, sampled[1])):
        of_set = units_of(embeddings) if of_set is None else of_set
        sources.append(ErrorSource.of_samples(slopes, None if of_set is None else of_set[rows], name=name))
    return Estimate.of(distance.value, sources)


def _estimator(ref: Embeddings, run: Run) -> Estimator:
    def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
        distance, sampled = _estimate(gen, ref, PROJECTIONS, MIND_SEED, run)
        if distance.n < MIN_INTERVAL_SAMPLES:
            raise DataError(f"no interval: that takes {MIN_INTERVAL_SAMPLES} samples of each set")
        return _of_units(distance, sampled, gen, ref, units)

    return estimate


METRICS = (
    Metric("mind", "Monge inception distance: sliced Wasserstein, 1000 directions", _mind, estimator=_estimator),
)
