"""From samples to an embedding cache: resumable, and never done twice for the same samples and extractor."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.decode import DecodedBatch, decoded, decoded_batches
from finc_eval.embeddings.folder import cache_folder
from finc_eval.embeddings.recipe import Identity, Recipe, recipe_of
from finc_eval.embeddings.writer import CacheWriter, lock_of, only_writer, part_of, whole_cache
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR, load_card
from finc_eval.samples import Samples, Source, open_source

if TYPE_CHECKING:
    import torch

WORKERS = min(16, os.cpu_count() or 1)
PIXELS_A_BATCH = 64 * 224 * 224
"""Network inputs that are worked on together by default, counted in pixels: 64 images of 224 x 224."""

LARGEST_BATCH, MOST_CLIPS = 256, 32
"""Small inputs are no small work: networks of small images and clips keep their size for many layers."""

COMPILED_FROM = 8000
"""Samples from which compiling a network for the CPU, half a minute, pays."""

Item = TypeVar("Item")


def extract(
    source: Samples | EmbeddingCache,
    extractor: str | Path = DEFAULT_EXTRACTOR,
    out: str | Path | None = None,
    *,
    n: int | None = None,
    seed: int = 0,
    strict: bool = False,
    batch_size: int | None = None,
    workers: int = WORKERS,
    precision: NetworkPrecision = "float32",
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> EmbeddingCache:
    """Embed a set of samples and keep the embeddings in a file; return it, at once if it is there already.

    The bytes of the samples, what the card says, its weights and the precision decide whether it is there, never a
    name. A run that was stopped or killed is resumed by the next one with the same `out`.

    Args:
        source: whatever `open_source` takes: a folder, .zip, .tar, .npz or video by its path, a uint8 array, a torch
            dataset, an iterator of images, ...; or a cache, which is returned as it is.
        extractor: the name of an extractor, "timm:NAME" for any network of timm, or the path of a card ending in .toml.
        out: the file to write; by default one named by its key in $FINC_EVAL_CACHE, or else in
            ~/.cache/finc-eval/embeddings.
        n: how many samples to take: a seeded subset of the set. All of them when left out.
        seed: of that subset.
        strict: refuse a set with unreadable samples; otherwise the cache lists them in `failures`.
        batch_size: samples per pass through the network, halved where memory does not suffice; by default as many as
            64 images of 224 x 224 have pixels, at most 256. It does not change the embeddings.
        workers: threads that decode and resize.
        precision: of the network: "float32" is exact on every device; "bfloat16" and "float16" are faster on GPUs,
            and give embeddings that are not compared with exact ones.
        device: where the network runs; by default CUDA where there is one, otherwise the CPU.
        progress: told the stage, the samples done and their number.

    Raises:
        FincEvalError: samples, card, weights, device or output file are not usable, `strict` is not met, an embedding
            is not finite, or another process is writing `out`.
    """
    if isinstance(source, EmbeddingCache):
        return source
    if batch_size is not None and batch_size < 1:
        raise FincEvalError(f"the batch size must be at least 1, got {batch_size}")
    if workers < 1:
        raise FincEvalError(f"the number of workers must be at least 1, got {workers}")
    card = load_card(extractor)
    samples = open_source(source, clip=card.clip, n=n, seed=seed)
    job = _Job(card, recipe_of(card, precision), samples, batch_size or _batch_size(card), workers, precision, device)
    target = None if out is None else Path(out).expanduser()
    cache = job.stream(target, strict, progress) if samples.once else job.run(target, strict, progress)
    if strict and cache.failures:
        cache.close()
        raise _unreadable(samples.name, cache.failures)
    return cache


def _batch_size(card: Card) -> int:
    height, width = card.preprocessing.size
    frames, most = (card.clip.frames, MOST_CLIPS) if card.clip else (1, LARGEST_BATCH)
    return max(1, min(most, PIXELS_A_BATCH // (frames * height * width)))


def _default_path(key: str) -> Path:
    return cache_folder() / f"{key}.h5"


@dataclass(frozen=True)
class _Job:
    """One set to be embedded with one card."""

    card: Card
    recipe: Recipe
    samples: Source
    batch_size: int
    workers: int
    precision: NetworkPrecision
    device: str | torch.device | None

    def identity(self, progress: Progress = silent) -> Identity:
        """What the cache is made of; it reads every byte of the set."""
        return Identity(self.samples.name, self.samples.manifest(progress), self.card.name, self.recipe)

    def run(self, out: Path | None, strict: bool, progress: Progress) -> EmbeddingCache:
        """Return the whole cache of the set, making what is not there yet."""
        identity = self.identity(progress)
        path = out or _default_path(identity.key)
        cache = whole_cache(path, identity.key)
        if cache is None:
            with only_writer(path):
                # The process that held the lock before may just have made it.
                cache = whole_cache(path, identity.key)
                if cache is None:
                    stage = "extract"
                    if path.exists():
                        stage += f" ({path.name} is of other samples or another card, and is replaced at the end)"
                    with self._writer(path, identity.key) as writer:
                        self._fill(writer, stage, progress)
                        self._confirm(writer, identity, progress)
                        self._judge(writer, strict)
                        self._finish(writer, identity, path, progress)
                    cache = EmbeddingCache(path)
        elif part_of(path).exists():
            # A kill between the last two steps leaves it; should somebody be writing there, it is theirs.
            with suppress(FincEvalError), only_writer(path):
                part_of(path).unlink(missing_ok=True)
        return cache

    def stream(self, out: Path | None, strict: bool, progress: Progress) -> EmbeddingCache:
        """Embed a set that can be read only once: what it is made of, and so its name, is known at the end."""
        name = uuid.uuid4().hex
        if out is not None:
            whole_cache(out, name)  # refuses what must not be overwritten
        path = (out or _default_path(name)).with_name(f".{name}.h5")
        with ExitStack() as locks:
            if out is not None:
                locks.enter_context(only_writer(out))  # now: after the work it would be too late to learn of another
            locks.enter_context(only_writer(path))
            locks.callback(lock_of(path).unlink, missing_ok=True)
            with self._writer(path, name) as writer:
                self._fill(writer, "extract", progress)
                self._judge(writer, strict)
                identity = self.identity()
                target = out or _default_path(identity.key)
                if out is None:
                    locks.enter_context(only_writer(target))
                self._finish(writer, identity, target, progress)
        return EmbeddingCache(target)

    def _writer(self, path: Path, key: str) -> CacheWriter:
        widths = {"embeddings": self.card.output.dimension}
        widths |= {name: output.dimension for name, output in self.card.extra.items()}
        return CacheWriter(path, key, self.samples.ids, widths, self.batch_size, self.samples.once)

    def _finish(self, writer: CacheWriter, identity: Identity, path: Path, progress: Progress) -> None:
        writer.finish(identity, path, labels=self.samples.labels, prompts=self.samples.prompts, progress=progress)

    def _fill(self, writer: CacheWriter, stage: str, progress: Progress) -> None:
        """Embed what is not embedded yet."""
        n = len(self.samples.ids)
        if writer.done:
            stage = stage.replace("extract", "extract, resumed", 1)
        progress(stage, writer.done, n)
        if writer.done < n:
            with closing(_one_behind(self._embedded(writer.done, progress))) as embedded:
                for batch, rows in embedded:
                    writer.write(self._rows(batch, rows), batch.content, batch.errors, batch.traits)
                    progress(stage, writer.done, n)

    def _confirm(self, writer: CacheWriter, identity: Identity, progress: Progress) -> None:
        """Refuse failures that are not the samples' own, but of a disk or a folder that went away meanwhile.

        The key names the bytes that were read at first: were such a cache kept, it would be used for the whole set.
        """
        failed, reasons = writer.failed(), dict(writer.failures())
        if failed and self.samples.manifest(progress).digest == identity.manifest.digest:
            again = zip(failed, self.samples.take(failed), strict=True)
            how = self.card.preprocessing
            failed = [number for number, sample in again if decoded(sample, how).error is None]
        if failed:
            name = self.samples.ids[failed[0]]
            writer.forget(failed[0])
            raise FincEvalError(
                f"{self.samples.name} changed while it was read ({name}: {reasons[name]}): run the same command again "
                "when it is whole and at rest"
            )

    def _judge(self, writer: CacheWriter, strict: bool) -> None:
        """Refuse a set without readable samples, and if `strict` one with any that is not."""
        n, failures = len(self.samples.ids), writer.failures()
        if len(failures) == n:
            writer.discard()
        if len(failures) == n or (strict and failures):
            raise _unreadable(self.samples.name, failures)

    @property
    def _compiled_for(self) -> int | None:
        """The batch size for which the network is compiled; whatever is still to do, for equal bits after a crash."""
        many = len(self.samples.ids) >= COMPILED_FROM
        return self.batch_size if many and self.card.weights is not None else None

    def _embedded(
        self, start: int, progress: Progress
    ) -> Generator[tuple[DecodedBatch, torch.Tensor | None], None, None]:
        """Yield batches and the rows of their readable samples, which a GPU may still be working on."""
        # Seconds of import that a cache that is there already does not need.
        from finc_eval.extractors.network import Embedder

        if self._compiled_for:
            progress("compile the network", 0, 1)
        embed = Embedder(self.card, self.device, self.precision, self._compiled_for)
        how, pinned = self.card.preprocessing, embed.device.type == "cuda"
        with closing(decoded_batches(self.samples, start, self.batch_size, how, self.workers, pinned)) as batches:
            for batch in batches:
                yield batch, None if batch.pixels is None else embed(batch.pixels)

    def _rows(self, batch: DecodedBatch, embedded: torch.Tensor | None) -> npt.NDArray[np.float32]:
        """Return the rows of a whole batch, zero where a sample is unreadable."""
        width = self.card.output.dimension + sum(output.dimension for output in self.card.extra.values())
        rows = np.zeros((len(batch.ids), width), np.float32)
        if embedded is not None:
            rows[batch.readable] = embedded.cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise FincEvalError(
                f"the embedding of sample {batch.ids[bad[0]]} by {self.card.name} holds NaN or infinity: "
                "remove the sample, or check the card's preprocessing, the precision and the device"
            )
        return rows


def _one_behind(items: Iterator[Item]) -> Generator[Item, None, None]:
    """The same items, each handed on when the next one has been begun: a GPU works while its last rows are written."""
    before: list[Item] = []
    for item in items:
        yield from before
        before = [item]
    yield from before


def _unreadable(name: str, failures: list[tuple[str, str]]) -> FincEvalError:
    first = "; ".join(f"{sample}: {reason}" for sample, reason in failures[:3])
    more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
    return FincEvalError(f"{name} has {len(failures)} unreadable samples ({first}{more}): repair or remove them")
