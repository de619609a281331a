"""The list of shards keeps its order on the disk, and memory is the same for any number of them."""

import os
import resource
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from finc_eval.core.errors import DataError
from finc_eval.samples.shards import MissingShards, Shard
from finc_eval.shards.merging import ShardList

WHOLE = Shard("0" * 64, None, 100, 10, 1, 1, 0, 10, ("finc-eval", "extract", "x"))


def part(number, of=10):
    return replace(WHOLE, n=10 * of, of=of, first=number, last=number, start=10 * (number - 1), stop=10 * number)


def test_files_are_listed_in_the_order_of_their_samples():
    with ShardList() as files:
        for number in (3, 10, 1, 7, 2, 9, 5, 4, 8, 6):
            files.add(Path(f"{10 - number}.h5"), part(number))
        files.check()
        assert [*files] == [Path(f"{10 - number}.h5") for number in range(1, 11)] == [*files]
        assert len(files) == 10


def test_a_path_has_its_bytes_whatever_they_are():
    name = Path(os.fsdecode(b"\xff.h5"))
    with ShardList() as files:
        files.add(name, part(1, of=1))
        assert [*files] == [name]


def test_gaps_and_overlaps_are_named():
    with ShardList() as files:
        for number in (9, 1, 2, 4):
            files.add(Path(f"{number}.h5"), part(number))
        with pytest.raises(
            MissingShards, match=r"6 shards are missing \(3/10, 5/10, 6/10, 7/10, 8/10 and 1 more\)"
        ) as e:
            files.check()
        assert [command.split()[-1] for command in e.value.commands] == [f"{n}/10" for n in (3, 5, 6, 7, 8, 10)]
        files.add(Path("again.h5"), part(4))
        with pytest.raises(DataError, match=r"4\.h5 and again\.h5 both hold samples 31 to 40 of 100"):
            files.check()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_list_that_is_left_half_read_is_closed_without_a_word():
    with ShardList() as files:
        for number in (1, 2):
            files.add(Path(f"{number}.h5"), part(number))
        paths = iter(files)
        assert next(paths) == Path("1.h5")
    paths.close()


def name_of(number, n):
    return f"images.{number:07d}-of-{n}.h5"


def fill(n):
    with ShardList() as files:
        one = Shard("0" * 64, None, n, n, 1, 1, 0, 1)
        for number in range(n, 0, -1):
            path = Path("/shards", name_of(number, n))
            files.add(path, replace(one, first=number, last=number, start=number - 1, stop=number))
        files.check()
        assert sum(1 for _ in files) == n


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_files():
    peaks = []
    # Names that pathlib keeps for the whole process are made before: the table of all such texts may grow at any name,
    # by more than a megabyte.
    kept = [sys.intern(name_of(number, n)) for n in (500, 5500) for number in range(1, n + 1)]
    tracemalloc.start()
    for n in (500, 500, 5500):  # the first time, other things are made
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        fill(n)
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert len(kept) == 6000
    assert peaks[2] < peaks[1] + 200_000, peaks  # bytes; 5000 paths would be a megabyte


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_one_sentence():
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limit[1]))
    try:
        with pytest.raises(DataError, match="the list of shards cannot be kept in the folder of temporary files"):
            fill(60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
