"""Shares of samples that repeat another sample of their set, and their test: many pictures may come twice each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import counts_by_hash
from finc_eval.naming.repeated import digests_of, known_pixels
from finc_eval.numerics.exchanges import unit_numbers
from finc_eval.numerics.hash_counts import Counts, HashCounts, drawable
from finc_eval.numerics.inference import wilson

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

EXCHANGES_AT_ONCE = 64  # exchanges whose counts are in memory together: 50 MB of 100 000 units and as many repeats


def p_of_share_repeated(
    numbers: tuple[Integers, Integers], units: tuple[Integers, Integers], seed: int, exchanges: int, *, is_paired: bool
) -> float:
    """Return the p-value of "the first set repeats no more of its samples than the second", by exchanges of units.

    Under it, units are of either set by chance: each exchange divides all of them anew, or exchanges both sets within
    blocks, and counts the samples that then repeat another sample of their set.

    Args:
        numbers: number of the repeat of each sample of both sets, shapes (n,) and (m,); −1 for samples without any.
        units: number of the unit of each sample, from 0 on; of paired sets, of its block, the same in both.
        seed: random seed of the exchanges.
        exchanges: number of exchanges.
        is_paired: whether units are blocks of paired sets.
    """
    repeats = max(int(of_set.max(initial=-1)) for of_set in numbers) + 1
    sizes = [int(of_set.max(initial=-1)) + 1 for of_set in units]
    sizes = [max(sizes)] * 2 if is_paired else sizes
    table = vstack([_count(*of_set, repeats) for of_set in zip(numbers, units, sizes, strict=True)], format="csr")
    draws = _draw_units((sizes[0], sizes[1]), exchanges, np.random.default_rng(seed), is_paired=is_paired)
    whole, differences = np.asarray(table.sum(0)).reshape(-1), []
    for chosen in draws:
        first = chosen @ table
        differences.append(_share_again(first) - _share_again(whole - first))
    difference = np.concatenate(differences)
    # 1e-9: the same samples in another order differ by rounding.
    return float((difference >= difference[0] - 1e-9).mean())


@dataclass(frozen=True, eq=False)
class AllRepeats:
    """Exact repeats of a set among all its samples, which another set has less often.

    Attributes:
        counts: numbers of samples of both sets by value, as far as these are counted, two of shape (values,).
        values: hashes of what is repeated, shape (k,).
        share: share of the set that they are.
        share_other: share of the other set that they are.
        distinct: number of unlike samples among them in the whole set.
        interval: interval of `share`, of 95 %; None if all samples were counted.
    """

    counts: tuple[Counts, Counts]
    values: NDArray[np.uint64]
    share: float
    share_other: float
    distinct: int
    interval: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        mine: HashCounts,
        other: HashCounts,
        large: NDArray[np.uint64] | None = None,
        of_large: tuple[float, float] = (0.0, 0.0),
    ) -> AllRepeats:
        """Find them by the numbers of samples of both sets by value.

        If some values alone are counted, these are a random part of all values, and a share is a ratio of two sums over
        values (Cochran 1977, 6.3). A value of very many samples would swamp it: `large` are left out then, values that
        are known to be the shares `of_large` of both sets.
        """
        values, own, others = mine.beside(other)
        is_whole = mine.is_whole and other.is_whole
        if not is_whole and large is not None:
            left = ~np.isin(values, large)
            values, own, others = values[left], own[left], others[left]
        rest, rest_of_other = (1.0, 1.0) if is_whole else (1 - part for part in of_large)
        chosen, n = (own > 1) & (own > others), max(1, int(own.sum()))
        share = float(own[chosen].sum() / n)
        interval = None
        if not is_whole:
            error = float(np.square(own * (chosen - share)).sum()) / max(share * (1 - share) * n, 1e-9)
            low, high = wilson(share, n / max(error, 1.0))
            interval = float(rest * low), float(rest * high)
        return cls(
            (own, others),
            values[chosen],
            float(rest * share),
            float(rest_of_other * others[chosen].sum() / max(1, others.sum())),
            round(rest * mine.n * chosen.sum() / n),
            interval,
        )

    @classmethod
    def among(
        cls,
        sets: Mapping[str, Embeddings],
        label: str,
        large: NDArray[np.uint64] | None = None,
        of_large: tuple[float, float] = (0.0, 0.0),
    ) -> AllRepeats | None:
        """Find the repeats of a set, "gen" or "ref"; None if samples are grouped: they are not independent.

        For `large` and `of_large` see `of`: shares of this set and of the other.
        """
        if any(embeddings.group_hashes() is not None for embeddings in sets.values()):
            return None
        counts = counts_by_hash(sets, digests_of(sets))
        return cls.of(counts[label], counts["ref" if label == "gen" else "gen"], large, of_large)

    def p_value(self, seed: int, exchanges: int) -> float:
        """Return the p-value of "the set repeats no more of its samples than the other", of independent samples.

        It is that of `p_of_share_repeated` with samples as units, for all samples, or of sketches for the samples with
        the values that both have counted: exchanges of samples draw the number of each value in the first set.
        """
        own, others = drawable(*self.counts)
        n, m = int(own.sum()), int(others.sum())
        both = (own + others)[own + others > 1]
        seen, least = _again(own) / max(n, 1) - _again(others) / max(m, 1), 0
        rng = np.random.default_rng(seed)
        for start in range(0, exchanges, EXCHANGES_AT_ONCE):
            some = min(EXCHANGES_AT_ONCE, exchanges - start)
            drawn = rng.multivariate_hypergeometric([*both, n + m - int(both.sum())], n, some, "marginals")[:, :-1]
            differences = _again(drawn) / max(n, 1) - _again(both - drawn) / max(m, 1)
            least += int((differences >= seen - 1e-9).sum())  # 1e-9: rounding
        return (1 + least) / (1 + exchanges)


def _again(counts: Counts) -> Counts:
    """Return how many samples repeat another, from the number of each value, shape (…, values)."""
    return np.asarray(np.where(counts > 1, counts, 0).sum(-1))


def p_of_all_repeats(
    numbers: Mapping[str, Integers],
    label: str,
    sets: Mapping[str, Embeddings],
    rows: Mapping[str, Integers],
    seed: int,
    blocks: Mapping[str, Integers] | None,
    exchanges: int,
) -> float:
    """Return the p-value of "a set repeats no more of its samples than the other": units are exchanged, or blocks.

    `numbers` has the number of the repeat of each sample of `rows`, by set, −1 for samples without any; for the other
    arguments see `p_of_share_repeated` and `find_looks`.
    """
    labels = (label, "ref" if label == "gen" else "gen")
    if blocks is None:
        first, second = (unit_numbers(sets[one].unit_keys()[rows[one]]) for one in labels)
    else:
        mine, others = (blocks[one][rows[one]] for one in labels)
        of_each = np.unique(np.concatenate([mine, others]), return_inverse=True)[1].reshape(-1)
        first, second = np.split(of_each, [len(mine)])
    of_both = numbers[labels[0]], numbers[labels[1]]
    return p_of_share_repeated(of_both, (first, second), seed, exchanges, is_paired=blocks is not None)


def _draw_units(
    sizes: tuple[int, int], exchanges: int, rng: np.random.Generator, *, is_paired: bool
) -> Iterator[NDArray[np.float32]]:
    """Yield 1 for each unit that is in the first set, else 0, some exchanges at a time, shape (r, units).

    The first row has the units as they are.
    """
    mine = sizes[0]
    for start in range(0, 1 + exchanges, EXCHANGES_AT_ONCE):
        chosen = np.zeros((min(EXCHANGES_AT_ONCE, 1 + exchanges - start), sum(sizes)), np.float32)
        for place, row in enumerate(chosen, start):
            if not place:
                row[:mine] = 1
            elif is_paired:
                row[:mine] = rng.integers(0, 2, mine)
                row[mine:] = 1 - row[:mine]
            else:
                row[rng.choice(sum(sizes), mine, replace=False)] = 1
        yield chosen


def _count(numbers: Integers, units: Integers, size: int, repeats: int) -> csr_array:
    """Return the samples of each unit that are of each repeat, and all its samples, shape (units, repeats + 1)."""
    of_repeat = numbers >= 0
    rows = np.r_[units, units[of_repeat]]
    columns = np.r_[np.full(len(units), repeats), numbers[of_repeat]]
    return csr_array((np.ones(len(rows), np.float32), (rows, columns)), (size, repeats + 1))


def _share_again(counts: NDArray[np.float32]) -> Array:
    """Return the share of the samples that repeat another, from the counts of `_count` by exchange, shape (r,)."""
    again = np.where(counts[:, :-1] > 1, counts[:, :-1], 0).sum(1, dtype=np.float64)
    return np.asarray(again / np.maximum(counts[:, -1], 1))


def size_of(samples: Embeddings) -> int:
    """Return the number of samples of a set, or of the set that these are a sample of."""
    return samples.n if samples.stands_for is None else samples.stands_for.n


def shares_of_repeats(
    sets: Mapping[str, Embeddings], rows: Mapping[str, Integers], has: Mapping[str, NDArray[np.bool_]], is_near: bool
) -> tuple[dict[str, float], bool]:
    """Return the share of each set that marked repeats make up, and whether that is known of all samples.

    Pictures that are equal are counted among all samples, by their pixels. All else is estimated from some samples.

    Args:
        sets: embeddings, by label.
        rows: indices of the samples that were looked at, by label.
        has: whether each of these is marked, by label.
        is_near: whether marked samples are only nearly equal.
    """
    pixels = known_pixels(sets)
    if is_near or pixels is None:
        shares = {label: float(one.mean()) for label, one in has.items()}
        return shares, all(size_of(samples) == len(has[label]) for label, samples in sets.items())
    marked = np.concatenate([digests[rows[label][has[label]]] for label, digests in pixels.items()])
    return {label: float(np.isin(digests, marked).mean()) for label, digests in pixels.items()}, True
