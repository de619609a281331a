"""Repeats: samples that are equal or nearly equal, by pixels where they are known, and by embeddings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.keys import hash_rows

Indices = NDArray[np.int64]

CLOSE = 0.1
"""Distance up to which samples count as nearly equal, in parts of the median distance to the nearest unlike sample."""


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
    centered = rows - rows.mean(0)
    distances = torch.cdist(centered, centered)
    keys = hash_rows(rows)
    distances[keys[:, None] == keys] = 0  # of equal rows it is a rounding error
    distances.fill_diagonal_(torch.inf)
    nearest = distances.min(1).values
    limit = CLOSE * nearest.median()
    some = torch.nonzero(nearest < limit).flatten()
    one, other = torch.nonzero(distances[some][:, some] < limit, as_tuple=True)
    pairs, place = (one.cpu().numpy(), other.cpu().numpy()), some.cpu().numpy()
    smallest = place.copy()
    while len(place):
        before = smallest.copy()
        np.minimum.at(smallest, pairs[0], smallest[pairs[1]])
        if (smallest == before).all():
            break
    clump[place] = smallest
    return np.asarray(np.unique(clump, return_inverse=True)[1].reshape(-1))
