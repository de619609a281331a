"""Hashes of sample ids and of groups: they decide folds and draw samples, in any order and batching."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import text_bytes

WINDOW = re.compile(r"#\d+$")
"""End of the id of a window of a video: "#3" in "clip.mp4#3"."""

FOLD_BIT = np.uint64(1)
"""The bit of a key that is the fold of a sample."""


def sample_keys(ids: Sequence[str], groups: NDArray[np.uint64] | None = None) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each id, which assigns folds and draws samples in any order and batching.

    The lowest bit is the fold. It follows from the group: the samples of a group are alike, and one half of a set must
    not learn from the other.

    Args:
        ids: ids of the samples.
        groups: hash of the group of each sample; default: the hash of its video ("clip.mp4" for "clip.mp4#3").
    """
    keys = string_hashes(ids)
    groups = video_hashes(ids) if groups is None else groups
    return keys if groups is None else (keys & ~FOLD_BIT) | (groups & FOLD_BIT)


def video_hashes(ids: Sequence[str]) -> NDArray[np.uint64] | None:
    """Return the hash of the video of each window, or of the id of another sample; None without windows."""
    if not any("#" in name for name in ids):
        return None
    return string_hashes([WINDOW.sub("", name) for name in ids])


def value_hashes(values: Sequence[str], ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each value of a column; a sample without a value stands for itself."""
    # No file name has a NUL, so that no value equals the stand-in of a missing one.
    return string_hashes([value or f"\0{name}" for value, name in zip(values, ids, strict=True)])


def string_hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each string."""
    digests = b"".join(hashlib.blake2b(text_bytes(i), digest_size=8).digest() for i in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
