"""Repeats as a fault of their own: one sample many times, equal or nearly so, with pictures or without."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.naming.looks import REPEAT, find_looks
from finc_eval.naming.repeated import join_close

N, AXES, TIMES = 200, 12, 24


def rows(seed, n=N):
    return np.random.default_rng(seed).normal(size=(n, AXES)).astype(np.float32)


def repeated(seed, noise=0.0, times=TIMES, count=1):
    """Rows of which the first `times` are one, each; with noise of their own."""
    found = rows(seed)
    for place in range(count):
        part = slice(place * times, (place + 1) * times)
        found[part] = found[place * times] + noise * rows(seed + 50, times)
    return found


def twice(seed, count, noise=0.0, times=2):
    """Rows that repeat their first `count` rows, each `times` times in all, with noise added."""
    found = rows(seed)
    for time in range(1, times):
        found[time * count : (time + 1) * count] = found[:count] + noise * rows(seed + 50 + time, count)
    return found


def looks(gen, ref, blocks=None, **metadata):
    sets = {label: fe.EmbeddingSet(one, metadata=metadata or None) for label, one in (("gen", gen), ("ref", ref))}
    return find_looks({label: one.grouped("group") if metadata else one for label, one in sets.items()}, 0, blocks)


CASES = {
    "equal rows": (repeated(1), rows(2), ["one sample, 24 times"]),
    "nearly equal rows": (repeated(1, 0.01), rows(2), ["nearly one sample, 24 times"]),
    "rows that are alike, as a kind is": (repeated(1, 0.5), rows(2), []),
    "two of them": (repeated(1, count=2), rows(2), ["2 samples, repeated 48 times in all"]),
    "too few to be worth a word": (repeated(1, times=3), rows(2), []),
    "as often in both sets": (
        np.concatenate([rows(1)[TIMES:], rows(9)[:1].repeat(TIMES, 0)]),
        np.concatenate([rows(2)[TIMES:], rows(9)[:1].repeat(TIMES, 0)]),
        [],
    ),
    "none": (rows(1), rows(2), []),
    "a part of them twice each": (twice(1, 40), rows(2), ["40 samples, repeated 80 times in all"]),
    "a part of them nearly twice each": (twice(1, 40, 0.01), rows(2), ["40 samples, nearly repeated 80 times in all"]),
    "half of them nearly twice each": (twice(1, 100, 0.01), rows(2), ["100 samples, nearly repeated 200 times in all"]),
    "three times each": (twice(1, 20, times=3), rows(2), ["20 samples, repeated 60 times in all"]),
    "an eighth of them twice each": (twice(1, 12), rows(2), ["12 samples, repeated 24 times in all"]),
    "twice each in both sets": (twice(1, 40), twice(2, 40), []),
    "one of them twice": (twice(1, 1), rows(2), []),
}


@pytest.mark.parametrize("case", CASES)
def test_repeats_are_told_by_how_often_they_come(case):
    gen, ref, names = CASES[case]
    found = looks(gen, ref)
    assert [one.name for one in found] == names
    for one in found:
        assert (one.trait, one.more_in, one.share_ref) == (REPEAT, "gen", 0)
        assert len({*one.examples["gen"]}) == round(one.share_gen * len(gen)) and one.p_value <= 0.0125
    assert [one.more_in for one in looks(ref, gen)] == ["ref"] * len(names)


def test_equal_pictures_are_counted_among_all_samples(tmp_path):
    """At most 1 000 samples are looked at: their share would say about 45 times, or 35."""
    images = np.random.default_rng(0).integers(0, 256, (1_500, 8, 8), np.uint8)
    images[:40] = images[0]
    gen, ref = (
        fe.EmbeddingSet(one.reshape(len(one), -1).astype(np.float32), images=one)
        for one in (images[:1_200], images[1_200:])
    )
    (found,) = (one for one in find_looks({"gen": gen, "ref": ref}, 0, None) if one.trait == REPEAT)
    assert found.name == "one picture, 40 times" and found.share_gen == 40 / 1_200 and found.share_ref == 0


def test_the_repeats_of_one_group_are_one_of_its_samples():
    group = [str(max(place, TIMES)) for place in range(N)]
    assert looks(repeated(1), rows(2), group=group) == ()


def test_repeats_are_exchanged_within_prompts():
    blocks = {"gen": np.arange(N) // 4, "ref": np.arange(N) // 4}
    gen = rows(1)
    gen[::4] = gen[0]  # one image of each prompt
    assert [one.name for one in looks(gen, rows(2), blocks)] == ["one sample, 50 times"]
    inside = rows(1)
    inside[:4] = inside[0]  # all images of one prompt
    assert looks(inside, rows(2), blocks) == ()


def test_the_headline_says_a_repeat_and_no_kind_for_it():
    found = fe.compare(repeated(1), rows(2), features=128)
    assert "12 % of the generated set is one sample, 24 times (reference 0 %)." in found.says.values()
    assert "kind k" not in found.headline


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_close_rows_are_joined_in_any_unit(scale):
    some = torch.from_numpy(rows(3, 50))
    some[1:4] = some[0] + 0.001 * torch.arange(1, 4)[:, None]
    clump = join_close(some * scale + 5 * scale)
    assert len(set(clump[:4])) == 1 and len(set(clump)) == 47


@pytest.mark.parametrize("space", ["ten points", "a column of each value", "whole numbers"])
@pytest.mark.parametrize("far", [0, 1000])
def test_equal_rows_of_a_space_of_few_values_are_no_repeats(space, far):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = {
            "ten points": rng.normal(size=(10, 512)),
            "a column of each value": np.eye(50),
            "whole numbers": rng.integers(0, 3, (81, 4)),
        }[space]
        some = far + torch.from_numpy(values[rng.integers(0, len(values), 400)]).float()
        assert len(set(join_close(some))) == 400
        some = torch.cat([far + torch.from_numpy(rng.normal(size=(360, 512))).float(), some[:1, :1].expand(40, 512)])
        assert np.bincount(join_close(some)).max() == 40
