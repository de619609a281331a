"""A set is divided so that each sample is in one shard, and shards are joined so that nothing counts twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.record import plain, structure
from finc_eval.samples import shards
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_source
from finc_eval.samples.shards import MissingShards, Shard, check_complete, join_shards, select_shard, shard_path
from finc_eval.samples.source import Source

IDS = [f"{number:03}.png" for number in range(101)]
CLIPS = [f"{video}.mp4#{window}" for video in "abcde" for window in range(3)]


class Names(Source):
    """A set of names alone."""

    kind = "names"

    def __init__(self, ids, name="/data/set", labels=None):
        super().__init__(name, ids, {}, labels)

    def take(self, numbers):
        raise NotImplementedError

    contents = take


def divided(ids, of, **options):
    return [select_shard(Names(ids, **options), f"{number}/{of}") for number in range(1, of + 1)]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 10, 100, 101, 102, 250])
def test_each_sample_is_in_one_shard_in_the_order_of_the_set(of):
    parts = divided(IDS, of)
    assert [name for samples, _ in parts for name in samples.ids] == IDS
    sizes = [len(samples.ids) for samples, _ in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [shard.stop - shard.start for _, shard in parts] == sizes
    assert join_shards((str(shard.first), shard) for _, shard in parts) == ()


@pytest.mark.parametrize("of", [1, 2, 3, 4, 7, 20])
def test_the_windows_of_a_video_stay_together(of):
    parts = divided(CLIPS, of)
    assert [name for samples, _ in parts for name in samples.ids] == CLIPS
    for samples, _ in parts:
        assert len(samples.ids) % 3 == 0


def test_the_clips_of_a_shard_are_those_of_the_set(tmp_path):
    videos = np.random.default_rng(0).integers(0, 256, (5, 8, 4, 4, 3), dtype=np.uint8)
    np.savez(tmp_path / "videos.npz", videos)
    clip = Clip(frames=2, stride=1, windows=3, short="loop")
    whole = list(open_source(tmp_path / "videos.npz", clip=clip).samples())
    found = [select_shard(open_source(tmp_path / "videos.npz", clip=clip), f"{number}/2")[0] for number in (1, 2)]
    assert [len(part.ids) for part in found] == [9, 6]
    read = [sample for part in found for sample in part.samples()]
    assert [sample.id for sample in read] == [sample.id for sample in whole]
    for mine, one in zip(read, whole, strict=True):
        np.testing.assert_array_equal(mine.pixels, one.pixels)


def test_labels_and_columns_go_with_their_samples():
    whole = Names(IDS, labels=[name[0] for name in IDS])
    whole.columns = {"name": IDS}
    part, shard = select_shard(whole, "2/3")
    assert part.columns["name"] == part.ids and len(part.labels) == len(part.ids)
    assert shard.metadata == whole.metadata_digest() != part.metadata_digest()


@pytest.mark.parametrize("which", ["0/3", "4/3", "2", "", "a/b", "1/0", "-1/3", "1/3/5", "1/1000001", None, 2])
def test_a_shard_is_named_by_two_numbers(which):
    with pytest.raises(
        UsageError, match=r'a shard is "i/N", number i of N counted from 1, at most 1,000,000, got .*: write'
    ):
        select_shard(Names(IDS), which)


def test_samples_in_memory_have_no_shards():
    with pytest.raises(UsageError, match=r"array is in the memory of this process"):
        select_shard(Names(IDS, name="array"), "1/2")


def test_the_name_of_a_file_has_the_number_of_its_shard():
    assert shard_path(Path("a/gen.h5"), "2/8") == Path("a/gen.2-of-8.h5")
    assert shard_path(Path("gen.v1.h5"), "7/128") == Path("gen.v1.007-of-128.h5")


def shard(first, of=4, start=None, stop=None, **changes):
    start = 25 * (first - 1) if start is None else start
    made = Shard(
        "ids", None, 100, of, first, first, start, start + 25 if stop is None else stop, ("finc-eval", "extract", "x")
    )
    return replace(made, **changes)


def named(*parts):
    return [(f"{one.first}.h5", one) for one in parts]


def test_shards_that_follow_each_other_are_joined_in_any_order():
    (left,) = join_shards(named(shard(3), shard(2)))
    assert (left.name, left.start, left.stop) == ("2–3/4", 25, 75)
    assert join_shards([("sum", left), *named(shard(4), shard(1))]) == ()


def test_missing_shards_are_named_with_the_commands_that_make_them():
    with pytest.raises(MissingShards, match=r"2 shards are missing \(1/4 and 3/4\)") as error:
        check_complete(join_shards(named(shard(4), shard(2))))
    assert [*error.value.commands] == ["finc-eval extract x --shard 1/4", "finc-eval extract x --shard 3/4"]


def test_of_many_missing_shards_a_few_are_named_and_all_commands_kept():
    with pytest.raises(MissingShards, match=r"98 shards are missing \(2/100, 3/100, .* and 93 more\)") as error:
        check_complete(join_shards(named(shard(1, 100, 0, 1), shard(100, 100, 99, 100))))
    assert len([*error.value.commands]) == 98


def test_shards_without_samples_may_be_missing():
    ids = IDS[:3]
    parts = [one for _, one in divided(ids, 8)]
    assert join_shards(named(*(one for one in parts if one.start < one.stop))) == ()
    (left,) = join_shards(named(*(one for one in parts if one.start == one.stop)))
    assert left.start == left.stop


def test_samples_in_two_shards_are_refused():
    with pytest.raises(DataError, match=r"1.h5 and 2.h5 both hold samples 21 to 25 of 100 .shards 1/4 and 2/4."):
        join_shards(named(shard(1), shard(2, start=20)))
    with pytest.raises(DataError, match=r"both hold samples 1 to 25"):
        join_shards([("a", shard(1)), ("b", shard(1))])


def test_divisions_that_differ_are_refused():
    with pytest.raises(IncompatibleError, match=r"of a set of 4 shards, and 2.h5 of 3: make one again"):
        join_shards(named(shard(1), shard(2, of=3, start=50)))


@pytest.mark.parametrize("forged", [{"of": 10**12}, {"first": 3, "last": 2}, {"last": 5}, {"stop": 101}, {"start": -1}])
def test_numbers_that_no_shard_has_are_refused_before_they_cost_memory(forged):
    with pytest.raises(DataError, match=r"x.h5.*a shard that no set has"):
        structure(Shard, plain(shard(2)) | forged, "x.h5")


def test_the_words_of_a_foreign_file_are_never_a_command_of_their_own():
    forged = shard(1, command=("finc-eval", "x; rm -rf ~", "`id`", "$(id)", "'\nid"))
    assert forged.maker(2) == """finc-eval 'x; rm -rf ~' '`id`' '$(id)' ''"'"'\nid' --shard 2/4"""
    assert shard(1, command=("rm", "-rf", "x")).maker(2) == shard(1, command=()).maker(2) == 'shard="2/4"'


def test_the_command_of_a_process_is_kept_without_its_own_shard(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/bin/finc-eval", "extract", "a b", "--shard", "2/3", "--out", "x.h5"])
    assert shards.shard_command() == ("finc-eval", "extract", "a b", "--out", "x.h5")
    monkeypatch.setattr("sys.argv", ["/bin/finc-eval", "extract", "a b", "--shard=2/3"])
    assert shards.shard_command() == ("finc-eval", "extract", "a b")
    monkeypatch.setattr("sys.argv", ["/bin/python"])
    assert shards.shard_command() == ()
