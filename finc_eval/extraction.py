"""From samples to an embedding cache: resumable, and never done twice for the same samples and card."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from finc_eval.backbones import load_backbone
from finc_eval.cache import EmbeddingCache, Identity
from finc_eval.cache_writer import CacheWriter, only_writer, part_of, whole_cache
from finc_eval.cards import Card, Preprocessing, load_card
from finc_eval.errors import FincEvalError
from finc_eval.preprocess import preprocess
from finc_eval.progress import Progress, silent
from finc_eval.samples import Sample, Samples, Source, ahead, fingerprint, open_source

if TYPE_CHECKING:
    import torch

Embed = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def extract(
    source: Samples | EmbeddingCache,
    extractor: str | Path = "pixels",
    out: str | Path | None = None,
    *,
    strict: bool = False,
    batch_size: int = 64,
    device: str | torch.device | None = None,
    progress: Progress = silent,
) -> EmbeddingCache:
    """Embed a set of images and keep the embeddings in a file; return it, at once if it is there already.

    The bytes of the samples and what the card says decide whether it is there, never a name. A run that was
    stopped or killed is resumed by the next one with the same `out`.

    Args:
        source: a folder, a .zip or an .npz by its path, a uint8 array, or a cache (returned as it is).
        extractor: the name of an extractor, or the path of a card ending in .toml.
        out: the file to write; by default one named by its key in $FINC_EVAL_CACHE, or else in
            ~/.cache/finc-eval/embeddings.
        strict: refuse a set with unreadable samples; otherwise the cache lists them in `failures`.
        batch_size: images per pass through the network.
        device: where the network runs; by default CUDA where there is one, otherwise the CPU.
        progress: told the stage, the samples done and their number.

    Raises:
        FincEvalError: samples, card, device or output file are not usable, `strict` is not met, an embedding
            is not finite, or another process is writing `out`.
    """
    if isinstance(source, EmbeddingCache):
        return source
    if batch_size < 1:
        raise FincEvalError(f"the batch size must be at least 1, got {batch_size}")
    card, samples = load_card(extractor), open_source(source)
    manifest = samples.manifest(progress)
    identity = Identity(card.name, card.digest, manifest.digest, samples.name, manifest.ignored)
    path = Path(out).expanduser() if out is not None else _default_path(identity.key)

    cache = whole_cache(path, identity.key)
    if cache is None:
        with only_writer(path):
            # The process that held the lock before may just have made it.
            cache = whole_cache(path, identity.key)
            if cache is None:
                _write(path, identity, samples, card, batch_size, device, strict, progress)
                cache = EmbeddingCache(path)
    elif part_of(path).exists():
        # A kill between the last two steps leaves it; should somebody be writing there, it is theirs.
        with suppress(FincEvalError), only_writer(path):
            part_of(path).unlink(missing_ok=True)
    if strict and cache.failures:
        cache.close()
        raise _unreadable(samples.name, cache.failures)
    return cache


def _default_path(key: str) -> Path:
    folder = os.environ.get("FINC_EVAL_CACHE") or "~/.cache/finc-eval/embeddings"
    return Path(folder).expanduser() / f"{key}.h5"


def _write(
    path: Path,
    identity: Identity,
    samples: Source,
    card: Card,
    batch_size: int,
    device: str | torch.device | None,
    strict: bool,
    progress: Progress,
) -> None:
    """Embed what is not embedded yet and put the whole cache in place."""
    n = len(samples.ids)
    with CacheWriter(path, identity, samples.ids, card.output.dimension, batch_size) as writer:
        stage = "extract" if writer.done == 0 else "extract, resumed"
        if path.exists():
            stage += f" ({path.name} is of other samples or another card, and is replaced at the end)"
        progress(stage, writer.done, n)
        if writer.done < n:
            embed = _embedder(card, device)
            with closing(_batches(samples, writer.done, batch_size, card.preprocessing)) as batches:
                for batch in batches:
                    rows = _embed_batch(batch, embed, card)
                    content = np.array([item.content for item in batch], np.uint64)
                    writer.write(rows, content, [item.error for item in batch])
                    progress(stage, writer.done, n)
        failures = writer.failures()
        if len(failures) == n:
            writer.discard()
        if len(failures) == n or (strict and failures):
            raise _unreadable(samples.name, failures)
        writer.finish(progress)


@dataclass(frozen=True)
class _Prepared:
    """A sample as the network takes it: (3, height, width) float32, or why there is none."""

    id: str
    pixels: npt.NDArray[np.float32] | None
    content: int
    error: str | None


def _batches(samples: Source, start: int, size: int, how: Preprocessing) -> Generator[list[_Prepared], None, None]:
    """Yield samples from number `start` on, prepared in threads, `size` at a time."""

    def prepare(sample: Sample) -> _Prepared:
        if sample.image is None:
            return _Prepared(sample.id, None, 0, sample.error or "unreadable")
        return _Prepared(sample.id, preprocess(sample.image, how), fingerprint(sample.image), None)

    with closing(ahead(prepare, samples.images(start))) as prepared:
        while batch := list(itertools.islice(prepared, size)):
            yield batch


def _embed_batch(batch: list[_Prepared], embed: Embed, card: Card) -> npt.NDArray[np.float32]:
    """Return (len(batch), dimension) embeddings, zero where a sample is unreadable."""
    rows = np.zeros((len(batch), card.output.dimension), np.float32)
    readable = [number for number, item in enumerate(batch) if item.pixels is not None]
    if not readable:
        return rows
    embeddings = embed(np.stack([item.pixels for item in batch if item.pixels is not None]))
    if embeddings.shape[1:] != rows.shape[1:]:
        raise FincEvalError(
            f"card {card.name}: the network gives embeddings of shape {embeddings.shape[1:]}, "
            f"the card says {card.output.dimension}: correct output.dimension"
        )
    rows[readable] = embeddings
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise FincEvalError(
            f"the embedding of sample {batch[bad[0]].id} by {card.name} holds NaN or infinity: "
            "remove the sample, or check the card's preprocessing and the device"
        )
    return rows


def _embedder(card: Card, device: str | torch.device | None) -> Embed:
    """Return the card's network as a function of arrays."""
    # Seconds of import that a cache that is there already does not need.
    import torch

    from finc_eval.device import default_device

    try:
        where = torch.device(device) if device else default_device()
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise FincEvalError(f'the device "{device}" cannot be used ({reason}): try cpu or cuda') from error
    backbone = load_backbone(card, where)

    def embed(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            rows: npt.NDArray[np.float32] = backbone(torch.from_numpy(pixels).to(where)).float().cpu().numpy()
        return rows

    return embed


def _unreadable(name: str, failures: list[tuple[str, str]]) -> FincEvalError:
    first = "; ".join(f"{sample}: {reason}" for sample, reason in failures[:3])
    more = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
    return FincEvalError(f"{name} has {len(failures)} unreadable samples ({first}{more}): repair or remove them")
