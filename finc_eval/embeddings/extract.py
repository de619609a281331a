"""Extraction: samples to an embedding cache, resumable, and only once for the same samples and extractor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Never

from finc_eval.core.doors import with_home
from finc_eval.core.places import is_place, out_path
from finc_eval.core.progress import divide_stage
from finc_eval.core.record import refuse_unknown
from finc_eval.core.run import Run
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.columns import Columns, match_metadata
from finc_eval.embeddings.job import Job, stage_of, unreadable_error
from finc_eval.embeddings.needs import ListedSamples
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.embeddings.writer import with_columns
from finc_eval.extractors.card import NetworkPrecision
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, load_card
from finc_eval.extractors.settings import Extraction
from finc_eval.extractors.weights import check_weights
from finc_eval.samples.grids import grids_among
from finc_eval.samples.opening import open_source
from finc_eval.samples.reading import STORED, Color, Reading
from finc_eval.samples.shards import select_shard, shard_path
from finc_eval.samples.source import Samples

if TYPE_CHECKING:
    from finc_eval.extractors.network import CardNetwork


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
    shard: str | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    image_key: str | None = None,
    range: tuple[float, float] | None = None,
    prompts: str | Path | None = None,
    color: Color = STORED,
    force: bool = False,
    run: Run | None = None,
    **unknown: Never,
) -> EmbeddingCache:
    """Embed a set of samples, keep the embeddings in a file, and open it; if the file exists, only open it.

    The bytes of the samples, the card, its weights and the precision decide whether the file exists already; its name
    does not. The next run with the same `out` resumes a run that was stopped or killed. Embeddings that the folder of
    caches has are copied to `out`.

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
            the ids of the samples, or the id of a video for all its windows; without it, the rows belong to an array.
            Given for samples that are embedded already, columns are added or replaced and nothing is embedded again.
        fps: frames a second to which videos are resampled first; default: as the card says.
        shard: "i/N" to embed only part i of N of the set, counted from 1, in a file whose name has both:
            "gen.2-of-8.h5" for "gen.h5". `merge` joins the parts.
        include: patterns of the names of files that are samples; see `open_source` for this and the next five.
        exclude: patterns of the names of files that are not samples.
        image_key: name of the images if a sample has several things by name.
        range: the numbers that are black and white, such as (-1, 1), in arrays, tensors and deep image files.
        prompts: column or file of the prompts.
        color: "srgb" to convert image files to sRGB by the color profile that they have; default: as they are stored.
        force: whether `out` may replace any file; otherwise only earlier embeddings of the same folder or archive by
            the same extractor, if the samples have changed since. A subset of `n` never replaces a larger set.
        run: device of the network, samples per pass (default: samples with as many pixels as 16 images of 224 x 224
            on a CPU and 64 on a GPU, at most 256), threads that decode, and progress.
        unknown: options that do not exist, which are refused.

    Warns:
        UserWarning: samples without metadata, rows of metadata without a sample, columns whose values are replaced, or
            samples that look like grids of the others.

    Raises:
        UsageError: the extractor, an option, the output file or the metadata cannot be used, or `out` holds other work.
        DataError: the samples cannot be used, or change while they are read, `strict` is not met, an embedding is not
            finite, or another process is writing `out`.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> images = (255 * example_sets(50)[0]).astype("uint8").reshape(50, 28, 28)
        >>> fe.extract(images, "pixels", out="gen.h5")
        EmbeddingCache('gen', n=50, dim=2352, 'pixels')
    """
    refuse_unknown(unknown, [*signature(extract).parameters][:-1])
    if isinstance(source, EmbeddingCache):
        if metadata is None:
            return source
        columns, unmatched = match_metadata(metadata, source.ids, stacklevel=3)
        return _label(source, columns, 3, {**source.ignored, **unmatched})
    reading = Reading(include, exclude, image_key, range, prompts and str(prompts), color)  # type: ignore[arg-type]
    how = Extraction(extractor, n, seed, strict, precision, fps, **reading.choices)  # type: ignore[arg-type]
    made = SetExtraction(source, how, metadata=metadata, run=run, stacklevel=4).extract(out, shard, force=force)
    if made.grids is not None:
        warnings.warn(made.grids, stacklevel=2)
    return made


class SetExtraction:
    """A set whose samples are listed once, and a network that is loaded once, for any number of shards.

    For the arguments see `extract`; the shard of `how` is not looked at. `stacklevel` is for its warnings, as
    `warnings.warn` counts it.
    """

    def __init__(
        self,
        source: Samples,
        how: Extraction,
        *,
        metadata: object | None = None,
        run: Run | None = None,
        stacklevel: int = 3,
    ) -> None:
        self._card = load_card(how.extractor or DEFAULT_EXTRACTOR).resampled(how.fps)
        self._how, self._run, self._stacklevel = how, Run.of(run), stacklevel
        self._samples = open_source(source, clip=self._card.clip, n=how.n, seed=how.seed, **how.reading.choices)
        if metadata is not None:
            columns, unmatched = match_metadata(metadata, self._samples.ids, stacklevel)
            self._samples.ignored = {**self._samples.ignored, **unmatched}
            self._samples.columns = {**self._samples.columns, **columns}
        self.embedder = lru_cache(self._new_embedder)

    def extract(self, out: str | Path | None, shard: str | None, *, force: bool = False) -> EmbeddingCache:
        """Embed the set or a shard of it, as `extract` does, and open the file."""
        return extract_all({"": self}, self._run, out, shard, force=force)[""]

    def job(self, out: Path | None, shard: str | None, *, force: bool = False) -> Job:
        """Return the work of embedding the set or a shard of it."""
        samples, part = (self._samples, None) if shard is None else select_shard(self._samples, shard)
        return Job(
            self._card,
            recipe_of(self._card, self._how.precision),
            samples,
            self._run,
            self.embedder,
            out=out if out is None or shard is None else shard_path(out, shard),
            strict=self._how.strict,
            force=force,
            n=self._how.n,
            shard=part,
        )

    def opened(self, cache: EmbeddingCache, job: Job) -> EmbeddingCache:
        """Return the cache of the set with its columns, and warn of values that are replaced."""
        if job.strict and cache.failures:
            cache.close()
            raise unreadable_error(job.samples.name, cache.failures)
        cache = _label(cache, job.columns(cache), self._stacklevel, job.samples.ignored)
        # Of this folder: the same samples may have been elsewhere, beside other files.
        samples = job.samples
        cache.ignored, cache.source, cache.reading = dict(samples.ignored), samples.name, samples.reading
        if job.out is None and samples.columns:  # columns of another table for the same samples are none of this set
            cache.columns = tuple(name for name in cache.columns if name in job.given)
        cache.held = None if samples.once or is_place(samples.name) else samples
        cache.grids = grids_among(samples, cache.profile)
        return cache

    def _new_embedder(self, compiled_for: int | None) -> CardNetwork:
        # Seconds of import, which a cache that exists already does not need.
        from finc_eval.extractors.network import CardNetwork

        return CardNetwork(self._card, self._run.device, self._how.precision, compiled_for)


def extract_all(
    sets: Mapping[str, SetExtraction],
    run: Run,
    out: str | Path | None = None,
    shard: str | None = None,
    *,
    force: bool = False,
    alone: bool = True,
    check: Callable[[Mapping[str, ListedSamples]], object] | None = None,
) -> dict[str, EmbeddingCache]:
    """Embed sets by label with one network and one progress, and open their files; see `extract`.

    `alone` says whether no other sets are embedded already, so that fewer samples of each can be taken. `check` sees
    the sets first, and refuses those that lack something; samples that can be read once are not known before.
    """
    target = None if out is None else out_path(with_home(out))
    jobs = {label: source.job(target, shard, force=force) for label, source in sets.items()}
    for job in jobs.values():
        job.embedder = next(iter(sets.values())).embedder
    missing = [job.count_missing((run.prefixed(label) if label else run).progress) for label, job in jobs.items()]
    for incomplete, lacking in zip(jobs.values(), missing, strict=True):
        if lacking:
            check_weights(incomplete.card)
    if check is not None:
        check({label: job.listed(label) for label, job in jobs.items() if not job.samples.once})
    parts = divide_stage(run.progress, stage_of(jobs, [n for n in missing if n], alone), missing)
    made = [job.made(run.progress, part) for job, part in zip(jobs.values(), parts, strict=True)]
    return {label: source.opened(cache, jobs[label]) for cache, (label, source) in zip(made, sets.items(), strict=True)}


def _label(cache: EmbeddingCache, columns: Columns, stacklevel: int, ignored: Mapping[str, int]) -> EmbeddingCache:
    for name in [name for name in columns if name in cache.columns]:
        unlike = sum(old != new for old, new in zip(cache.column(name), columns[name], strict=True))
        if unlike:
            had = f"{cache.path.name} had other values in the column {name!r}"
            replaced = f"metadata: {had} for {unlike:,} of {cache.n:,} samples, which are replaced"
            warnings.warn(replaced, stacklevel=stacklevel)
    return with_columns(cache, columns, ignored)
