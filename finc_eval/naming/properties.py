"""The samples that names are made from, and their properties: metadata, ranges, words of prompts."""

from __future__ import annotations

import math
import re
from calendar import month_name
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.core.words import join_words
from finc_eval.embeddings.base import Embeddings
from finc_eval.extractors.imagenet import ClassTree
from finc_eval.numerics.arrays import without_fold

OTHERS_PER_SET = 1000  # samples of each set that members are compared with

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SampledSets:
    """Members and other samples, numbered through: the first set, then the second.

    Groups count once: of the samples of a group that are members of a kind, one drawn at random stands for all, and no
    other sample of the group is among the others. The first of each would be of one seed, where seeds are in order.
    """

    sets: Mapping[str, Embeddings]
    rows: Mapping[str, Indices]  # for each set, the indices of its samples in the panel
    members: Mask  # mask of the members of each kind, shape (kinds, samples)
    others: Mask  # mask of the samples that each kind is compared with, shape (kinds, samples)
    same_sets: Mask  # mask of the samples of the sets that have its members, shape (kinds, samples)

    def by_set(self) -> Iterator[tuple[Embeddings, Indices, slice]]:
        """Yield each set, its indices, and their place in the panel."""
        start = 0
        for name, rows in self.rows.items():
            yield self.sets[name], rows, slice(start, start + len(rows))
            start += len(rows)


def panel_of(members: Sequence[Mapping[str, Indices]], sets: Mapping[str, Embeddings]) -> SampledSets:
    """Choose the others, and gather all samples."""
    drawn = {name: smallest_hashes(samples, OTHERS_PER_SET) for name, samples in sets.items()}
    rows = {
        name: np.unique(np.concatenate([drawn[name], *(rows_of[name] for rows_of in members if name in rows_of)]))
        for name in sets
    }
    groups = np.empty(0, np.uint64)
    for number, (name, samples) in enumerate(sets.items()):
        hashes = samples.group_hashes()
        # Samples that stand for themselves get numbers of their own.
        alone = (rows[name].astype(np.uint64) << np.uint64(4)) + np.uint64(number)
        groups = np.append(groups, alone if hashes is None else hashes[rows[name]])
    drawn_mask = np.concatenate([np.isin(rows[name], drawn[name]) for name in sets])
    order = np.concatenate([without_fold(samples.id_keys()[rows[name]]) for name, samples in sets.items()]).argsort()
    inside, outside, same = [], [], []
    for rows_of in members:
        same.append(np.concatenate([np.full(len(rows[name]), name in rows_of) for name in sets]))
        is_member = np.concatenate([np.isin(rows[name], rows_of.get(name, ())) for name in sets])
        inside.append(_one_of_each(groups, is_member, order))
        outside.append(_one_of_each(groups, drawn_mask & ~np.isin(groups, groups[is_member]), order))
    shape = (len(members), len(groups))
    return SampledSets(sets, rows, *(np.array(masks, bool).reshape(shape) for masks in (inside, outside, same)))


def smallest_hashes(samples: Embeddings, count: int) -> Indices:
    """Return the indices of the samples with the smallest id hashes: a random sample that does not depend on order."""
    keys = without_fold(samples.id_keys())
    return np.arange(len(keys)) if len(keys) <= count else np.sort(np.argpartition(keys, count)[:count])


def _one_of_each(groups: NDArray[np.uint64], mask: Mask, order: Indices) -> Mask:
    """Mark, of each group, the sample of the mask that comes first in an order; all have shape (n,)."""
    ordered = order[mask[order]]
    chosen = np.zeros(len(groups), bool)
    chosen[ordered[np.unique(groups[ordered], return_index=True)[1]]] = True
    return chosen


MAX_VALUES = 1000  # distinct values of a column above which its values are not properties
LOOK_COLUMN = "look "
"""Beginning of the names of columns that hold a look of pictures, or a registered column: see `Embedder.looks`."""

TEXT_COLUMNS = ("prompt", "caption", "text")  # columns that are read word by word


def split_words(text: str) -> list[str]:
    """Return the words of a prompt or caption, in lower case; "Fox's" and "T-shirt" are words.

    Example:
        >>> from finc_eval.naming.properties import split_words
        >>> split_words("A fox's den, seen by night")
        ['a', "fox's", 'den', 'seen', 'by', 'night']
    """
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower())


def common_word(texts: Sequence[str], every: Sequence[str]) -> str:
    """Return the rarest word that most of some texts have, of all texts; "" if none is rarer among the others."""
    counts, of_all = (Counter(word for text in some for word in set(split_words(text))) for some in (texts, every))
    most = [word for word, count in counts.items() if count >= 0.8 * len(texts)]
    word = min(most, key=lambda candidate: (of_all[candidate], candidate), default="")
    return word if word and of_all[word] < len(every) / 2 else ""


BINS = 24
"""Parts of equal frequency of a column; a range is any number of parts that follow each other, 300 ranges in all."""

DATE = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2})(?:[T ][0-9:.,+Z -]*)?)?")
"""A month or a day, with or without a time (ISO 8601)."""


@dataclass(frozen=True)
class Properties:
    """Properties of the samples of a panel."""

    source: str
    values: tuple[str, ...]  # the properties, w of them
    has: csr_matrix  # which sample has which, shape (samples, w), entries 0 and 1
    known: NDArray[np.bool_]  # samples about which the source says something, shape (samples,)
    # of classes and nouns: how much of the best classes of each sample is of each, shape (samples, w), and the tree
    weights: NDArray[np.float32] | None = None
    tree: ClassTree | None = None
    asked: NDArray[np.bool_] | None = None  # kinds that may have the properties, shape (kinds,); None for all
    are_ranges: bool = False  # whether the properties are ranges of numbers or dates, which lie in each other


def properties_of(source: str, per_sample: Sequence[Sequence[str]], known: NDArray[np.bool_]) -> Properties:
    """Gather the properties of each sample; `known` marks the samples of sets that have the source."""
    values = sorted({value for mine in per_sample for value in mine})
    number = {value: index for index, value in enumerate(values)}
    owned = [sorted({number[value] for value in mine}) for mine in per_sample]
    ends = np.cumsum([0, *map(len, owned)])
    columns = np.array([index for mine in owned for index in mine], np.int64)
    has = csr_matrix((np.ones(len(columns), np.int64), columns, ends), shape=(len(owned), len(values)))
    return Properties(source, tuple(values), has, known)


def metadata_properties(panel: SampledSets) -> Iterator[Properties]:
    """Yield the values of each column of the metadata, the labels first, and then the words of texts.

    Numbers and dates are ranges. Columns that hardly repeat a value, or that only distinguish the sets, are left out.
    Columns that name groups never become significant, since a group counts once. A sample without a value has the
    property that it is missing: what few samples have does not name those of which nothing is known.
    """
    for name, per_set in columns_of(panel):
        values = [value for mine in per_set for value in mine]
        has = [np.full(len(rows), name in samples.columns) for samples, rows, _ in panel.by_set()]
        known = np.concatenate(has)
        if name in TEXT_COLUMNS:
            yield properties_of(name, [split_words(value) for value in values], known)
        elif ranges := None if name == "label" else ranges_of(values):
            yield replace(properties_of(name, ranges, known), are_ranges=True)
        elif why_unused(per_set) is None:
            missing = missing_value(name)
            yield properties_of(
                name, [[value or missing] if here else [] for value, here in zip(values, known, strict=True)], known
            )


def missing_value(column: str) -> str:
    """Return the word for samples without a value in a column."""
    return "unlabeled" if column == "label" else "missing"


def columns_of(panel: SampledSets) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the name of each column of the metadata, the labels first and texts last, and its values in each set.

    Columns that hold a look name no kind.
    """
    every = (name for samples in panel.sets.values() for name in samples.columns)
    columns = dict.fromkeys(name for name in every if not name.startswith(LOOK_COLUMN))
    for name in sorted(columns, key=lambda name: (name in TEXT_COLUMNS, name != "label")):
        per_set = []
        for samples, rows, _ in panel.by_set():
            column = samples.column(name) if name in samples.columns else None
            per_set.append([""] * len(rows) if column is None else [column[row] for row in rows.tolist()])
        yield name, per_set


def unused_columns(sets: Mapping[str, Embeddings]) -> list[str]:
    """Return a sentence on the columns that can name no kind, with the reason of each; none if all can."""
    reasons = {
        name: why
        for name, per_set in columns_of(panel_of((), sets))
        if name not in TEXT_COLUMNS
        and not any(name == samples.grouping for samples in sets.values())
        and (name == "label" or not ranges_of([value for mine in per_set for value in mine]))
        and (why := why_unused(per_set)) is not None
    }
    named = [f"{name} ({why})" for name, why in reasons.items()]
    return [f"columns of metadata that name no kind: {join_words(named)}"] if named else []


def why_unused(per_set: Sequence[Sequence[str]]) -> str | None:
    """Return why values name no kinds, which repeat as ids do not, and differ within a set; None if they may."""
    distinct = [set(mine) - {""} for mine in per_set]
    values = len(set().union(*distinct))
    given = sum(value != "" for mine in per_set for value in mine)
    if max(map(len, distinct), default=0) <= 1:
        return "no set has two different values" if values else "no value"
    if values > MAX_VALUES:
        return f"more than {MAX_VALUES:,} different values"
    return f"{values:,} different values of {given:,} samples" if values > given / 2 else None


def ranges_of(values: Sequence[str]) -> list[list[str]] | None:
    """Return the ranges that each value lies in, none for a missing one; None for values of another kind.

    The ranges depend on the values of all samples together, not on which of them are members of a kind, so that each is
    a property with a test of its own.
    """
    given = np.array([value != "" for value in values])
    if not given.any():
        return None
    known = [value for value in values if value]
    found = _of_dates(known) or _of_numbers(known)
    if found is None:
        return None
    following = iter(found)
    return [next(following) if here else [] for here in given]


def _of_numbers(values: Sequence[str]) -> list[list[str]] | None:
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return None
    whole = bool((numbers == np.round(numbers)).all())
    # 20: distinct whole numbers up to which a column is one of codes, whose values are compared one by one.
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) <= (20 if whole else 2):
        return None
    return _bin(numbers, lambda number: f"{number:,.0f}" if whole else _short(number, numbers))


def _of_dates(values: Sequence[str]) -> list[list[str]] | None:
    dated = [parts for value in values if (parts := DATE.fullmatch(value.strip()))]
    try:
        days = [date(int(parts[1]), int(parts[2]), int(parts[3] or 1)) for parts in dated]
    except ValueError:
        return None
    if len(days) < len(values) or len(set(days)) < 2:
        return None
    many_years = len({day.year for day in days}) > 1
    named = [
        [str(day.year), f"{month_name[day.month]} {day.year}", *[month_name[day.month]] * many_years] for day in days
    ]
    ordinals = np.array([day.toordinal() for day in days], float)
    of_months = not any(parts[3] for parts in dated)

    def write(number: float) -> str:
        day = date.fromordinal(int(number))
        return f"{month_name[day.month]} {day.year}" if of_months else day.isoformat()

    binned = _bin(ordinals, write)
    return [[*mine, *ours] for mine, ours in zip(named, binned, strict=True)]


def _bin(numbers: NDArray[np.float64], write: Callable[[float], str]) -> list[list[str]]:
    """Return all ranges of adjacent parts that each number lies in, as texts; the whole range is none."""
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
    part = np.searchsorted(edges, numbers, side="left")
    parts = np.unique(part)
    low = {int(code): numbers[part == code].min() for code in parts}
    high = {int(code): numbers[part == code].max() for code in parts}
    last = len(parts) - 1
    inside: dict[int, list[str]] = {int(code): [] for code in parts}
    for first, start in enumerate(parts):
        for end in range(first, last + 1):
            if (first, end) == (0, last):
                continue
            least, most = write(low[int(start)]), write(high[int(parts[end])])
            text = least if least == most else f"{least} to {most}"
            for code in parts[first : end + 1]:
                inside[int(code)].append(text)
    return [inside[int(code)] for code in part]


def _short(number: float, numbers: NDArray[np.float64]) -> str:
    """Return a number with enough digits to resolve 1 % of the range of its column."""
    spread = float(np.ptp(numbers))
    digits = max(0, 2 - math.floor(math.log10(spread)))
    return f"{number:,.{min(digits, 12)}f}"
