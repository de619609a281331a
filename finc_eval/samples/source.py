"""What a set of samples is, whatever it is read from: ids in a fixed order, decoded a few ahead, and a manifest."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from PIL import UnidentifiedImageError

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.samples.traits import Traits as Traits

PROGRESS_EVERY = 256
THREADS = min(16, os.cpu_count() or 1)
DAMAGED = (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile)

Pixels = npt.NDArray[np.uint8]

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sample:
    """One image or clip of a set, or the reason why there is none.

    Attributes:
        id: the sample's name within its set.
        pixels: uint8 RGB, (height, width, 3) of an image, (frames, height, width, 3) of a clip; None where the sample
            cannot be read.
        error: a short phrase saying why it cannot be read; None where it can.
        traits: how it was encoded; None where it cannot be read.
    """

    id: str
    pixels: Pixels | None
    error: str | None = None
    traits: Traits | None = None


@dataclass(frozen=True)
class Manifest:
    """What a set consists of, wherever it lies.

    Attributes:
        kind: as of the source.
        n: number of samples.
        digest: SHA-256 (hex) over the (id, content digest) pairs in id order.
        ignored: files that are no samples, counted by suffix.
        annotations: SHA-256 (hex) over labels and prompts; None where there are neither.
    """

    kind: str
    n: int
    digest: str
    ignored: dict[str, int]
    annotations: str | None = None


class Source(ABC):
    """A set of images or clips.

    Attributes:
        kind: "folder", "zip", "tar", "npz", "array", "dataset", "iterator" ….
        once: whether the samples can be read only once, from the first to the last; `manifest` then answers, and
            labels and prompts are known, after that.
        name: absolute path, or what the samples came as ("array").
        ids: the samples' ids: sorted names, or row numbers.
        ignored: files that are no samples, counted by suffix.
        labels: a class for each of `ids`; None where none are known.
        prompts: a text for each of `ids`; None where none are known.
    """

    kind: str
    once: bool = False

    def __init__(
        self,
        name: str,
        ids: list[str],
        ignored: dict[str, int],
        labels: Sequence[str] | None = None,
        prompts: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.ids = ids
        self.ignored = ignored
        self.labels = labels
        self.prompts = prompts

    @abstractmethod
    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        """Yield the samples with these numbers, which increase, whether readable or not."""

    @abstractmethod
    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Yield a digest of the bytes of each sample with these numbers, which increase."""

    def samples(self, start: int = 0) -> Iterator[Sample]:
        """Yield every sample from number `start` on, in the order of `ids`, whether readable or not."""
        return self.take(range(start, len(self.ids)))

    def sample(self, number: int) -> Sample:
        """Return one sample by its number; of a set that is a stream this reads all those before it."""
        return next(iter(self.take([number])))

    def read(self, ids: Iterable[str]) -> dict[str, Pixels]:
        """Return a few samples by id; ids that are missing or unreadable are left out."""
        wanted = set(ids)
        numbers = [number for number, name in enumerate(self.ids) if name in wanted]
        return {sample.id: sample.pixels for sample in self.take(numbers) if sample.pixels is not None}

    def manifest(self, progress: Progress = silent) -> Manifest:
        """Read every byte of the set once and say what it consists of."""
        total, digest = len(self.ids), hashlib.sha256()
        for done, (name, content) in enumerate(zip(self.ids, self.contents(range(total)), strict=True), start=1):
            # No id holds a NUL and contents have one length, so no two sets spell the same bytes.
            digest.update(utf8(name) + b"\0" + content)
            if done % PROGRESS_EVERY == 0 or done == total:
                progress("check samples", done, total)
        return Manifest(self.kind, total, digest.hexdigest(), self.ignored, self._annotations())

    def _annotations(self) -> str | None:
        if self.labels is None and self.prompts is None:
            return None
        digest = hashlib.sha256()
        for texts in (self.labels, self.prompts):
            digest.update(repr(texts and list(texts)).encode())
        return digest.hexdigest()


class RandomAccessSource(Source):
    """A set whose samples can be read in any order, by many threads at once."""

    @abstractmethod
    def sample(self, number: int) -> Sample:
        """Read one sample; one that cannot be read carries its reason."""

    @abstractmethod
    def content(self, number: int) -> bytes:
        """Return a digest of one sample's bytes, of 32 bytes."""

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return ahead(self.sample, numbers)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return ahead(self.content, numbers)


def fingerprint(pixels: Pixels) -> int:
    """Return a 64-bit BLAKE2b digest of a sample's shape and pixels: equal for exact copies."""
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(pixels).data)
    return int.from_bytes(digest.digest(), "little")


def pixels_digest(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return the content digest of a sample that is not encoded."""
    # The shape belongs to the content: 28x28 and 14x56 pixels may be the same bytes.
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=32)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


def failure_digest(error: str) -> bytes:
    """Return the content digest of a sample whose bytes cannot be had."""
    return hashlib.blake2b(b"unreadable: " + utf8(error), digest_size=32).digest()


def ahead(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int = THREADS
) -> Generator[Result, None, None]:
    """Map `function` over `items` in threads, in order, working at most a small window ahead."""
    with ThreadPoolExecutor(threads) as pool:
        window: deque[Future[Result]] = deque()
        try:
            for item in items:
                window.append(pool.submit(function, item))
                if len(window) == 4 * threads:
                    yield window.popleft().result()
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()


def reason(error: Exception) -> str:
    """Say in one short phrase, free of paths, why something cannot be read."""
    if isinstance(error, UnidentifiedImageError):
        return "no image that can be recognized"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return (str(error).splitlines() or [""])[0][:120] or type(error).__name__


def utf8(name: str) -> bytes:
    """Spell a file name in bytes; names on Linux need not be valid UTF-8, and Python carries those as surrogates."""
    return name.encode("utf-8", "surrogateescape")


def aligned(found: dict[str, str], ids: Sequence[str], what: str, where: str) -> list[str] | None:
    """Put labels or prompts found by id in the order of `ids`; None where none of them has one.

    Raises:
        FincEvalError: some have one and some do not.
    """
    missing = [name for name in ids if name not in found]
    if len(missing) == len(ids):
        return None
    if missing:
        raise FincEvalError(
            f"{where} gives a {what} to {len(ids) - len(missing)} of {len(ids)} samples, and none to {missing[0]}: "
            "add the missing ones, or take them all out"
        )
    return [found[name] for name in ids]
