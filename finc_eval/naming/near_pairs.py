"""Near pairs: samples of two sets that nearly equal each other, with an exact test of copies and of near repeats.

A pair is near if it is closer than a part of the usual distance between neighbors. If one law made both sets, it is
chance which near samples are in which set. Many near pairs across the sets are copies; many inside one set are repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from finc_eval.numerics.arrays import without_fold

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

RADII = (0.4, 0.55, 0.7)
"""Distances below which pairs are near, in parts of the median distance to the second nearest unlike sample.

Of 600 photographs of 64 pixels, none has a neighbor within .55, and 5 % have a neighbor within .7."""

REPEATED_WITHIN = slice(0, 2)
"""Places of the radii of near repeats. Photographs whose spread was multiplied by .6, as a blur does, had more pairs
within .7, and not within .55."""

SURROUNDINGS = 0.25
"""Part of all samples that surround a sample: pair distances are in units of the distance to the last of these.

A set that is blurrier as a whole lies closer together, but has no more repeats: with spread .8 of that of the others,
photographs had no more near pairs within .55."""

NEIGHBORS = 8  # nearest samples of a sample that can be near it: all of 24 near repeats of 3 pictures were found

LEAST_PAIRED = 8  # samples of each set below which no pairs are asked for: 8 v 8 have 12 870 exchanges

CLEAR = 0.8
"""Part of the largest statistic of all radii from which a smaller radius is taken: fewer of its pairs are by chance.

Of 24 planted near repeats, 24 were found with it, and 28 at the radius with the largest statistic."""

APART, CLUMPED = 0.8, 0.5
"""Parts of the distance to the next sample below which a near pair, and a clump of repeats, are apart from others.

In a dense kind, such as digits 1, near pairs are usual: without these, sets with twice as many ones had near copies and
near repeats in 6 of 6 draws."""

GROWN = 4
"""Times that a dense kind may be larger in the first set: its samples near the reference are not copies. Digits 1 that
came twice as often were copies in 0 of 6 draws."""

ERRORS = 1.64
"""Standard errors below the estimate at which "at least" stands: one side of an interval of 90 %.

The largest of three such bounds is said. In 1 200 planted sets of three laws, 150 against 150 with 10 % and 30 % of
copies, it was never above the planted share."""

LABELED_AT_ONCE = 1 << 22  # labels of samples, of all exchanges together, that are in memory: 17 MB

IN_MEMORY = 1 << 22  # distances in memory at once: 17 MB


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Near pairs of two sets, and their counts after exchanges of the labels.

    Attributes:
        is_gen: whether each sample is of the first set, shape (n,).
        across: whether each sample has a near sample of another unit in the reference, by radius, shape (radii, n).
        near: nearest samples of each sample.
        radii: distances below which pairs are near, shape (radii,).
        statistics: standardized counts as they are and after exchanges, shape (1 + exchanges, 2, radii): samples of the
            first set with a near sample in the reference; and the excess of near samples inside the first set.
        is_apart: whether a sample is clearly nearer to its nearest sample of the reference than this is to others of
            it, shape (n,).
    """

    is_gen: Mask
    across: NDArray[np.bool_]
    near: Neighborhood
    radii: Array
    statistics: Array
    is_apart: Mask

    @property
    def copies_p(self) -> float:
        """P-value of "the first set is not nearer to the reference than samples of the reference are to others"."""
        return _largest_p(self.statistics[:, 0])

    @property
    def repeats_p(self) -> tuple[float, float]:
        """P-value, for each set, of "it has no more near pairs than the other"."""
        inside = self.statistics[:, 1, REPEATED_WITHIN]
        return _largest_p(inside), _largest_p(-inside)

    @cached_property
    def _leasts(self) -> list[float]:
        """Least share of near copies at each radius."""
        return [self._least_at(place) for place in range(len(self.radii))]

    @property
    def copied(self) -> Mask:
        """Mask of samples that are near the reference, shape (n,), at the radius with the largest least share."""
        return np.asarray((self.across & self.is_apart)[int(np.argmax(self._leasts))])

    @property
    def least(self) -> float:
        """Least share of the first set that are near copies: what chance makes near is taken off, and 1.64 errors."""
        return max(self._leasts)

    def _least_at(self, place: int) -> float:
        """Return the lower end of (a − b)/(1 − b) at a radius.

        a is the part of the first set that is near the reference and apart from others; b is what chance makes so. It
        is the part of the reference, and more if a dense kind is larger in the first set, up to `GROWN` times.
        """
        near, copied = self.across[place], self.across[place] & self.is_apart
        a, by_chance = (float(copied[mask].mean()) for mask in (self.is_gen, ~self.is_gen))
        n, m = int(self.is_gen.sum()), int((~self.is_gen).sum())
        apart = copied[~self.is_gen].sum() / max(near[~self.is_gen].sum(), 1)
        b = max(by_chance, min(float(near[self.is_gen].mean() * apart), GROWN * by_chance))
        error = np.sqrt(a * (1 - a) / n + b * (1 - b) / m + 1 / m**2)
        return float(max(a - b - ERRORS * error, 0.0) / max(1 - b, 1 / m))

    def clumps(self, *, is_first: bool) -> Indices:
        """Return the number of the clump of each sample, shape (n,); −1 for samples without a near sample.

        Clumps are chains of near pairs, at the radius where those inside a set are clear, the first or the other.
        """
        clear = _clear_at(self.statistics[0, 1, REPEATED_WITHIN] * (1 if is_first else -1))
        links = self.near.links(self.radii[clear])
        chain = connected_components(links, directed=False)[1]
        size = np.bincount(chain)
        number = np.cumsum(size > 1) - 1
        return np.where(size[chain] > 1, number[chain], -1)


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Nearest unlike samples of each sample.

    Attributes:
        distances: distances to the nearest samples, nearest first, in the unit of each pair; infinite for none,
            shape (n, k).
        indices: their places, shape (n, k).
        scale: distance to the last of the surroundings of each sample, the geometric mean of which is the unit of the
            distance of a pair, shape (n,).
    """

    distances: Array
    indices: Indices
    scale: Array

    @property
    def usual(self) -> float:
        """Median distance to the second nearest sample: a sample that was copied has the copy as its nearest."""
        second = self.distances[:, min(1, self.distances.shape[1] - 1)]
        second = second[np.isfinite(second)]
        return float(np.median(second)) if len(second) else 0.0

    def links(self, radius: float) -> csr_array:
        """Return 1 for each pair that is closer than a radius, shape (n, n), symmetric."""
        one, rank = np.nonzero(self.distances < radius)
        # int32: SciPy 1.11 leaves all unlabeled if an array of links has others.
        ends = one.astype(np.int32), self.indices[one, rank].astype(np.int32)
        matrix = csr_array((np.ones(len(one), np.float32), ends), shape=(len(self.distances),) * 2)
        return csr_array((matrix + matrix.T) > 0, dtype=np.float32)


def choose_of_units(keys: NDArray[np.uint64], units: Indices) -> Indices:
    """Return the place of the sample of each unit with the smallest key, in order, shape (units,).

    Args:
        keys: keys of samples, such as hashes of their ids, shape (n,).
        units: number of the unit of each sample, shape (n,).
    """
    order = np.argsort(without_fold(keys), kind="stable")
    return np.sort(order[np.unique(units[order], return_index=True)[1]])


def places_of_units(own: Mapping[str, Indices], chosen: Mapping[str, Indices]) -> dict[str, Indices]:
    """Return the place of the chosen sample of its unit for each sample, among all chosen; −1 for none, by set."""
    places, start = {}, 0
    for label, units in own.items():
        taken = units[chosen[label]]
        order = np.argsort(taken)
        at = np.minimum(np.searchsorted(taken, units, sorter=order), max(len(taken) - 1, 0))
        places[label] = np.where(taken[order[at]] == units, start + order[at], -1)
        start += len(taken)
    return places


def find_neighbors(rows: torch.Tensor, units: Indices, keys: NDArray[np.uint64]) -> Neighborhood:
    """Find the nearest samples of other units that are not equal, whatever their set.

    Args:
        rows: embeddings, shape (n, d).
        units: number of the unit of each sample, such as its group or its prompt, shape (n,).
        keys: digests, equal for equal samples, shape (n,).
    """
    n, k = len(rows), min(NEIGHBORS, len(rows) - 1)
    centered, of_unit, of_key = (
        (rows - rows.mean(0)).float(),
        torch.from_numpy(units),
        torch.from_numpy(keys.view("i8")),
    )
    parts = torch.split(torch.arange(n), max(1, IN_MEMORY // n))

    def to_unlike(part: torch.Tensor) -> torch.Tensor:
        block = torch.cdist(centered[part], centered, compute_mode="use_mm_for_euclid_dist")
        return block.masked_fill((of_unit[part, None] == of_unit) | (of_key[part, None] == of_key), torch.inf)

    whole = [to_unlike(part) for part in parts[:1]] if len(parts) == 1 else None  # else each part is computed twice
    scale = torch.cat([_surround(block) for block in whole or map(to_unlike, parts)])
    found = [
        (block / (scale[part, None] * scale).sqrt()).topk(k, largest=False)
        for part, block in zip(parts, whole or map(to_unlike, parts), strict=True)
    ]
    distances, indices = (torch.cat(each).numpy() for each in zip(*found, strict=True))
    return Neighborhood(distances.astype(np.float64), indices, scale.double().numpy())


def _surround(distances: torch.Tensor) -> torch.Tensor:
    """Return the distance of samples to the last of their `SURROUNDINGS`, shape (r,), from distances, shape (r, n)."""
    place = max(1, round(SURROUNDINGS * distances.shape[1])) - 1
    last = torch.from_numpy(np.partition(distances.numpy(), place, 1)[:, place])  # kthvalue takes up to 3 times as long
    return torch.where(last.isfinite(), last, 1.0).clamp_min(torch.finfo(torch.float32).tiny)


def drop_dense(rows: torch.Tensor, clump: Indices, of_set: Mask) -> Indices:
    """Return the numbers of clumps that are apart from all other samples, shape (n,), renumbered; else −1.

    Samples of a clump are less than `CLUMPED` as far from each other as from others, by the medians of its samples.
    They are also nearer than other samples of their set are to any sample: kinds may be compact without repeats.

    Args:
        rows: embeddings, shape (n, d).
        clump: number of the clump of each sample, shape (n,); −1 for none.
        of_set: whether a sample is of the set that has more of the clumps, shape (n,).
    """
    parts = torch.split(torch.arange(len(rows)), max(1, IN_MEMORY // max(len(rows), 1)))
    alone = torch.cat([_nearest_other(rows, part) for part in parts])[torch.from_numpy((clump < 0) & of_set)]
    limit = RADII[1] * float(alone.median()) if len(alone) else np.inf
    kept, found = 0, np.full(len(clump), -1)
    for number in range(int(clump.max(initial=-1)) + 1):
        inside = torch.from_numpy(clump == number)
        distances = torch.cdist(rows[inside].float(), rows.float())
        distances[torch.arange(len(distances)), torch.nonzero(inside).flatten()] = torch.inf
        others, among = distances[:, ~inside], distances[:, inside]
        to_others = float(others.min(1).values.median()) if others.shape[1] else np.inf
        within = float(among[among.isfinite()].median())  # of all pairs: a kind may be a chain of near pairs
        if within < CLUMPED * to_others and within < limit:
            found[clump == number], kept = kept, kept + 1
    return found


def _nearest_other(rows: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """Return the distance of some rows, by their numbers, to the nearest other row, shape (r,)."""
    distances = torch.cdist(rows[part].float(), rows.float())
    distances[torch.arange(len(part)), part] = torch.inf
    return distances.min(1).values


def count_near_pairs(
    near: Neighborhood,
    is_gen: Mask,
    units: Indices,
    to_rest: Array | None = None,
    *,
    is_paired: bool = False,
    seed: int = 0,
    exchanges: int = 7999,
    labels: Mask | None = None,
) -> NearPairs | None:
    """Count near pairs across two sets and inside them, and again after exchanges; None for too few samples.

    Under "one law made both sets", units have either label by chance: all exchanges are as probable as what is seen.
    Samples of one unit are at most one of each set.

    Args:
        near: nearest samples of each sample of both sets.
        is_gen: whether a sample is of the first set, shape (n,); the second is the reference.
        units: number of the unit of each sample, shape (n,).
        to_rest: distance of each sample to the nearest sample of the rest of the reference, shape (n,).
        is_paired: whether units are blocks with a sample of each set, whose labels are exchanged.
        seed: random seed of the exchanges.
        exchanges: number of exchanges.
        labels: whether each sample is of the first set, as it is and after exchanges of others' tests, shape (r, n);
            default: they are drawn.
    """
    if min(is_gen.sum(), (~is_gen).sum()) < LEAST_PAIRED or near.usual == 0:
        return None
    radii = near.usual * np.array(RADII)
    touched = np.flatnonzero(near.distances[:, 0] < radii[-1])
    rest = np.full(len(is_gen), np.inf) if to_rest is None else to_rest
    touched = np.union1d(touched, np.flatnonzero(rest < radii[-1]))
    # A near sample of a touched sample is touched, as distances are symmetric.
    links = [near.links(radius)[touched][:, touched] for radius in radii]
    by_rest = [rest[touched] < radius for radius in radii]
    if labels is None:
        rng = np.random.default_rng(seed)
        drawn = _draw_labels(is_gen, units, touched, exchanges, rng, is_paired=is_paired)
    else:
        together = max(1, LABELED_AT_ONCE // max(len(touched), 1))
        drawn = [labels[at : at + together, touched].astype(np.float32) for at in range(0, len(labels), together)]
    sizes = (int(is_gen.sum()), int((~is_gen).sum()))
    counts = [
        np.stack([_count(part, *of_radius, sizes) for of_radius in zip(links, by_rest, strict=True)], 2)
        for part in drawn
    ]
    across = np.zeros((len(radii), len(is_gen)), bool)
    for place, (link, is_near_rest) in enumerate(zip(links, by_rest, strict=True)):
        across[place, touched] = ((~is_gen[touched]).astype(np.float32) @ link > 0) | is_near_rest
    return NearPairs(is_gen, across, near, radii, _standardize(np.concatenate(counts)), np.ones(len(is_gen), bool))


def _count(labels: NDArray[np.float32], links: csr_array, is_near_rest: Mask, sizes: tuple[int, int]) -> Array:
    """Return counts of samples with near samples, shape (r, 2), from labels, shape (r, t), 1 for the first set.

    The first counts samples of the first set near the reference; the second is the share of the first set that has near
    samples in it, less that of the reference.
    """
    is_gen, linked = labels > 0, np.asarray(labels @ links)
    near_gen, near_ref = linked > 0, linked < links.sum(0)  # numbers of links are whole
    across, of_gen, of_ref = (
        np.count_nonzero(counted, 1).astype(np.float32)
        for counted in (is_gen & (near_ref | is_near_rest), is_gen & near_gen, near_ref & ~is_gen)
    )
    return np.stack([across, of_gen / sizes[0] - of_ref / sizes[1]], 1).astype(np.float64)


def _draw_labels(
    is_gen: Mask, units: Indices, touched: Indices, exchanges: int, rng: np.random.Generator, *, is_paired: bool
) -> list[NDArray[np.float32]]:
    """Return the labels of some samples as they are and after exchanges, 1 for the first set, in parts of rows."""
    together = max(1, LABELED_AT_ONCE // max(len(touched), 1))
    observed = is_gen[touched].astype(np.float32)[None]
    parts = [observed]
    for start in range(0, exchanges, together):
        rows = min(together, exchanges - start)
        if is_paired:
            flipped = rng.integers(0, 2, (rows, int(units.max()) + 1), np.int8)[:, units[touched]]
            parts.append(np.abs(observed - flipped).astype(np.float32))
        else:
            # The number of touched samples in the first set, and then which: as of all samples, and faster.
            first = rng.hypergeometric(int(is_gen.sum()), int((~is_gen).sum()), len(touched), rows)
            order = rng.random((rows, len(touched)), np.float32).argsort(1)
            labels = np.zeros(order.shape, np.float32)
            np.put_along_axis(labels, order, (np.arange(len(touched)) < first[:, None]).astype(np.float32), 1)
            parts.append(labels)
    return parts


def _clear_at(statistics: Array) -> int:
    """Return the place of the smallest radius whose statistic is nearly as large as the largest, shape (radii,)."""
    return int(np.argmax(statistics >= CLEAR * statistics.max()))


def _standardize(counts: Array) -> Array:
    """Standardize counts by the mean and spread of all exchanges, shape (r, 2, radii); 0 where nothing varies."""
    spread = counts.std(0)
    return np.asarray(np.where(spread > 0, (counts - counts.mean(0)) / np.where(spread > 0, spread, 1), 0.0))


def _largest_p(statistics: Array) -> float:
    """Return the p-value of the largest statistic of all radii, shape (r, radii), the first row as it is."""
    largest = statistics.max(1)
    # 1e-9: equal counts in another order differ by rounding.
    return float((largest >= largest[0] - 1e-9).mean())
