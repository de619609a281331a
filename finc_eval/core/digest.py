"""SHA-256 digests of texts, arrays and files, and results that are known by them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from finc_eval.core.doors import open_file
from finc_eval.core.errors import DataError

Made = TypeVar("Made")


def sha256_of(*parts: Any) -> str:
    """Return the SHA-256 (hex) of texts, and of the bytes of arrays or tensors, one after the other."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(text_bytes(part) if isinstance(part, str) else array_bytes(part))
    return sha.hexdigest()


def sha256_of_file(path: str | Path) -> str:
    """Return the SHA-256 (hex) of a file; DataError if it cannot be read."""
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its permissions") from error


def array_bytes(array: Any) -> memoryview:
    """Return the bytes of an array or a tensor in row-major order, without a copy where they lie so in memory."""
    values = array.detach().cpu().numpy() if hasattr(array, "detach") else array
    return np.ascontiguousarray(values).data


def text_bytes(text: str) -> bytes:
    """Return the bytes of a text. File names on Linux need not be UTF-8, and have the bytes that they have."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair, which no file name has
        return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """Return the text of bytes, such as a file's name, which need not be UTF-8."""
    return data.decode("utf-8", "surrogateescape")


class Latest(Generic[Made]):
    """The latest results of a function, by digests of all that they depend on."""

    def __init__(self, most: int = 2) -> None:
        """Keep the `most` latest results."""
        self._made, self._most, self._turn = dict[str, Made](), most, Lock()

    def of(self, digest: str, make: Callable[[], Made]) -> Made:
        """Return the result that was made of the same, or make it."""
        with self._turn:
            known = self._made.get(digest)
        if known is not None:
            return known
        made = make()
        with self._turn:
            self._made[digest] = made
            for oldest in [*self._made][: -self._most]:
                del self._made[oldest]
        return made
