"""Hashes of sample ids and of groups: they decide folds and draw samples, in any order and batching."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import text_bytes
from finc_eval.samples.clips import video_of

FOLD_BIT = np.uint64(1)
"""The bit of a key that is the fold of a sample."""


def sample_keys(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return the key of each sample: a hash of its id, with the fold of its video ("clip.mp4" for "clip.mp4#3")."""
    return keys_of(string_hashes(ids), video_hashes(ids))


def keys_of(ids: NDArray[np.uint64], groups: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    """Return the keys of samples, which assign folds and draw samples in any order and batching.

    The lowest bit is the fold. It follows from the group: the samples of a group are alike, and one half of a set must
    not learn from the other.

    Args:
        ids: hashes of the ids.
        groups: hash of the group of each sample; None where every sample stands for itself.
    """
    return ids if groups is None else (ids & ~FOLD_BIT) | (groups & FOLD_BIT)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number (the finalizer of SplitMix64), so that each of them is a fair coin."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def video_hashes(ids: Sequence[str]) -> NDArray[np.uint64] | None:
    """Return the hash of the video of each window, or of the id of another sample; None without windows."""
    if not any("#" in name for name in ids):
        return None
    return string_hashes([video_of(name) for name in ids])


def value_hashes(values: Sequence[str], ids: Sequence[str]) -> NDArray[np.uint64]:
    """Return a hash of each value of a column; a sample without a value stands for itself."""
    # No file name has a NUL, so that no value equals the stand-in of a missing one.
    return string_hashes([value or f"\0{name}" for value, name in zip(values, ids, strict=True)])


@lru_cache(maxsize=64)
def number_hashes(start: int, stop: int) -> NDArray[np.uint64]:
    """Return the hashes of consecutive numbers, the ids of the rows of arrays: any two arrays have the same.

    Sets ask for 32 768 at a time, so that at most 17 MB are kept.
    """
    found = string_hashes([str(number) for number in range(start, stop)])
    found.flags.writeable = False
    return found


def string_hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each string.

    It is the function of Python's library, once per set: the same rounds on arrays of numpy take twice as long.
    """
    digests = b"".join(hashlib.blake2b(text_bytes(i), digest_size=8).digest() for i in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
