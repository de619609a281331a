"""Extraction: samples to an embedding cache, resumable, and only once for the same samples and extractor."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import DataError
from finc_eval.core.memory import VARIABLE
from finc_eval.core.progress import Progress
from finc_eval.core.remote.urls import out_path
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.columns import Columns, match_metadata
from finc_eval.embeddings.decode import DecodedBatch, decode_batches, default_batch_size, one_behind
from finc_eval.embeddings.files import (
    STREAM,
    copy_cache,
    only_writer,
    remove_dead_streams,
    remove_remains,
    replace_columns,
    whole_cache,
    with_columns,
)
from finc_eval.embeddings.folder import cache_folder
from finc_eval.embeddings.recipe import Identity, Recipe, recipe_of
from finc_eval.embeddings.writer import CacheWriter
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, load_card
from finc_eval.samples import Samples, Source, open_source
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.shards import Shard, select_shard, shard_path
from finc_eval.samples.source import Digests

if TYPE_CHECKING:
    import torch

    from finc_eval.extractors.network import Embedder

MIN_COMPILED_SAMPLES = 8000
"""Number of samples from which it pays to compile a network for the CPU, which takes half a minute."""


def extract(
    source: Samples | EmbeddingCache,
    extractor: str | Path = DEFAULT_EXTRACTOR,
    out: str | Path | None = None,
    *,
    n: int | None = None,
    seed: int = 0,
    strict: bool = False,
    precision: NetworkPrecision = "float32",
    metadata: object | None = None,
    fps: float | None = None,
    seconds: float | None = None,
    shard: str | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    image_key: str | None = None,
    range: tuple[float, float] | None = None,
    prompts: str | Path | None = None,
    force: bool = False,
    run: Run | None = None,
) -> EmbeddingCache:
    """Embed a set of samples, keep the embeddings in a file, and open it; if the file exists, only open it.

    The bytes of the samples, the card, its weights and the precision decide whether the file exists already; its name
    does not. A run that was stopped or killed is resumed by the next one with the same `out`. Embeddings that the
    folder of caches has are copied to `out`.

    Args:
        source: samples in any form that `open_source` takes: the path of a folder, .zip, .tar, .npz or video, a uint8
            array, a torch dataset, an iterator of images, ...; or a cache, which is returned unchanged.
        extractor: name of an extractor, "timm:NAME" for any network of timm, or the path of a card ending in .toml.
        out: path of the file; default: a name made of its key, in $FINC_EVAL_CACHE or ~/.cache/finc-eval/embeddings.
        n: number of samples to take, as a random subset; default: all.
        seed: random seed of the subset.
        strict: whether to refuse a set with unreadable samples; otherwise the cache lists them in `failures`.
        precision: "float32" is exact on every device; "bfloat16" and "float16" are faster on GPUs, and other spaces.
        metadata: columns of texts to keep with the samples, such as labels, prompts or groups: the path of a .csv,
            .jsonl or .parquet file, a mapping of columns, or a pandas data frame. Its column "file_name" or "id" holds
            the ids of the samples, that of a video for all its windows; without it, the rows are those of an array.
            Given for samples that are embedded already, columns are added or replaced and nothing is embedded again.
        fps: frames a second to which videos are resampled first; default: as the card says.
        seconds: duration that the frames of a window of a video span, which gives the rate in place of `fps`.
        shard: "i/N" to embed only part i of N of the set, counted from 1, in a file whose name has both:
            "gen.2-of-8.h5" for "gen.h5". `merge` joins the parts.
        include: patterns of the names of files that are samples; see `open_source` for this and the next four.
        exclude: patterns of the names of files that are not samples.
        image_key: name of the images where a sample has several things by name.
        range: the numbers that are black and white, such as (-1, 1), in arrays, tensors and deep image files.
        prompts: column or file of the prompts.
        force: whether `out` may replace any file; otherwise only earlier embeddings of the same folder or archive by
            the same extractor, whose samples have changed since, and never a larger set by a subset of `n`.
        run: device of the network, samples per pass (default: samples with as many pixels as 64 images of 224 x 224,
            at most 256), threads that decode, and progress.

    Warns:
        UserWarning: samples without metadata, rows of metadata without a sample, or columns whose values are replaced.

    Raises:
        UsageError: the extractor, an option, the output file or the metadata cannot be used, or `out` holds other work.
        DataError: the samples cannot be used, or change while they are read, `strict` is not met, an embedding is not
            finite, or another process is writing `out`.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> images = (255 * example_sets(50)[0]).astype("uint8").reshape(50, 28, 28)
        >>> fe.extract(images, "pixels", out="gen.h5")
        EmbeddingCache('gen.h5', n=50, dim=2352, 'pixels')
    """
    if isinstance(source, EmbeddingCache):
        if metadata is None:
            return source
        columns, unmatched = match_metadata(metadata, source.ids, stacklevel=3)
        return _label(source, columns, 3, {**source.ignored, **unmatched})
    whole = SetExtraction(
        source,
        extractor,
        n=n,
        seed=seed,
        precision=precision,
        fps=fps,
        seconds=seconds,
        metadata=metadata,
        reading=Reading(include, exclude, image_key, range, prompts and str(prompts)),  # type: ignore[arg-type]
        run=run,
        stacklevel=4,
    )
    return whole.extract(out, shard, strict=strict, force=force)


class SetExtraction:
    """A set whose samples are listed once, and a network that is loaded once, for any number of shards.

    The arguments are those of `extract`. `stacklevel` is that of its warnings, as `warnings.warn` counts it.
    """

    def __init__(
        self,
        source: Samples,
        extractor: str | Path,
        *,
        n: int | None = None,
        seed: int = 0,
        precision: NetworkPrecision = "float32",
        fps: float | None = None,
        seconds: float | None = None,
        metadata: object | None = None,
        reading: Reading | None = None,
        run: Run | None = None,
        stacklevel: int = 3,
    ) -> None:
        self._card, self._run = load_card(extractor).resampled(fps, seconds), Run.of(run)
        self._precision, self._n, self._stacklevel = precision, n, stacklevel
        self._samples = open_source(source, clip=self._card.clip, n=n, seed=seed, **(reading or EVERYTHING).choices)
        if metadata is not None:
            columns, unmatched = match_metadata(metadata, self._samples.ids, stacklevel)
            self._samples.ignored = {**self._samples.ignored, **unmatched}
            self._samples.columns = {**self._samples.columns, **columns}
        self._embedder = lru_cache(self._new_embedder)

    def extract(
        self, out: str | Path | None, shard: str | None, *, strict: bool = False, force: bool = False
    ) -> EmbeddingCache:
        """Embed the set or a shard of it, as `extract` does, and open the file."""
        samples, run, part = self._samples, self._run, None
        target = None if out is None else out_path(Path(out).expanduser())
        if shard is not None:
            samples, part = select_shard(samples, shard)
            target = target and shard_path(target, shard)
        size = run.batch_size or default_batch_size(self._card)
        recipe = recipe_of(self._card, self._precision)
        job = _Job(self._card, recipe, samples, size, run.workers, self._embedder, force, self._n, part)
        cache = (job.stream if samples.once else job.run)(target, strict, run.progress)
        if strict and cache.failures:
            cache.close()
            raise _unreadable(samples.name, cache.failures)
        cache = _label(cache, job.columns(cache), self._stacklevel, samples.ignored)
        cache.ignored = dict(samples.ignored)  # of this folder: the same samples may lie beside other files elsewhere
        return cache

    def _new_embedder(self, compiled_for: int | None) -> Embedder:
        # Seconds of import, which a cache that exists already does not need.
        from finc_eval.extractors.network import Embedder

        return Embedder(self._card, self._run.device, self._precision, compiled_for)


def _label(cache: EmbeddingCache, columns: Columns, stacklevel: int, ignored: Mapping[str, int]) -> EmbeddingCache:
    for sentence in replace_columns(cache, columns):
        warnings.warn(sentence, stacklevel=stacklevel)
    return with_columns(cache, columns, ignored)


def _default_path(key: str) -> Path:
    return cache_folder() / f"{key}.h5"


@dataclass(frozen=True)
class _Job:
    """Extraction of one set with one card."""

    card: Card
    recipe: Recipe
    samples: Source
    batch_size: int
    workers: int
    embedder: Callable[[int | None], Embedder]
    force: bool
    n: int | None
    shard: Shard | None

    def identity(self, digests: Digests) -> Identity:
        """Return what the cache is made of, from the content digests of the samples."""
        return Identity(
            self.samples.name,
            self.samples.manifest(digests=digests),
            self.card.name,
            self.recipe,
            self.shard,
            self.samples.reading,
        )

    def columns(self, cache: EmbeddingCache) -> Columns:
        """Return the columns of the samples whose rows a cache keeps."""
        if not self.samples.columns:
            return {}
        place = {name: row for row, name in enumerate(self.samples.ids)}
        rows = [place[name] for name in cache.ids]
        return {name: [values[row] for row in rows] for name, values in self.samples.columns.items()}

    def run(self, out: Path | None, strict: bool, progress: Progress) -> EmbeddingCache:
        """Return the finished cache of the set, making what is missing."""
        digests = self.samples.digests(progress)
        identity = self.identity(digests)
        path = out or _default_path(identity.key)
        cache = self._usable(whole_cache(path, identity.key, identity.origin, self.force, self.n))
        if cache is None:
            with only_writer(path):
                # The previous holder of the lock may just have made it.
                cache = self._usable(whole_cache(path, identity.key, identity.origin, self.force, self.n))
                cached = _default_path(identity.key)
                if cache is None and not copy_cache(cached, path, identity, self._usable, self.columns):
                    stage = "extract"
                    if path.exists():
                        stage += f" ({path.name} is of other samples or another card, and is replaced at the end)"
                    with self._writer(path, identity.key, identity.origin) as writer:
                        self._fill(writer, stage, progress, digests)
                        self._judge(writer, strict)
                        self._finish(writer, identity, path, progress, digests)
                cache = cache or EmbeddingCache(path)
        else:
            remove_remains(path)
        return cache

    def _usable(self, cache: EmbeddingCache | None) -> EmbeddingCache | None:
        """Return the cache, or None if it lacks samples that were too large when it was made, and are not now."""
        if cache is None:
            return None
        too_large = {name for name, why in cache.failures if VARIABLE in why}
        numbers = [number for number, name in enumerate(self.samples.ids) if name in too_large] if too_large else []
        if any(self.samples.mapped(lambda sample: sample.error is None, numbers)):
            cache.close()
            return None
        return cache

    def stream(self, out: Path | None, strict: bool, progress: Progress) -> EmbeddingCache:
        """Embed a set that can be read only once: its identity, and so its name, is known only at the end."""
        name = uuid.uuid4().hex
        if out is not None:
            whole_cache(out, name, force=self.force)  # refuses what must not be overwritten
        path = (out or _default_path(name)).with_name(f"{STREAM}{name}.h5")
        remove_dead_streams(path.parent)
        with ExitStack() as locks:
            if out is not None:
                locks.enter_context(only_writer(out))  # before the work: another writer should be known at once
            locks.enter_context(only_writer(path))
            with self._writer(path, name) as writer:
                self._fill(writer, "extract", progress)
                self._judge(writer, strict)
                identity = self.identity(self.samples.digests())
                target = out or _default_path(identity.key)
                if out is None:
                    locks.enter_context(only_writer(target))
                self._finish(writer, identity, target, progress)
        return EmbeddingCache(target)

    def _writer(self, path: Path, key: str, origin: str = "") -> CacheWriter:
        widths = {"embeddings": self.card.output.dimension}
        widths |= {name: output.dimension for name, output in self.card.extra.items()}
        return CacheWriter(path, key, self.samples.ids, widths, self.batch_size, self.samples.once, origin)

    def _finish(
        self, writer: CacheWriter, identity: Identity, path: Path, progress: Progress, digests: Digests | None = None
    ) -> None:
        writer.finish(
            identity,
            path,
            labels=self.samples.labels,
            prompts=self.samples.prompts,
            columns=self.samples.columns,
            digests=digests,
            progress=progress,
        )

    def _fill(self, writer: CacheWriter, stage: str, progress: Progress, digests: Digests | None = None) -> None:
        """Embed the samples that are not embedded yet, and refuse those whose bytes are not those of `digests`.

        The key of the cache names the bytes that were read at first: rows of others would be used for the whole set.
        """
        n = len(self.samples.ids)
        if writer.done:
            stage = stage.replace("extract", "extract, resumed", 1)
        progress(stage, writer.done, n)
        if writer.done < n:
            with closing(one_behind(self._embedded(writer.done, progress))) as embedded:
                for batch, rows in embedded:
                    if digests is not None:
                        self._refuse_changes(batch, digests[writer.done :])
                    writer.write(self._rows(batch, rows), batch.content, batch.errors, batch.traits)
                    progress(stage, writer.done, n)

    def _refuse_changes(self, batch: DecodedBatch, digests: Digests) -> None:
        """Raise DataError for a sample whose bytes have changed since they were hashed, or could not be read again."""
        for name, decoded, hashed, error in zip(batch.ids, batch.digests, digests, batch.errors, strict=False):
            if decoded != hashed.tobytes():
                mend = "run the same command again when nothing changes it any more"
                if self.samples.kind == "dataset":
                    mend = "its items must be the same whenever they are read, so remove random augmentation"
                why = error or "its bytes are not those that were read first"
                raise DataError(f"{self.samples.name} changed while it was read ({name}: {why}): {mend}")

    def _judge(self, writer: CacheWriter, strict: bool) -> None:
        """Refuse a set without readable samples and, if `strict`, a set with an unreadable one.

        A shard may be without any: other shards of the set have them.
        """
        n, failures = len(self.samples.ids), writer.failures()
        none = len(failures) == n and self.shard is None
        if none:
            writer.discard()
        if none or (strict and failures):
            raise _unreadable(self.samples.name, failures)

    @property
    def _compiled_for(self) -> int | None:
        """Batch size for which the network is compiled, or None.

        It depends on the whole set, however much of it is done, so that a resumed run has the same bits.
        """
        many = len(self.samples.ids) >= MIN_COMPILED_SAMPLES
        return self.batch_size if many and self.card.weights is not None else None

    def _embedded(
        self, start: int, progress: Progress
    ) -> Generator[tuple[DecodedBatch, torch.Tensor | None], None, None]:
        """Yield batches and the rows of their readable samples, which a GPU may still be working on."""
        from finc_eval.core.device import send

        if self._compiled_for:
            progress("compile the network", 0, 1)
        embed = self.embedder(self._compiled_for)
        how, place = self.card.preprocessing, partial(send, device=embed.device)
        with closing(decode_batches(self.samples, start, self.batch_size, how, self.workers, place)) as batches:
            for batch in batches:
                yield batch, None if batch.pixels is None else embed(batch.pixels, batch.times)

    def _rows(self, batch: DecodedBatch, embedded: torch.Tensor | None) -> npt.NDArray[np.float32]:
        """Return the rows of a whole batch, zero where a sample is unreadable."""
        width = self.card.output.dimension + sum(output.dimension for output in self.card.extra.values())
        rows = np.zeros((len(batch.ids), width), np.float32)
        if embedded is not None:
            rows[batch.readable] = embedded.cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise DataError(
                f"the embedding of sample {batch.ids[bad[0]]} by {self.card.name} holds NaN or infinity: "
                "remove the sample, or check the card's preprocessing, the precision and the device"
            )
        return rows


def _unreadable(name: str, failures: list[tuple[str, str]]) -> DataError:
    first = "; ".join(f"{sample}: {reason}" for sample, reason in failures[:3])
    more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
    unreadable = plural(len(failures), "unreadable sample")
    return DataError(f"{name} has {unreadable} ({first}{more}): repair or remove them")
