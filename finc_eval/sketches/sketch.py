"""Sketches: the sufficient statistics of a set of embeddings. Sketches add: `a + b` is that of the union."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import existing_hdf5, new_hdf5
from finc_eval.embeddings.base import ARRAY_SPACE, ArrayEmbeddings, as_embeddings, check_same_space, sample_keys
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.moments import Moments, weighted_sum
from finc_eval.numerics.precision import Precision, check_precision
from finc_eval.sketches.bottom_sample import BottomSample
from finc_eval.sketches.feature_map_file import read_feature_map, write_feature_map
from finc_eval.sketches.folds import FoldChunks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SCHEMA = 1
SAMPLE_SIZE = 2000

LARGEST_EMBEDDING = 4096
"""Entries of an embedding up to which its moments are kept."""


class Sketch:
    """What a comparison needs to know of a set: moments of φ(x) in two folds, moments of x, and a small sample.

    The fold of a sample and its place in the bottom-k sample follow from a hash of its id alone, so a sketch does
    not depend on order, batches or shards, and `a + b` is the sketch of the union of two disjoint sets.

    Args:
        feature_map: φ; sketches can be added and compared only when they share it.
        sample: how many embeddings to keep as the bottom-k sample; 0 keeps none.
        space: the extractor that made the embeddings, as name@digest; unknown when left out.
        precision: of the covariance of φ: float32, float64, or with features rounded to tf32 or bfloat16 before the
            product, which GPUs multiply faster; sums are of float32 at least (docs/method.md has the errors).

    Attributes:
        folds: the moments of φ(x) over the samples with an even, and with an odd, id hash.
        embedding: the moments of x − μ in float64, for the Fréchet distance; μ is the feature map's center. None
            for embeddings of more than 4096 entries, whose covariance nobody could afford.
        sample: the bottom-k sample of embeddings and their ids.
        sources: the digests of the sets that went in.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        *,
        sample: int = SAMPLE_SIZE,
        space: str | None = None,
        precision: Precision = "float32",
    ) -> None:
        check_precision(precision)
        device = feature_map.device
        self.feature_map = feature_map
        self.space = space or f"{ARRAY_SPACE}{feature_map.dim}"
        self.precision = precision
        self.folds = (
            Moments(feature_map.size, precision, device),
            Moments(feature_map.size, precision, device),
        )
        small = feature_map.dim <= LARGEST_EMBEDDING
        self.embedding = Moments(feature_map.dim, "float64", device) if small else None
        self.sample = BottomSample(feature_map.dim, sample)
        self.sources: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: object,
        feature_map: FeatureMap,
        *,
        sample: int = SAMPLE_SIZE,
        precision: Precision = "float32",
        batch_size: int = BATCH_SIZE,
        progress: Progress = silent,
    ) -> Sketch:
        """The sketch of an array or tensor of shape (n, d), an `EmbeddingCache` or the path of one, in one pass."""
        (sketch,) = sketch_all(
            source, [feature_map], sample=sample, precision=precision, batch_size=batch_size, progress=progress
        )
        return sketch

    def update(self, rows: ArrayLike | torch.Tensor, ids: Sequence[str] | None = None) -> None:
        """Add embeddings, shape (b, d).

        Args:
            rows: the embeddings.
            ids: their sample ids, which decide fold and sample; the running row number when left out.

        Raises:
            FincEvalError: when the shape does not fit, or an embedding is not finite.
        """
        embeddings = ArrayEmbeddings(rows, "the batch")
        names = [str(self.n + i) for i in range(embeddings.n)] if ids is None else list(ids)
        if len(names) != embeddings.n:
            raise FincEvalError(f"{embeddings.n} embeddings came with {len(names)} ids: give one id a row")
        keys = sample_keys(names)
        checked = next(embeddings.batches(embeddings.n)).rows
        self.sample.update(keys, names, checked)
        chunks = FoldChunks(embeddings.n)
        for fold, part in (*chunks.add(keys, checked), *chunks.rest()):
            self._add(fold, part)

    def _add(self, fold: int, rows: torch.Tensor) -> None:
        """Add embeddings of one fold to the moments."""
        x = rows.to(self.feature_map.device)
        self.folds[fold].update(self.feature_map(x))
        if self.embedding is not None:
            self.embedding.update(x - self.feature_map.center)

    @property
    def n(self) -> int:
        """How many samples went in."""
        return self.folds[0].n + self.folds[1].n

    @property
    def dim(self) -> int:
        """d, entries per embedding."""
        return self.feature_map.dim

    @property
    def covariance(self) -> torch.Tensor:
        """C = E[φ(x)φ(x)ᵀ], shape (q, q): the paper's (uncentered) kernel covariance of the set."""
        return weighted_sum([(1 / self.n, fold) for fold in self.folds])

    def __add__(self, other: Sketch) -> Sketch:
        self.check_comparable(other)
        total = Sketch.__new__(Sketch)
        if self.precision != other.precision:
            raise FincEvalError(
                f"one sketch was accumulated in {self.precision}, the other in {other.precision}: make one again"
            )
        total.feature_map, total.space, total.precision = self.feature_map, self.space, self.precision
        total.folds = (self.folds[0] + other.folds[0], self.folds[1] + other.folds[1])
        total.embedding = None
        if self.embedding is not None and other.embedding is not None:
            total.embedding = self.embedding + other.embedding
        total.sample = BottomSample(self.dim, min(self.sample.capacity, other.sample.capacity))
        for part in (self.sample, other.sample):
            total.sample.update(part.keys, part.ids, part.rows)
        total.sources = tuple(sorted(self.sources + other.sources))
        return total

    def check_comparable(self, other: Sketch) -> None:
        """Raise FincEvalError unless the two sketches are of one embedding space and one feature map."""
        check_same_space("one sketch", self.space, "the other", other.space)
        if self.feature_map is not other.feature_map and self.feature_map.digest != other.feature_map.digest:
            raise FincEvalError(
                f"the sketches use different feature maps ({self.feature_map} and {other.feature_map}, or other "
                "centers): make one of them with the other's map (finc-eval sketch --like)"
            )

    def save(self, path: str | Path) -> None:
        """Write the sketch to an HDF5 file (about 4·(2r)² bytes: the blocks above the diagonals of two folds)."""
        with new_hdf5(path, "sketch", SCHEMA) as file:
            file.attrs["space"] = self.space
            file.attrs["precision"] = self.precision
            file.attrs["sources"] = list(self.sources)
            file.attrs["privacy"] = "plain statistics of the samples, without privacy noise: handle as the data"
            write_feature_map(file, self.feature_map)
            for name, moments in self._moments().items():
                group = file.create_group(name)
                group.attrs["n"] = moments.n
                group["first"] = moments.first.cpu().numpy()
                for rows, block in moments.blocks():
                    group[f"second/{rows.start}"] = block.cpu().numpy()
            group = file.create_group("sample")
            group.attrs["capacity"] = self.sample.capacity
            group["keys"] = self.sample.keys
            group["rows"] = self.sample.rows.numpy()
            group.create_dataset("ids", data=self.sample.ids, dtype=h5py.string_dtype())

    @classmethod
    def load(cls, path: str | Path, device: str | torch.device = "cpu") -> Sketch:
        """Read a sketch that `save` wrote.

        Raises:
            FincEvalError: when the file is missing, damaged, or no sketch.
        """
        with existing_hdf5(path, "sketch", SCHEMA) as file:
            group = file["sample"]
            sketch = cls(
                read_feature_map(file, device),
                sample=int(group.attrs["capacity"]),
                space=str(file.attrs["space"]),
                precision=file.attrs["precision"],
            )
            sketch.sources = tuple(str(source) for source in file.attrs["sources"])
            sketch.sample.update(group["keys"][:], list(group["ids"].asstr()[:]), torch.from_numpy(group["rows"][:]))
            for name, moments in sketch._moments().items():
                moments.n = int(file[name].attrs["n"])
                moments.first.copy_(torch.from_numpy(file[name]["first"][:]))
                for rows, block in moments.blocks():
                    block.copy_(torch.from_numpy(file[name][f"second/{rows.start}"][:]))
        return sketch

    def _moments(self) -> dict[str, Moments]:
        parts = {"fold0": self.folds[0], "fold1": self.folds[1], "embedding": self.embedding}
        return {name: moments for name, moments in parts.items() if moments is not None}

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, space={self.space!r}, feature_map={self.feature_map})"


def sketch_all(
    source: object,
    feature_maps: Sequence[FeatureMap],
    *,
    sample: int = SAMPLE_SIZE,
    precision: Precision = "float32",
    batch_size: int = BATCH_SIZE,
    progress: Progress = silent,
) -> list[Sketch]:
    """The sketches of one set by several feature maps, in one pass over it."""
    embeddings = as_embeddings(source)
    sketches = [Sketch(phi, sample=sample, space=embeddings.space, precision=precision) for phi in feature_maps]
    chunks = FoldChunks(batch_size)
    for batch in embeddings.batches(batch_size):
        for sketch in sketches:
            sketch.sample.update(batch.keys, batch.ids, batch.rows)
        for fold, rows in chunks.add(batch.keys, batch.rows):
            for sketch in sketches:
                sketch._add(fold, rows)
        progress("sketch", batch.start + len(batch.ids), embeddings.n)
    for fold, rows in chunks.rest():
        for sketch in sketches:
            sketch._add(fold, rows)
    for sketch in sketches:
        sketch.sources = (embeddings.digest,)
    return sketches
