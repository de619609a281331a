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

DIRECTIONS_OF_A_SPLIT = 20
"""Directions that share a random split of a set in halves. More splits know better what groups add, and take longer: by
50 splits, each for 20 of 1000 directions, their choice has a tenth of the distance's error (224 samples, 32 groups)."""

OF_GROUPS_OF_MIND = "the unbiased value and its interval leave out what samples of one group add beyond single samples"

Units = NDArray[np.int64] | None
"""Number of the unit of each sample, (n,); None if each sample is a unit."""


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
    return _estimate(gen, ref, projections, seed, run).distance


@dataclass(frozen=True, eq=False)
class _Sliced:
    """A distance with what its error takes: of each set the rows that were used, and the influence of each, (n,)."""

    distance: MongeDistance
    rows: tuple[NDArray[np.int64], ...]
    slopes: tuple[Array, ...]
    units: tuple[Units, ...]  # of the rows
    excess: float = 0.0  # what samples of one unit add to the distance, beyond what single samples would

    @property
    def is_grouped(self) -> bool:
        """True if a set has units of several samples."""
        return any(of_set is not None and len(np.unique(of_set)) < len(of_set) for of_set in self.units)

    def estimate(self) -> Estimate:
        """Return the distance of single samples, with the error by units."""
        sources = [
            ErrorSource.of_samples(slopes, of_set, name=name)
            for name, slopes, of_set in zip((GEN, REF), self.slopes, self.units, strict=True)
        ]
        return Estimate.of(self.distance.value - self.excess, sources)


def _estimate(
    gen: object, ref: object, projections: int, seed: int, run: Run | None, units: tuple[Units, Units] = (None, None)
) -> _Sliced:
    """Return the distance with its influences, and with what units of several samples add to it.

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
    run, total, excess, splits = Run.of(run), 0.0, 0.0, np.random.default_rng(seed)
    where = run.torch_device
    slopes = [torch.zeros(n, dtype=torch.double, device=where) for _ in parts]
    of_rows = [None if of_set is None else of_set[part] for of_set, part in zip(units, parts, strict=True)]
    for some in torch.split(directions, max(MAX_PROJECTED // n, 1)):
        both = [
            _project(embeddings, part, some.to(where), run.portion)
            for embeddings, part in zip((x, y), parts, strict=True)
        ]
        gap = both[0].values.double() - both[1].values.double()
        total += float(gap.square().mean(1).sum())
        for slope, side, of_set, sign in zip(slopes, both, of_rows, (1, -1), strict=True):
            slope += _potential(side.values.double(), sign * gap, side.indices)
            excess += _excess(side, of_set, splits)
    # 3: factor, times d, that brings the number to the size of a Fréchet distance for Gaussians.
    scale = 3 * x.dim / projections
    influences = tuple((scale * slope).cpu().numpy() for slope in slopes)
    distance = MongeDistance(scale * total, n, projections, seed)
    return _Sliced(distance, tuple(parts), influences, tuple(of_rows), scale * excess)


def _excess(side: torch.return_types.sort, units: Units, draw: np.random.Generator) -> float:
    """Return how much more a set adds to Σ W₂² over directions than as many single samples would; 0 without units.

    A set adds the squared error of its quantiles. It is known from two halves of the set, which differ by the errors of
    both: halves of whole units have the error of units, halves of samples that of single samples.
    """
    if units is None:
        return 0.0
    of_rows = np.unique(units, return_inverse=True)[1]
    if not 1 < of_rows.max() + 1 < len(of_rows):
        return 0.0
    total = 0.0
    some_at_a_time = (torch.split(of_all, DIRECTIONS_OF_A_SPLIT) for of_all in (side.values, side.indices))
    for values, order in zip(*some_at_a_time, strict=True):
        for whole, sign in ((of_rows, 1), (np.arange(len(of_rows)), -1)):
            first, share = _split(whole, draw)
            chosen = torch.from_numpy(first).to(order.device)[order]
            halves = [values[which].view(len(values), -1).double() for which in (chosen, ~chosen)]
            gap = _at_quantiles(halves[0], values.shape[1]) - _at_quantiles(halves[1], values.shape[1])
            total += sign * share * float(gap.square().mean(1).sum())
    return total


def _split(units: NDArray[np.int64], draw: np.random.Generator) -> tuple[NDArray[np.bool_], float]:
    """Return which samples are of a random half of the units, (n,), and the error of a set as a part of both halves'.

    Of two units that are next by size, either half has one. So the halves have nearly the same sizes.
    """
    sizes = np.bincount(units)
    order = draw.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    is_first = np.empty(len(sizes), bool)
    is_first[order[::2]] = turned = draw.random((len(sizes) + 1) // 2) < 0.5
    is_first[order[1::2]] = ~turned[: len(sizes) // 2]
    of_halves = sum(np.square(sizes[half] / sizes[half].sum()).sum() for half in (is_first, ~is_first))
    return is_first[units], float(np.square(sizes / sizes.sum()).sum() / of_halves)


def _at_quantiles(ordered: torch.Tensor, count: int) -> torch.Tensor:
    """Return the quantiles of sorted rows, (directions, m), in the middle of `count` equal parts."""
    places = (2 * torch.arange(count, device=ordered.device) + 1) * ordered.shape[1] // (2 * count)
    return ordered[:, places]


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
    found = _estimate(gen, ref, PROJECTIONS, MIND_SEED, inputs.run, (units_of(gen), units_of(ref)))
    distance = found.distance
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
    estimate = found.estimate()
    low, high = estimate.interval
    interval = (max(low, 0.0), max(high, 0.0))
    if not found.is_grouped:
        return [replace(score, interval=interval)]
    return [replace(score, unbiased=estimate.value, interval=interval, notes=(*notes, OF_GROUPS_OF_MIND))]


def _estimator(ref: Embeddings, run: Run) -> Estimator:
    def estimate(gen: Embeddings, units: NDArray[np.int64] | None = None) -> Estimate:
        of_gen = units_of(gen) if units is None else units
        found = _estimate(gen, ref, PROJECTIONS, MIND_SEED, run, (of_gen, units_of(ref)))
        if found.distance.n < MIN_INTERVAL_SAMPLES:
            raise DataError(f"no interval: that takes {MIN_INTERVAL_SAMPLES} samples of each set")
        return found.estimate()

    return estimate


METRICS = (
    Metric("mind", "Monge inception distance: sliced Wasserstein, 1000 directions", _mind, estimator=_estimator),
)
