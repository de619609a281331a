"""Populations in a ledger: views of each record that survive small changes, and sketches of them.

A view gives each record a number. Most copies in another precision, order or scale have the same number, and other
records have other numbers. A ledger keeps a sketch of each view: the smallest numbers after a salted mixing, 512 at
most, and how often each was there.

Two sets look alike if they have more records in common than chance allows. Disjoint draws from one law also share
records where values are few, such as two tables of yes and no. So the records of both sets that are equal to any other
are counted together: if each had come into one of the two sets by chance, some pairs would be in one set, and some
divided. Common records are divided, more often than by chance. The bound of Chernoff on this chance holds whatever the
law of each set is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from finc_eval.core.digest import sha256_of

if TYPE_CHECKING:
    import torch

Hashes = NDArray[np.uint64]

KEPT = 512  # different records of each view in a sketch at most
HASH_DIRECTIONS = 16  # directions along which a row is measured, each a sum of its entries with random signs

COARSE, FINE = 2.0**-4, 2.0**-9
"""Steps of measurement, in units of the standard deviation of a row of length one. Rounding to bfloat16 changes 1 % of
the coarse steps; the fine steps distinguish rows that differ little."""


ENTRY = np.dtype([("hash", "<u8"), ("count", "<u4")])  # one record of a sketch in a file
TILTS = np.geomspace(1e-3, 30, 60)  # values of t at which the bound E exp(t(M − m)) is tried


@dataclass(frozen=True, eq=False)
class PopulationIdentity:
    """Digests of all of a data set and views of its records, by which a ledger knows it."""

    digests: tuple[str, ...]
    views: tuple[Hashes, ...] = ()


class RowViews:
    """Views of rows that are seen once, in batches: coarse and, with the entries of each row in order, fine.

    Both take the direction of a row alone, so that a copy in another unit is known. Rows that are not finite are alike.
    """

    def __init__(self) -> None:
        self._parts: list[list[Hashes]] = [[], []]

    def add(self, rows: torch.Tensor) -> None:
        """Add the next rows, shape (b, d)."""
        values = rows.detach().cpu().double().numpy()
        self._parts[0].append(_measure(values, COARSE))
        # 4096: entries of the widest row that is also known with its entries in another order.
        if values.shape[1] <= 4096:
            self._parts[1].append(_measure(np.sort(values, axis=1), FINE))

    def views(self) -> tuple[Hashes, ...]:
        """Return the views of all rows."""
        return tuple(np.concatenate(part) for part in self._parts if part)


class Sketches:
    """Sketches of the views of a data set, and its records themselves to compare with sketches of others.

    The salt is a text of the ledger, which mixes the numbers.
    """

    def __init__(self, views: Sequence[Hashes], salt: str) -> None:
        mixed = np.uint64(int(sha256_of("salt", salt)[:16], 16))
        self._counted = [np.unique(mix(mix(view) ^ mixed), return_counts=True) for view in views]

    def texts(self) -> tuple[str, ...]:
        """Return the sketches as texts of a ledger."""
        texts = []
        for numbers, counts in self._counted:
            entries = np.zeros(len(numbers[:KEPT]), ENTRY)
            entries["hash"], entries["count"] = numbers[:KEPT], np.minimum(counts[:KEPT], np.iinfo(np.uint32).max)
            texts.append(base64.b64encode(entries.tobytes()).decode())
        return tuple(texts)

    def common(self, texts: Sequence[str]) -> float:
        """Return the share of the smaller set that both sets have in common; 0 unless they look alike."""
        others = [sketch for text in texts if (sketch := sketch_of(text)) is not None]
        return max((_common(counted, other) for other in others for counted in self._counted), default=0.0)


def sketch_of(text: str) -> tuple[Hashes, NDArray[np.int64]] | None:
    """Return the numbers and counts in the text of a sketch, or None if it is not one."""
    try:
        entries = np.frombuffer(base64.b64decode(text, validate=True), ENTRY)
    except (binascii.Error, ValueError):
        return None
    numbers, counts = entries["hash"].astype(np.uint64), entries["count"].astype(np.int64)
    sound = 0 < len(numbers) <= KEPT and bool((numbers[1:] > numbers[:-1]).all()) and bool((counts > 0).all())
    return (numbers, counts) if sound else None


def mix(values: Hashes) -> Hashes:
    """Return numbers, any shape, all of whose bits depend on all bits of these (the finalizer of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _measure(values: NDArray[np.float64], step: float) -> Hashes:
    """Return one number for each row: its direction, rounded along `HASH_DIRECTIONS` directions."""
    # 4: entries of the narrowest row that is known in another scale: the direction of a narrower row says little.
    if values.shape[1] < 4:
        values = np.pad(values, ((0, 0), (0, 1)), constant_values=1.0)
    width = values.shape[1]
    values = np.where(np.isfinite(values).all(1, keepdims=True), values, 0.0)
    for order in (np.inf, 2):  # twice, because squares of huge numbers are not finite
        norm = np.linalg.norm(values, order, axis=1, keepdims=True)
        values = values / np.where(norm > 0, norm, 1.0)
    drawn = np.frombuffer(hashlib.shake_256(b"directions").digest(HASH_DIRECTIONS * (width + 2) * 8), "<u8")
    shifts, factors, rest = np.split(drawn.astype(np.uint64), [HASH_DIRECTIONS, 2 * HASH_DIRECTIONS])
    signs = (rest & np.uint64(1)).astype(np.float64).reshape(width, HASH_DIRECTIONS) * 2 - 1
    places = np.floor(values @ signs / step + shifts / 2.0**64).astype(np.int64).astype(np.uint64)
    numbers: Hashes = (places * (factors | np.uint64(1))).sum(1, dtype=np.uint64)
    return numbers


def _common(counted: tuple[Hashes, NDArray[np.int64]], sketch: tuple[Hashes, NDArray[np.int64]]) -> float:
    """Return the share of a set and a sketched set that both have in common; 0 if chance explains it."""
    (numbers, counts), (known, times) = counted, sketch
    if len(known) == KEPT:  # of larger numbers the sketch says nothing
        numbers = numbers[: np.searchsorted(numbers, known[-1], "right")]
        counts = counts[: len(numbers)]
    every = np.union1d(numbers, known)
    ours, theirs = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
    ours[np.searchsorted(every, numbers)] = counts
    theirs[np.searchsorted(every, known)] = times
    shared = np.minimum(ours, theirs)
    again = ours + theirs > 1
    again[np.argmax(ours + theirs)] = False  # sums over all values are fixed, which takes one of them
    # 1e-6: largest probability at which two disjoint draws of one law may look alike.
    if not shared[again].any() or chance_of(ours[again], theirs[again]) > 1e-6:
        return 0.0
    return float(shared.sum() / min(ours.sum(), theirs.sum()))


def chance_of(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    """Bound the probability that two draws with counts (v,) share this many records: E exp(t(M − m)), at the best t.

    M is the sum over all values of the smaller of its two counts. Under chance each record is in the first set with one
    probability, which is estimated; if it differs among the values, M is smaller, by concavity.
    """
    from scipy.stats import binom  # slow to import, and reports of other results load this module

    share, common = ours.sum() / (ours + theirs).sum(), np.minimum(ours, theirs).sum()
    bound = -TILTS * common
    for count, times in zip(*np.unique(ours + theirs, return_counts=True), strict=True):
        width = 5 + int(10 * sqrt(count))
        low, high = max(0, int(share * count) - width), min(count, int(share * count) + width)
        places = np.arange(low, high + 1)
        weights = binom.logpmf(places, count, share)
        bound = bound + times * logsumexp(weights + TILTS[:, None] * np.minimum(places, count - places), axis=1)
    return float(np.exp(min(bound.min(), 0.0)))
