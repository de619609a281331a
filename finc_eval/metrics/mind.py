"""MIND, the Monge inception distance (Berthet et al., arXiv 2605.06797): a sliced Wasserstein distance.

MIND = 3d · mean over directions u of W₂²(⟨u, x⟩, ⟨u, y⟩), u uniform on the unit sphere; in one dimension W₂² is the
mean square of the differences of sorted values. Defined here as by torch-fidelity, which has it from version 0.5 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.base import Embeddings
from finc_eval.metrics.mmd import pair_of

PROJECTIONS = 1000
SEED = 2020
"""torch-fidelity's defaults."""

SCALE = 3
"""Times d: for Gaussians the number is then of the size of a Fréchet distance."""

KEPT = 1 << 26
"""Projections of a set that are held together, 256 MiB; the set is read again for the next ones."""


@dataclass(frozen=True)
class MongeDistance:
    """A Monge inception distance.

    Attributes:
        value: in squared units of the embedding; above zero for two finite sets of one law.
        n: samples of each set that entered: the smaller number of both, of the larger set a random part.
        projections, seed: how many directions, and of what draw.
    """

    value: float
    n: int
    projections: int
    seed: int


def mind(
    gen: object,
    ref: object,
    *,
    projections: int = PROJECTIONS,
    seed: int = SEED,
    device: str | torch.device | None = None,
) -> MongeDistance:
    """MIND of two sets, with the directions and the random part that torch-fidelity draws for the same seed.

    Args:
        gen: the embeddings of the generated set, or their cache.
        ref: of the reference.
        projections: how many directions.
        seed: of the directions, and of the part of the larger set.
        device: where it is computed; a GPU if there is one.

    Raises:
        FincEvalError: when the spaces differ, or there is no projection.
    """
    x, y = pair_of(gen, ref, smallest=1)
    if projections < 1:
        raise FincEvalError(f"MIND needs one projection at least, got {projections}")
    draw = torch.Generator().manual_seed(seed)
    n = min(x.n, y.n)
    parts = [torch.randperm(one.n, generator=draw)[:n].numpy() if one.n > n else np.arange(n) for one in (x, y)]
    directions = torch.randn(projections, x.dim, generator=draw)
    directions /= torch.linalg.vector_norm(directions, dim=1, keepdim=True)
    where, total = usable_device(device), 0.0
    for some in torch.split(directions, max(KEPT // n, 1)):
        left, right = (_projected(one, np.sort(part), some.to(where)) for one, part in zip((x, y), parts, strict=True))
        total += float((left - right).square_().mean(1).sum())
    return MongeDistance(SCALE * x.dim * total / projections, n, projections, seed)


def _projected(source: Embeddings, rows: np.ndarray, directions: torch.Tensor) -> torch.Tensor:
    """The rows along each direction, sorted, shape (directions, rows), float64 where it is summed."""
    found = torch.empty(len(directions), len(rows), device=directions.device)
    for start in range(0, len(rows), BATCH_SIZE):
        batch = source.rows_at(rows[start : start + BATCH_SIZE]).to(directions)
        found[:, start : start + len(batch)] = directions @ batch.T
    return found.sort(1).values.double()
