"""`Source`, the base of all sets of samples: ids in a fixed order, samples decoded a few ahead, and a manifest."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import UnidentifiedImageError

from finc_eval.core import memory
from finc_eval.core.digest import text_bytes
from finc_eval.core.doors import NotAFileError
from finc_eval.core.errors import DataError, FincEvalError, RemoteError, UsageError, first_line
from finc_eval.core.isolation import IsolationError
from finc_eval.core.memory import max_decoded
from finc_eval.core.progress import Progress, silent
from finc_eval.core.secrets import redact
from finc_eval.samples.encoding import Encoding as Encoding
from finc_eval.samples.reading import EVERYTHING, STORED, Reading
from finc_eval.samples.whole.course import ClipCourse

Samples = str | Path | npt.NDArray[Any] | Iterable[Any] | Callable[[int], Any]
"""Forms of a set that `open_source` takes: a path, an array or tensor, a dataset, an iterable, a function."""

THREADS = min(16, os.cpu_count() or 1)

DIGEST_BYTES = 32  # bytes of the content digest of a sample
READ_AHEAD = 4  # items a thread that are read ahead of their use

TOGETHER = 4
"""Samples that a thread takes at once where there are many: to hand over each alone takes 8 µs, in fours 2 µs."""

FULL_SIZE_THREADS, FULL_SIZE_WINDOW = min(4, THREADS), 1
"""Threads that read samples which are handed out in full size, and samples a thread: each may be large."""

NOT_OF_THE_SAMPLE = (MemoryError, RemoteError, IsolationError)
"""Errors that end a run, where all others make a sample unreadable: the fault is of the machine or the network."""

COPIES = 4  # times its bytes that a sample in memory takes while it is worked on

Pixels = npt.NDArray[np.uint8]

Digests = npt.NDArray[np.uint8]  # content digests of samples, (n, 32)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Sample:
    """One image or clip of a set, or the reason why it cannot be read.

    Attributes:
        id: name of the sample within its set.
        pixels: uint8 RGB, (height, width, 3) for an image, (frames, height, width, 3) for a clip; None for a sample
            that cannot be read.
        error: short phrase that says why the sample cannot be read; None if it can.
        encoding: encoding of the sample; None for a sample that cannot be read.
        content: digest of the bytes that were decoded, as `Source.contents` yields it.
        times: instants in seconds at which the frames of a clip are shown, (frames,); None for an image.
        course: small frames of the whole video of a clip; None unless the source was asked for it (`with_courses`).
    """

    id: str
    pixels: Pixels | None
    error: str | None = None
    encoding: Encoding | None = None
    content: bytes = b""
    times: npt.NDArray[np.float64] | None = None
    course: ClipCourse | None = None


@dataclass(frozen=True)
class Manifest:
    """Contents of a set, wherever it is stored.

    Attributes:
        kind: kind of the source.
        n: number of samples.
        digest: SHA-256 (hex) over the (id, content digest) pairs in id order.
        ignored: files that are not samples, counted by suffix.
        metadata: SHA-256 (hex) over labels and prompts; None for a set without them.
    """

    kind: str
    n: int
    digest: str
    ignored: dict[str, int]
    metadata: str | None = None


class Source(ABC):
    """A set of images or clips.

    Attributes:
        kind: "folder", "zip", "tar", "npz", "array", "dataset", "iterator" ….
        once: True if the samples can be read only once, from the first to the last. The manifest, labels and prompts
            are known after that.
        name: absolute path, or the form of the samples ("array").
        ids: ids of the samples: sorted names, or row numbers.
        ignored: files that are not samples, counted by suffix.
        labels: class of each sample; None for a set without labels.
        prompts: text of each sample; None for a set without prompts.
        columns: further columns of metadata, one text a sample. They do not change the manifest.
        reading: which files and values are the samples. A stated range changes the manifest.
    """

    kind: str
    once: bool = False
    reading: Reading = EVERYTHING

    def __init__(
        self,
        name: str,
        ids: list[str],
        ignored: dict[str, int],
        labels: Sequence[str] | None = None,
        prompts: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name = name
        self.ids = ids
        self.ignored = ignored
        self.labels = labels
        self.prompts = prompts
        self.columns = columns or {}

    @abstractmethod
    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        """Yield the samples with these increasing numbers, also those that cannot be read."""

    def with_courses(self) -> Source:
        """Return the same samples; those of videos come with small frames of the whole video."""
        return self

    @abstractmethod
    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Yield a digest of the bytes of each sample with these increasing numbers."""

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        """Yield `function` of the samples with these increasing numbers, computed in threads.

        A sample in its full size lives only until the function returns. All threads together decode no more than
        `core.memory` allows.
        """
        return ahead(
            *(function, self.take(numbers), threads),
            weight=lambda sample: 0 if sample.pixels is None else COPIES * sample.pixels.nbytes,
        )

    def samples(self, start: int = 0) -> Iterator[Sample]:
        """Yield every sample from number `start` on, in the order of `ids`, also those that cannot be read."""
        return self.take(range(start, len(self.ids)))

    def sample(self, number: int) -> Sample:
        """Return one sample by its number; a set that is a stream is read up to there."""
        return next(iter(self.take([number])))

    def read(self, ids: Iterable[str]) -> dict[str, Pixels]:
        """Return the pixels of a few samples by id, without those that are missing or cannot be read."""
        wanted = set(ids)
        numbers = [number for number, name in enumerate(self.ids) if name in wanted]
        return {sample.id: sample.pixels for sample in self.take(numbers) if sample.pixels is not None}

    def digests(self, progress: Progress = silent) -> Digests:
        """Read every byte of the set once, and return the content digest of every sample."""
        total = len(self.ids)
        digests = np.empty((total, DIGEST_BYTES), np.uint8)
        for number, content in enumerate(self.contents(range(total))):
            digests[number] = np.frombuffer(content, np.uint8)
            if (number + 1) % 256 == 0 or number + 1 == total:
                progress("check samples", number + 1, total)
        return digests

    def manifest(self, progress: Progress = silent, digests: Digests | None = None) -> Manifest:
        """Return the manifest of the set, from its content digests; default: read every byte of the set once."""
        digests_of_samples = self.digests(progress) if digests is None else digests
        digest = manifest_digest(zip(self.ids, (content.tobytes() for content in digests_of_samples), strict=True))
        if self.reading.range is not None:
            digest = hashlib.sha256(f"{digest} {self.reading.range}".encode()).hexdigest()
        if self.reading.color != STORED:
            digest = hashlib.sha256(f"{digest} {self.reading.color}".encode()).hexdigest()
        return Manifest(self.kind, len(self.ids), digest, self.ignored, self.metadata_digest())

    def metadata_digest(self) -> str | None:
        """Return the SHA-256 (hex) over labels and prompts; None for a set without them."""
        if self.labels is None and self.prompts is None:
            return None
        digest = hashlib.sha256()
        for texts in (self.labels, self.prompts):
            digest.update(repr(texts and list(texts)).encode())
        return digest.hexdigest()


class RandomAccessSource(Source):
    """A set whose samples can be read in any order, by several threads at once."""

    @abstractmethod
    def sample(self, number: int) -> Sample:
        """Read one sample; if it cannot be read, the sample has the reason in `error`."""

    @abstractmethod
    def content(self, number: int) -> bytes:
        """Return a digest of one sample's bytes; the digest has 32 bytes."""

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return ahead(count_decoding(self.sample), numbers, FULL_SIZE_THREADS, window=FULL_SIZE_WINDOW)

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        return in_parts(count_decoding(lambda number: function(self.sample(number))), numbers, threads)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        return in_parts(count_decoding(self.content), numbers)


def manifest_digest(samples: Iterable[tuple[str, bytes]]) -> str:
    """Return the SHA-256 (hex) over the (id, content digest) pairs of samples in id order."""
    digest = hashlib.sha256()
    for name, content in samples:
        # Ids are free of NUL and content digests have one length, so two sets never give the same bytes.
        digest.update(text_bytes(name) + b"\0" + content)
    return digest.hexdigest()


def fingerprint(pixels: Pixels) -> int:
    """Return a 64-bit BLAKE2b digest of a sample's shape and pixels; it is equal for exact copies."""
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(pixels).data)
    return int.from_bytes(digest.digest(), "little")


def pixels_digest(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return the content digest of a sample that is not encoded."""
    # The shape is a part of the content: 28x28 and 14x56 pixels may have the same bytes.
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=DIGEST_BYTES)
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


def decoded_digest(pixels: Pixels, encoding: Encoding) -> bytes:
    """Return the content digest of a sample that is given decoded: of its pixels, and of how they were encoded.

    Sets of the same pixels have one cache only if they are encoded alike: the cache has the profile of the set.
    """
    digest = pixels_digest(pixels)
    # The pixels alone decide the encoding of an array.
    is_array = encoding.format == "array" and encoding.mode.partition("/")[0] in ("L", "RGB") and encoding.color is None
    return digest if is_array else content_digest(digest + encoding.encode())


def content_digest(data: bytes | str) -> bytes:
    """Return the content digest of an encoded sample, or of the reason why its bytes cannot be read."""
    data = b"unreadable: " + text_bytes(data) if isinstance(data, str) else data
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def ahead(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int = THREADS,
    *,
    window: int = READ_AHEAD,
    weight: Callable[[Item], int] = lambda item: 0,
) -> Generator[Result, None, None]:
    """Map `function` over `items` in threads and in order; the items are read in the caller's thread.

    A thread begins up to `window` items before the first is yielded, and items of `weight` bytes take at most
    `max_decoded()` together, unless it is a single one.
    """
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[tuple[Future[Result], int]] = deque()
        held, most = 0, max_decoded()
        try:
            for item in items:
                begun.append((pool.submit(function, item), weight(item)))
                held += begun[-1][1]
                while len(begun) >= window * threads or (held > most and len(begun) > 1):
                    future, bytes_of_item = begun.popleft()
                    held -= bytes_of_item
                    yield future.result()
            while begun:
                yield begun.popleft()[0].result()
        finally:
            for future, _ in begun:
                future.cancel()


def in_parts(
    function: Callable[[int], Result], numbers: Sequence[int], threads: int = THREADS
) -> Generator[Result, None, None]:
    """Map `function` over numbers as `ahead` does; of many, a thread takes several that follow each other."""
    size = max(1, min(TOGETHER, len(numbers) // (READ_AHEAD * threads)))
    window = max(2, READ_AHEAD // size)
    parts = (numbers[start : start + size] for start in range(0, len(numbers), size))
    with closing(ahead(lambda part: [*map(function, part)], parts, threads, window=window)) as made:
        for part in made:
            yield from part


def prefetch(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items in the same order; a thread makes the next item while one is in use.

    When this has ended, however it ends, no thread uses `items`: the caller can close what they are read from.
    """
    turn = Lock()

    def following() -> Item | None:
        with turn:
            return next(items, None)

    try:
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(following)
            while (item := waiting.result()) is not None:
                waiting = reader.submit(following)
                yield item
    finally:
        # The pool does not wait for a thread that Ctrl-C met while it was being started.
        with turn:
            items = iter(())


def count_decoding(function: Callable[[Item], Result]) -> Callable[[Item], Result]:
    """Return the same function, which counts what its thread decodes until it returns."""

    def run(item: Item) -> Result:
        with memory.ENCODED, memory.DECODED:
            return function(item)

    return run


def reason(error: Exception) -> str:
    """Return a short phrase, without paths, that says why something cannot be read."""
    if isinstance(error, UnidentifiedImageError):
        return "no image that can be recognized"
    if isinstance(error, MemoryError):
        return "it takes more memory than there is"
    if isinstance(error, NotAFileError):
        return f"{error.kind}, not a file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return redact(first_line(error))[:120]


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn the errors of a reader, which are of many types on damaged bytes, into a DataError."""
    try:
        yield
    except FincEvalError:
        raise
    except MemoryError as error:  # of any library, for a file that states less than it takes
        raise DataError(f"{path} takes more memory than there is: pass a smaller file, or a part of it") from error
    except ImportError as error:
        raise UsageError(f"reading {path} needs {error.name}: pip install {error.name}") from error
    except Exception as error:
        raise DataError(f"{path} cannot be read ({reason(error)}): save it again") from error


def align(by_name: dict[str, str], ids: Sequence[str], what: str, where: str) -> list[str] | None:
    """Bring labels or prompts into the order of `ids`; None if no sample has one."""
    missing = [name for name in ids if name not in by_name]
    if len(missing) == len(ids):
        return None
    if missing:
        raise DataError(
            f"{where} gives a {what} to {len(ids) - len(missing)} of {len(ids)} samples, but not to {missing[0]}: "
            "add what is missing, or remove all"
        )
    return [by_name[name] for name in ids]


def is_dataset(value: Any) -> bool:
    """Return whether a value is a dataset of Hugging Face with numbered rows, without importing the package."""
    return (
        type(value).__module__.partition(".")[0] == "datasets"
        and hasattr(value, "select_columns")
        and hasattr(value, "__getitem__")
    )
