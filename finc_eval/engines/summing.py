"""`SketchSum`: a sketch as a sum that many workers make together, for any data engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.device import send
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError, check_count
from finc_eval.core.record import settings_from
from finc_eval.core.run import BATCH_SIZE, Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import VIDEO, rows_together
from finc_eval.embeddings.columns import columns_in
from finc_eval.embeddings.keys import even_row_hashes, hashes_of, keys_of, string_hashes
from finc_eval.embeddings.opening import as_embeddings, form_of
from finc_eval.engines.columns import as_list, rows_in
from finc_eval.numerics.arrays import as_rows, finite_rows, fold_of
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.numerics.moments import Moments
from finc_eval.numerics.precision import arithmetic
from finc_eval.sketches.adding import tell_apart
from finc_eval.sketches.folds import SAMPLE_SIZE, BottomSample
from finc_eval.sketches.opening import open_sketch
from finc_eval.sketches.reference import reference_feature_map
from finc_eval.sketches.settings import SketchOptions, SketchSettings
from finc_eval.sketches.sketch import Sketch

GROUP = "group"  # name of the grouping by groups that come with embeddings

BATCH = "the batch"  # name of embeddings that are added, in messages


@dataclass(frozen=True, eq=False)
class SumState:
    """Samples that a worker has added: a value that never changes, and pickles to its numbers.

    The first embeddings wait as they are. From about 2 000 on, the sums of both folds are kept, and of each symmetric
    sum the half.

    Attributes:
        phi: digest of the feature map.
        sample: bottom-k sample of all embeddings, with their columns.
        groups: how many samples the groups have.
        repeats: how many samples have each embedding.
        n: number of samples.
        waiting: fold of each waiting embedding, (b,), and the embeddings, (b, d) float32, by batch.
        folds: moments of φ of the others, by fold; None without any.
        embedding: moments of the others; None without any, and where embeddings are too wide.
        groupings: names of what groups the samples.
        has_names: whether samples have come with ids.
        content: sum of the hashes of all embeddings, modulo 2⁶⁴.
    """

    phi: str
    sample: BottomSample
    groups: HashCounts = field(default_factory=HashCounts)
    repeats: HashCounts = field(default_factory=HashCounts)
    n: int = 0
    waiting: tuple[tuple[NDArray[np.uint8], NDArray[np.float32]], ...] = ()
    folds: tuple[Moments, Moments] | None = None
    embedding: Moments | None = None
    groupings: frozenset[str] = field(default=frozenset())
    has_names: bool = False
    content: int = 0


class SketchSum:
    """A sketch as a sum: workers add batches to states, states are combined, and the last becomes a sketch.

    It has the four functions that data engines take (docs/scale_engines.md). States are values: no function changes its
    arguments, so a worker that dies can be tried again. All workers get the same `SketchSum`, and so one feature map.
    The sums do not depend on batches, order or workers. In float64, they are those of one process to 1e-10, where all
    processors are of one kind; otherwise the last bits of φ differ, which is computed in float32.

    Args:
        reference: embeddings of a part of the reference, as an array (n, d), a set or its path, which give bandwidth,
            center and frequencies; or a sketch, or its path, whose feature map is taken.
        settings: settings of the feature map; default: those of `SketchSettings`, with sums in float64.
        sample: number of embeddings to keep as the bottom-k sample, on which kinds are counted.
        space: extractor of the embeddings, as `Embedder.space`; default: that of the reference.
        run: device of the sums; default: of the process that adds.
        options: fields of `SketchSettings`, which override `settings`.

    Raises:
        UsageError: a setting is out of range, or a sketch came with settings of another feature map.
        DataError: the embeddings of the reference are not finite, or all equal.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> sums = fe.SketchSum(reference=ref, features=200)
        >>> first, second = (sums.add(sums.zero(), part) for part in (gen[:100], gen[100:]))
        >>> sketch = sums.finish(sums.combine(first, second))
        >>> sketch.n
        300
        >>> fe.compare(sketch, sums.finish(sums.add(sums.zero(), ref))).kinds is not None
        True
    """

    def __init__(
        self,
        reference: object,
        settings: SketchSettings | None = None,
        *,
        sample: int = SAMPLE_SIZE,
        space: str | None = None,
        run: Run | None = None,
        **options: Unpack[SketchOptions],
    ) -> None:
        check_count("sample", sample, least=0)
        chosen = settings_from(SketchSettings, settings or SketchSettings(precision="float64"), options)
        if chosen.groups is not None:
            raise UsageError("groups come with the embeddings: pass them to add, as groups=…")
        cpu = torch.device("cpu")
        if form_of(reference) == "sketch":
            if replace(chosen, precision="float32") != SketchSettings():
                raise UsageError("the sketch has a feature map: pass its embeddings as the reference to make another")
            sketch = open_sketch(reference, cpu)
            self.feature_map, known = sketch.feature_map, sketch.space
        else:
            embeddings = as_embeddings(reference, "the reference")
            (self.feature_map, _), known = reference_feature_map([embeddings], chosen, cpu), embeddings.space
        self._run, self._precision, self._capacity = Run.of(run), chosen.precision, sample
        self.space, self._digest = space or known, self.feature_map.digest
        self._new_sketch(self.feature_map)  # refuses too many features

    def zero(self) -> SumState:
        """Return the state without samples."""
        return SumState(self._digest, BottomSample(self.feature_map.dim, self._capacity))

    def add(
        self,
        state: SumState,
        embeddings: ArrayLike | torch.Tensor,
        *,
        groups: Sequence[Any] | NDArray[Any] | None = None,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> SumState:
        """Return a state with further samples.

        Args:
            state: samples so far.
            embeddings: array, tensor or column of lists, (b, d).
            groups: value of each sample that says which samples are not independent, such as the prompt; samples of a
                group may come to several workers. Default: windows of videos by their ids; a missing value stands for
                itself.
            ids: name of each sample, different for all samples of the set; default: names by the embeddings, by which
                samples of pages cannot be found again.
            columns: further columns by name, a value for each sample. Those of the kept sample are compared like
                metadata: numbers as looks, and all columns as names of kinds.

        Raises:
            DataError: an embedding is not finite, or there is not one id, or one group, for each.
            IncompatibleError: the embeddings have another number of entries than the feature map, or the state is of
                another sum.
        """
        self._check(state)
        column = rows_in(embeddings, BATCH)
        if not len(column):
            return state
        rows = finite_rows(as_rows(column, BATCH, whole=False).detach(), range(len(column)), BATCH).cpu()
        self.feature_map.prepared(rows[:1])  # refuses another dimension
        n, content = len(rows), even_row_hashes(rows)
        names = _names(content) if ids is None else _texts("id", ids, n)
        hashes, of_groups = hashes_of(names)
        grouping, given = None if of_groups is None else VIDEO, _columns(columns, n)
        if groups is not None:
            texts = _texts("group", groups, n)
            of_groups = string_hashes([value or f"\0{name}" for value, name in zip(texts, names, strict=True)])
            grouping, given[GROUP] = GROUP, texts
        # Without ids, the content decides the fold: it is the same in all batches.
        keys = keys_of(hashes, content if ids is None and of_groups is None else of_groups)
        sample = copy(state.sample)
        sample.add(keys, names, rows, given)
        added = replace(
            state,
            n=state.n + n,
            waiting=(*state.waiting, (fold_of(keys).astype(np.uint8), rows.numpy().astype(np.float32))),
            sample=sample,
            groups=state.groups if of_groups is None else state.groups + HashCounts.of(of_groups),
            repeats=state.repeats + HashCounts.of(content),
            groupings=state.groupings | ({grouping} if grouping else set()),
            has_names=state.has_names or ids is not None,
            content=_modulo(state.content + int(content.sum(dtype=np.uint64))),
        )
        return self._summed(added)

    def combine(self, first: SumState, second: SumState) -> SumState:
        """Return the state of the samples of both."""
        self._check(first)
        self._check(second)
        folds = [state.folds for state in (first, second) if state.folds is not None]
        embedding = [state.embedding for state in (first, second) if state.embedding is not None]
        combined = SumState(
            phi=self._digest,
            sample=first.sample + second.sample,
            groups=first.groups + second.groups,
            repeats=first.repeats + second.repeats,
            n=first.n + second.n,
            waiting=first.waiting + second.waiting,
            folds=(folds[0][0] + folds[1][0], folds[0][1] + folds[1][1]) if folds[1:] else (*folds, None)[0],
            embedding=embedding[0] + embedding[1] if embedding[1:] else (*embedding, None)[0],
            groupings=first.groupings | second.groupings,
            has_names=first.has_names or second.has_names,
            content=_modulo(first.content + second.content),
        )
        return self._summed(combined)

    def finish(self, state: SumState) -> Sketch:
        """Return the sketch of all samples of a state, for `compare` and all that takes a sketch.

        Raises:
            DataError: samples with the same id were added twice.
        """
        self._check(state)
        sketch, sample = self._filled(state), copy(state.sample)
        (name, times), *_ = Counter(sample.ids).most_common(1) or [("", 0)]
        if times > 1 and state.has_names:
            raise DataError(
                f"the id {name!r} came {times} times: give each sample of the set an id of its own, and add each once"
            )
        sample.ids = tell_apart(sample.ids) if times > 1 else sample.ids
        sketch.sample, sketch.squared_sizes = sample, state.groups.squared_sizes + state.n - state.groups.n
        sketch.repeats = state.repeats
        sketch.groups = "+".join(sorted(state.groupings)) or None
        sketch.sources = (sha256_of(f"{state.n} embeddings {state.content:016x}"),)
        return sketch

    @arithmetic()
    def _summed(self, state: SumState) -> SumState:
        """Return the state with its sums, if many embeddings wait: as many numbers as the sums have, or 2 048 rows."""
        count, dim, size = sum(len(rows) for _, rows in state.waiting), self.feature_map.dim, self.feature_map.size
        if count < rows_together(BATCH_SIZE, dim) and count * dim <= size * size:
            return state
        sketch = self._filled(state)
        for moments in (*sketch.folds, *([sketch.embedding] if sketch.embedding else [])):
            next(moments.blocks())  # multiplies what waits
        return replace(state, waiting=(), folds=sketch.folds, embedding=sketch.embedding)

    @arithmetic()
    def _filled(self, state: SumState) -> Sketch:
        """Return a sketch with the sums of a state."""
        phi = self._on_device
        sketch = self._new_sketch(phi)
        if state.folds is not None:
            first, second = (fold.to(phi.device, copy=True) for fold in state.folds)
            sketch.folds = first, second
            sketch.embedding = state.embedding and state.embedding.to(phi.device, copy=True)
        for fold in (0, 1) if state.waiting else ():
            chosen = torch.from_numpy(np.concatenate([rows[folds == fold] for folds, rows in state.waiting]))
            for rows in torch.split(chosen, BATCH_SIZE) if len(chosen) else ():
                sketch.add_fold(fold, send(rows, phi.device))
        return sketch

    def _new_sketch(self, phi: Any) -> Sketch:
        return Sketch(phi, sample=self._capacity, space=self.space, precision=self._precision)

    def _check(self, state: SumState) -> None:
        """Raise an error for what is not a state, or a state of another sum."""
        if not isinstance(state, SumState):
            raise UsageError(f"a state comes from zero, add or combine, got {type(state).__name__}: pass that")
        if state.phi != self._digest:
            raise IncompatibleError(
                "the state is of a SketchSum with another feature map: make one, and give it to all workers"
            )

    @cached_property
    def _on_device(self) -> Any:
        return self.feature_map.to(self._run.torch_device)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the feature map on the device of this process."""
        return {name: value for name, value in vars(self).items() if name != "_on_device"}

    def __repr__(self) -> str:
        return f"SketchSum({self.feature_map}, space={self.space!r}, precision={self._precision!r})"


def _names(content: NDArray[np.uint64]) -> list[str]:
    """Return names by the content of the batch, which are the same if it is added again after a fault."""
    batch = int(content.sum(dtype=np.uint64))
    return [f"{batch:016x}-{number}" for number in range(len(content))]


def _columns(columns: Mapping[str, Any] | None, n: int) -> dict[str, list[Any]]:
    """Return columns of n samples, or of a data frame, as lists of their values."""
    given = {} if columns is None else columns_in(columns, BATCH)
    if GROUP in given:
        raise UsageError(f"the column {GROUP!r} has the name of the groups: pass groups=…, or give it another name")
    found = {str(name): as_list(values, f"the column {name!r}") for name, values in given.items()}
    for name, values in found.items():
        if len(values) != n:
            raise DataError(
                f"{plural(n, 'embedding')} came with {plural(len(values), 'value')} of the column {name!r}: give one "
                "for each embedding"
            )
    return found


def _texts(what: str, values: Any, n: int) -> list[str]:
    """Return ids or groups as texts; a missing value is ""."""
    texts = ["" if value is None or value != value else str(value) for value in as_list(values, f"the {what}s")]
    if what == "id" and "" in texts:
        raise DataError(
            f"{texts.count('')} of {len(texts)} ids are missing: give each sample of the set an id, or no ids"
        )
    if len(texts) != n:
        raise DataError(
            f"{plural(n, 'embedding')} came with {plural(len(texts), what)}: give one {what} for each embedding"
        )
    return texts


def _modulo(number: int) -> int:
    return number % (1 << 64)
