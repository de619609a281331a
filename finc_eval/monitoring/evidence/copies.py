"""`Originals`: samples that a generator may copy, and which samples of an evaluation are near one of them.

Originals are samples of the training set, or of the reference. A third of the reference is held out of them: it tells
how many real samples are near an original by chance. So copies are a followed share like any other, and its alarm holds
at every evaluation. A sample is near an original if it is much nearer to it than other originals are: in a dense kind,
such as digits 1, all samples are near each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import IncompatibleError, check_seed
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.near_pairs import IN_MEMORY, RADII
from finc_eval.naming.repeated import COPIES

NEAR = RADII[1]
"""Part of the distance of an original to the next original within which a sample is near it."""

EQUAL = 0.001  # part of the median distance of originals to the next within which two samples are equal: rounding
PROJECTED = 128
"""Random projections in which distances are measured, if embeddings have more entries: they err by 6 %."""

MAX_ORIGINALS = 50_000  # originals that are kept, at random, of a larger training set: 26 MB


@dataclass(frozen=True, eq=False)
class Originals:
    """Samples that may be copied.

    Attributes:
        rows: embeddings or their random projections, shape (m, k).
        reach: distance within which a sample is near each of them, shape (m,).
        seed: random seed of the projections.
        is_train: whether they are of the training set, and not of the reference.
    """

    rows: torch.Tensor
    reach: NDArray[np.float64]
    seed: int
    is_train: bool

    @classmethod
    def of(cls, samples: Embeddings, held_out: torch.Tensor, seed: int, run: Run, *, is_train: bool) -> Self:
        """Take samples as originals; held-out samples are left out of a training set that has most of them.

        Args:
            samples: samples of the training set, or of the reference, at least two.
            held_out: embeddings of samples that are not to be originals, shape (h, d).
            seed: random seed of the choice and of the projections.
            run: device and portions.
            is_train: whether they are of the training set.

        Raises:
            IncompatibleError: their embeddings have another number of entries than those of the reference.
        """
        if samples.dim != held_out.shape[1]:
            raise IncompatibleError(
                f"the training set has {samples.dim} entries per embedding, and the reference {held_out.shape[1]}: "
                "extract both with the same extractor"
            )
        order = np.random.default_rng([seed, 2]).permutation(samples.n)[:MAX_ORIGINALS]
        chosen = Subset(samples, np.sort(order))
        projected = torch.cat([_project(batch.rows.cpu(), seed) for batch in chosen.batches(run.portion)])
        held = _project(held_out, seed)
        apart = _apart(projected, run)
        equal = EQUAL * float(np.median(apart))
        # A law with few values repeats itself: its held-out samples are by chance among the originals.
        is_within = is_train and equal > 0 and _share_within(held, projected, equal, run) > 0.5  # most of the reference
        if is_within:
            others = nearest(projected, held, 1, device=run.torch_device).distances[:, 0] > equal
            projected = projected[torch.from_numpy(others)]
            apart = _apart(projected, run)
        return cls(projected, np.maximum(NEAR * apart, equal), seed, is_train)

    @property
    def words(self) -> str:
        """Name of the samples that are near them."""
        return "copies of the training set" if self.is_train else COPIES

    def are_near(self, rows: torch.Tensor) -> NDArray[np.bool_]:
        """Mark the samples that are near an original, shape (n,), by their embeddings, shape (n, d)."""
        if not len(self.rows) or not len(rows):
            return np.zeros(len(rows), np.bool_)
        near, projected, step = [], _project(rows, self.seed), max(1, IN_MEMORY // len(self.rows))
        for start in range(0, len(projected), step):
            part = projected[start : start + step]
            closest = torch.cdist(part, self.rows).argmin(1)
            apart = (part - self.rows[closest]).norm(dim=1)  # a matrix product rounds small distances
            near.append(apart.double().numpy() <= self.reach[closest.numpy()])
        return np.concatenate(near)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header["originals"] = {"seed": self.seed, "is_train": self.is_train}
        file.array("originals/rows", self.rows.numpy())
        file.array("originals/reach", self.reach)

    @classmethod
    def read(cls, file: StoredFile, entries: int) -> Self:
        """Read what `write` wrote, of embeddings of so many entries; call it in `content_of`."""
        header = file.header["originals"]
        rows = torch.from_numpy(file.array("originals/rows", None, min(entries, PROJECTED)))
        reach = file.array("originals/reach", len(rows), dtype="<f8")
        if not (rows.isfinite().all() and np.isfinite(reach).all() and (reach >= 0).all()):
            raise ValueError("its originals are not samples")
        return cls(rows, reach, check_seed(header["seed"]), bool(header["is_train"]))


def _share_within(rows: torch.Tensor, others: torch.Tensor, distance: float, run: Run) -> float:
    """Return the share of rows with one of the others within a distance."""
    return float(np.mean(nearest(rows, others, 1, device=run.torch_device).distances[:, 0] <= distance))


def _apart(rows: torch.Tensor, run: Run) -> NDArray[np.float64]:
    """Return the distance of each row to the nearest other, shape (m,); 0 for fewer than two."""
    if len(rows) < 2:
        return np.zeros(len(rows))
    return nearest(rows, rows, 1, exclude_self=True, device=run.torch_device).distances[:, 0]


def _project(rows: torch.Tensor, seed: int) -> torch.Tensor:
    """Return random projections of rows, whose distances are about those of the rows; few entries as they are."""
    if rows.shape[1] <= PROJECTED:
        return rows.float()
    return rows.float() @ _projection(rows.shape[1], seed)


@lru_cache(4)  # each evaluation asks for it twice
def _projection(entries: int, seed: int) -> torch.Tensor:
    """Return random directions, shape (entries, `PROJECTED`), scaled so that projections keep distances."""
    drawn = torch.randn(entries, PROJECTED, generator=torch.Generator().manual_seed(seed))
    return drawn / math.sqrt(PROJECTED)
