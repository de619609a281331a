"""Batches of resized samples, decoded in threads while the network works on the batch before.

Threads, not processes: Pillow and FFmpeg let go of the interpreter while they decode and resize.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from finc_eval.core.prefetch import prefetched
from finc_eval.extractors.card import Preprocessing
from finc_eval.extractors.preprocess import Resized, resized
from finc_eval.samples import Sample, Source, Traits, ahead, fingerprint

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class DecodedBatch:
    """Consecutive samples of a set, b of them, as the network takes them.

    Attributes:
        ids: of all of them.
        content: (b,) uint64 digests of the decoded samples: equal for exact copies, 0 where one cannot be read.
        errors: why a sample cannot be read; None where it can.
        traits: how each was encoded; None where it cannot be read.
        readable: (m,) the numbers of those that can be read.
        pixels: of the readable ones, (m, height, width, 3) or (m, frames, height, width, 3), in pinned memory where
            that was asked for; None where none can be read.
    """

    ids: list[str]
    content: npt.NDArray[np.uint64]
    errors: list[str | None]
    traits: list[Traits | None]
    readable: npt.NDArray[np.int64]
    pixels: torch.Tensor | None


class Decoded(NamedTuple):
    """One sample as the network takes it, or why it cannot be had; fields as of `DecodedBatch`."""

    id: str
    content: int
    error: str | None
    traits: Traits | None
    pixels: Resized | None


def decoded(sample: Sample, how: Preprocessing) -> Decoded:
    """Resize one sample."""
    if sample.pixels is None:
        return Decoded(sample.id, 0, sample.error or "unreadable", None, None)
    try:
        ready = resized(sample.pixels, how)
    except ValueError as error:
        return Decoded(sample.id, 0, str(error), None, None)
    return Decoded(sample.id, fingerprint(sample.pixels), None, sample.traits, ready)


def decoded_batches(
    samples: Source, start: int, size: int, how: Preprocessing, workers: int, pinned: bool = False
) -> Generator[DecodedBatch, None, None]:
    """Yield the samples from number `start` on, `size` at a time; the next batch is made while one is in use.

    Args:
        samples: the set.
        start: the first sample.
        size: samples in a batch; the last may be smaller.
        how: the card's preprocessing.
        workers: threads that decode and resize.
        pinned: whether to put pixels where a GPU fetches them by itself.
    """

    def batches() -> Generator[DecodedBatch, None, None]:
        numbers = range(start, len(samples.ids))
        every = ahead(partial(decoded, how=how), samples.take(numbers), workers)
        with closing(every) as one_by_one:
            while batch := list(itertools.islice(one_by_one, size)):
                yield _batch(batch, pinned)

    with closing(batches()) as made:
        yield from prefetched(made)


def _batch(samples: list[Decoded], pinned: bool) -> DecodedBatch:
    # Seconds of import that a cache that is there already does not need.
    import torch

    ids, content, errors, traits, pixels = map(list, zip(*samples, strict=True))
    readable = [number for number, error in enumerate(errors) if error is None]
    stacked = torch.from_numpy(np.stack([pixels[number] for number in readable])) if readable else None
    return DecodedBatch(
        ids=ids,
        content=np.array(content, np.uint64),
        errors=errors,
        traits=traits,
        readable=np.array(readable, np.int64),
        pixels=stacked.pin_memory() if pinned and stacked is not None else stacked,
    )
