"""Copying what finc-eval files hold into another one: one file, or several whose rows are joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from finc_eval.core.files.front import BLOCK_BYTES
from finc_eval.core.files.reading import StoredFile, StoredRows, content_of
from finc_eval.core.files.writing import TEXT_BYTES, TEXT_ENDS, NewFile


def copy_content(old: StoredFile, new: NewFile, without: Collection[str] = ()) -> None:
    """Copy the header and all arrays, block by block, but those under certain names.

    Raises:
        DataError: the old file is damaged.
    """
    new.header |= old.header
    for name in _kept(old, without):
        stored = old.stored(name)
        rows = new.rows(name, stored.shape, stored.dtype.str)
        for block in _blocks(stored):
            rows.append(block)


def join_content(
    paths: Iterable[Path], opened: Callable[[Path], StoredFile], new: NewFile, without: Collection[str] = ()
) -> Iterator[int]:
    """Write all rows of the arrays of files, those of the first file first; the header is left to the caller.

    One file is open at a time, and a block of it in memory.

    Args:
        paths: the files, which have the same arrays and lists of texts. They are listed twice.
        opened: opens a file.
        new: file to write.
        without: names of arrays that are left out.

    Yields:
        The number of files that are written.

    Raises:
        DataError: a file is damaged, or has other arrays than the first one.
    """
    lengths, shapes = Counter[str](), dict[str, tuple[tuple[int, ...], str]]()
    first = None
    for path in paths:
        first = first or path
        with opened(path) as file, content_of(path):
            found = {name: file.stored(name) for name in _kept(file, without)}
            own = {name: (rows.shape[1:], rows.dtype.str) for name, rows in found.items()}
            if own != (shapes := shapes or own):
                raise file.damaged(f"its arrays are not those of {first}")
            lengths.update({name: len(rows) for name, rows in found.items()})
    arrays = {name: new.rows(name, (lengths[name], *shape), dtype) for name, (shape, dtype) in shapes.items()}
    written = Counter[str]()
    for done, path in enumerate(paths, start=1):
        with opened(path) as file, content_of(path):
            for name, rows in arrays.items():
                stored = file.stored(name)
                # The ends of texts count from the first text of the file.
                before = written[f"{name.removesuffix(TEXT_ENDS)}{TEXT_BYTES}"] if name.endswith(f"/{TEXT_ENDS}") else 0
                for block in _blocks(stored):
                    rows.append(block + block.dtype.type(before) if before else block)
            written.update({name: len(file.stored(name)) for name in arrays})
        yield done


def _kept(file: StoredFile, without: Collection[str]) -> list[str]:
    return [name for name in file.arrays if name not in without and name.rpartition("/")[0] not in without]


def _blocks(stored: StoredRows) -> Iterator[NDArray[Any]]:
    if not stored.shape:
        yield stored.whole()
        return
    size = max(1, BLOCK_BYTES // max(stored.row_bytes, 1))
    for start in range(0, len(stored), size):
        yield stored.between(start, start + size)
