"""Measurements of pairs of pictures that are kept on the disk, so that a long run goes on where it was stopped.

A pair is known by the digests of both pictures, whatever the sets, the ids and the order: shards that are measured on
other machines add, if their files lie in the same folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.kept.folder import KeptFolder
from finc_eval.core.places import user_folder
from finc_eval.core.storage import write_whole

Array = NDArray[np.float64]

LAYOUT = 5
"""Number of what is measured of a pair; another one is for other measurements of the same pictures."""

TOGETHER = 1000
"""Pairs of a file. A smaller set is measured within half a minute, and nothing of it is kept."""


class KeptPairs:
    """The measurements of some pairs: those that earlier runs kept, and those that are added.

    Attributes:
        names: names of the columns; none before the first pair is known.
        values: measurements, (n, columns).
    """

    def __init__(self, keys: NDArray[np.uint64] | None, n: int, names: Sequence[str]) -> None:
        """Look for the pairs that are known.

        Args:
            keys: digests of both pictures of each pair, (n, 2); None where these are unknown: nothing is kept.
            n: number of pairs.
            names: names of the columns.
        """
        self.names, self.values = list(names), np.full((n, len(names)), np.nan)
        self._known = np.zeros(n, bool)
        self._fresh: list[NDArray[np.int64]] = []
        self._keys = keys if n >= TOGETHER else None
        for stored, values in _stored(self.names) if self._keys is not None else ():
            self._take(stored, values)

    @property
    def missing(self) -> NDArray[np.int64]:
        """Pairs that are not known, by their number."""
        return np.flatnonzero(~self._known)

    def add(self, pairs: NDArray[np.int64], values: Array) -> None:
        """Add the measurements of some pairs, (b, columns), and keep them on the disk with the others of their file."""
        self.values[pairs], self._known[pairs] = values, True
        self._fresh.append(pairs)
        if sum(map(len, self._fresh)) >= TOGETHER:
            self.write()

    def _take(self, stored: NDArray[np.uint64], values: Array) -> None:
        """Take what is stored of these pairs."""
        assert self._keys is not None
        both = np.concatenate([stored, self._keys])
        numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
        place = np.full(numbers.max() + 1, -1)
        place[numbers[: len(stored)]] = np.arange(len(stored))
        found = place[numbers[len(stored) :]]
        self.values[found >= 0] = values[found[found >= 0]]
        self._known |= found >= 0

    def write(self) -> None:
        """Keep the pairs on the disk that were added since the last file."""
        fresh, self._fresh = np.concatenate([np.empty(0, np.int64), *self._fresh]), []
        if self._keys is None or not len(fresh):
            return
        keys = self._keys[fresh]
        arrays = {"names": np.array(self.names), "keys": keys, "values": self.values[fresh]}
        try:
            path = folder_of_pairs() / f"{sha256_of(keys, *self.names)}.npz"
            with write_whole(path) as temporary, create_file(temporary) as file:
                np.savez(file, **arrays)
        except DataError as error:
            warnings.warn(f"measured pairs are not kept, and a stopped run starts again: {error}", stacklevel=2)
            self._keys = None


def folder_of_pairs() -> Path:
    """Return the folder of measured pairs, beside the embedding caches."""
    return user_folder("embeddings") / f"pairs-{LAYOUT}"


def _stored(names: Sequence[str]) -> Iterator[tuple[NDArray[np.uint64], Array]]:
    """Yield the keys, (n, 2), and values, (n, columns), of each file with these columns. A damaged file has none."""
    try:
        kept = KeptFolder(folder_of_pairs())
        found = kept.names_in("", ".npz")
    except (DataError, OSError):
        return
    for name in found:
        try:
            file = NpzFile(kept.at(name))
            if _is_of(file, names):
                yield file.array("keys"), file.array("values")
        except (DataError, OSError):
            continue


def _is_of(file: NpzFile, names: Sequence[str]) -> bool:
    """Return whether a file holds measurements with these columns, by its headers and its names."""
    if not {"names", "keys", "values"} <= {*file.names}:
        return False
    keys, values = file.header("keys"), file.header("values")
    n = keys.shape[0] if keys.shape else -1
    whole = (keys.shape, keys.dtype) == ((n, 2), np.dtype(np.uint64))
    whole = whole and (values.shape, values.dtype) == ((n, len(names)), np.dtype(np.float64))
    # 1 << 10: bytes of the name of a column.
    return whole and file.header("names").size <= len(names) << 10 and file.array("names").tolist() == [*names]
