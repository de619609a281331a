"""Which kinds of training samples are memorized? FINC's modes of the training set, and the test of copying in each.

The kinds are directions in which the training set has mass, rotated as those of a comparison; a sample is of the kind
that it scores highest on. Kinds look at training samples only, so fresh and generated samples of a kind compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from finc_eval.comparison.compare import compare
from finc_eval.embeddings.base import Subset
from finc_eval.memorization.copying import FEWEST, CellTest
from finc_eval.memorization.tails import tail_p_value
from finc_eval.numerics.inference import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from finc_eval.comparison.result import Comparison
    from finc_eval.embeddings.base import Embeddings

KINDS = 12
"""Kinds at most."""

RHO = 0.05
"""Kinds of the training set as it is, not those it has more of: the mass elsewhere hardly counts against them."""

FEATURES = 500
SAMPLES = 5000
"""Random frequencies, and samples of each half that kinds are found with, at most."""


@dataclass(frozen=True)
class Kind:
    """Copying among the samples of one kind.

    Attributes:
        id: of the mode of the training set.
        examples: ids of training samples that are most of it.
        generated, fresh: samples of it in the generated set and in the holdout.
        suspicious: generated ones that are as near to the training set as the nearest hundredth of all fresh ones.
        fresh_suspicious: fresh ones that are.
        z: of its distances (a cell of C_T), below 0 where generated samples are nearer; None where there are too few.
        p_value: of "no nearer than fresh samples of this kind", by the exact tail test, adjusted over kinds (Holm).
    """

    id: str
    examples: tuple[str, ...]
    generated: int
    fresh: int
    suspicious: int
    fresh_suspicious: int
    z: float | None
    p_value: float

    def to_dict(self) -> dict[str, Any]:
        """The kind as plain JSON types."""
        return {
            "id": self.id,
            "examples": list(self.examples),
            "generated": self.generated,
            "fresh": self.fresh,
            "suspicious": self.suspicious,
            "fresh_suspicious": self.fresh_suspicious,
            "z": self.z,
            "p_value": self.p_value,
        }


def kinds_of(train: Embeddings, seed: int) -> Comparison:
    """The modes of the training set: what one half of some of its samples has mass in, beside the other half.

    Neither generated nor held-out samples take part, so that both are strangers to the kinds alike.
    """
    order = np.random.default_rng(seed).permutation(train.n)[: 2 * SAMPLES]
    halves = (Subset(train, np.sort(order[half::2])) for half in (0, 1))
    return compare(*halves, rho=RHO, features=FEATURES, modes=KINDS, seed=seed)


def assigned(kinds: Comparison, samples: Embeddings) -> NDArray[np.int64]:
    """Which of the modes each sample scores highest on, shape (n,); all 0 where there are none."""
    found = np.zeros(samples.n, np.int64)
    if not kinds.over:
        return found
    for batch, scores in kinds.score_batches(samples, kinds.over):
        found[batch.start : batch.start + len(scores)] = scores.argmax(1)
    return found


def copying_by_kind(
    kinds: Comparison,
    cells: NDArray[np.int64],
    fresh_cells: NDArray[np.int64],
    calibrated: NDArray[np.float64],
    fresh_calibrated: NDArray[np.float64],
    threshold: float,
    test: CellTest,
) -> tuple[Kind, ...]:
    """Copying in each kind, the most suspicious kind first.

    Args:
        kinds: the modes.
        cells: the kind of each generated sample, shape (n,).
        fresh_cells: that of each fresh one, shape (m,).
        calibrated: distances of generated samples, shape (n,).
        fresh_calibrated: those of fresh ones, shape (m,).
        threshold: below or at which a sample is suspicious.
        test: C_T in these cells.
    """
    found = []
    for cell, mode in enumerate(kinds.over):
        ours, fresh = calibrated[cells == cell], fresh_calibrated[fresh_cells == cell]
        if min(len(ours), len(fresh)) < FEWEST:
            continue
        found.append(
            Kind(
                id=mode.id,
                examples=mode.tails[0].gen_ids[:8],
                generated=len(ours),
                fresh=len(fresh),
                suspicious=int((ours <= threshold).sum()),
                fresh_suspicious=int((fresh <= threshold).sum()),
                z=test.by_cell[cell] if cell < len(test.by_cell) else None,
                p_value=tail_p_value(ours, fresh),
            )
        )
    adjusted = holm(torch.tensor([kind.p_value for kind in found], dtype=torch.double)).tolist()
    judged = [replace(kind, p_value=p) for kind, p in zip(found, adjusted, strict=True)]
    return tuple(sorted(judged, key=lambda kind: (kind.p_value, -kind.suspicious / kind.generated)))
