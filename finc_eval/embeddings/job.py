"""`Job`: the embedding of one set, resumable.

Samples are decoded in threads while the network works on the previous batch. Pillow and FFmpeg release the
interpreter's lock while they decode and resize. The rest, a quarter of the time of a small image, is done one by one.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import DataError
from finc_eval.core.heap import kept_memory
from finc_eval.core.memory import VARIABLE
from finc_eval.core.places import known_folder
from finc_eval.core.progress import Progress, Stage
from finc_eval.core.words import join_sizes, plural
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.columns import Columns
from finc_eval.embeddings.folder import cache_folder
from finc_eval.embeddings.needs import ListedSamples
from finc_eval.embeddings.recipe import Identity, Recipe, space_named
from finc_eval.embeddings.writer import (
    STREAM,
    CacheWriter,
    copy_cache,
    only_writer,
    remove_dead_streams,
    remove_remains,
    whole_cache,
)
from finc_eval.extractors.card import Card, Preprocessing
from finc_eval.extractors.cells import cell_table
from finc_eval.extractors.preprocess import Resized, resize_frames
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.shards import Shard
from finc_eval.samples.source import Digests, Sample, Source, fingerprint, prefetch

if TYPE_CHECKING:
    import torch

    from finc_eval.core.device import Place
    from finc_eval.core.run import Run
    from finc_eval.extractors.network import CardNetwork

CPU_PIXELS, GPU_PIXELS = 16 * 224 * 224, 64 * 224 * 224
"""Pixels of the network inputs of a batch by default: 16 or 64 images of 224 x 224. On a CPU more images save nothing
and take memory: a batch of 16 or 32 takes 17 ms an image, one of 4 takes 21."""

Item = TypeVar("Item")
Made: TypeAlias = "tuple[torch.Tensor | None, torch.Tensor | None]"  # rows and cells; see `CardNetwork.with_cells`


@dataclass(frozen=True)
class DecodedBatch:
    """Consecutive samples of a set, b of them, in the form that the network takes."""

    ids: list[str]  # ids of all samples
    # digests of the decoded samples, (b,) uint64; equal for exact copies, 0 for an unreadable sample
    content: npt.NDArray[np.uint64]
    digests: list[bytes]  # digests of the bytes that were decoded, as `Source.digests` has them
    errors: list[str | None]  # reason why a sample cannot be read, or None
    encodings: list[Encoding | None]  # encoding of each sample; None for an unreadable sample
    readable: npt.NDArray[np.int64]  # positions of the readable samples in the batch, (m,)
    pixels: torch.Tensor | None  # of the readable samples, (m, [frames,] height, width, 3); None if there are none
    # instants in seconds at which their frames are shown, (m, frames) float32; None for images
    times: torch.Tensor | None


class Decoded(NamedTuple):
    """One sample in the form that the network takes, or the reason why it cannot be read; see `DecodedBatch`."""

    id: str
    content: int
    digest: bytes
    error: str | None
    encoding: Encoding | None
    pixels: Resized | None
    times: npt.NDArray[np.float64] | None


def _decode(sample: Sample, how: Preprocessing) -> Decoded:
    if sample.pixels is None:
        return Decoded(sample.id, 0, sample.content, sample.error or "unreadable", None, None, None)
    try:
        ready = resize_frames(sample.pixels, how)
    except ValueError as error:
        return Decoded(sample.id, 0, sample.content, str(error), None, None, None)
    return Decoded(sample.id, fingerprint(sample.pixels), sample.content, None, sample.encoding, ready, sample.times)


def decode_batches(
    samples: Source, start: int, size: int, how: Preprocessing, workers: int, place: Place | None = None
) -> Generator[DecodedBatch, None, None]:
    """Yield the samples from index `start` on, `size` at a time; the next batch is made while one is in use.

    The reader's thread applies `place` to the pixels of a batch, such as to send them to a device.
    """

    def batches() -> Generator[DecodedBatch, None, None]:
        numbers = range(start, len(samples.ids))
        with closing(samples.mapped(partial(_decode, how=how), numbers, workers)) as one_by_one:
            while batch := list(itertools.islice(one_by_one, size)):
                yield _batch(batch, place)

    with closing(batches()) as made:
        yield from prefetch(made)


def _batch(samples: list[Decoded], place: Place | None) -> DecodedBatch:
    # Seconds of import, which a cache that exists already does not need.
    import torch

    ids, content, digests, errors, encodings, pixels, times = map(list, zip(*samples, strict=True))
    readable = [number for number, error in enumerate(errors) if error is None]
    stacked = torch.from_numpy(np.stack([pixels[number] for number in readable])) if readable else None
    timed = bool(readable) and all(times[number] is not None for number in readable)
    return DecodedBatch(
        ids=ids,
        content=np.array(content, np.uint64),
        digests=digests,
        errors=errors,
        encodings=encodings,
        readable=np.array(readable, np.int64),
        pixels=stacked if stacked is None or place is None else place(stacked),
        times=torch.from_numpy(np.stack([times[number] for number in readable])).float() if timed else None,
    )


def default_batch_size(card: Card, device: torch.device) -> int:
    """Return the samples per pass through the network of a card, unless the user says."""
    height, width = card.preprocessing.size
    # Small inputs can take much memory, too: their networks keep the size for many layers.
    frames, most = (card.clip.frames, 32) if card.clip else (1, 256)
    pixels = CPU_PIXELS if device.type == "cpu" else GPU_PIXELS
    return max(1, min(most, pixels // (frames * height * width)))


def one_behind(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items, each when the next has been started: a GPU computes while its last rows are written."""
    before: list[Item] = []
    for item in items:
        yield from before
        before = [item]
    yield from before


MIN_COMPILED_SAMPLES = 8000  # samples from which it pays to compile a network for the CPU, which takes half a minute
FIRST_SAMPLES = 2000  # samples of each set that a first try takes, which long work proposes: they show small kinds


def stage_of(jobs: Mapping[str, Job], sizes: Sequence[int], alone: bool) -> Stage:
    """Return what is embedded, in words, and the number of samples of a first look at the same sets."""
    job = next(iter(jobs.values()))
    clip = job.card.clip
    things = "images" if clip is None else "clips" if clip.windows == 1 else f"windows, {clip.windows} of each video,"
    replaced = [job.out.name for job in jobs.values() if job.out is not None and job.replaces]
    note = f" ({replaced[0]} is of other samples or another card, and is replaced at the end)" if replaced else ""
    large = all(len(job.samples.ids) > FIRST_SAMPLES for job in jobs.values())
    fewer = alone and large and job.n is None and job.shard is None
    name = f"embed {join_sizes(sizes)} {things} by {job.card.name}{note}"
    return Stage(name, (f"--n {FIRST_SAMPLES}", FIRST_SAMPLES * len(jobs)) if fewer else None)


@dataclass
class Job:
    """Extraction of one set with one card."""

    identity: Identity = field(init=False)

    card: Card
    recipe: Recipe
    samples: Source
    run: Run  # device, samples per pass and threads
    embedder: Callable[[int | None], CardNetwork]  # returns the network, compiled for a batch size or for None
    out: Path | None = None  # path of the file; None for its key in the folder of caches
    strict: bool = False  # whether a sample that cannot be read is an error
    force: bool = False  # whether `out` may replace any file
    n: int | None = None  # size of the subset that was asked for; None for the whole set
    shard: Shard | None = None  # part of the set that the samples are
    digests: Digests | None = None  # digests of the samples, once they are read
    found: EmbeddingCache | None = None  # the finished cache, if it is there
    replaces: bool = False  # whether `out` has other embeddings

    def _identity(self, digests: Digests) -> Identity:
        """Return what the cache is made of, from the content digests of the samples."""
        return Identity(
            self.samples.name,
            self.samples.manifest(digests=digests),
            self.card.name,
            self.recipe,
            self.shard,
            self.samples.reading,
        )

    def key(self, progress: Progress) -> str:
        """Return the key of the cache, for which the samples are read and not embedded."""
        return self._identity(self.samples.digests(progress)).key

    @property
    def given(self) -> dict[str, Sequence[str]]:
        """Columns that come with the samples, by name."""
        columns = {"label": self.samples.labels, "prompt": self.samples.prompts, **self.samples.columns}
        return {name: values for name, values in columns.items() if values is not None}

    def listed(self, label: str) -> ListedSamples:
        """Return what is known of the samples before they are embedded, once they were looked at."""
        space = space_named(self.card.name, self.identity.extractor_digest)
        if self.found is None:
            return ListedSamples(label, space, self.samples.ids, self.given, source=self.samples)
        return ListedSamples(label, space, self.found.ids, self.columns(self.found), self.found)

    def columns(self, cache: EmbeddingCache) -> Columns:
        """Return the columns of the samples whose rows a cache keeps."""
        if not self.samples.columns:
            return {}
        row_of = {name: row for row, name in enumerate(self.samples.ids)}
        rows = [row_of[name] for name in cache.ids]
        return {name: [values[row] for row in rows] for name, values in self.samples.columns.items()}

    def count_missing(self, progress: Progress) -> int:
        """Read the samples, look for their embeddings, and return the number of samples that are to be embedded."""
        if self.samples.once:
            return len(self.samples.ids)
        self.digests = self.samples.digests(progress)
        self.identity = self._identity(self.digests)
        self.found = self._whole(path := self.out or _default_path(self.identity.key))
        self.replaces = self.found is None and path.exists()
        return 0 if self.found else len(self.samples.ids)

    def made(self, progress: Progress, tell: Progress) -> EmbeddingCache:
        """Return the finished cache of a set that was looked at, making what is missing.

        `tell` takes the progress of the embedding, `progress` everything else.
        """
        if self.samples.once:
            return self._stream(progress, tell)
        path = self.out or _default_path(self.identity.key)
        if self.found is not None:
            remove_remains(path)
            return self.found
        with only_writer(path):
            # The previous holder of the lock may just have made it.
            cache = self._whole(path)
            # A user without a home has no other caches, and needs none for a file with a place of its own.
            cached = _default_path(self.identity.key) if known_folder("embeddings") else path
            if cache is None and not copy_cache(cached, path, self.identity, self._usable, self.columns):
                with self._writer(path, self.identity.key, self.identity.origin) as writer:
                    self._fill(writer, progress, tell)
                    self._judge(writer)
                    self._finish(writer, self.identity, path, progress)
            return cache or EmbeddingCache(path)

    def _whole(self, path: Path) -> EmbeddingCache | None:
        return self._usable(whole_cache(path, self.identity.key, self.identity.origin, self.force, self.n))

    def _usable(self, cache: EmbeddingCache | None) -> EmbeddingCache | None:
        """Return the cache; None if it lacks samples that were too large before, or is one of ours without cells."""
        if cache is None:
            return None
        is_older = cache.cells_absent and cell_table(self.card) is not None and cache.path != self.out
        too_large = {name for name, why in cache.failures if VARIABLE in why}
        numbers = [number for number, name in enumerate(self.samples.ids) if name in too_large]
        if not is_older and not any(self.samples.mapped(lambda sample: sample.error is None, numbers)):
            return cache
        cache.close()
        return None

    def _stream(self, progress: Progress, tell: Progress) -> EmbeddingCache:
        """Embed a set that can be read only once: its identity, and so its name, is known only at the end."""
        name, out = uuid.uuid4().hex, self.out
        if out is not None:
            whole_cache(out, name, force=self.force)  # refuses what must not be overwritten
        path = (out or _default_path(name)).with_name(f"{STREAM}{name}.h5")
        remove_dead_streams(path.parent)
        with ExitStack() as locks:
            if out is not None:
                locks.enter_context(only_writer(out))  # before the work: another writer should be known at once
            locks.enter_context(only_writer(path))
            with self._writer(path, name) as writer:
                self._fill(writer, progress, tell)
                self._judge(writer)
                identity = self._identity(self.samples.digests())
                target = out or _default_path(identity.key)
                if out is None:
                    locks.enter_context(only_writer(target))
                self._finish(writer, identity, target, progress)
        return EmbeddingCache(target)

    def _writer(self, path: Path, key: str, origin: str = "") -> CacheWriter:
        widths = {"embeddings": self.card.output.dimension}
        widths |= {name: output.dimension for name, output in self.card.extra.items()}
        ids, once, cells = self.samples.ids, self.samples.once, cell_table(self.card)
        return CacheWriter(path, key, ids, widths, self._batch_size, once, origin, cells)

    def _finish(self, writer: CacheWriter, identity: Identity, path: Path, progress: Progress) -> None:
        writer.finish(identity, path, self.given, digests=self.digests, progress=progress)

    def _fill(self, writer: CacheWriter, progress: Progress, tell: Progress) -> None:
        """Embed the samples that are not embedded yet, and refuse samples whose bytes do not match `digests`.

        The key of the cache names the bytes that were read at first: rows of others would be used for the whole set.
        """
        n = len(self.samples.ids)
        if writer.done == n:
            return tell("", n, n)
        if self._compiled_for:
            progress("compile the network", 0, 1)
        embed = self.embedder(self._compiled_for)
        tell("", writer.done, n)  # the clock starts when the network is there
        with kept_memory(), closing(one_behind(self._embedded(embed, writer.done))) as embedded:
            for batch, (rows, cells) in embedded:
                self._check_unchanged(batch, writer.done)
                made = None if cells is None else cells.cpu().numpy()
                writer.write(self._rows(batch, rows), batch.content, batch.errors, batch.encodings, made)
                tell("", writer.done, n)
        return None

    def _check_unchanged(self, batch: DecodedBatch, start: int) -> None:
        """Refuse samples, from number `start` on, whose bytes are not those that `digests` are of."""
        if self.digests is None:
            return
        hashed = self.digests[start : start + len(batch.ids)]
        if b"".join(batch.digests) == hashed.tobytes():
            return
        first = [digest == other.tobytes() for digest, other in zip(batch.digests, hashed, strict=True)].index(False)
        mend = "run the same command again when nothing changes it any more"
        if self.samples.kind == "dataset":
            mend = "its items must be the same whenever they are read, so remove random augmentation"
        why = batch.errors[first] or "its bytes differ from the bytes that were read first"
        raise DataError(f"{self.samples.name} changed while it was read ({batch.ids[first]}: {why}): {mend}")

    def _judge(self, writer: CacheWriter) -> None:
        """Refuse a set without readable samples and, if the job is strict, a set with an unreadable one.

        A shard may be without any: other shards of the set have them.
        """
        n, failures = len(self.samples.ids), writer.failures()
        none = len(failures) == n and self.shard is None
        if none:
            writer.discard()
        if none or (self.strict and failures):
            raise unreadable_error(self.samples.name, failures)

    @property
    def _batch_size(self) -> int:
        return self.run.batch_size or default_batch_size(self.card, self.run.torch_device)

    @property
    def _compiled_for(self) -> int | None:
        """Batch size for which the network is compiled, or None.

        It depends on the whole set, however much of it is done, so that a resumed run has the same bits.
        """
        many = len(self.samples.ids) >= MIN_COMPILED_SAMPLES
        return self._batch_size if many and self.card.weights is not None else None

    def _embedded(self, embed: CardNetwork, start: int) -> Generator[tuple[DecodedBatch, Made], None, None]:
        """Yield batches with rows and cells of their readable samples, which a GPU may still be working on."""
        from finc_eval.core.device import send

        how, place = self.card.preprocessing, partial(send, device=embed.device)
        with closing(decode_batches(self.samples, start, self._batch_size, how, self.run.workers, place)) as batches:
            for batch in batches:
                yield batch, (None, None) if batch.pixels is None else embed.with_cells(batch.pixels, batch.times)

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


def unreadable_error(name: str, failures: list[tuple[str, str]]) -> DataError:
    """Return the error for a set with samples that cannot be read."""
    first = "; ".join(f"{sample}: {reason}" for sample, reason in failures[:3])
    more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
    many = plural(len(failures), "unreadable sample")
    return DataError(f"{name} has {many} ({first}{more}): repair or remove them")


def _default_path(key: str) -> Path:
    return cache_folder() / f"{key}.h5"
