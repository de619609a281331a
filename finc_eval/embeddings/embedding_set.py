"""`EmbeddingSet`: embeddings in memory, with the ids, the metadata and the pictures of their samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.serialize import Shown
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.columns import columns_of, drop_missing, missing_texts, unknown_column
from finc_eval.embeddings.pictures import HeldSamples, WithCourses, course_of, picture
from finc_eval.samples.in_memory import holds_images, is_batch
from finc_eval.samples.source import fingerprint

if TYPE_CHECKING:
    from PIL import Image


class EmbeddingSet(Shown, ArrayEmbeddings):
    """Embeddings in memory, with the ids, the metadata and the pictures of their samples.

    Everything that takes embeddings takes it. Columns give kinds their names. A column can also name the groups of
    samples that are not independent (`groups=`), such as frames of a video or images of a prompt.

    Args:
        rows: embeddings, array or tensor of shape (n, d).
        ids: name of each sample, all different; default: the row numbers. The fold of a sample follows from its id.
        metadata: columns, a mapping from a name to n values, or a pandas data frame of n rows. Values become texts, and
            None and NaN become "", a missing value.
        images: n images: PIL images or uint8 arrays (h, w) or (h, w, 3), or one uint8 array (n, h, w, 3).
        name: name in messages.

    Attributes:
        columns: names of the columns.

    Raises:
        UsageError: the rows are not embeddings; ids, a column or images have another length; an id occurs twice.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> frames = fe.EmbeddingSet(gen, metadata={"clip": [row // 3 for row in range(300)]})
        >>> frames.columns, frames.column("clip")[:4]
        (('clip',), ['0', '0', '0', '1'])
        >>> len(set(frames.grouped("clip").group_hashes()))
        100
    """

    def __init__(
        self,
        rows: ArrayLike | torch.Tensor,
        ids: Sequence[object] | None = None,
        metadata: object | None = None,
        images: Sequence[Any] | NDArray[np.uint8] | None = None,
        *,
        name: str = "embeddings",
    ) -> None:
        super().__init__(rows, name)
        self._names = None if ids is None else [str(sample_id) for sample_id in ids]
        if self._names is not None:
            count = len(self._names)
            if count != self.n:
                raise UsageError(
                    f"{name} has {plural(count, 'id')} for {plural(self.n, 'embedding')}: give one a row, or none"
                )
            (twice, times) = Counter(self._names).most_common(1)[0]
            if times > 1:
                raise UsageError(f"the id {twice!r} occurs {times} times in {name}: give each sample an id of its own")
        self._columns = {} if metadata is None else columns_of(metadata, self.n, name)
        self._missing = {column: missing_texts(values) for column, values in self._columns.items()}
        if images is not None and len(images) != self.n:
            raise UsageError(
                f"{name} has {plural(len(images), 'image')} for {plural(self.n, 'embedding')}: give one a row, or none"
            )
        self._images = images
        self.columns = tuple(self._columns)

    def images_at(self, indices: NDArray[np.int64]) -> list[Image.Image] | None:
        """Return the pictures of these samples; None without images."""
        images = self._images
        return None if images is None else [picture(images[index]) for index in indices.tolist()]

    def courses_at(self, indices: NDArray[np.int64]) -> WithCourses | None:
        """Return the pictures of these samples, with small frames of all frames of clips; None without images."""
        chosen = None if self._images is None else [self._images[index] for index in indices.tolist()]
        return None if chosen is None else [(picture(image), course_of(image)) for image in chosen]

    @property
    def samples(self) -> HeldSamples | None:
        """Samples with their pictures; None without images."""
        return None if self._images is None else HeldSamples(self.ids_between(0, self.n), self._images)

    def content(self) -> NDArray[np.uint64] | None:
        """Return digests of the pixels in RGB; None without images."""
        return self._content

    @cached_property
    def _content(self) -> NDArray[np.uint64] | None:
        if self._images is None:
            return None
        pixels = (np.asarray(picture(image).convert("RGB")) for image in self._images)
        return np.fromiter(map(fingerprint, pixels), np.uint64, self.n)

    def _column_between(self, name: str, start: int, stop: int) -> list[str]:
        if name not in self._columns:
            raise unknown_column(name, self.columns, self.name)
        return drop_missing(self._columns[name][start:stop], self._missing[name])

    def missing_as(self, name: str) -> frozenset[str]:
        """Return the texts that stand for a missing value in a column, such as NA among numbers."""
        return self._missing.get(name, frozenset())

    def with_columns(self, columns: Mapping[str, object]) -> EmbeddingSet:
        """Return the set with further columns of metadata."""
        more = {**self._columns, **columns}
        return EmbeddingSet(self._rows, self._names, more, self._images, name=self.name)

    def select(self, ids: Iterable[object]) -> EmbeddingSet:
        """Return the set of some of the samples, such as a selection of an atlas, in the order of this set.

        Raises:
            UsageError: an id is not in the set.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> fe.EmbeddingSet(example_sets()[0]).select(["3", "1"]).ids_between(0, 2)
            ['1', '3']
        """
        names = self.ids_between(0, self.n)
        chosen = {str(sample_id) for sample_id in ids}
        if unknown := chosen.difference(names):
            first = min(unknown)
            raise UsageError(
                f"{self.name} has no sample {first!r}{did_you_mean(first, names)}, and {plural(len(chosen), 'id')} "
                "were given: pass ids of this set alone"
            )
        rows = [row for row, name in enumerate(names) if name in chosen]
        columns = {name: [values[row] for row in rows] for name, values in self._columns.items()}
        images = None if self._images is None else [self._images[row] for row in rows]
        return EmbeddingSet(
            self._taken(torch.tensor(rows, dtype=torch.int64)),
            [names[row] for row in rows],
            columns,
            images,
            name=self.name,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what the set is, without its embeddings."""
        return {"name": self.name, "n": self.n, "dim": self.dim, "columns": list(self.columns)}

    def _frame_rows(self) -> list[dict[str, object]]:
        ids = self.ids_between(0, self.n)
        columns = [self.column(name) for name in self.columns]
        return [dict(zip(("id", *self.columns), row, strict=True)) for row in zip(ids, *columns, strict=True)]

    def _summary(self) -> str:
        columns = f", columns={list(self.columns)}" if self.columns else ""
        return f"n={self.n}, dim={self.dim}{columns}"


def take_arrays(
    sets: Mapping[str, object], labels: object, options: Mapping[str, Any]
) -> tuple[dict[str, object], dict[str, Any]]:
    """Return sets with their labels and groups as columns, and options that name these columns.

    `labels` become the column "label", by which shares are compared; `groups`, unless it names a column, the column
    "group".
    """
    chosen, given = dict(options), {label: dict[str, object]() for label in sets}
    asked = {"label": ("labels", labels), "group": ("groups", chosen.get("groups"))}
    for column, (what, values) in asked.items():
        if values is None or isinstance(values, str):
            continue
        for label, column_values in _by_set(values, what, [*sets]).items():
            given[label][column] = column_values
        if what == "groups" or chosen.get("by") is None:
            chosen["groups" if what == "groups" else "by"] = column
    return {
        label: _beside(source, given[label], label) if given[label] else source for label, source in sets.items()
    }, chosen


def _by_set(values: object, what: str, sets: Sequence[str]) -> dict[str, object]:
    """Return the values of each set, given by label or in the order of the sets."""
    if isinstance(values, Mapping):
        for label in values:
            if label not in sets:
                hint = did_you_mean(str(label), sets)
                raise UsageError(f"{what} name a set {label!r}{hint}: the sets are {join_words(sets)}")
        return dict(values)
    count = len(values) if isinstance(values, Sized) else 0
    if count != len(sets):
        raise UsageError(
            f"{what} must be one array for each of {join_words(sets)}, in this order or by name, got "
            f"{plural(count, 'array') if count else type(values).__name__}"
        )
    return dict(zip(sets, values, strict=True))  # type: ignore[call-overload]  # what has a length can be iterated


def _beside(source: object, columns: Mapping[str, object], label: str) -> EmbeddingSet:
    if isinstance(source, EmbeddingSet):
        return source.with_columns(columns)
    if is_batch(source) or (isinstance(source, list | tuple) and holds_images(source)):
        raise UsageError(
            f"labels and groups stand beside embeddings, and {label} is images: pass list(zip(images, labels)), or "
            "fe.extract(images, metadata={'label': labels})"
        )
    if isinstance(source, list | tuple) or hasattr(source, "__array__"):
        return EmbeddingSet(source, metadata=columns, name=label)
    raise UsageError(
        f"labels and groups stand beside arrays, and {label} is of the type {type(source).__name__}: name a column of "
        "its metadata, as by=… or groups=…"
    )
