"""Samples of a larger set: by their numbers, or a seeded random choice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import nsmallest

from finc_eval.core.digest import text_bytes
from finc_eval.samples.source import THREADS, Result, Sample, Source


class Subset(Source):
    """The samples of a set with these increasing numbers."""

    def __init__(self, inner: Source, numbers: Sequence[int]) -> None:
        self._inner, self._numbers = inner, numbers
        self.kind, self.reading = inner.kind, inner.reading
        super().__init__(
            inner.name,
            self._part(inner.ids),
            inner.ignored,
            self._chosen(inner.labels),
            self._chosen(inner.prompts),
            {column: self._part(values) for column, values in inner.columns.items()},
        )

    def take(self, numbers: Sequence[int]) -> Iterator[Sample]:
        return self._inner.take([self._numbers[number] for number in numbers])

    def mapped(
        self, function: Callable[[Sample], Result], numbers: Sequence[int], threads: int = THREADS
    ) -> Generator[Result, None, None]:
        return self._inner.mapped(function, [self._numbers[number] for number in numbers], threads)

    def contents(self, numbers: Sequence[int]) -> Iterator[bytes]:
        yield from self._inner.contents([self._numbers[number] for number in numbers])
        # A dataset may know its labels and prompts only now.
        self.labels, self.prompts = self._chosen(self._inner.labels), self._chosen(self._inner.prompts)

    def sample(self, number: int) -> Sample:
        return self._inner.sample(self._numbers[number])

    def _part(self, values: Sequence[str]) -> list[str]:
        return [values[number] for number in self._numbers]

    def _chosen(self, values: Sequence[str] | None) -> list[str] | None:
        return None if values is None else self._part(values)


def random_subset(inner: Source, n: int, seed: int) -> Subset:
    """Choose `n` samples of a set.

    They are the samples whose ids have the smallest digests under the seed. So the choice does not depend on the order
    of the set, and a file that is added or removed changes at most one chosen sample.
    """
    key = str(seed).encode()

    def rank(number: int) -> bytes:
        return hashlib.blake2b(text_bytes(inner.ids[number]), digest_size=16, key=key).digest()

    return Subset(inner, sorted(nsmallest(n, range(len(inner.ids)), rank)))
