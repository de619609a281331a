"""Repeats and copies: samples that are equal or nearly equal, by pixels where they are known, and by embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from finc_eval.core.digest import Latest, sha256_of
from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.core.words import say_repeated
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.keys import hash_rows, string_hashes
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.near_pairs import (
    APART,
    LEAST_PAIRED,
    NearPairs,
    Neighborhood,
    choose_of_units,
    count_near_pairs,
    drop_dense,
    find_neighbors,
    places_of_units,
)
from finc_eval.naming.properties import smallest_hashes
from finc_eval.naming.questions import MOTION
from finc_eval.numerics.exchanges import unit_numbers

Indices = NDArray[np.int64]

CLOSE = 0.1
"""Distance up to which samples count as nearly equal, in parts of the median distance to the nearest unlike sample."""

COPIES = "copies of the reference"  # name of what a set has of the reference, in all that is said

NEAR_COPIES, SOME_NEAR = f"near {COPIES}", f"{COPIES}, some of them only nearly"
AT_LEAST = (NEAR_COPIES, SOME_NEAR)
"""Names of copies that are nearly equal, as JPEG or a crop makes them: their share is a least share."""

MIN_MEASURED = 4  # samples of a set below which nothing is said of them
PROMPT = "prompt"  # column of the prompts of samples

REPEATED = 0.01  # share of a set that is one picture from which it is worth a word

MOST_REST = 1 << 13  # samples of the reference, besides those looked at, that are compared with these: 16 million pairs

FIRST_EXCHANGES, WORTH_MORE = 499, 0.02
"""Exchanges that are drawn first, and p-value above which no more are drawn: 19 of 20 equal sets need no more."""

_NEIGHBORS, _COUNTED = Latest[Neighborhood](), Latest[NearPairs | None]()
"""Neighbors and counts of the latest sets: the looks of two sets ask for them, and so do their copies."""

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
        count as equal (`CLOSE`). Embeddings of motion say nothing of pixels: clips are repeats by their frames alone.
        """
        vectors = {label: one.rows_at(rows[label]).cpu() for label, one in sets.items()}
        known = known_pixels(sets)
        keys = None if known is None else {label: digests[rows[label]] for label, digests in known.items()}
        return cls.of_rows(vectors, keys, 0.0 if any(map(is_of_motion, sets.values())) else None)

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
        nearly = "nearly " * bool((self.unlike[chosen] > 1).any())
        return say_repeated(len(chosen), times, nearly, are_pictures=are_pictures, is_counted=is_counted)


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Near pairs among samples of the sets "gen" and "ref" that were looked at, one sample of each unit.

    Attributes:
        pairs: near pairs of samples of both sets, "gen" first.
        vectors: embeddings of these samples, shape (n, d).
        places: place of the sample of its unit in `pairs`, for each sample looked at, by set; −1 for none.
    """

    pairs: NearPairs
    vectors: torch.Tensor
    places: dict[str, Indices]

    def mark(self, label: str, has: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the samples looked at of a set, shape (n,), from one of the samples of `pairs`."""
        place = self.places[label]
        return np.asarray(has[place] & (place >= 0))

    def repeats(self, label: str, *, with_dense: bool = False) -> Repeats:
        """Return the near repeats, chains of near pairs, at the distance where those inside a set are clear.

        Chains inside dense kinds are left out, or not `with_dense`.
        """
        is_gen, is_first = self.pairs.is_gen, label == "gen"
        clump = self.pairs.clumps(is_first=is_first)
        if not with_dense:
            clump = drop_dense(self.vectors, clump, is_gen if is_first else ~is_gen)
        numbers = {name: np.where(place >= 0, clump[place], -1) for name, place in self.places.items()}
        return Repeats(numbers, np.bincount(clump[clump >= 0]))


def pair_rows(
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, Indices],
    blocks: Mapping[str, Indices] | None = None,
    run: Run | None = None,
    *,
    seed: int = 0,
    exchanges: int = 7999,
) -> PairedRows | None:
    """Find near pairs among some samples of "gen" and "ref"; None for too few samples, and for embeddings of motion.

    Groups are units. Samples of one prompt, or of one block of paired sets, may be alike in both sets: they are not
    pairs, and the labels of a prompt are exchanged. Samples of a large reference that were not looked at are compared
    with all others, too.

    Args:
        sets: embeddings, by label.
        rows: indices of the samples that are looked at, by label.
        blocks: block of each sample of paired sets, by label; default: prompts, if both sets have them.
        run: run, whose device is used; default: the CPU.
        seed: random seed of the exchanges.
        exchanges: number of exchanges; fewer where the first of them show no near pairs beyond chance.
    """
    if any(map(is_of_motion, sets.values())):
        return None
    run = replace(run or Run("cpu"), progress=silent)
    digests = digests_of(sets, run)
    keys = {label: digests[label][each] for label, each in rows.items()}
    own, is_paired = _units_of(sets, rows, blocks)
    chosen = {label: choose_of_units(sets[label].id_keys()[rows[label]], units) for label, units in own.items()}
    if is_paired:
        shared = np.intersect1d(own["gen"], own["ref"])
        chosen = {label: each[np.isin(own[label][each], shared)] for label, each in chosen.items()}
    # In the order of their content: labels that are drawn by place do not depend on the order of rows.
    chosen = {label: each[np.argsort(keys[label][each], kind="stable")] for label, each in chosen.items()}
    taken = {label: rows[label][each] for label, each in chosen.items()}
    units = np.unique(np.concatenate([own[label][each] for label, each in chosen.items()]), return_inverse=True)[1]
    is_gen = np.arange(len(units)) < len(taken["gen"])
    if min(map(len, taken.values())) < LEAST_PAIRED:
        return None
    vectors = torch.cat([sets[label].rows_at(each).cpu() for label, each in taken.items()])
    unit, key = units.reshape(-1), np.concatenate([keys[name][at] for name, at in chosen.items()])
    digest = sha256_of(str(vectors.dtype), str(len(vectors)), vectors, unit, key)
    near = _NEIGHBORS.of(digest, partial(find_neighbors, vectors, unit, key))
    rest = np.empty(0, np.int64) if is_paired else _rest_of_reference(sets["ref"], rows["ref"])
    to_rest = _to_rest(sets, rest, taken, digests, run) if len(rest) else None
    scaled, pairs = None if to_rest is None else to_rest / near.scale, None
    for drawn in (min(FIRST_EXCHANGES, exchanges), exchanges):
        count = partial(count_near_pairs, near, is_gen, unit, scaled, is_paired=is_paired, seed=seed, exchanges=drawn)
        asked = sha256_of(digest, is_gen, "" if scaled is None else scaled, f"{is_paired} {seed} {drawn}")
        pairs = _COUNTED.of(asked, count)
        if pairs is None or min(pairs.copies_p, *pairs.repeats_p) > WORTH_MORE:
            break
    if pairs is None:
        return None
    if pairs.copies_p <= WORTH_MORE:
        apart = _are_apart(pairs, sets, taken, np.concatenate([taken["ref"], rest]), digests, unit, run)
        pairs = replace(pairs, is_apart=apart)
    return PairedRows(pairs, vectors, places_of_units(own, chosen))


def digests_of(sets: Mapping[str, Embeddings], run: Run | None = None) -> dict[str, NDArray[np.uint64]]:
    """Return a digest of each sample by set, shape (n,): of pixels where all sets know them, or else of embeddings.

    Embeddings are read on the device of a run; default: on the CPU, since no caller asked for another device.
    """
    known = known_pixels(sets)
    return sample_hashes(sets, run or Run(device="cpu")) if known is None else known


def known_pixels(sets: Mapping[str, Embeddings]) -> dict[str, NDArray[np.uint64]] | None:
    """Return a digest of the pixels of each sample by set, shape (n,), of motion of its frames; None if not known."""
    known = {label: one.content() if is_of_motion(one) else pixels_of(one) for label, one in sets.items()}
    found = {label: digests for label, digests in known.items() if digests is not None}
    return found if len(found) == len(sets) else None


def is_of_motion(one: Embeddings) -> bool:
    """Return whether embeddings show how clips move, and not what they show: all still clips are alike."""
    return extractor_of(one.space) == MOTION


def _units_of(
    sets: Mapping[str, Embeddings], rows: Mapping[str, Indices], blocks: Mapping[str, Indices] | None
) -> tuple[dict[str, Indices], bool]:
    """Return the number of the unit of each of some samples, by set, and whether sets are paired by them.

    Samples without a prompt are units of their own. Sets that share hardly any prompt are not paired.
    """
    if blocks is not None:
        return {label: blocks[label][each] for label, each in rows.items()}, True
    if all(PROMPT in one.columns for one in sets.values()):
        columns = {label: sets[label].column(PROMPT) for label in ("gen", "ref")}
        names = [
            string_hashes([str(column[row] or f"\0{label} {row}") for row in rows[label].tolist()])
            for label, column in columns.items()
        ]
        prompts = dict(zip(("gen", "ref"), np.split(unit_numbers(np.concatenate(names)), [len(names[0])]), strict=True))
        if len(np.intersect1d(prompts["gen"], prompts["ref"])) >= LEAST_PAIRED:
            return prompts, True
    # Ids and groups of both sets may have the same names.
    number = {label: unit_numbers(one.unit_keys()[rows[label]]) for label, one in sets.items()}
    return {"gen": number["gen"], "ref": number["ref"] + 1 + number["gen"].max(initial=-1)}, False


def _rest_of_reference(ref: Embeddings, looked: Indices) -> Indices:
    """Return the indices of samples of other units than those looked at, which have no label to exchange; or none."""
    units = ref.unit_keys()
    drawn = smallest_hashes(ref, len(looked) + MOST_REST)
    rest = drawn[~np.isin(units[drawn], units[looked])]
    return rest if len(rest) > 1 else rest[:0]


def _to_rest(
    sets: Mapping[str, Embeddings],
    rest: Indices,
    taken: Mapping[str, Indices],
    digests: Mapping[str, NDArray[np.uint64]],
    run: Run,
) -> NDArray[np.float64]:
    """Return the distance of each chosen sample to the nearest unlike sample of the rest of the reference."""
    found = []
    for label, each in taken.items():
        neighbors = nearest(Subset(sets[label], each), Subset(sets["ref"], rest), 2, device=run.device)
        is_equal = digests["ref"][rest[neighbors.indices]] == digests[label][each, None]
        found.append(np.where(is_equal, np.inf, neighbors.distances).min(1))
    return np.concatenate(found)


def _are_apart(
    pairs: NearPairs,
    sets: Mapping[str, Embeddings],
    taken: Mapping[str, Indices],
    known: Indices,
    digests: Mapping[str, NDArray[np.uint64]],
    units: Indices,
    run: Run,
) -> NDArray[np.bool_]:
    """Return which chosen samples are clearly nearer to a sample of the reference than this is to others of it, (n,).

    `known` has the indices of the samples of the reference that are compared, the chosen samples first.
    """
    ref, start, apart = Subset(sets["ref"], known), len(taken["gen"]), np.zeros(len(units), bool)
    keys, of_known = digests["ref"][known], np.r_[units[start:], np.full(len(known) - len(taken["ref"]), -1)]
    k = min(4, len(known))  # the sample itself, an equal sample, the pair, and one more
    for label, first in (("gen", 0), ("ref", start)):
        some = np.flatnonzero(pairs.across[-1, first : first + len(taken[label])])
        if not len(some):
            continue
        found = nearest(Subset(sets[label], taken[label][some]), ref, k, device=run.device)
        is_other = keys[found.indices] != digests[label][taken[label][some], None]
        is_other &= of_known[found.indices] != units[first + some, None]
        near = np.where(is_other, found.distances, np.inf)
        best = near.argmin(1)
        original = np.take_along_axis(found.indices, best[:, None], 1)[:, 0]
        around = nearest(Subset(ref, original), ref, k, device=run.device)
        is_next = keys[around.indices] != keys[original, None]
        is_next &= around.indices != (some if label == "ref" else np.full(len(some), -1))[:, None]
        to_next = np.where(is_next, around.distances, np.inf).min(1)
        apart[first + some] = near[np.arange(len(some)), best] < APART * to_next
    return apart


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
