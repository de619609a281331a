"""Hashes of sample ids and of groups: they decide folds and draw samples, in any order and batching."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.digest import text_bytes, text_of
from finc_eval.numerics.arrays import FOLD_BIT
from finc_eval.samples.clips import video_of

Hashes = tuple[NDArray[np.uint64], NDArray[np.uint64] | None]
"""Hash of each id and of its video, each (n,); None for videos where no sample is a window of one."""


def hashes_of(ids: Sequence[str]) -> Hashes:
    """Return the hashes of ids and of their videos; "clip.mp4" is the video of "clip.mp4#3"."""
    return hashes_of_bytes([text_bytes(name) for name in ids])


def hashes_of_bytes(ids: Sequence[bytes]) -> Hashes:
    """Return the hashes of ids, given by their bytes, and of their videos."""
    windows = b"#" in b"".join(ids)
    return byte_hashes(ids), string_hashes([video_of(text_of(name)) for name in ids]) if windows else None


def keys_of(ids: NDArray[np.uint64], groups: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    """Return the keys of samples, from the hashes of their ids and groups: keys assign folds and draw samples.

    The lowest bit is the fold. It follows from the group: the samples of a group are alike, and one half of a set must
    not learn from the other.
    """
    return ids if groups is None else (ids & ~FOLD_BIT) | (groups & FOLD_BIT)


def mix_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number (the finalizer of SplitMix64), so that each of them is a fair coin."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


@lru_cache(maxsize=64)
def number_hashes(start: int, stop: int) -> NDArray[np.uint64]:
    """Return the hashes of consecutive numbers, the ids of the rows of arrays: any two arrays have the same.

    Sets ask for 32 768 at a time, so that at most 17 MB are kept.
    """
    hashes = string_hashes([str(number) for number in range(start, stop)])
    hashes.flags.writeable = False
    return hashes


def string_hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each string."""
    return byte_hashes([text_bytes(name) for name in names])


HASHED_ENTRIES = 1 << 18  # entries that are hashed together at most: they take several times their memory


def hash_rows(rows: torch.Tensor) -> torch.Tensor:
    """Return a hash of the bits of each row of 32-bit floats, shape (n,) int64, on the device of the rows."""
    random, hashes = np.random.default_rng(0), []
    for columns in torch.split(rows, HASHED_ENTRIES, 1):
        odd = random.integers(2**63, size=columns.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        weights = send(torch.from_numpy(odd.view(np.int64)), rows.device)
        # -0.0 + 0.0 is 0.0. The shift fills the last bits, which are 0 in round numbers.
        # 256: rows that are hashed together: their integers stay in the memory next to the processor.
        step = min(256, max(1, HASHED_ENTRIES // max(1, columns.shape[1])))
        parts = ((part + 0.0).contiguous().view(torch.int32).long() & 0xFFFFFFFF for part in torch.split(columns, step))
        hashes.append(torch.cat([((bits ^ (bits >> 15)) * weights).sum(1) for bits in parts]))
    return hashes[0] if len(hashes) == 1 else torch.stack(hashes).sum(0)


def even_row_hashes(rows: torch.Tensor) -> NDArray[np.uint64]:
    """Return a hash of each row, shape (n,), as `hash_rows` on the host, with each bit a fair coin."""
    return mix_bits(hash_rows(rows).cpu().numpy().view(np.uint64))


def byte_hashes(names: Sequence[bytes]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of the bytes of each string.

    It is the function of Python's library, once per set: the same rounds on arrays of numpy take twice as long.
    """
    digests = b"".join([hashlib.blake2b(name, digest_size=8).digest() for name in names])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
