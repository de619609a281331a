"""MIND, the Monge inception distance (Berthet et al., arXiv 2605.06797): a sliced Wasserstein distance.

MIND = 3d · mean over directions u of W₂²(⟨u, x⟩, ⟨u, y⟩), with u uniform on the unit sphere. In one dimension W₂² is
the mean square of the differences of sorted values. The definition follows torch-fidelity, which has MIND from
version 0.5 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from finc_eval.core.errors import check_count, check_seed
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.measures.inputs import Metric, MetricInputs, open_samples, split_reference
from finc_eval.measures.score import Score

PROJECTIONS = 1000
SEED = 2020  # torch-fidelity's defaults
SCALE = 3  # factor, times d, that brings the number to the size of a Fréchet distance for Gaussians

MAX_PROJECTED = 1 << 26
"""Number of projected values held at once for each set, 256 MiB; the set is read again for the next directions."""


@dataclass(frozen=True)
class MongeDistance:
    """A Monge inception distance."""

    value: float  # the distance, in squared units of the embedding; above zero even for two finite sets of one law
    n: int  # number of samples used of each set: the size of the smaller set; of the larger one a random part is used
    projections: int  # number of directions
    seed: int  # random seed of the directions, and of the part of the larger set


def mind(
    gen: object, ref: object, *, projections: int = PROJECTIONS, seed: int = SEED, run: Run | None = None
) -> MongeDistance:
    """Compute MIND with the directions and the random part that torch-fidelity draws for the same seed."""
    check_count("projections", projections)
    x, y = open_samples(gen, ref, least=1)
    draw = torch.Generator().manual_seed(check_seed(seed))
    n = min(x.n, y.n)
    parts = [torch.randperm(one.n, generator=draw)[:n].numpy() if one.n > n else np.arange(n) for one in (x, y)]
    directions = torch.randn(projections, x.dim, generator=draw)
    directions /= torch.linalg.vector_norm(directions, dim=1, keepdim=True)
    run, total = Run.of(run), 0.0
    where = run.torch_device
    for some in torch.split(directions, max(MAX_PROJECTED // n, 1)):
        left, right = (
            _project(one, np.sort(part), some.to(where), run.portion) for one, part in zip((x, y), parts, strict=True)
        )
        total += float((left - right).square_().mean(1).sum())
    return MongeDistance(SCALE * x.dim * total / projections, n, projections, seed)


def _project(source: Embeddings, rows: np.ndarray, directions: torch.Tensor, size: int) -> torch.Tensor:
    """Return the rows along each direction, sorted, shape (directions, rows), in float64 for the sums."""
    found = torch.empty(len(directions), len(rows), device=directions.device)
    for start in range(0, len(rows), size):
        batch = source.rows_at(rows[start : start + size]).to(directions)
        found[:, start : start + len(batch)] = directions @ batch.T
    return found.sort(1).values.double()


def _mind(inputs: MetricInputs) -> list[Score]:
    gen, ref = inputs.embeddings()
    found = mind(gen, ref, run=inputs.run)
    part = mind(*split_reference(ref, found.n), seed=found.seed, run=inputs.run)
    floor, signature = part.value * part.n / found.n, inputs.signature(projections=found.projections, seed=found.seed)
    notes = () if gen.n == ref.n else (f"computed from {found.n} samples of each set, drawn at random from the larger",)
    return [Score(inputs.name, found.value, signature, floor=floor, higher_is_better=False, notes=notes)]


METRICS = (Metric("mind", "Monge inception distance: sliced Wasserstein, 1000 directions", _mind),)
