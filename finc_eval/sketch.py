"""Sketches: the sufficient statistics of a set of embeddings. Sketches add: `a + b` is that of the union."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import torch

from finc_eval.embeddings import (
    ARRAY_SPACE,
    BATCH_SIZE,
    ArrayEmbeddings,
    as_embeddings,
    check_same_space,
    sample_keys,
)
from finc_eval.errors import FincEvalError
from finc_eval.feature_maps import RandomFourierFeatures
from finc_eval.moments import BLOCK, Moments, weighted_sum
from finc_eval.progress import Progress, silent
from finc_eval.storage import existing_hdf5, new_hdf5

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SCHEMA = 1
SAMPLE_SIZE = 2000


class BottomSample:
    """The `capacity` samples with the smallest id hashes: a uniform sample that merges and never depends on order."""

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.keys: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ids: list[str] = []
        self.rows = torch.empty(0, dim)

    def update(self, keys: NDArray[np.uint64], ids: Sequence[str], rows: torch.Tensor) -> None:
        """Offer samples; those with the smallest hashes stay, in order of hash."""
        # The lowest bit decides the fold, so the order is by the others: both folds are sampled alike.
        if len(self.keys) == self.capacity:
            offered = np.flatnonzero(keys >> 1 < (self.keys[-1] >> 1)) if self.capacity else np.empty(0, np.int64)
            if not len(offered):
                return
            ids = [ids[int(i)] for i in offered]
            keys, rows = keys[offered], rows[torch.from_numpy(offered).to(rows.device)]
        all_keys = np.concatenate([self.keys, keys])
        all_ids = [*self.ids, *ids]
        kept = np.lexsort((np.array(all_ids), all_keys >> 1))[: self.capacity]
        self.rows = torch.cat([self.rows, rows.detach().float().cpu()])[torch.from_numpy(kept)]
        self.keys = all_keys[kept]
        self.ids = [all_ids[i] for i in kept]


class Sketch:
    """What a comparison needs to know of a set: moments of φ(x) in two folds, moments of x, and a small sample.

    The fold of a sample and its place in the bottom-k sample follow from a hash of its id alone, so a sketch does
    not depend on order, batches or shards, and `a + b` is the sketch of the union of two disjoint sets.

    Args:
        feature_map: φ; sketches can be added and compared only when they share it.
        sample: how many embeddings to keep as the bottom-k sample; 0 keeps none.
        space: the extractor that made the embeddings, as name@digest; unknown when left out.

    Attributes:
        folds: the moments of φ(x) over the samples with an even, and with an odd, id hash.
        embedding: the moments of x − μ in float64, for the Fréchet distance; μ is the feature map's centre.
        sample: the bottom-k sample of embeddings and their ids.
        sources: the digests of the sets that went in.
    """

    def __init__(
        self, feature_map: RandomFourierFeatures, *, sample: int = SAMPLE_SIZE, space: str | None = None
    ) -> None:
        device = feature_map.device
        self.feature_map = feature_map
        self.space = space or f"{ARRAY_SPACE}{feature_map.dim}"
        self.folds = (
            Moments(feature_map.size, torch.float32, device),
            Moments(feature_map.size, torch.float32, device),
        )
        self.embedding = Moments(feature_map.dim, torch.float64, device)
        self.sample = BottomSample(feature_map.dim, sample)
        self.sources: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        source: object,
        feature_map: RandomFourierFeatures,
        *,
        sample: int = SAMPLE_SIZE,
        batch_size: int = BATCH_SIZE,
        progress: Progress = silent,
    ) -> Sketch:
        """The sketch of an array or tensor of shape (n, d), an `EmbeddingCache` or the path of one, in one pass."""
        embeddings = as_embeddings(source)
        sketch = cls(feature_map, sample=sample, space=embeddings.space)
        for batch in embeddings.batches(batch_size):
            sketch._add(batch.rows, batch.ids)
            progress("sketch", sketch.n, embeddings.n)
        sketch.sources = (embeddings.digest,)
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
        self._add(next(embeddings.batches(embeddings.n)).rows, names)

    def _add(self, rows: torch.Tensor, ids: Sequence[str]) -> None:
        x = rows.to(self.feature_map.device)
        features = self.feature_map(x)
        keys = sample_keys(ids)
        folds = torch.from_numpy(fold_of(keys)).to(x.device)
        for fold, moments in enumerate(self.folds):
            moments.update(features[folds == fold])
        self.embedding.update(x - self.feature_map.center)
        self.sample.update(keys, ids, x)

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
        """C = E[φ(x)φ(x)ᵀ], shape (2r, 2r): the paper's (uncentred) kernel covariance of the set."""
        return weighted_sum([(1 / self.n, fold) for fold in self.folds])

    def __add__(self, other: Sketch) -> Sketch:
        self.check_comparable(other)
        total = Sketch.__new__(Sketch)
        total.feature_map, total.space = self.feature_map, self.space
        total.folds = (self.folds[0] + other.folds[0], self.folds[1] + other.folds[1])
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
                "centres): make one of them with the other's map (finc-eval sketch --like)"
            )

    def save(self, path: str | Path) -> None:
        """Write the sketch to an HDF5 file (about 4·(2r)² bytes: the blocks above the diagonals of two folds)."""
        with new_hdf5(path, "sketch", SCHEMA) as file:
            file.attrs["space"] = self.space
            file.attrs["sources"] = list(self.sources)
            file.attrs["privacy"] = "plain statistics of the samples, without privacy noise: handle as the data"
            write_feature_map(file, self.feature_map)
            for name, moments in self._moments().items():
                group = file.create_group(name)
                group.attrs["n"] = moments.n
                group["first"] = moments.first.cpu().numpy()
                # Chunks below the diagonal are never written and take no space.
                side = min(BLOCK, moments.size)
                second = group.create_dataset(
                    "second", moments.second.shape, moments.second.cpu().numpy().dtype, chunks=(side, side)
                )
                for block, rest in moments.blocks():
                    second[block, rest] = moments.second[block, rest].cpu().numpy()
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
            )
            sketch.sources = tuple(str(source) for source in file.attrs["sources"])
            sketch.sample.update(group["keys"][:], list(group["ids"].asstr()[:]), torch.from_numpy(group["rows"][:]))
            for name, moments in sketch._moments().items():
                moments.n = int(file[name].attrs["n"])
                moments.first.copy_(torch.from_numpy(file[name]["first"][:]))
                moments.second.copy_(torch.from_numpy(file[name]["second"][:]))
        return sketch

    def _moments(self) -> dict[str, Moments]:
        return {"fold0": self.folds[0], "fold1": self.folds[1], "embedding": self.embedding}

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, space={self.space!r}, feature_map={self.feature_map})"


def fold_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The fold, 0 or 1, of samples with these id hashes."""
    return (keys & np.uint64(1)).astype(np.int64)


def write_feature_map(file: h5py.Group, feature_map: RandomFourierFeatures) -> None:
    """Store φ with its frequencies, so that it never depends on a generator's version."""
    group = file.create_group("feature_map")
    group.attrs["sigma"] = feature_map.sigma
    group.attrs["seed"] = feature_map.seed
    group["frequencies"] = feature_map.frequencies.cpu().numpy()
    group["center"] = feature_map.center.cpu().numpy()


def read_feature_map(file: h5py.Group, device: str | torch.device = "cpu") -> RandomFourierFeatures:
    """The φ that `write_feature_map` stored."""
    group = file["feature_map"]
    return RandomFourierFeatures.from_frequencies(
        torch.from_numpy(group["frequencies"][:]),
        float(group.attrs["sigma"]),
        int(group.attrs["seed"]),
        group["center"][:],
        device,
    )
