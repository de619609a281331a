"""The sets to divide into kinds: whatever the caller has of each, opened and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.storage import file_type
from finc_eval.embeddings.base import Embeddings, as_embeddings, check_alike
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.set_info import SetInfo, set_info
from finc_eval.sketches.sketch import Sketch

MIN_SAMPLES = 20
"""Samples that each set needs."""


@dataclass(frozen=True)
class OpenedSet:
    """A set to count.

    Attributes:
        label: its label.
        embeddings: its embeddings; of a sketch, the sample that it holds.
        sketch: the sketch, if it is one.
    """

    label: str
    embeddings: Embeddings
    sketch: Sketch | None

    def info(self) -> SetInfo:
        """Describe the set for a report."""
        if self.sketch is None:
            return set_info(self.label, self.embeddings, self.embeddings.n, self.embeddings.digest)
        return set_info(self.label, None, self.sketch.n, "+".join(self.sketch.sources))

    def warnings(self) -> tuple[str, ...]:
        """Warn of a sketch that holds only some of its samples."""
        if self.sketch is None or self.embeddings.n == self.sketch.n:
            return ()
        held = f"{self.embeddings.n:,} embeddings that it holds are counted, of {self.sketch.n:,} samples"
        return (f"{self.label} is a sketch: the {held}, so smaller differences are missed",)


def open_sets(sets: Mapping[str, object], groups: str | None) -> dict[str, OpenedSet]:
    """Open the sets of a partition, and check that they belong together.

    Args:
        sets: arrays, tensors, `EmbeddingSet`, `EmbeddingCache`, `Sketch` or paths of files, by label.
        groups: column of metadata that names the groups; None: windows of a video by their video.
    """
    if len(sets) < 2:
        raise UsageError(f"at least two sets are needed to compare, got {len(sets)}")
    opened = {label: _open(label, source, groups) for label, source in sets.items()}
    first, *others = opened.values()
    for other in others:
        check_alike(first.label, first.embeddings, other.label, other.embeddings)
    return opened


def _open(label: str, source: object, groups: str | None) -> OpenedSet:
    if isinstance(source, str | Path) and file_type(source) == "sketch":
        source = Sketch.load(source)
    if isinstance(source, Sketch):
        sketch, embeddings = source, _held(source, label)
    else:
        sketch, embeddings = None, as_embeddings(source, label)
    if embeddings.n < MIN_SAMPLES:
        raise DataError(f"{label} has {embeddings.n} samples: at least {MIN_SAMPLES} of each set are needed")
    return OpenedSet(label, embeddings if groups is None else embeddings.grouped(groups), sketch)


def _held(sketch: Sketch, label: str) -> Embeddings:
    """Return the sample of embeddings that a sketch holds."""
    found = EmbeddingSet(sketch.sample.rows, sketch.sample.ids, name=label)
    found.space = sketch.space
    return found
