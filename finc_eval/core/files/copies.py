"""The content of finc-eval's files in a new file: copied, or joined from several files, a block at a time."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import numpy as np

from finc_eval.core.files.stored import StoredFile, content_of
from finc_eval.core.files.writing import NewFile, TextSizes

TEXTS_TOGETHER = 4096  # texts that are read together


def copy_content(old: StoredFile, new: NewFile, without: Collection[str] = ()) -> None:
    """Copy the header and all arrays and texts, block by block, but those under certain names."""
    new.header |= old.header
    content = _Content(without)
    content.measure(old, "it")
    for _ in content.write_arrays([old], new):
        pass
    content.write_texts(new)


def join_content(
    paths: Iterable[Path], opened: Callable[[Path], StoredFile], new: NewFile, without: Collection[str] = ()
) -> Iterator[int]:
    """Write all rows of the arrays of files, in their order, and then all texts; not the header.

    Yields the number of files whose arrays are written. One file is open at a time, and a block of it in memory. The
    paths are listed twice.
    """
    content, first = _Content(without), ""

    def files() -> Iterator[StoredFile]:
        for path in paths:
            with opened(path) as file, content_of(path):
                yield file

    for file in files():
        first = first or str(file.path)
        content.measure(file, first)
    yield from content.write_arrays(files(), new)
    content.write_texts(new)


class _Texts:
    """A list of texts that waits in a temporary file until all of its sizes are known."""

    def __init__(self) -> None:
        self.sizes = TextSizes.of([])
        # What has less than a megabyte never reaches the disk. It is gone with the object.
        self._file = tempfile.SpooledTemporaryFile(1 << 20)  # noqa: SIM115

    def add(self, texts: list[bytes]) -> None:
        """Add texts."""
        self.sizes = self.sizes.joined(TextSizes.of(texts))
        lengths = np.array([len(texts), *map(len, texts)], np.uint32)
        self._file.write(lengths.tobytes() + b"".join(texts))

    def portions(self) -> Iterator[list[bytes]]:
        """Yield the texts as they were added, and end."""
        self._file.seek(0)
        while head := self._file.read(4):
            lengths = np.frombuffer(self._file.read(4 * int.from_bytes(head, sys.byteorder)), np.uint32)
            data, ends = self._file.read(int(lengths.sum())), np.cumsum(lengths, dtype=np.int64).tolist()
            yield [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self._file.close()


class _Content:
    """Arrays and texts of files that become those of one file."""

    def __init__(self, without: Collection[str]) -> None:
        self._without, self._alike = without, dict[str, object]()
        self._shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        self._lengths = Counter[str]()
        self._texts: dict[str, _Texts] = {}

    def measure(self, file: StoredFile, first: str) -> None:
        """Add the lengths of what a file holds, which must be what the first file holds."""
        alike: dict[str, object] = {}
        for name in file.names():
            if name in self._without:
                continue
            array = file.arrays.get(name)
            if array is None or array.dtype.kind == "S":
                alike[name] = "texts"
                texts, waiting = file.texts(name), self._texts.setdefault(name, _Texts())
                for start in range(0, len(texts), TEXTS_TOGETHER):
                    waiting.add(texts.bytes_between(start, start + TEXTS_TOGETHER))
            else:
                alike[name] = (array.shape[1:], array.dtype.str, len(array.shape))
                self._shapes[name] = (array.shape, array.dtype.str)
                self._lengths[name] += len(array)
        if alike != (self._alike or alike):
            raise file.damaged(f"its arrays are not those of {first}")
        self._alike = alike

    def write_arrays(self, files: Iterable[StoredFile], new: NewFile) -> Iterator[int]:
        """Write the arrays of numbers, and yield the number of files that are done."""
        lengths = self._lengths
        arrays = {
            name: new.rows(name, (lengths[name], *shape[1:]) if shape else (), dtype)
            for name, (shape, dtype) in self._shapes.items()
        }
        for done, file in enumerate(files, start=1):
            for name, rows in arrays.items():
                for block in file.stored(name).blocks():
                    rows.append(block)
            yield done

    def write_texts(self, new: NewFile) -> None:
        """Write the lists of texts."""
        for name, waiting in self._texts.items():
            target = new.text_rows(name, waiting.sizes)
            for texts in waiting.portions():
                target.append(texts)
