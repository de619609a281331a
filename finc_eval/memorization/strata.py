"""Strata of an audit: which modes of the training set are memorized, with a test of copying in each.

A stratum consists of the samples that score highest on one principal mode of the training set. The modes are found from
training samples only, so fresh and generated samples of a stratum compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.compare import compare
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.settings import Finc, Settings
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.memorization.copying import MIN_CELL_SAMPLES, CellTest
from finc_eval.memorization.settings import STRATA_PART
from finc_eval.memorization.tails import tail_p_value
from finc_eval.numerics.inference import holm

MAX_STRATA = 12
"""Maximum number of strata."""

STRATUM_EXAMPLES = 8
"""Number of training samples that are kept as examples of a stratum."""

STRATA_FEATURES = 500
"""Number of random frequencies that principal modes are found with."""

MAX_STRATA_SAMPLES = 5000
"""Maximum number of samples of each half that principal modes are found with."""


@dataclass(frozen=True)
class Stratum(Record):
    """Copying among the samples of one mode of the training set.

    Attributes:
        id: id of the mode.
        examples: ids of the training samples that are most typical of it.
        generated, fresh: number of its samples in the generated set and in the holdout.
        suspicious: number of generated samples as near to the training set as the nearest hundredth of all fresh ones.
        fresh_suspicious: number of fresh samples as near.
        z: Z of its distances (a cell of C_T), below 0 where generated samples are nearer; None with too few samples.
        p_value: p-value of "no nearer than fresh samples of this stratum", by the exact tail test, adjusted for
            everything that the audit may find.
        against_holdout: p-value of "its most suspicious samples are as often nearer to the holdout", where copying is
            found; None elsewhere.
    """

    id: str
    examples: tuple[str, ...]
    generated: int
    fresh: int
    suspicious: int
    fresh_suspicious: int
    z: float | None
    p_value: float
    against_holdout: float | None = None


def principal_modes(samples: Embeddings, seed: int, run: Run | None = None) -> Comparison:
    """Find the modes of one set: rotated directions that have mass in it, whatever other sets have.

    They are the modes that one half of the set has more of than ρ = 0.05 times the other half. A ρ of 0 would need no
    other half; so small a ρ subtracts next to nothing, and the other half gives cross-fitted masses.

    Args:
        samples: the set, of which at most 2 × `MAX_STRATA_SAMPLES` are drawn.
        seed: random seed of the halves and of the frequencies.
        run: how to compute.
    """
    order = np.random.default_rng(seed).permutation(samples.n)[: 2 * MAX_STRATA_SAMPLES]
    half, other = (Subset(samples, np.sort(order[start::2])) for start in (0, 1))
    how = Settings(method=Finc(clusters=False), rho=0.05, features=STRATA_FEATURES, modes=MAX_STRATA, seed=seed)
    return compare(half, other, how, run=run)


def assign_strata(principal: Comparison, samples: Embeddings) -> NDArray[np.int64]:
    """Return the index of the mode that each sample scores highest on, shape (n,); all 0 without modes."""
    found = np.zeros(samples.n, np.int64)
    if principal.over:
        for batch, scores in principal.score_batches(samples, principal.over):
            found[batch.start : batch.start + len(scores)] = scores.argmax(1)
    return found


def copying_by_stratum(
    principal: Comparison,
    cells: NDArray[np.int64],
    fresh_cells: NDArray[np.int64],
    calibrated: NDArray[np.float64],
    fresh_calibrated: NDArray[np.float64],
    threshold: float,
    test: CellTest,
) -> tuple[Stratum, ...]:
    """Test for copying in each stratum that has enough samples, and return the most suspicious one first.

    Args:
        principal: the principal modes.
        cells: index of the mode of each generated sample, shape (n,).
        fresh_cells: index of the mode of each fresh sample, shape (m,).
        calibrated: calibrated distances of generated samples, shape (n,).
        fresh_calibrated: calibrated distances of fresh samples, shape (m,).
        threshold: largest calibrated distance of a suspicious sample.
        test: C_T in these cells.
    """
    found = []
    for cell, mode in enumerate(principal.over):
        ours, fresh = calibrated[cells == cell], fresh_calibrated[fresh_cells == cell]
        if min(len(ours), len(fresh)) < MIN_CELL_SAMPLES:
            continue
        found.append(
            Stratum(
                id=mode.id,
                examples=mode.tails[0].gen_ids[:STRATUM_EXAMPLES],
                generated=len(ours),
                fresh=len(fresh),
                suspicious=int((ours <= threshold).sum()),
                fresh_suspicious=int((fresh <= threshold).sum()),
                z=test.by_cell[cell] if cell < len(test.by_cell) else None,
                p_value=tail_p_value(ours, fresh),
            )
        )
    adjusted = holm(torch.tensor([stratum.p_value for stratum in found], dtype=torch.double), STRATA_PART).tolist()
    judged = [replace(stratum, p_value=p) for stratum, p in zip(found, adjusted, strict=True)]
    return tuple(sorted(judged, key=lambda stratum: (stratum.p_value, -stratum.suspicious / stratum.generated)))
