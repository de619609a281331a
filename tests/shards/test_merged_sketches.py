"""Sketches of shards add up to the sketch of one process, and nothing counts twice."""

from importlib import resources

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import DataError, FincEvalError, IncompatibleError, UsageError
from finc_eval.samples.shards import MissingShards

N = 60


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    pixels = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    card = pixels[: pixels.index("[golden]")].replace("2352", "48").replace("[28, 28]", "[4, 4]")
    (tmp_path / "small.toml").write_text(card)
    images = np.random.default_rng(0).integers(0, 256, (N, 4, 4, 3), dtype=np.uint8)
    np.savez("gen.npz", images)


def embedded(**options):
    return fe.extract("gen.npz", "small.toml", **options)


def part(number, of):
    return embedded(shard=f"{number}/{of}")


@pytest.fixture
def whole(own_folder):
    return fe.Sketch.reference(embedded(), features=40, precision="float64")


def check_moments(mine, one, tolerance):
    assert mine.n == one.n
    for own, other in [
        (mine.first, one.first),
        *((a, b) for (_, a), (_, b) in zip(mine.blocks(), one.blocks(), strict=True)),
    ]:
        torch.testing.assert_close(own, other, rtol=tolerance, atol=tolerance)


def saved(whole, of, numbers=None):
    paths = []
    for number in numbers or range(1, of + 1):
        paths.append(f"part{number}-of-{of}.h5")
        fe.Sketch.of(part(number, of), whole, precision="float64").save(paths[-1])
    return paths


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("of", [3, *(pytest.param(of, marks=pytest.mark.long) for of in (1, 2, 7, 61))])
def test_the_sum_is_the_sketch_of_one_process(whole, of):
    merged = fe.merge(saved(whole, of)[::-1], "merged.h5")
    for mine, one in zip(merged.folds, whole.folds, strict=True):
        # Random features are float32, and their last bits depend on the number of rows that are multiplied at once.
        check_moments(mine, one, 1e-5)
    check_moments(merged.embedding, whole.embedding, 1e-10)
    assert merged.sample.ids == whole.sample.ids and torch.equal(merged.sample.rows, whole.sample.rows)
    assert (merged.n, merged.name, merged.groups, merged.squared_sizes) == (N, "gen.npz", None, N)
    assert merged.shards == () and len(merged.sources) == 1
    merged, twice = (fe.compare(one, whole, modes=1) for one in (merged, whole))
    assert merged.signature == twice.signature


@pytest.mark.parametrize("of", [2, pytest.param(7, marks=pytest.mark.long)])
def test_float64_sums_of_the_same_features_are_those_of_one_process_to_ten_digits(own_folder, of):
    whole = fe.Sketch.reference(embedded(), kernel="cosine", precision="float64")
    merged = fe.merge(saved(whole, of), "merged.h5")
    for mine, one in zip([*merged.folds, merged.embedding], [*whole.folds, whole.embedding], strict=True):
        check_moments(mine, one, 1e-10)


def test_sums_in_python_join_shards_as_merge_does(whole):
    a, b, c = (fe.Sketch.of(part(number, 3), whole, precision="float64") for number in (1, 2, 3))
    assert [one.name for one in (a + b).shards] == ["1–2/3"]
    assert ((c + a) + b).shards == ()
    with pytest.raises(DataError, match="one sketch and the other both hold samples 21 to 40 of 60"):
        (a + b) + b


def test_a_missing_shard_is_named(whole):
    with pytest.raises(MissingShards, match=r"shard 2/3 is missing"):
        fe.merge(saved(whole, 3, [3, 1]), "merged.h5")


def test_a_sketch_of_a_shard_is_not_taken_for_one_of_a_set(whole, tmp_path):
    (path,) = saved(whole, 2, [1])
    one = fe.Sketch.load(path)
    for use in (
        lambda: fe.compare(path, whole),
        lambda: fe.compare(whole, one),
        lambda: fe.kinds({"a": path, "b": whole}),
        lambda: fe.metrics(one, whole, ["fd"]),
        lambda: fe.metrics(path, whole, ["fd"]),
    ):
        with pytest.raises(
            FincEvalError, match=r"is shard 1/2 of a set: join all its shards first, by finc-eval extract merge"
        ):
            use()


def test_the_same_samples_in_two_sketches_are_refused(whole, tmp_path):
    whole.save("whole.h5")
    paths = saved(whole, 2)
    with pytest.raises(DataError, match=r"part1-of-2.h5 and part1-of-2.h5 are sketches of the same samples: leave one"):
        fe.merge([*paths, paths[0]], "merged.h5")
    with pytest.raises(DataError, match=r"whole.h5 and whole.h5 are sketches of the same samples"):
        fe.merge(["whole.h5", "whole.h5"], "merged.h5")


def test_sketches_of_two_sets_add_up_to_that_of_both(whole):
    whole.save("one.h5")
    rows = np.random.default_rng(1).random((50, whole.dim), np.float32)
    other = fe.Sketch.of(rows, whole, precision="float64")
    other.space = whole.space
    other.save("other.h5")
    both = fe.merge(["one.h5", "other.h5"], "both.h5")
    assert both.n == N + 50 and both.sources == tuple(sorted(whole.sources + other.sources))


def test_sketches_with_other_feature_maps_are_refused(whole):
    paths = saved(whole, 2, [1])
    other = fe.Sketch.reference(embedded(), features=40, seed=1, precision="float64")
    paths += saved(other, 2, [2])
    with pytest.raises(IncompatibleError, match="different feature maps"):
        fe.merge(paths, "merged.h5")


def test_other_work_is_not_lost(whole):
    paths = saved(whole, 2)
    whole.save("whole.h5")
    with pytest.raises(UsageError, match=r"whole.h5 holds other work, which would be lost"):
        fe.merge(paths, "whole.h5")
    first = fe.merge(paths, "merged.h5")
    assert fe.merge(paths, "merged.h5").sources == first.sources
    assert fe.merge(paths, "whole.h5", force=True).n == N


def test_sketches_of_shards_without_samples_alone_are_refused(whole):
    with pytest.raises(DataError, match=r"no sample is in any of the 2 sketches"):
        fe.merge(saved(whole, 200, [1, 2]), "merged.h5")


def test_groups_that_may_lie_in_two_shards_are_refused(whole):
    names = [str(row) for row in range(N)]
    cache = embedded(shard="1/2", metadata={"id": names, "prompt": ["p"] * N})
    with pytest.raises(UsageError, match="is a shard, and a group by prompt may lie in two"):
        fe.Sketch.of(cache, whole, groups="prompt")
