"""Pairing: sets that share the values of a column, such as prompts, are compared within these values.

Sets are also looked at for what they are not: random draws. So many samples of each prompt are a design, whose counts
do not vary as random counts do, and a prompt that a set lacks is not a matter of chance.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.record import Record
from finc_eval.core.words import join_words, percent, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import unknown_column
from finc_eval.embeddings.keys import string_hashes
from finc_eval.embeddings.needs import Check, Known
from finc_eval.embeddings.same_names import ID, names_of
from finc_eval.embeddings.subset import Subset
from finc_eval.naming.properties import TEXT_COLUMNS
from finc_eval.numerics.blocks import MIN_BLOCKS, Blocked
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.difference import total_variation
from finc_eval.partitions.tests import EffectiveCounts, Tally

MOST_IN_BLOCKS = 0.5
"""Part of each set that must lie in shared groups for sets to be paired by them unasked: the most of it."""

TOO_EVEN = 1e-4
"""Probability of counts as even as these, or more so, from which down they are a design. Random draws of equal shares
are called a design at this rate. Designs of 4 or 16 images of a value are recognized in 80 % of draws from 8 values on;
where a tenth of the images is lost, from 15, and a fifth, from 30. With 1e-3, it is 8, 12 and 20; with 1e-5, 10, 20 and
40. A design of 2 images is not recognized if one is lost, and a design of 1 never."""


@dataclass(frozen=True)
class PairedSet(Record):
    """A set in a pairing.

    Attributes:
        samples: number of its samples that are compared.
        apart: number of its samples that are set apart, as another set lacks their values.
        missing: number of values that it lacks, and another set has.
        missing_values: the first of them, at most 100.
    """

    samples: int
    apart: int
    missing: int
    missing_values: tuple[str, ...]


@dataclass(frozen=True)
class Pairs(Record):
    """The pairing of sets, as a result says it.

    Attributes:
        column: the column.
        blocks: number of its values that all sets have.
        asked: whether the caller asked for it; else it was found in the column of groups.
        sets: the sets by label.
    """

    column: str
    blocks: int
    asked: bool
    sets: dict[str, PairedSet]

    def lacked(self, label: str, others: Iterable[str]) -> float:
        """Return the share of other sets that is of values that a set lacks, or that is compared in no other way."""
        known = [self.sets[label] for label in others]
        return sum(paired.apart for paired in known) / sum(paired.apart + paired.samples for paired in known)

    @property
    def sentence(self) -> str:
        """Say how the sets are paired."""
        return (
            f"the sets are paired by {self.column}: differences are taken within the {self.blocks:,} values that "
            "all sets have, so that what a value has in common is not noise"
        )

    def missing(self) -> Iterator[str]:
        """Yield a sentence on each set that lacks values."""
        for label, paired in self.sets.items():
            if paired.missing:
                yield (
                    missing_sentence(
                        label, self.column, paired.missing, self.blocks + paired.missing, paired.missing_values
                    )
                    + f" {plural(sum(each.apart for each in self.sets.values()), 'sample')} in all are set apart"
                )


@dataclass(frozen=True, eq=False)
class Pairing:
    """Paired sets."""

    info: Pairs
    names: NDArray[np.str_]  # values that all sets have, in order; their places are the numbers of the blocks
    sets: dict[str, Embeddings]  # samples of these values, by label, grouped by the column where they had no groups
    block: dict[str, NDArray[np.int64]]  # block of each of these samples, by label
    is_whole: bool  # whether samples of a block are grouped further, so that they are not independent
    # samples of other values, by label, and numbers of these values, from the number of blocks on; only of sets that
    # have such samples
    apart: dict[str, tuple[Subset, NDArray[np.int64]]] = field(default_factory=dict)

    def of(self, *labels: str) -> Pairing:
        """Return the pairing of some of the sets, in this order."""
        info = replace(self.info, sets={label: self.info.sets[label] for label in labels})
        sets = {label: self.sets[label] for label in labels}
        apart = {label: self.apart[label] for label in labels if label in self.apart}
        return Pairing(info, self.names, sets, {label: self.block[label] for label in labels}, self.is_whole, apart)

    def block_of_all(self, label: str) -> NDArray[np.int64]:
        """Return the block of each sample of a set, shape (n,); values that a set lacks are blocks of their own."""
        if label not in self.apart:
            return self.block[label]
        rest, numbers = self.apart[label]
        found = np.empty(len(self.block[label]) + len(numbers), np.int64)
        found[rest.rows] = numbers
        found[np.setdiff1d(np.arange(len(found)), rest.rows)] = self.block[label]
        return found

    @property
    def fitted_to(self) -> list[Embeddings]:
        """The sets to fit kinds to, blind to exchanges.

        Samples that are exchanged alone have no groups here: one sample of each group and set would not be blind.
        """
        return [embeddings if self.is_whole else embeddings.grouped(None) for embeddings in self.sets.values()]

    @cached_property
    def blocked(self) -> Blocked:
        """All samples, one set after the other."""
        owner = np.repeat(np.arange(len(self.block)), [len(numbers) for numbers in self.block.values()])
        return Blocked(np.concatenate(list(self.block.values())), owner, self.is_whole)


def pair(
    sets: Mapping[str, Embeddings], pairs: str | None, groups: str | None = None
) -> tuple[Pairing | None, list[str]]:
    """Pair sets by a column, or by the column of groups if they share it; return sentences on pairs and designs."""
    pairing, sentences = _pair(sets, pairs, groups)
    if pairing is not None:
        return pairing, sentences
    named = designs(sets)
    return None, [*sentences, *named.values(), *missing_values(sets, named)]


def _pair(
    sets: Mapping[str, Embeddings], pairs: str | None, groups: str | None = None
) -> tuple[Pairing | None, list[str]]:
    """Pair sets, if they can be, and return sentences on it."""
    column = pairs or groups
    if column is None or (pairs is None and not all(column in embeddings.columns for embeddings in sets.values())):
        return None, []
    if pairs is not None:
        needs_pairs(pairs)(sets)
    (values, notes), names = names_of(sets, column), join_words(list(sets))
    values_of = {label: np.setdiff1d(texts, [""]) for label, texts in values.items()}
    shared = reduce(np.intersect1d, values_of.values())
    inside = {label: np.isin(texts, shared) for label, texts in values.items()}
    if len(shared) < least_pairs(column):
        return None, []
    is_whole = any(embeddings.grouping not in (None, column) for embeddings in sets.values())
    if pairs is None:
        if min(mask.mean() for mask in inside.values()) < MOST_IN_BLOCKS or all(value.isdecimal() for value in shared):
            return None, []
        if column not in TEXT_COLUMNS:
            # One name need not be one thing: only what holds for unrelated groups too is concluded unasked.
            if not _are_alike([texts[inside[label]] for label, texts in values.items()]):
                return None, [f"{names} share values of {column}: if these are the same things, pair by it"]
            is_whole = True
    every = np.unique(np.concatenate(list(values_of.values())))
    others = np.setdiff1d([*every, ""], shared)
    paired: dict[str, Embeddings] = {}
    block, info = {}, {}
    apart: dict[str, tuple[Subset, NDArray[np.int64]]] = {}
    for label, embeddings in sets.items():
        rows = np.flatnonzero(inside[label])
        part = embeddings if len(rows) == embeddings.n else Subset(embeddings, rows)
        paired[label] = _grouped(part, column, values[label][rows])
        block[label] = np.searchsorted(shared, values[label][rows])
        if len(rows) < embeddings.n:
            rest = np.flatnonzero(~inside[label])
            apart[label] = Subset(embeddings, rest), len(shared) + np.searchsorted(others, values[label][rest])
        lacks = np.setdiff1d(every, values_of[label])
        # 100: values that a result names.
        info[label] = PairedSet(len(rows), embeddings.n - len(rows), len(lacks), tuple(lacks[:100].tolist()))
    about_it = Pairs(column, len(shared), pairs is not None, info)
    return Pairing(about_it, shared, paired, block, is_whole, apart), [about_it.sentence, *about_it.missing(), *notes]


def _are_alike(values: Sequence[NDArray[np.str_]]) -> bool:
    """Return whether there are at most two sets, with as many samples of each value."""
    sizes = [np.unique(texts, return_counts=True)[1] for texts in values]
    return len(values) <= 2 and all(np.array_equal(counts, sizes[0]) for counts in sizes)


def _grouped(embeddings: Embeddings, column: str, values: NDArray[np.str_]) -> Embeddings:
    """Return a set grouped by its values of a column, or by its ids, unless it has groups already."""
    if embeddings.group_hashes() is not None:
        return embeddings
    return (
        embeddings.grouped(column)
        if column in embeddings.columns
        else embeddings.with_groups(string_hashes(values.tolist()), column)
    )


def needs_pairs(column: str | None) -> Check:
    """Return the check that sets can be paired by a column, or by "id"; None asks for no pairs.

    Each must have the column, and all of them values in common: a sentence says so if their names agree instead.
    """

    def check(sets: Mapping[str, Known]) -> None:
        if column is None or len(sets) < 2:
            return
        check_pair_column(sets, column)
        values, notes = names_of(sets, column)
        shared = reduce(np.intersect1d, (np.setdiff1d(texts, [""]) for texts in values.values()))
        if len(shared) < (least := least_pairs(column)):
            raise DataError(
                f"{join_words(list(sets))} have {plural(len(shared), 'value')} of {column!r} in common: at least "
                f"{least} {'is' if least == 1 else 'are'} needed to pair by it{'; '.join(['', *notes])}"
                f"{_instead(sets, column)}"
            )

    return check


def least_pairs(column: str) -> int:
    """Return how many values of a column sets must share to be paired by it: a pair of one id is judged by itself."""
    return 1 if column == ID else MIN_BLOCKS


def check_pair_column(sets: Mapping[str, Known], column: str) -> None:
    """Raise UsageError unless each set has the column that pairs samples; ids are a column."""
    for label, embeddings in sets.items():
        if column not in (*embeddings.columns, ID):
            error = unknown_column(column, embeddings.columns, label, " to pair by")
            raise UsageError(f"{error}{_instead(sets, column)}")


def _instead(sets: Mapping[str, Known], column: str) -> str:
    """Return the other way to pair sets whose names agree; "" if they do not."""
    if column == ID:
        return ""
    names, _ = names_of(sets, ID)
    shared = reduce(np.intersect1d, names.values())
    agree = len(shared) >= max(MIN_BLOCKS, MOST_IN_BLOCKS * max(embeddings.n for embeddings in sets.values()))
    return f"; the names of the samples agree: --pairs {ID} pairs by these" if agree else ""


def missing_sentence(label: str, column: str, count: int, of: int, values: tuple[str, ...]) -> str:
    """Return a sentence on values that a set lacks."""
    # 3: values that a sentence names.
    names = join_words([f"{str(value)!r:.60}" for value in values[:3]])
    return f"{label} lacks {count:,} of the {of:,} values of {column} that another set has, such as {names}:"


def dispersion(counts: NDArray[np.int64]) -> float:
    """Return the variance of counts (v,) over the variance of random draws if they are too even for these, else 1.

    The sum of (c − c̄)² / c̄ over v values of one expected count is χ² with v − 1 degrees of freedom.
    """
    mean = counts.mean()
    squares = float(((counts - mean) ** 2).sum() / mean)
    degrees = len(counts) - 1
    # Counts are whole: half of the least step between sums is added.
    if degrees < 1 or mean < 2 or chdtr(degrees, squares + 1 / mean) > TOO_EVEN:
        return 1.0
    # 1e-6: smallest variance of the counts of a design, over the variance of random counts.
    return max(squares / degrees, 1e-6)


def count_by_design(tally: Tally) -> EffectiveCounts:
    """Return counts of the values of a column, with the variance of a design where they are too even to be random."""
    counts = tally.effective()
    spread = dispersion(tally.members[tally.members > 0])
    return counts if spread == 1 else EffectiveCounts(tally.members.astype(float), np.array(spread), float(tally.n))


def designs(sets: Mapping[str, Embeddings]) -> dict[tuple[str, str], str]:
    """Find sets with equally many samples of each value of a column that all sets share, and say so in a sentence.

    The keys are the label of the set and the first such column.
    """
    columns = [
        name
        for name in next(iter(sets.values())).columns
        if all(name in embeddings.columns for embeddings in sets.values())
    ]
    left, sentences = dict.fromkeys(sets), dict[tuple[str, str], str]()
    for column in sorted(columns, key=lambda name: name not in TEXT_COLUMNS):
        values = {label: np.array(embeddings.column(column)) for label, embeddings in sets.items()}
        shared = reduce(np.intersect1d, values.values())
        shared = shared[shared != ""]
        if len(shared) < MIN_BLOCKS or min(np.isin(texts, shared).mean() for texts in values.values()) < MOST_IN_BLOCKS:
            continue
        for label in list(left):
            names, counts = np.unique(values[label][values[label] != ""], return_counts=True)
            if dispersion(counts) < 1:
                sentences[label, column] = (
                    f"{label} has {counts.mean():.3g} samples of each of {len(names):,} values of {column}: a design, "
                    f"not random draws: compare within it (pairs={column!r})"
                )
                del left[label]
    return sentences


def missing_values(sets: Mapping[str, Embeddings], known: Container[tuple[str, str]]) -> list[str]:
    """Return sentences on prompts that a set lacks, or has more often, where neither is a matter of chance.

    `known` has the label and the column of each design; see `designs`.
    """
    sentences = []
    columns = [name for name in TEXT_COLUMNS if sum(name in embeddings.columns for embeddings in sets.values()) > 1]
    for column in columns:
        counts = {
            label: dict(zip(*np.unique(np.array(embeddings.column(column)), return_counts=True), strict=True))
            for label, embeddings in sets.items()
            if column in embeddings.columns
        }
        for label, count_of_set in counts.items():
            others = [count_of for other, count_of in counts.items() if other != label]
            total = sum(sum(count_of.values()) for count_of in others)
            every = sorted({name for count_of in others for name in count_of} - {""})
            if not set(count_of_set) & set(every):
                continue
            theirs = np.array([sum(count_of.get(name, 0) for count_of in others) for name in every])
            lacks = np.array([name not in count_of_set for name in every])
            # All samples of a value are of others, where each is of any set alike.
            by_chance = (total / (total + sets[label].n)) ** theirs * len(every) > ALPHA
            is_design = (label, column) in known
            named = [name for name, lacking in zip(every, lacks & (is_design | ~by_chance), strict=True) if lacking]
            if named:
                sentences.append(
                    missing_sentence(label, column, len(named), len(every), tuple(named))
                    + f" compare within {column} (pairs={column!r})"
                )
            elif len(counts) == 2 and label == next(iter(counts)) and len(every) <= sets[label].n / 2:
                names = sorted({*count_of_set, *every})
                first, second = (
                    np.array([float(count_of.get(name, 0)) for name in names]) for count_of in counts.values()
                )
                mix = total_variation(first, second)
                if mix.interval[0] > 0:
                    sentences.append(
                        f"{join_words(list(counts))} have unlike shares of {column}, by {percent(mix.value)} in all: "
                        f"compare within {column} (pairs={column!r})"
                    )
    return sentences
