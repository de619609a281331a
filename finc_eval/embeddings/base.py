"""One interface for everything that holds embeddings: arrays, tensors and caches, read batch by batch."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.device import Place, send
from finc_eval.core.digest import array_bytes, sha256_of
from finc_eval.core.errors import FincEvalError
from finc_eval.core.places import is_place
from finc_eval.core.run import BATCH_SIZE
from finc_eval.embeddings.cache import EmbeddingCache, cache_title
from finc_eval.embeddings.cells import Cells
from finc_eval.embeddings.columns import unknown_column
from finc_eval.embeddings.keys import Hashes, hashes_of, hashes_of_bytes, keys_of, number_hashes, string_hashes
from finc_eval.embeddings.pictures import EmbeddedSamples, HeldSamples, WithCourses
from finc_eval.embeddings.recipe import ARRAY_SPACE, space_named
from finc_eval.numerics.arrays import as_rows, finite_rows
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.samples.shards import Shard
from finc_eval.samples.source import prefetch

if TYPE_CHECKING:
    from PIL import Image

VIDEO = "video"  # name of the grouping of windows by their video
PORTION = 16 * BATCH_SIZE  # ids that are read together
BATCH_ENTRIES = 1 << 22
"""Entries that 2048 rows may have together, as those of the widest common network do: 17 MB. Of wider rows, fewer are
read at once, because a set of few samples may take all the memory that is allowed."""

IdsAt = Callable[[NDArray[np.int64]], Sequence[str]]  # function from indices of samples to their ids


@dataclass(frozen=True)
class Batch:
    """Consecutive embeddings of a set."""

    start: int  # index of the first row in its set
    keys: NDArray[np.uint64]  # hashes of the ids (`keys_of`), shape (b,). The lowest bit, of the group, is the fold.
    rows: torch.Tensor  # embeddings, shape (b, d), float32, finite
    ids_at: IdsAt  # function that reads the ids of samples, from their indices in the set

    @property
    def ids(self) -> Sequence[str]:
        """Ids of the samples, one per row."""
        return self.ids_at(np.arange(self.start, self.start + len(self.rows)))


class Embeddings(ABC):
    """Embeddings of a set, read in batches; of the whole set only hashes of 8 bytes are held."""

    n: int  # number of rows
    dim: int  # number of entries of a row
    name: str  # name of the set in messages
    space: str  # the extractor, as name@digest; embeddings of one space can be compared
    title: str | None = None  # name of the set in results; None if only its label names it
    columns: tuple[str, ...] = ()  # names of the columns of metadata, "label" and "prompt" among them
    shard: Shard | None = None  # range of a set that the samples are; None for a whole set
    are_images: bool = False  # whether the embeddings are of images whose `content` is known, and not of clips
    hashes_of_rows: NDArray[np.uint64] | None = None  # as `row_hashes` found them, shape (n,)
    stands_for: HashCounts | None = None  # rows of the set that these are a sample of; None: they are all
    _group_name: str | None = None
    _groups: NDArray[np.uint64] | None = None
    _spellings: Mapping[str, Mapping[str, str]] | None = None

    @property
    @abstractmethod
    def digest(self) -> str:
        """Digest that distinguishes two sets."""

    @abstractmethod
    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the sample ids of consecutive rows."""

    @abstractmethod
    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the sample ids of these rows."""

    @abstractmethod
    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return these rows: (m, d), float32, finite."""

    def is_finite(self) -> NDArray[np.bool_]:
        """Mark the embeddings that are finite, shape (n,): a cache has no others, and an array may."""
        return np.ones(self.n, bool)

    @abstractmethod
    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]: ...

    def batches(self, size: int = BATCH_SIZE, place: Place | None = None) -> Iterator[Batch]:
        """Yield all rows in order; the next batch is read and put in its place while the caller works on one.

        Batches have `size` rows, and fewer if the rows are wide (`rows_together`).

        The reader applies `place` to the rows of a batch, such as to send them to a device.
        """

        def batches() -> Iterator[Batch]:
            keys, start = self.id_keys(), 0
            for rows in self._rows_in_order(rows_together(size, self.dim)):
                stop, rows = start + len(rows), rows if place is None else place(rows)
                yield Batch(start, keys[start:stop], rows, self.ids_at)
                start = stop

        return batches() if self.n <= rows_together(size, self.dim) else prefetch(batches())

    def column(self, name: str) -> list[str]:
        """Return a column of the metadata: one text a sample, "" if it is missing.

        Raises:
            UsageError: the set does not have this column.
        """
        return self._spelled(name, 0, self.n)

    def missing_as(self, name: str) -> frozenset[str]:
        """Return the texts that stand for a missing value in a column, such as NA among numbers."""
        return frozenset()

    def with_spellings(self, spellings: Mapping[str, Mapping[str, str]] | None) -> Self:
        """Return the same set with other spellings of some values, by column and value."""
        view = copy(self)
        view._spellings = spellings
        return view

    def _spelled(self, name: str, start: int, stop: int) -> list[str]:
        values, spelling = self._column_between(name, start, stop), (self._spellings or {}).get(name)
        return [spelling.get(value, value) for value in values] if spelling else values

    def metadata_of(self, ids: Container[str]) -> dict[str, tuple[int, dict[str, str]]]:
        """Return the row and the metadata of a few samples by id; missing values are left out."""
        rows_by_name: dict[str, tuple[int, dict[str, str]]] = {}
        for start, stop in self.portions():
            names = self.ids_between(start, stop)
            rows = [row for row, name in enumerate(names) if name in ids]
            columns = {key: self._column_between(key, start, stop) for key in self.columns} if rows else {}
            for row in rows:
                values = {key: column[row] for key, column in columns.items() if column[row]}
                rows_by_name[names[row]] = (start + row, values)
        return rows_by_name

    def _column_between(self, name: str, start: int, stop: int) -> list[str]:
        raise unknown_column(name, self.columns, self.name)

    def images_at(self, indices: NDArray[np.int64]) -> list[Image.Image] | None:
        """Return the pictures of these samples, of a clip its middle frame; None if they are not at hand."""
        return None

    def courses_at(self, indices: NDArray[np.int64]) -> WithCourses | None:
        """Return what `images_at` does, and small frames of the whole videos of clips, or None."""
        return None if (images := self.images_at(indices)) is None else [(image, None) for image in images]

    def pixels_at(self, indices: NDArray[np.int64]) -> list[NDArray[np.uint8]] | None:
        """Return the pixels of these samples, (h, w, 3), or (frames, h, w, 3) of clips; None if not at hand."""
        pictures = self.pixels_found(indices)
        known = [pixels for pixels in pictures or () if pixels is not None]
        return None if pictures is None or len(known) < len(pictures) else known

    def pixels_found(self, indices: NDArray[np.int64]) -> list[NDArray[np.uint8] | None] | None:
        """Return the pixels of these samples, None for each that is not as it was embedded; None if none is at hand."""
        if self.samples is None:
            return None
        ids = self.ids_at(indices)
        try:
            pictures = {sample.id: sample.pixels for sample in self.samples.read(set(ids)) if sample.pixels is not None}
        except FincEvalError:  # the folder is gone, or is empty
            return None
        return [pictures.get(name) for name in ids]

    @property
    def samples(self) -> EmbeddedSamples | HeldSamples | None:
        """Samples behind the embeddings, from which pictures are made; None if they are not at hand."""
        return None

    @property
    def cells(self) -> Cells | None:
        """Cells of the samples that have them; None if none are kept, for the reason in `cells_absent`."""
        return None

    @property
    def cells_absent(self) -> str:
        """Reason why no cells are kept; "" if they are."""
        return "arrays of embeddings come without cells"

    def content(self) -> NDArray[np.uint64] | None:
        """Return a digest of the pixels of each sample, shape (n,), equal for equal pixels; None if it is unknown."""
        return None

    def grouped(self, column: str | None) -> Embeddings:
        """Return the same set, its samples grouped by a column; None: windows of a video by their video.

        The samples of a group are not independent: all of them lie in one fold. A sample without a value stands for
        itself.

        Raises:
            UsageError: the set does not have this column.
        """
        if column is None:
            return self.with_groups(None, None)
        portions = ((self._spelled(column, *ends), self.ids_between(*ends)) for ends in self.portions())
        # No file name has a NUL, so that no value equals the stand-in of a missing one.
        hashes = [
            string_hashes([value or f"\0{name}" for value, name in zip(*portion, strict=True)]) for portion in portions
        ]
        return self.with_groups(np.concatenate(hashes), column)

    def named(self, name: str) -> Self:
        """Return the same set under another name in messages."""
        view = copy(self)
        view.name = name
        return view

    def with_groups(self, groups: NDArray[np.uint64] | None, name: str | None) -> Self:
        """Return the same set with the hash of each sample's group, shape (n,), and a name of the grouping."""
        view = copy(self)
        view._groups, view._group_name = groups, name
        return view

    @property
    def grouping(self) -> str | None:
        """Name of what groups the samples: a column, or "video"; None if ungrouped."""
        return self._group_name or (None if self.group_hashes() is None else VIDEO)

    def group_hashes(self) -> NDArray[np.uint64] | None:
        """Return a hash of the group of each sample, shape (n,); None if ungrouped."""
        return self._hashes[1] if self._groups is None else self._groups

    @cached_property
    def _hashes(self) -> Hashes:
        parts = [self._hashes_between(start, stop) for start, stop in self.portions()]
        ids = np.concatenate([np.empty(0, np.uint64), *(group for group, _ in parts)])  # a shard may be without samples
        if all(videos is None for _, videos in parts):
            return ids, None
        # An id that is not a window's stands for itself.
        return ids, np.concatenate([group if videos is None else videos for group, videos in parts])

    def _hashes_between(self, start: int, stop: int) -> Hashes:
        return hashes_of(self.ids_between(start, stop))

    def id_keys(self) -> NDArray[np.uint64]:
        """Return the keys of all samples (`Batch`), shape (n,), without reading a row."""
        return keys_of(self._hashes[0], self.group_hashes())

    def unit_keys(self) -> NDArray[np.uint64]:
        """Return a hash of what is independent, shape (n,): of each sample's group, or its id's key if ungrouped."""
        groups = self.group_hashes()
        return self.id_keys() if groups is None else groups

    def portions(self) -> Iterator[tuple[int, int]]:
        """Return where each portion of samples starts and stops whose ids are read together."""
        return ((start, min(start + PORTION, self.n)) for start in range(0, self.n, PORTION))


def rows_together(size: int, dim: int) -> int:
    """Return how many rows are read at once: `size`, or fewer if they are wide."""
    return min(size, max(1, max(1, size // BATCH_SIZE) * BATCH_ENTRIES // dim))


class ArrayEmbeddings(Embeddings):
    """Embeddings in an array or tensor of shape (n, d); the ids are the row numbers unless names are given."""

    _names: list[str] | None = None  # ids that were given
    _is_precise = False  # whether float64 stays float64

    def __init__(self, array: ArrayLike | torch.Tensor, name: str = "embeddings") -> None:
        self._rows, self._checked = as_rows(array, name, precise=self._is_precise), False
        self._digest: str | None = None
        self.n, self.dim = self._rows.shape
        self.name = name
        # Arrays do not name their extractor: any two of the same dimension are taken to be comparable.
        self.space = f"{ARRAY_SPACE}{self.dim}"

    @property
    def digest(self) -> str:
        """SHA-256 of shape and float32 values, computed by any pass over all rows, and of the ids that were given."""
        if self._digest is None:
            sha = hashlib.sha256(str((self.n, self.dim)).encode())
            for start in range(0, self.n, step := max(BATCH_ENTRIES // self.dim, 1)):
                sha.update(array_bytes(self._finite(self._taken(slice(start, start + step)), range(start, self.n))))
            self._digest = sha.hexdigest()
        return self._digest if self._names is None else sha256_of(self._digest, "\0".join(self._names))

    def ids_between(self, start: int, stop: int) -> list[str]:
        return list(map(str, range(start, stop))) if self._names is None else self._names[start:stop]

    def _hashes_between(self, start: int, stop: int) -> Hashes:
        return (number_hashes(start, stop), None) if self._names is None else super()._hashes_between(start, stop)

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        names = self._names
        return tuple(str(index) if names is None else names[index] for index in indices.tolist())

    def is_finite(self) -> NDArray[np.bool_]:
        size = max(BATCH_ENTRIES // self.dim, 1)
        parts = [self._taken(slice(start, start + size)).detach().float() for start in range(0, self.n, size)]
        return torch.cat([part.isfinite().all(1) for part in parts]).cpu().numpy()

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        return self._finite(self._taken(send(torch.from_numpy(indices), self._rows.device)), indices)

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        if self._rows.device.type != "cpu":
            # Checked all at once: for every check, the host waits for the GPU.
            if not self._checked:
                for start in range(0, self.n, step := max(BATCH_ENTRIES // self.dim, 1)):
                    self._finite(self._taken(slice(start, start + step)), range(start, self.n))
                self._checked = True
            for start in range(0, self.n, size):
                yield self._taken(slice(start, start + size)).detach().float()
            return
        sha = None if self._digest else hashlib.sha256(str((self.n, self.dim)).encode())
        for start in range(0, self.n, size):
            rows = self._finite(self._taken(slice(start, start + size)), range(start, self.n))
            if sha is not None:
                sha.update(array_bytes(rows))
            yield rows
        if sha is not None:
            self._digest = sha.hexdigest()

    def _taken(self, rows: slice | torch.Tensor) -> torch.Tensor:
        return self._rows[rows]

    def _finite(self, rows: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64]) -> torch.Tensor:
        return finite_rows(rows.detach(), numbers, self.name)


class CachedEmbeddings(Embeddings):
    """Embeddings in an `EmbeddingCache`, with the ids of its samples."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self.cache = cache
        self.n, self.dim = cache.n, cache.dim
        # The file of a cache in the folder of caches has its key as name, which says nothing to a reader.
        self.name = cache.source if cache.path.stem == cache.key else str(cache.path)
        self.title = cache_title(cache)
        self.space = space_named(cache.extractor, cache.extractor_digest)
        self.columns, self.shard, self.are_images = cache.columns, cache.shard, cache.clip is None

    @property
    def digest(self) -> str:
        """Key of the cache."""
        return self.cache.key

    def ids_between(self, start: int, stop: int) -> list[str]:
        return self.cache.ids_between(start, stop)

    def ids_at(self, indices: NDArray[np.int64]) -> tuple[str, ...]:
        return self.cache.ids_at(indices)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        return finite_rows(torch.from_numpy(self.cache[indices]), indices, self.name)

    def images_at(self, indices: NDArray[np.int64]) -> list[Image.Image] | None:
        return None if self.samples is None else self.samples.pictures(self.ids_at(indices))

    def courses_at(self, indices: NDArray[np.int64]) -> WithCourses | None:
        return None if self.samples is None else self.samples.courses(self.ids_at(indices))

    def content(self) -> NDArray[np.uint64]:
        return self.cache.content

    @cached_property
    def samples(self) -> EmbeddedSamples | None:
        """Samples that the cache was made of; None if they are neither in files nor held by this process."""
        return EmbeddedSamples(self.cache) if self.cache.held or is_place(self.cache.source) else None

    @property
    def cells(self) -> Cells | None:
        """Cells in the file; None if it has none."""
        return self.cache.cells

    @property
    def cells_absent(self) -> str:
        """Reason why the file has no cells; "" if it has them."""
        return self.cache.cells_absent

    def _column_between(self, name: str, start: int, stop: int) -> list[str]:
        if name not in self.columns:
            raise unknown_column(name, self.columns, self.title or self.name)
        return self.cache.column(name, slice(start, stop))

    def missing_as(self, name: str) -> frozenset[str]:
        return self.cache.missing_as(name)

    def _hashes_between(self, start: int, stop: int) -> Hashes:
        return hashes_of_bytes(self.cache.id_bytes_between(start, stop))

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        for start, rows in zip(range(0, self.n, size), self.cache.batches(size), strict=True):
            yield finite_rows(torch.from_numpy(rows), range(start, self.n), self.name)
