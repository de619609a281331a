"""`Partition`: embeddings divided into kinds, at several levels, blind to which set a sample is from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.checks import check_count
from finc_eval.core.device import sent
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.run import Run
from finc_eval.numerics.axes import PrincipalAxes, unit_of
from finc_eval.partitions.kmeans import kmeans
from finc_eval.partitions.pooled import pooled_sample as pooled_sample

MIN_SAMPLES_PER_KIND = 20
"""Samples per kind that a level needs. Of fewer, hardly a difference could be significant."""

LEVELS = (20, 35, 50, 70, 100, 140, 200)
"""Numbers of kinds of the levels. Together they find more than any one of them. Of 144 small changes of photographs
and digits, on draws that had no part in choosing the levels, comparisons find 63, with 20, 50, 100 and 200 alone 60."""

Kinds = NDArray[np.int32]
"""Kind of each sample at each level, shape (n, levels)."""


def checked_levels(levels: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of kinds, each once, smallest first.

    Raises:
        UsageError: one is not a whole number of at least 2, or there is none.
    """
    found = tuple(sorted({check_count("levels", level, least=2) for level in levels}))
    if not found:
        raise UsageError("levels must be numbers of kinds, got none: pass for example levels=(20, 50)")
    return found


@dataclass(frozen=True, eq=False)
class Partition:
    """Kinds of samples: the nearest center, at each of several levels.

    Attributes:
        centers: centers of each level, float32, shape (kinds, d), relative to `origin`.
        radii: distance from the nearest center, per level, beyond which a later sample is far from all kinds.
        origin: mean of the fitted rows, shape (d,).
        seed: random seed of the fit.
    """

    centers: tuple[torch.Tensor, ...]
    radii: tuple[float, ...]
    origin: torch.Tensor
    seed: int

    @classmethod
    def fit(
        cls,
        rows: torch.Tensor,
        levels: Sequence[int] = LEVELS,
        seed: int = 0,
        run: Run | None = None,
        *,
        axes: PrincipalAxes | None = None,
        least: int = MIN_SAMPLES_PER_KIND,
        spread: bool = False,
    ) -> Partition:
        """Divide rows into kinds by k-means at each level.

        Args:
            rows: a sample of all sets together, shape (m, d); see `pooled_sample`.
            levels: numbers of kinds. Those with fewer than `least` rows per kind are left out; a small sample gets one
                level that fits.
            seed: random seed of the first centers.
            run: device and portions.
            axes: principal axes of the rows, if they are known.
            least: number of rows per kind that a level needs.
            spread: whether the first centers are far from each other, so that small kinds are not missed.

        Raises:
            UsageError: a level is not a whole number of at least 2.
            DataError: there are fewer than 4 rows.
        """
        run, levels = Run.of(run), checked_levels(levels)
        if len(rows) < 4:
            raise DataError(f"{len(rows)} samples cannot be divided into kinds: at least 4 are needed")
        most = len(rows) // least
        fitting = tuple(level for level in levels if level <= most) or (max(min(levels[0], most), 2),)
        axes = axes or PrincipalAxes.of(rows)
        x = np.ascontiguousarray(axes(rows.cpu()).numpy())
        found = (torch.from_numpy(kmeans(x, level, seed, run.torch_device, spread=spread)) for level in fitting)
        centers = tuple(map(axes.points, found))
        partition = cls(centers, (float("inf"),) * len(centers), axes.origin, seed)
        distances = partition.assign(rows, run)[1]
        return cls(centers, tuple(float(one) for one in np.sqrt(distances.max(0))), axes.origin, seed)

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of kinds of each level."""
        return tuple(len(centers) for centers in self.centers)

    def place_of(self, kinds: int) -> int:
        """Return the place of the level with this number of kinds, or of the next lower one; else of the first."""
        return max((place for place, level in enumerate(self.levels) if level <= kinds), default=0)

    @property
    def dim(self) -> int:
        """d, number of entries of an embedding."""
        return len(self.origin)

    @property
    def digest(self) -> str:
        """Digest that tells two partitions apart."""
        return sha256_of(self.origin, *self.centers)

    def assign(self, rows: ArrayLike | torch.Tensor, run: Run | None = None) -> tuple[Kinds, NDArray[np.float32]]:
        """Return the kind of each row at each level, and its squared distance from the center.

        Args:
            rows: embeddings, shape (n, d).
            run: device and portions.

        Returns:
            Kinds and squared distances, each of shape (n, levels).
        """
        run, x = Run.of(run), torch.as_tensor(rows, dtype=torch.float32)
        assign = Assignment(self, run.torch_device)
        found = [assign(x[start : start + run.portion]) for start in range(0, max(len(x), 1), run.portion)]
        kinds, squared, _ = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
        return kinds, squared

    def on(self, device: torch.device) -> Assignment:
        """Return the centers on a device."""
        return Assignment(self, device)

    def far(self, squared: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which samples are far from all kinds, from the squared distances that `assign` returned."""
        return squared > np.square(np.array(self.radii, np.float32)) * np.float32(1 + 1e-4)

    def write(self, file: NewFile) -> None:
        """Write the partition into a file."""
        file.header["partition"] = {"seed": self.seed, "levels": len(self.centers)}
        file.array("partition/origin", self.origin.float().cpu().numpy())
        file.array("partition/radii", np.array(self.radii, np.float64))
        for level, centers in enumerate(self.centers):
            file.array(f"partition/centers/{level}", centers.float().cpu().numpy())

    @classmethod
    def read(cls, file: StoredFile) -> Partition:
        """Read what `write` wrote; call it in `content_of`."""
        header = file.header["partition"]
        origin, levels = torch.from_numpy(file.array("partition/origin", None)), int(header["levels"])
        radii = tuple(file.array("partition/radii", levels, dtype="<f8").tolist())
        centers = tuple(
            torch.from_numpy(file.array(f"partition/centers/{level}", None, len(origin))) for level in range(levels)
        )
        if not centers or not all(len(one) and one.isfinite().all() for one in (origin, *centers)):
            raise ValueError("its centers are not numbers")
        return cls(centers, radii, origin, int(header["seed"]))


class Assignment:
    """The centers of a partition on a device, to which batches of rows are assigned there."""

    def __init__(self, partition: Partition, device: torch.device) -> None:
        joined = torch.cat(partition.centers)
        self._unit, self._dim, self.device = unit_of(joined), partition.dim, device
        self._centers = sent(joined, device) / self._unit
        self._norms, self._origin = self._centers.square().sum(1), sent(partition.origin, device)
        self._splits = np.cumsum(partition.levels)[:-1].tolist()

    def __call__(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the kind of each row at each level, int32, and its squared distance from the center, twice.

        Raises:
            IncompatibleError: the rows have another number of entries than the centers.
        """
        if rows.ndim != 2 or rows.shape[1] != self._dim:
            raise IncompatibleError(
                f"the partition divides embeddings of {self._dim} entries, got shape {tuple(rows.shape)}: extract both "
                "with the same extractor"
            )
        part = (sent(rows, self.device) - self._origin) / self._unit
        # ‖x − c‖² without ‖x‖², which all centers share.
        blocks = (self._norms - 2 * part @ self._centers.T).tensor_split(self._splits, 1)
        least, kinds = (torch.stack(parts, 1) for parts in zip(*(block.min(1) for block in blocks), strict=True))
        squared = (least + part.square().sum(1, keepdim=True)).clamp_min(0) * self._unit**2
        return kinds.int(), squared, squared
