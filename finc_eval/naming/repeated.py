"""Repeats and copies: samples that are equal or nearly equal, by pixels where they are known, and by embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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

IN_MEMORY = 2**23  # distances at once; with a quarter of these, 10 000 samples take 2.6 times as long


def number_repeats(sets: Mapping[str, Embeddings], rows: Mapping[str, Indices]) -> tuple[dict[str, Indices], Indices]:
    """Number the repeats among some samples of all sets together, without a look at which sample is of which set.

    Returns:
        The number of the repeat of each of these samples by set, −1 for samples that nothing repeats; and for each
        repeat how many unlike samples it has, 1 if all are equal.
    """
    vectors = {label: one.rows_at(rows[label]).cpu() for label, one in sets.items()}
    known = {label: one[rows[label]] for label, each in sets.items() if (one := pixels_of(each)) is not None}
    if len(known) < len(sets):
        known = {label: hash_rows(one).numpy().view(np.uint64) for label, one in vectors.items()}
    _, first, equal = np.unique(np.concatenate([*known.values()]), return_index=True, return_inverse=True)
    clump = join_close(torch.cat([*vectors.values()]).float()[torch.from_numpy(first)])
    of_each = clump[equal.reshape(-1)]
    often = np.flatnonzero(np.bincount(of_each) > 1)
    numbers = np.full(int(clump.max()) + 1, -1)
    numbers[often] = np.arange(len(often))
    ends = np.cumsum([len(one) for one in known.values()])[:-1]
    return dict(zip(known, np.split(numbers[of_each], ends), strict=True)), np.bincount(clump)[often]


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


def join_close(rows: torch.Tensor) -> Indices:
    """Return the number of the clump of each of some samples, shape (n,): chains of nearly equal rows are one.

    Where most rows are equal to another row, equal rows say nothing of the samples, and each is a clump of its own.
    """
    clump = np.arange(len(rows))
    if len(rows) < 2:
        return clump
    nearest = torch.cat([distances.min(1).values for distances in _distances(rows, torch.arange(len(rows)))])
    some = torch.nonzero(nearest < (limit := CLOSE * nearest.median())).flatten()
    if not len(some):
        return clump
    chain, start = np.arange(len(some)), 0
    for distances in _distances(rows, some):
        one, other = (place.cpu().numpy() for place in torch.nonzero(distances[:, some] < limit, as_tuple=True))
        links = coo_array((np.ones(len(one)), (chain[one + start], chain[other])), shape=(len(some), len(some)))
        chain, start = connected_components(links, directed=False)[1][chain], start + len(distances)
    place, (_, first, of_each) = some.cpu().numpy(), np.unique(chain, return_index=True, return_inverse=True)
    clump[place] = place[first][of_each.reshape(-1)]
    return np.asarray(np.unique(clump, return_inverse=True)[1].reshape(-1))


def _distances(rows: torch.Tensor, some: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the distances of some rows, by their number, to all rows, a few at a time; infinite to themselves."""
    centered, keys = rows - rows.mean(0), hash_rows(rows)
    for part in torch.split(some.to(rows.device), max(1, IN_MEMORY // len(rows))):
        distances = torch.cdist(centered[part], centered)
        distances[keys[part, None] == keys] = 0  # of equal rows it is a rounding error
        distances[torch.arange(len(part)), part] = torch.inf
        yield distances
