"""Repeats and copies: samples that are equal or nearly equal, by pixels where they are known, and by embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from finc_eval.core.run import Run
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.keys import hash_rows
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.embeddings.search.neighbors import nearest

Indices = NDArray[np.int64]

CLOSE = 0.1
"""Distance up to which samples count as nearly equal, in parts of the median distance to the nearest unlike sample."""

COPIES = "copies of the reference"  # name of what a set has of the reference, in all that is said

MIN_MEASURED = 4  # samples of a set below which nothing is said of them
REPEATED = 0.01  # share of a set that is one picture from which it is worth a word

IN_MEMORY = 2**23  # distances at once; with a quarter of these, 10 000 samples take 2.6 times as long


@dataclass(frozen=True, eq=False)
class Repeats:
    """The column "is a repeat": which samples of sets show the same picture.

    Attributes:
        numbers: number of the repeat of each sample, by set; −1 for samples that nothing repeats.
        unlike: number of unlike samples of each repeat, shape (repeats,); 1 if all are equal.
    """

    numbers: dict[str, Indices]
    unlike: Indices

    @classmethod
    def among(cls, sets: Mapping[str, Embeddings], rows: Mapping[str, Indices]) -> Self:
        """Number the repeats among some samples of all sets together; the set of a sample plays no part.

        Samples are equal by their pixels where all sets know these, or else by their embeddings; nearly equal samples
        count as equal (`CLOSE`).
        """
        vectors = {label: one.rows_at(rows[label]).cpu() for label, one in sets.items()}
        known = {label: one[rows[label]] for label, each in sets.items() if (one := pixels_of(each)) is not None}
        return cls.of_rows(vectors, known if len(known) == len(sets) else None)

    @classmethod
    def of_rows(
        cls,
        vectors: Mapping[str, torch.Tensor],
        keys: Mapping[str, NDArray[np.uint64]] | None,
        limit: float | None = None,
    ) -> Self:
        """Number the repeats among rows of sets.

        Args:
            vectors: embeddings by set, shape (n, d).
            keys: digests by set, shape (n,), equal for equal samples; None: those of the rows.
            limit: distance below which rows are repeats; default: `CLOSE` times their median nearest distance.
        """
        known = keys or {label: hash_rows(one).numpy().view(np.uint64) for label, one in vectors.items()}
        _, first, equal = np.unique(np.concatenate([*known.values()]), return_index=True, return_inverse=True)
        clump = join_close(torch.cat([*vectors.values()]).float()[torch.from_numpy(first)], limit)
        of_each = clump[equal.reshape(-1)]
        often = np.flatnonzero(np.bincount(of_each) > 1)
        numbers = np.full(int(clump.max(initial=0)) + 1, -1)
        numbers[often] = np.arange(len(often))
        ends = np.cumsum([len(one) for one in known.values()])[:-1]
        return cls(dict(zip(known, np.split(numbers[of_each], ends), strict=True)), np.bincount(clump)[often])

    @property
    def counts(self) -> dict[str, Indices]:
        """Number of samples of each repeat by set, shape (repeats,)."""
        return {label: np.bincount(one[one >= 0], minlength=len(self.unlike)) for label, one in self.numbers.items()}

    @property
    def large(self) -> dict[str, NDArray[np.bool_]]:
        """Mask of the repeats that make up so much of a set that they are worth a word, by set, shape (repeats,)."""
        return {
            label: one >= max(MIN_MEASURED, REPEATED * len(self.numbers[label])) for label, one in self.counts.items()
        }

    def has(self, chosen: Indices) -> dict[str, NDArray[np.bool_]]:
        """Mask of the samples that are some of the repeats, given by their numbers, by set, shape (n,)."""
        return {label: np.isin(one, chosen) for label, one in self.numbers.items()}

    def is_again(self, label: str) -> NDArray[np.bool_]:
        """Mask of the samples of a set that another sample of this set repeats, shape (n,)."""
        return self.has(np.flatnonzero(self.counts[label] > 1))[label]

    def added(self, label: str, other: str | None = None) -> Indices:
        """Return the numbers of what a set repeats, more often than another: all, or the large if these are most."""
        own, before = self.counts[label], 0 if other is None else self.counts[other]
        more = (own > 1) & (own > before)
        large = more & self.large[label]
        return np.flatnonzero(large if own[large].sum() > own[more].sum() / 2 else more)

    def say(self, chosen: Indices, times: int, *, are_pictures: bool, is_counted: bool = True) -> str:
        """Return what some repeats are called, in all verbs: "one picture, 40 times".

        Args:
            chosen: numbers of the repeats, at least one.
            times: number of samples that they are.
            are_pictures: whether samples are pictures.
            is_counted: whether all samples were looked at; else the number is about right.
        """
        thing, count = "picture" if are_pictures else "sample", f"{'about ' * (not is_counted)}{times:,}"
        nearly = "nearly " * bool((self.unlike[chosen] > 1).any())
        if len(chosen) == 1:
            return f"{nearly}one {thing}, {count} times"
        return f"{len(chosen):,} {thing}s, {nearly}repeated {count} times in all"


def shares_of_repeats(
    sets: Mapping[str, Embeddings], rows: Mapping[str, Indices], has: Mapping[str, NDArray[np.bool_]], is_near: bool
) -> tuple[dict[str, float], bool]:
    """Return the share of each set that marked repeats make up, and whether that is known of all samples.

    Pictures that are equal are counted among all samples, by their pixels. All else is estimated from some samples.

    Args:
        sets: embeddings, by label.
        rows: indices of the samples that were looked at, by label.
        has: whether each of these is marked, by label.
        is_near: whether marked samples are only nearly equal.
    """
    pixels = {label: digests for label, one in sets.items() if (digests := pixels_of(one)) is not None}
    if is_near or len(pixels) < len(sets):
        shares = {label: float(one.mean()) for label, one in has.items()}
        return shares, all(one.n == len(has[label]) for label, one in sets.items())
    marked = np.concatenate([digests[rows[label][has[label]]] for label, digests in pixels.items()])
    return {label: float(np.isin(digests, marked).mean()) for label, digests in pixels.items()}, True


def find_copies(gen: Embeddings, ref: Embeddings, run: Run) -> NDArray[np.bool_]:
    """Return which samples of a set equal a sample of the reference, or nearly do, shape (n,).

    Pixels are compared where they are known, and else embeddings. Nearly equal is what is nearer to a sample of the
    reference than `CLOSE` times the median distance of samples of the reference to their nearest other sample.
    """
    hashes = sample_hashes({"gen": gen, "ref": ref}, run)
    equal = np.isin(hashes["gen"], hashes["ref"])
    distances = nearest(gen, ref, 1, device=run.device, index="auto").distances[:, 0]
    among = nearest(ref, ref, 1, exclude_self=True, device=run.device, index="auto").distances[:, 0]
    unlike = among[among > 0]
    near = distances < CLOSE * np.median(unlike) if len(unlike) else np.zeros(len(distances), bool)
    return np.asarray(equal | near)


def pixels_of(one: Embeddings) -> NDArray[np.uint64] | None:
    """Return a digest of the pixels of each picture; None without pictures, and for clips, whose time it leaves out."""
    return None if isinstance(one, CachedEmbeddings) and not one.are_images else one.content()


def join_close(rows: torch.Tensor, limit: float | None = None) -> Indices:
    """Return the number of the clump of each of some samples, shape (n,): chains of nearly equal rows are one.

    `limit` is the distance below which rows are nearly equal; default: `CLOSE` times the median nearest distance. Where
    most rows are equal to another row, equal rows say nothing of the samples, and each is a clump of its own.
    """
    clump = np.arange(len(rows))
    if len(rows) < 2:
        return clump
    nearest = torch.cat([distances.min(1).values for distances in _distances(rows, torch.arange(len(rows)))])
    limit = _limit_of(nearest) if limit is None else limit
    some = torch.nonzero(nearest < limit).flatten()
    if not len(some):
        return clump
    chain, start = np.arange(len(some)), 0
    for distances in _distances(rows, some):
        one, other = (place.cpu().numpy() for place in torch.nonzero(distances[:, some] < limit, as_tuple=True))
        # int32: SciPy 1.11 leaves all unlabeled if an array of links has others.
        ends = chain[one + start].astype(np.int32), chain[other].astype(np.int32)
        links = coo_array((np.ones(len(one)), ends), shape=(len(some), len(some)))
        chain, start = connected_components(links, directed=False)[1][chain], start + len(distances)
    place, (_, first, of_each) = some.cpu().numpy(), np.unique(chain, return_index=True, return_inverse=True)
    clump[place] = place[first][of_each.reshape(-1)]
    return np.asarray(np.unique(clump, return_inverse=True)[1].reshape(-1))


def _limit_of(nearest: torch.Tensor) -> float:
    """Return `CLOSE` times the median distance to the nearest unlike row, from those to the nearest row, shape (n,).

    Where most rows have a nearly equal row, the distances of the others count, if these are a tenth or more.
    """
    unlike = nearest[nearest >= CLOSE * nearest.quantile(0.9)] if nearest.median() > 0 else nearest
    return CLOSE * float(unlike.median())


def _distances(rows: torch.Tensor, some: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the distances of some rows, by their number, to all rows, a few at a time; infinite to themselves."""
    centered, keys = rows - rows.mean(0), hash_rows(rows)
    for part in torch.split(some.to(rows.device), max(1, IN_MEMORY // len(rows))):
        distances = torch.cdist(centered[part], centered)
        distances[keys[part, None] == keys] = 0  # of equal rows it is a rounding error
        distances[torch.arange(len(part)), part] = torch.inf
        yield distances
