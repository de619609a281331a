"""Shards and subsets: a set divided into ranges for other processes or machines, or a seeded part of it."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from pathlib import Path

from finc_eval.core.digest import text_bytes
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.places import is_place
from finc_eval.core.provenance import command_line
from finc_eval.core.record import Record
from finc_eval.core.storage import PROGRAM
from finc_eval.core.words import join_words
from finc_eval.samples.clips import video_of
from finc_eval.samples.source import THREADS, Result, Sample, Source

OPTION = "--shard"

BY_RANK = "rank"  # shard of the command line that means: as the launcher numbers this process
MAX_PARTS = 1_000_000  # shards of a set at most: a file that claims more is forged
MAX_NAMED = 5  # missing shards that a message names; the error has the commands of all of them


@dataclass(frozen=True)
class Shard(Record):
    """A range of a set: the samples from number `start` to before `stop`, in the order of their ids.

    Attributes:
        ids: SHA-256 (hex) of the ids of the whole set, in their order.
        metadata: SHA-256 (hex) of labels and prompts of the whole set; None for a set without them.
        n: number of samples of the whole set.
        of: number of shards that the set is divided into.
        first: number of the shard, from 1 on; of several that follow each other, that of the first shard.
        last: number of the last of them.
        start: number of the first sample, from 0 on.
        stop: number of the sample after the last sample.
        command: words of the command line that makes any shard of the set when its number is added; none for calls
            from Python.
    """

    ids: str
    metadata: str | None
    n: int
    of: int
    first: int
    last: int
    start: int
    stop: int
    command: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not (1 <= self.first <= self.last <= self.of <= MAX_PARTS and 0 <= self.start <= self.stop <= self.n):
            raise ValueError("a shard that no set has")

    @property
    def name(self) -> str:
        """Name of the shard, such as "2/8"."""
        return f"{self.first}/{self.of}" if self.first == self.last else f"{self.first}–{self.last}/{self.of}"

    @property
    def size(self) -> int:
        """Number of samples; 0 for some shards of a set with fewer samples than shards."""
        return self.stop - self.start

    @property
    def key(self) -> list[str | int | None]:
        """Everything that distinguishes this range from others, of this and of other sets."""
        return [self.ids, self.metadata, self.n, self.of, self.first, self.last, self.start, self.stop]

    def maker(self, number: int) -> str:
        """Return the command line, or the argument of a call, that makes the shard of this number."""
        which = f"{number}/{self.of}"
        # A file may come from anybody: what is printed is one command of ours, whatever the words in it.
        is_ours = self.command[:1] == (PROGRAM,)
        return shlex.join([*self.command, OPTION, which]) if is_ours else f'shard="{which}"'


class MissingShards(DataError):
    """Shards of a set are missing.

    Attributes:
        commands: command lines that make them, each made as it is asked for.
    """

    def __init__(self, message: str, commands: Iterator[str]) -> None:
        super().__init__(message)
        self.commands = commands


def parse_shard(which: str) -> tuple[int, int]:
    """Return i and N of "i/N"."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", which) if isinstance(which, str) else None
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of <= MAX_PARTS:
        raise UsageError(
            f'a shard is "i/N", number i of N counted from 1, at most {MAX_PARTS:,}, got {which!r}: write for example '
            '"2/8"'
        )
    return number, of


def shard_path(out: Path, which: str) -> Path:
    """Return the path of a shard's file beside the file of the whole set: "gen.2-of-8.h5" for "gen.h5"."""
    number, of = parse_shard(which)
    return out.with_name(f"{out.stem}.{number:0{len(str(of))}}-of-{of}{out.suffix}")


def select_shard(samples: Source, which: str) -> tuple[Source, Shard]:
    """Return the samples of the shard "i/N" of a set, and what the shard is.

    All shards have the same number of samples, give or take one. The windows of a video are never divided, as the
    samples of a group belong into one sketch.
    """
    number, of = parse_shard(which)
    if not is_place(samples.name):
        raise UsageError(
            f"{samples.name} is in the memory of this process, and a shard is of samples in files: leave the shard "
            "out, or save the samples first"
        )
    ids = samples.ids
    start, stop = (_cut(ids, at, of) for at in (number - 1, number))
    digest = ids_digest(ids)
    shard = Shard(digest, samples.metadata_digest(), len(ids), of, number, number, start, stop, shard_command())
    return SampleSubset(samples, range(start, stop)), shard


def _cut(ids: Sequence[str], at: int, of: int) -> int:
    """Return the number of the sample at which shard `at + 1` begins."""
    cut = len(ids) * at // of
    while 0 < cut < len(ids) and video_of(ids[cut]) == video_of(ids[cut - 1]):
        cut += 1
    return cut


def ids_digest(ids: Iterable[str]) -> str:
    """Return the SHA-256 (hex) of ids in their order."""
    sha = hashlib.sha256()
    for name in ids:
        sha.update(text_bytes(name) + b"\0")
    return sha.hexdigest()


def shard_command() -> tuple[str, ...]:
    """Return the words of the command line of this process without its `--shard`; none for calls from Python."""
    words = shlex.split(command_line() or "")
    while OPTION in words:
        option = words.index(OPTION)
        del words[option : option + 2]
    return tuple(word for word in words if not word.startswith(f"{OPTION}="))


def join_shards(named: Iterable[tuple[str, Shard]]) -> tuple[Shard, ...]:
    """Join shards of any sets that follow each other, each with its name in a message; whole sets are left out."""
    return join_in_order(sorted(named, key=lambda pair: (pair[1].ids, pair[1].start, pair[1].stop)))


def join_in_order(named: Iterable[tuple[str, Shard]]) -> tuple[Shard, ...]:
    """Join shards as `join_shards` does, given set by set in the order of samples; memory grows with the gaps alone."""
    joined: list[tuple[str, Shard]] = []
    empty: list[tuple[str, Shard]] = []
    for name, shard in named:
        if not shard.size:
            empty = empty or [(name, shard)]
            continue
        before_name, before = joined[-1] if joined else ("", None)
        if before is None or before.ids != shard.ids:
            joined.append((name, shard))
            continue
        check_same_set(before_name, before, name, shard)
        if shard.start < before.stop:
            raise DataError(
                f"{before_name} and {name} both hold samples {shard.start + 1:,} to {min(before.stop, shard.stop):,} "
                f"of {shard.n:,} (shards {before.name} and {shard.name}), which would count twice: leave one out"
            )
        if shard.start == before.stop:
            joined[-1] = (name, replace(before, last=shard.last, stop=shard.stop))
        else:
            joined.append((name, shard))
    # A shard without samples joins any other; of nothing but such, one is kept.
    return tuple(shard for _, shard in joined or empty if (shard.start, shard.stop) != (0, shard.n))


def check_same_set(first_name: str, first: Shard, second_name: str, second: Shard) -> None:
    """Raise IncompatibleError unless two shards are of one set and one division of it."""
    if first.n != second.n:
        why = f"{first.n:,} samples, and {second_name} of one of {second.n:,}"
    elif first.ids != second.ids:
        why = f"{first.n:,} samples, and {second_name} of as many by other names"
    elif first.metadata != second.metadata:
        why = f"certain labels or prompts, and {second_name} of one with others"
    elif first.of != second.of:
        why = f"{first.of:,} shards, and {second_name} of {second.of:,}"
    else:
        return
    raise IncompatibleError(f"{first_name} is of a set of {why}: make one again, so that all are shards of one set")


def check_complete(shards: Sequence[Shard]) -> None:
    """Raise MissingShards unless nothing is left of what `join_shards` returns."""
    missing: list[tuple[Shard, range]] = []
    for ids in dict.fromkeys(shard.ids for shard in shards):
        of_set, following = sorted((shard for shard in shards if shard.ids == ids), key=lambda shard: shard.first), 1
        for shard in of_set:
            missing.append((shard, range(following, shard.first)))
            following = max(following, shard.last + 1)
        missing.append((of_set[0], range(following, of_set[0].of + 1)))
    count = sum(len(numbers) for _, numbers in missing)
    if not count:
        return
    named = [(shard, number) for shard, numbers in missing for number in numbers[:MAX_NAMED]][:MAX_NAMED]
    first, names = named[0][0].maker(named[0][1]), [f"{number}/{shard.of}" for shard, number in named]
    if count == 1:
        sentence = f"shard {names[0]} is missing: make it by {first}, and merge again"
    else:
        more = [f"{count - MAX_NAMED:,} more"] if count > MAX_NAMED else []
        sentence = (
            f"{count:,} shards are missing ({join_words([*names, *more])}): make the first by {first}, the others "
            "likewise, and merge again"
        )
    raise MissingShards(sentence, (shard.maker(number) for shard, numbers in missing for number in numbers))


class SampleSubset(Source):
    """The samples of a set with these increasing numbers."""

    def __init__(self, inner: Source, numbers: Sequence[int]) -> None:
        self._inner, self._numbers = inner, numbers
        self.kind, self.reading = inner.kind, inner.reading
        super().__init__(
            inner.name,
            [inner.ids[number] for number in numbers],
            inner.ignored,
            self._part(inner.labels),
            self._part(inner.prompts),
            {column: [values[number] for number in numbers] for column, values in inner.columns.items()},
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
        self.labels, self.prompts = self._part(self._inner.labels), self._part(self._inner.prompts)

    def sample(self, number: int) -> Sample:
        return self._inner.sample(self._numbers[number])

    def _part(self, values: Sequence[str] | None) -> list[str] | None:
        return None if values is None else [values[number] for number in self._numbers]


def random_subset(inner: Source, n: int, seed: int) -> SampleSubset:
    """Choose `n` samples of a set.

    They are the samples whose ids have the smallest digests under the seed. So the choice does not depend on the order
    of the set, and a file that is added or removed changes at most one chosen sample.
    """
    key = str(seed).encode()

    def rank(number: int) -> bytes:
        return hashlib.blake2b(text_bytes(inner.ids[number]), digest_size=16, key=key).digest()

    return SampleSubset(inner, sorted(nsmallest(n, range(len(inner.ids)), rank)))
