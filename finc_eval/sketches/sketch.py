"""Sketches: the sufficient statistics of a set of embeddings. Sketches add: `a + b` is the sketch of the union."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.device import send
from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_choice
from finc_eval.core.files.stored import existing_file
from finc_eval.core.record import settings_from, structure
from finc_eval.core.run import Run
from finc_eval.core.serialize import Shown
from finc_eval.core.words import plural
from finc_eval.embeddings.base import VIDEO, ArrayEmbeddings
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.keys import even_row_hashes, hashes_of, keys_of
from finc_eval.embeddings.opening import as_embeddings, open_grouped
from finc_eval.embeddings.recipe import ARRAY_SPACE, check_same_space
from finc_eval.embeddings.repeats import REPEATS
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.arrays import fold_of, rows_of
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.numerics.moments import Moments, weighted_sum
from finc_eval.numerics.names import PRECISIONS, Precision
from finc_eval.numerics.precision import arithmetic
from finc_eval.samples.shards import Shard, join_shards
from finc_eval.sketches import stored
from finc_eval.sketches.adding import check_disjoint, tell_apart
from finc_eval.sketches.folds import SAMPLE_SIZE, BottomSample, RowCounter, columns_of_rows, fold_chunks, no_columns
from finc_eval.sketches.kept import sample_as_set
from finc_eval.sketches.reference import reference_feature_map
from finc_eval.sketches.settings import SketchOptions, SketchSettings, check_size

MAX_EMBEDDING = 4096  # entries of an embedding up to which its moments are kept


class Sketch(Shown):
    """Moments of φ(x) in two folds, moments of x, and a small sample: all that a comparison needs of a set.

    The place of a sample in the bottom-k sample follows from a hash of its id alone, and its fold from its group. So a
    sketch does not depend on order, batches or shards, and `a + b` is the sketch of the union of two disjoint sets. A
    group must lie in one of them: put all windows of a video, or all samples of a group, into the same shard.

    Its size does not depend on the number of samples: about 4·(2r)² bytes for r frequencies, 64 MB for 2 000, and the
    moments and the small sample of embeddings. It pays if embeddings are larger than that, may not be kept or shared,
    or lie in several places. Otherwise compare the embeddings, which gives sharper intervals.

    Args:
        feature_map: φ; sketches can be added and compared only when they share it.
        sample: number of embeddings to keep as the bottom-k sample; 0 keeps none.
        space: extractor of the embeddings, as name@digest; default: unknown.
        precision: precision of the covariance of φ: float32, or float64, in which the sums of shards are those of one
            process.

    Attributes:
        folds: moments of φ(x) over the samples of fold 0 and of fold 1, which follow from the group, or else the id.
        embedding: moments of x − μ in float64, for the Fréchet distance; μ is the feature map's center. None for
            embeddings of more than 4096 entries, whose covariance would not fit into memory.
        sample: bottom-k sample of embeddings, with their ids and columns of metadata.
        sources: digests of the sets that went in.
        name: title of the set; None for arrays.
        groups: what groups the samples: a column of metadata, or "video" for windows of videos; None if ungrouped.
        squared_sizes: Σ m² over the groups of m samples; n if ungrouped.
        repeats: how many samples have each embedding, by the smallest hashes of embeddings; None if it is not known.
        shards: parts of sets that the sketch is of, to be merged with the others; empty where all its sets are whole.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> reference = fe.Sketch.reference(ref, features=200)
        >>> halves = [fe.Sketch.of(ref[::2], reference), fe.Sketch.of(ref[1::2], reference)]
        >>> (halves[0] + halves[1]).n
        300
    """

    type_name: ClassVar[str] = stored.SKETCH

    def __init__(
        self,
        feature_map: FeatureMap,
        *,
        sample: int = SAMPLE_SIZE,
        space: str | None = None,
        precision: Precision = "float32",
    ) -> None:
        check_choice("precision", precision, PRECISIONS)
        check_size(feature_map.size)
        device = feature_map.device
        self.feature_map = feature_map
        self.space = space or f"{ARRAY_SPACE}{feature_map.dim}"
        self.precision = precision
        self.folds = (Moments(feature_map.size, precision, device), Moments(feature_map.size, precision, device))
        small = feature_map.dim <= MAX_EMBEDDING
        self.embedding = Moments(feature_map.dim, "float64", device) if small else None
        self.sample = BottomSample(feature_map.dim, sample)
        self.sources: tuple[str, ...] = ()
        self.name: str | None = None
        self.groups: str | None = None
        self.squared_sizes = 0
        self.repeats: HashCounts | None = HashCounts()
        self.shards: tuple[Shard, ...] = ()

    @classmethod
    def of(
        cls,
        source: object,
        feature_map: FeatureMap | Sketch,
        *,
        sample: int = SAMPLE_SIZE,
        precision: Precision = "float32",
        groups: str | None = None,
        run: Run | None = None,
    ) -> Sketch:
        """Sketch a set in one pass.

        Args:
            source: array or tensor of shape (n, d), `EmbeddingCache` of a whole set or a shard, or its path.
            feature_map: φ, or a sketch that has it, usually the reference's.
            sample: number of embeddings to keep.
            precision: precision of the covariance of φ.
            groups: column of the metadata that names the groups; default: the grouping of the set.
            run: portions and progress of the pass; the device is the feature map's.

        Raises:
            UsageError: the set does not have the column, or `feature_map` is not a feature map.
            DataError: the embeddings are not finite.
            IncompatibleError: the embeddings have another dimension than the feature map.
        """
        phi = feature_map.feature_map if isinstance(feature_map, Sketch) else feature_map
        if not isinstance(phi, FeatureMap):
            raise UsageError(
                f"feature_map must be a feature map or a sketch that has one, got {type(phi).__name__}: pass the "
                "reference's, fe.Sketch.reference(ref)"
            )
        embeddings = as_embeddings(source, or_shard=True)
        if embeddings.shard is not None and groups is not None:
            raise UsageError(
                f"{embeddings.name} is a shard, and a group by {groups} may lie in two: join the shards of embeddings "
                "by finc-eval extract merge, and sketch the whole set"
            )
        grouped = embeddings if groups is None else embeddings.grouped(groups)
        (sketch,) = sketch_all(grouped, [phi], sample=sample, precision=precision, run=run)
        if embeddings.shard is not None and embeddings.shard.size:
            sketch.shards = join_shards([(embeddings.name, embeddings.shard)])
        return sketch

    @classmethod
    def reference(
        cls,
        source: object,
        settings: SketchSettings | None = None,
        *,
        extractor: AnyExtractor = None,
        run: Run | None = None,
        **options: Unpack[SketchOptions],
    ) -> Sketch:
        """Sketch a reference set with a feature map of its own, as `compare` does.

        Args:
            source: array or tensor of shape (n, d), `EmbeddingCache` or its path, or samples, which are embedded first.
            settings: settings of the feature map.
            extractor: how to embed samples: a name, the path of a card, or `fe.Extraction`.
            run: device, portions and progress.
            options: fields of `SketchSettings`, which override `settings`.

        Raises:
            UsageError: a setting is out of range.
            DataError: the embeddings are not finite, or all equal.
        """
        chosen, run = settings_from(SketchSettings, settings, options), Run.of(run)
        embeddings = open_grouped(source, "ref", chosen.groups, extractor, run)
        phi, _ = reference_feature_map([embeddings], chosen, run.torch_device)
        return cls.of(embeddings, phi, precision=chosen.precision, groups=chosen.groups, run=run)

    def update(self, rows: ArrayLike | torch.Tensor, ids: Sequence[str] | None = None) -> None:
        """Add embeddings.

        Args:
            rows: embeddings, shape (b, d).
            ids: sample ids, which decide fold and sample; default: the running row number. Windows of one video
                ("clip.mp4#3") come together.

        Raises:
            DataError: the shape does not fit, or an embedding is not finite.
        """
        embeddings = ArrayEmbeddings(rows, "the batch")
        names = [str(self.n + i) for i in range(embeddings.n)] if ids is None else list(ids)
        if len(names) != embeddings.n:
            raise DataError(
                f"{plural(embeddings.n, 'embedding')} came with {plural(len(names), 'id')}: give one id a row"
            )
        hashes, videos = hashes_of(names)
        keys = keys_of(hashes, videos)
        self._count_groups(embeddings.n, videos, VIDEO)
        checked = self.feature_map.prepared(embeddings.rows_at(np.arange(embeddings.n)))
        self.sample.add(keys, names, checked)
        for fold in (0, 1):
            chosen = send(rows_of(torch.from_numpy(fold_of(keys)), fold), checked.device)
            if len(chosen):
                self.add_fold(fold, checked[chosen])
        self.repeats = self.repeats and self.repeats + HashCounts.of(even_row_hashes(checked))

    def _count_groups(self, n: int, groups: NDArray[np.uint64] | None, name: str | None) -> None:
        if groups is None:
            self.squared_sizes += n
        else:
            self.groups = name
            self.squared_sizes += int((np.unique(groups, return_counts=True)[1] ** 2).sum())

    def add_fold(self, fold: int, rows: torch.Tensor) -> None:
        """Add embeddings of one fold (n, d), prepared for the feature map, to the moments."""
        self.folds[fold].update(self.feature_map.apply(rows))
        if self.embedding is not None:
            self.embedding.update(rows - self.feature_map.center)

    @property
    def n(self) -> int:
        """Number of samples that went in."""
        return self.folds[0].n + self.folds[1].n

    @property
    def samples_per_group(self) -> float:
        """Σ m² / Σ m over groups of m samples, the size of the group of a sample on average; 1 without groups."""
        return self.squared_sizes / self.n if self.n else 1.0

    @property
    def dim(self) -> int:
        """d, number of entries of an embedding."""
        return self.feature_map.dim

    @property
    def covariance(self) -> torch.Tensor:
        """C = E[φ(x)φ(x)ᵀ], shape (q, q), the uncentered kernel covariance of the set (FINC paper, Section 3)."""
        return weighted_sum([(1 / self.n, fold) for fold in self.folds])

    def __add__(self, other: Sketch) -> Sketch:
        self.check_comparable(other)
        if self.precision != other.precision:
            raise IncompatibleError(
                f"the sketches are in {self.precision} and {other.precision}: make both with the same precision="
            )
        total = Sketch(self.feature_map, sample=0, space=self.space, precision=self.precision)
        total.folds = (self.folds[0] + other.folds[0], self.folds[1] + other.folds[1])
        if self.embedding is not None and other.embedding is not None:
            total.embedding = self.embedding + other.embedding
        total.sample = self.sample + other.sample
        total.sample.ids = tell_apart(total.sample.ids)
        total.sources = tuple(sorted(self.sources + other.sources))
        total.name = "+".join(dict.fromkeys(sketch.name for sketch in (self, other) if sketch.name)) or None
        total.groups = "+".join(sorted({sketch.groups for sketch in (self, other) if sketch.groups})) or None
        total.squared_sizes = self.squared_sizes + other.squared_sizes
        total.repeats = self.repeats and other.repeats and self.repeats + other.repeats
        named = (("one sketch", self.shards), ("the other", other.shards))
        total.shards = join_shards((name, shard) for name, shards in named for shard in shards)
        check_disjoint((self.sources, other.sources), (self.sample, other.sample))
        return total

    def to(self, device: str | torch.device) -> Sketch:
        """Return the same sketch with its moments on another device; itself if they lie there."""
        where = torch.empty(0, device=device).device  # which has its number
        if where == self.feature_map.device:
            return self
        moved = copy(self)
        moved.feature_map = self.feature_map.to(where)
        moved.folds = (self.folds[0].to(where), self.folds[1].to(where))
        moved.embedding = None if self.embedding is None else self.embedding.to(where)
        return moved

    def check_comparable(self, other: Sketch) -> None:
        """Raise IncompatibleError unless the two sketches share embedding space and feature map."""
        check_same_space("one sketch", self.space, "the other", other.space)
        if self.feature_map is not other.feature_map and self.feature_map.digest != other.feature_map.digest:
            raise IncompatibleError(
                f"the sketches use different feature maps ({self.feature_map} and {other.feature_map}, or other "
                "centers): make one of them with the other's map (finc-eval extract sketch --feature-map-of)"
            )

    def save(self, path: str | Path) -> None:
        """Write the sketch to an HDF5 file (about 4·(2r)² bytes: what is above the diagonals of two folds)."""
        header = stored.SketchHeader(
            space=self.space,
            precision=self.precision,
            sources=self.sources,
            name=self.name,
            groups=self.groups,
            squared_sizes=self.squared_sizes,
            shards=self.shards,
            capacity=self.sample.capacity,
            n={name: moments.n for name, moments in self._moments().items()},
            columns=tuple(self.sample.columns),
            repeats_counted=self.repeats is not None,
        )
        stored.write_parts(path, header, self.feature_map, self._moments(), self.sample, self.repeats)

    @classmethod
    def load(cls, path: str | Path, device: str | torch.device = "cpu") -> Sketch:
        """Read a sketch that `save` wrote.

        Raises:
            DataError: the file is missing, damaged, or not a sketch.
        """
        with existing_file(path, stored.SKETCH, stored.SKETCH_LAYOUT) as file:
            header = structure(stored.SketchHeader, file.header, str(path))
            phi = stored.read_feature_map(file, device)
            sketch = cls(phi, sample=header.capacity, space=header.space, precision=header.precision)
            sketch.sample = stored.read_sample(file, header, phi.dim)
            stored.read_all_moments(file, sketch._moments(), header.n)
            sketch.repeats = stored.read_repeats(file, header, sketch.n)
            if (sketch.embedding is not None and sketch.embedding.n != sketch.n) or header.squared_sizes < sketch.n:
                raise ValueError("its numbers of samples differ")
        sketch.sources, sketch.name = header.sources, header.name or Path(path).stem
        sketch.groups, sketch.squared_sizes, sketch.shards = header.groups, header.squared_sizes, header.shards
        return sketch

    def held(self, name: str = "sketch") -> EmbeddingSet | None:
        """Return the sample of embeddings as a set; None if it is empty, or its groups are unknown.

        Groups are known by the ids of windows, which name their video, or by a column that is kept.
        """
        return sample_as_set(self.sample, name, self.space, self.groups, self.repeats)

    def grouped_by_repeats(self) -> Sketch:
        """Return the same sketch with equal embeddings as groups: each counts once."""
        assert self.repeats is not None
        grouped = copy(self)
        grouped.groups, grouped.squared_sizes = REPEATS, self.repeats.squared_sizes
        return grouped

    def _moments(self) -> dict[str, Moments]:
        parts = {"fold0": self.folds[0], "fold1": self.folds[1], "embedding": self.embedding}
        return {name: moments for name, moments in parts.items() if moments is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return the description of the sketch, without its moments and its sample."""
        return {
            "name": self.name,
            "n": self.n,
            "dim": self.dim,
            "space": self.space,
            **self.feature_map.parameters,
            "precision": self.precision,
            "groups": self.groups,
            "samples_kept": len(self.sample.ids),
            "sources": list(self.sources),
            "shards": [shard.name for shard in self.shards],
        }

    def _summary(self) -> str:
        return f"n={self.n}, space={self.space!r}, feature_map={self.feature_map}"


@arithmetic()
def sketch_all(
    source: object,
    feature_maps: Sequence[FeatureMap],
    *,
    sample: int = SAMPLE_SIZE,
    precision: Precision = "float32",
    is_kept: bool = True,
    run: Run | None = None,
) -> list[Sketch]:
    """Sketch a set by several feature maps of one kernel, in one pass.

    See `Sketch.of` for the arguments; `is_kept`: whether the sketches take the place of the embeddings, with the
    moments of these, columns of the sample and numbers of repeats.
    """
    run, embeddings, phi = Run.of(run), as_embeddings(source, or_shard=True), feature_maps[0]
    if embeddings.dim != phi.dim:
        raise IncompatibleError(
            f"{embeddings.name} has {embeddings.dim} entries per embedding, and the feature map takes {phi.dim}: "
            "pass embeddings by the extractor of the feature map"
        )
    sketches = [Sketch(phi, sample=sample, space=embeddings.space, precision=precision) for phi in feature_maps]
    groups, drawn = embeddings.group_hashes(), BottomSample(phi.dim, sample)
    columns_at = partial(columns_of_rows, embeddings) if is_kept else no_columns
    drawn.update(embeddings.id_keys(), embeddings.ids_at, embeddings.rows_at, columns_at)
    for sketch in sketches:
        sketch.embedding = sketch.embedding if is_kept else None
        sketch.sample = copy(drawn)
    counter = RowCounter()
    for chunk in fold_chunks(embeddings, run, phi.prepared, "sketch"):
        for sketch in sketches:
            sketch.add_fold(chunk.fold, chunk.rows)
        if is_kept:
            counter.update(chunk.rows)
    for sketch in sketches:
        sketch.repeats = counter.result() if is_kept else None
        sketch.sources, sketch.name = (embeddings.digest,), embeddings.title
        sketch._count_groups(embeddings.n, groups, embeddings.grouping)
    return sketches
