"""Batches of resized samples, decoded in threads while the network works on the previous batch.

Threads suffice, because Pillow and FFmpeg release the interpreter's lock while they decode and resize.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from finc_eval.extractors.card import Card, Preprocessing
from finc_eval.extractors.preprocess import Resized, resize_frames
from finc_eval.samples import Sample, Source, Traits, fingerprint
from finc_eval.samples.source import prefetch

if TYPE_CHECKING:
    import torch

    from finc_eval.core.device import Place


PIXELS_PER_BATCH = 64 * 224 * 224
"""Pixels of the network inputs of a batch by default: 64 images of 224 x 224."""

MAX_IMAGES_PER_BATCH, MAX_CLIPS_PER_BATCH = 256, 32
"""Limits of the default batch. Small inputs can take much memory: their networks keep the size for many layers."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class DecodedBatch:
    """Consecutive samples of a set, b of them, in the form that the network takes."""

    ids: list[str]  # ids of all samples
    # digests of the decoded samples, (b,) uint64; equal for exact copies, 0 for an unreadable sample
    content: npt.NDArray[np.uint64]
    digests: list[bytes]  # digests of the bytes that were decoded, as `Source.digests` has them
    errors: list[str | None]  # reason why a sample cannot be read, or None
    traits: list[Traits | None]  # encoding of each sample; None for an unreadable sample
    readable: npt.NDArray[np.int64]  # positions of the readable samples in the batch, (m,)
    # pixels of the readable samples, (m, height, width, 3) or (m, frames, height, width, 3); None if no sample is
    # readable
    pixels: torch.Tensor | None
    # instants in seconds at which their frames are shown, (m, frames) float32; None for images
    times: torch.Tensor | None


class Decoded(NamedTuple):
    """One sample in the form that the network takes, or the reason why it cannot be read; see `DecodedBatch`."""

    id: str
    content: int
    digest: bytes
    error: str | None
    traits: Traits | None
    pixels: Resized | None
    times: npt.NDArray[np.float64] | None


def decode_sample(sample: Sample, how: Preprocessing) -> Decoded:
    """Resize one sample."""
    if sample.pixels is None:
        return Decoded(sample.id, 0, sample.content, sample.error or "unreadable", None, None, None)
    try:
        ready = resize_frames(sample.pixels, how)
    except ValueError as error:
        return Decoded(sample.id, 0, sample.content, str(error), None, None, None)
    return Decoded(sample.id, fingerprint(sample.pixels), sample.content, None, sample.traits, ready, sample.times)


def decode_batches(
    samples: Source, start: int, size: int, how: Preprocessing, workers: int, place: Place | None = None
) -> Generator[DecodedBatch, None, None]:
    """Yield the samples from index `start` on, `size` at a time; the next batch is made while one is in use.

    The reader's thread applies `place` to the pixels of a batch, such as to send them to a device.
    """

    def batches() -> Generator[DecodedBatch, None, None]:
        numbers = range(start, len(samples.ids))
        with closing(samples.mapped(partial(decode_sample, how=how), numbers, workers)) as one_by_one:
            while batch := list(itertools.islice(one_by_one, size)):
                yield _batch(batch, place)

    with closing(batches()) as made:
        yield from prefetch(made)


def _batch(samples: list[Decoded], place: Place | None) -> DecodedBatch:
    # Seconds of import, which a cache that exists already does not need.
    import torch

    ids, content, digests, errors, traits, pixels, times = map(list, zip(*samples, strict=True))
    readable = [number for number, error in enumerate(errors) if error is None]
    stacked = torch.from_numpy(np.stack([pixels[number] for number in readable])) if readable else None
    timed = bool(readable) and all(times[number] is not None for number in readable)
    return DecodedBatch(
        ids=ids,
        content=np.array(content, np.uint64),
        digests=digests,
        errors=errors,
        traits=traits,
        readable=np.array(readable, np.int64),
        pixels=stacked if stacked is None or place is None else place(stacked),
        times=torch.from_numpy(np.stack([times[number] for number in readable])).float() if timed else None,
    )


def default_batch_size(card: Card) -> int:
    """Return the samples per pass through the network of a card, unless the user says."""
    height, width = card.preprocessing.size
    frames, most = (card.clip.frames, MAX_CLIPS_PER_BATCH) if card.clip else (1, MAX_IMAGES_PER_BATCH)
    return max(1, min(most, PIXELS_PER_BATCH // (frames * height * width)))


def one_behind(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items, each when the next has been started: a GPU computes while its last rows are written."""
    before: list[Item] = []
    for item in items:
        yield from before
        before = [item]
    yield from before
