"""The content of finc-eval's files in a new file: copied, or joined from several files, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

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
    for name in content.sizes:
        content.write_texts(name, [old], new)


def join_content(
    paths: Iterable[Path], opened: Callable[[Path], StoredFile], new: NewFile, without: Collection[str] = ()
) -> Iterator[int]:
    """Write all rows of the arrays of files, in their order, and then all texts; not the header.

    Yields the number of files whose arrays are written. One file is open at a time, and a block of it in memory. The
    paths are listed for the sizes, for the arrays, and for each list of texts.
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
    for name in content.sizes:
        content.write_texts(name, files(), new)


class _Content:
    """Arrays and texts of files that become those of one file.

    Attributes:
        sizes: sizes of the texts of each list by name.
    """

    def __init__(self, without: Collection[str]) -> None:
        self._without, self._alike = without, dict[str, object]()
        self._shapes: dict[str, tuple[tuple[int, ...], str]] = {}
        self._lengths = Counter[str]()
        self.sizes: dict[str, TextSizes] = {}

    def measure(self, file: StoredFile, first: str) -> None:
        """Add the lengths of what a file holds, which must be what the first file holds."""
        alike: dict[str, object] = {}
        for name in file.names():
            if name in self._without:
                continue
            found = file.arrays.get(name)
            if found is None or found.dtype.kind == "S":
                alike[name] = "texts"
                for texts in _texts(file, name):
                    own = TextSizes.of(texts)
                    self.sizes[name] = self.sizes[name].joined(own) if name in self.sizes else own
            else:
                alike[name] = (found.shape[1:], found.dtype.str, len(found.shape))
                self._shapes[name] = (found.shape, found.dtype.str)
                self._lengths[name] += len(found)
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

    def write_texts(self, name: str, files: Iterable[StoredFile], new: NewFile) -> None:
        """Write a list of texts."""
        target = new.text_rows(name, self.sizes[name])
        for file in files:
            for texts in _texts(file, name):
                target.append(texts)


def _texts(file: StoredFile, name: str) -> Iterator[list[bytes]]:
    """Yield the texts of a list as bytes, a portion at a time, and at least one portion."""
    texts = file.texts(name)
    return (texts.bytes_between(one, one + TEXTS_TOGETHER) for one in range(0, max(len(texts), 1), TEXTS_TOGETHER))
