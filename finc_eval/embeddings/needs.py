"""The needs of a question: columns of its sets, and a number of samples. It is checked before any sample is embedded.

A check takes the sets by label, those that are embedded and those that are not yet. Sketches and statistics are not
among them, as they have neither columns nor samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.words import join_first
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.columns import PLACES, check_columns, drop_missing, texts, unknown_column
from finc_eval.embeddings.recipe import check_same_space
from finc_eval.samples.files import in_short
from finc_eval.samples.metadata import divide_ignored
from finc_eval.samples.source import Source


class Known(Protocol):
    """Knowledge of a set before its samples are embedded; `Embeddings` have it, too."""

    @property
    def n(self) -> int:
        """Number of samples; some may turn out to be unreadable."""

    @property
    def space(self) -> str:
        """The extractor, as name@digest."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of metadata."""

    def column(self, name: str) -> list[str]:
        """Return a column: one text a sample, "" if it is missing."""

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive samples."""


Check = Callable[[Mapping[str, Known]], object]
"""A check of sets by label, which raises an error unless they have what a question needs."""


@dataclass(frozen=True, eq=False)
class ListedSamples:
    """Samples that are listed, and not embedded yet, or embedded in a cache whose columns they add to."""

    label: str  # name of the set in messages
    space: str  # the extractor that will embed them, as name@digest
    ids: Sequence[str]
    given: Mapping[str, Sequence[object]]  # columns that come with the samples
    cache: EmbeddingCache | None = None
    source: Source | None = None  # the samples themselves, in the order of the ids

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.ids)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of metadata."""
        return tuple(dict.fromkeys([*self.given, *(self.cache.columns if self.cache else ())]))

    def column(self, name: str) -> list[str]:
        """Return a column: one text a sample, "" if it is missing."""
        if name in self.given:
            return drop_missing(texts(self.given[name], name))
        if self.cache is None or name not in self.cache.columns:
            raise unknown_column(name, self.columns, self.label)
        return self.cache.column(name)

    def ids_between(self, start: int, stop: int) -> list[str]:
        """Return the ids of consecutive samples."""
        return list(self.ids[start:stop])

    def without_unreadable(self, numbers: Sequence[int]) -> ListedSamples:
        """Return the same set without those of these samples that cannot be read."""
        if self.source is None or not numbers:
            return self
        with closing(self.source.mapped(lambda sample: sample.error is None, numbers)) as readable:
            bad = {number for number, is_readable in zip(numbers, readable, strict=True) if not is_readable}
        kept = [number for number in range(self.n) if number not in bad]
        given = {name: [values[number] for number in kept] for name, values in self.given.items()}
        return replace(self, ids=[self.ids[number] for number in kept], given=given, source=None)


def check_all(checks: Iterable[Check], sets: Mapping[str, Known]) -> None:
    """Make all checks of the sets."""
    for check in checks:
        check(sets)


def needs_columns(*columns: str | None, of: Sequence[str] = ()) -> Check:
    """Return the check that all sets, or those with the labels `of`, have these columns; None is not a column."""

    def check(sets: Mapping[str, Known]) -> None:
        for label, embeddings in sets.items():
            if not of or label in of:
                check_columns([name for name in columns if name is not None], embeddings.columns, label)

    return check


def needs_same_space(sets: Mapping[str, Known]) -> None:
    """Raise IncompatibleError unless all sets are embedded by one extractor."""
    for (first, before), (label, second) in pairwise(sets.items()):
        check_same_space(label, second.space, first, before.space)


def needs_labels(of: str, error: DataError) -> Check:
    """Return the check that the set with the label `of` has labels; else it raises the error."""

    def check(sets: Mapping[str, Known]) -> None:
        if of in sets and "label" not in sets[of].columns:
            raise error

    return check


def needs_groups(column: str | None, of: int) -> Check:
    """Return the check that one of so many sets has the column of groups, unless there are sketches among them."""

    def check(sets: Mapping[str, Known]) -> None:
        known = list(dict.fromkeys(name for embeddings in sets.values() for name in embeddings.columns))
        if column is None or len(sets) < of or column in known:
            return
        raise no_groups(column, known, [*sets])

    return check


def no_groups(column: str, known: Sequence[str], labels: Sequence[str]) -> UsageError:
    """Return the error for a column of groups that none of the sets has; `known` are the columns that they have."""
    hint = f"they have {', '.join(known)}" if known else PLACES
    return UsageError(
        f"none of {', '.join(labels)} has the column {column!r} that groups asks for{did_you_mean(column, known)}: "
        f"{hint}"
    )


def needs_samples(least: int, too_few: Callable[[str, int], DataError], of: Sequence[str] = ()) -> Check:
    """Return the check that each set, or each with the labels `of`, has `least` samples; `too_few` makes the error."""

    def check(sets: Mapping[str, Known]) -> None:
        for label, embeddings in sets.items():
            if embeddings.n < least and (not of or label in of):
                raise DataError(f"{too_few(label, embeddings.n)}{_say_left_out(embeddings)}")

    return check


def _say_left_out(embeddings: Known) -> str:
    """Return which files are not among the samples of a set, and why, as the end of a sentence; "" if none is known."""
    source, cache = (getattr(embeddings, name, None) for name in ("source", "cache"))
    ignored = source.ignored if isinstance(source, Source) else cache.ignored if cache is not None else {}
    files, unmatched = divide_ignored(ignored)
    parts = [f"not samples: {in_short(counts)}" for counts in (files, unmatched) if counts]
    # 5: unreadable samples that an error names.
    unread = [] if cache is None else [f"{name} ({reason})" for name, reason in cache.failures]
    parts += [f"could not be read: {join_first(unread, 5)}"] if unread else []
    return "".join(f"; {part}" for part in parts)
