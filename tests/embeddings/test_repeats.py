"""Repeats and near-repeats are found without being told, and told from draws of laws with few values."""

import numpy as np
import pytest
from _videos import scene
from PIL import Image

import finc_eval as fe
from finc_eval.demo import example_sets
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.repeats import describe_equal, repeats_as_groups, row_hashes, sample_hashes, share_of_repeats
from finc_eval.embeddings.search.near_repeats import near_repeat_warnings, near_repeats
from finc_eval.embeddings.subset import Subset
from finc_eval.prompts.images import count_distinct


def normal(n: int, seed: int, dim: int = 32):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def copied(rows, times: int, noise: float = 0.0):
    again = np.repeat(rows, times, 0)
    return again + np.float32(noise) * normal(len(again), 99, rows.shape[1])


def drawn(n: int, seed: int, atoms: int = 30, zipf: bool = False):
    weights = 1 / np.arange(1.0, atoms + 1) if zipf else np.ones(atoms)
    rows = np.random.default_rng(seed).choice(atoms, n, p=weights / weights.sum())
    return normal(atoms, 1000)[rows]


def around(n: int, seed: int, atoms: int):
    return drawn(n, seed, atoms) + np.float32(0.5) * normal(n, seed + 7)


def opened(gen, ref):
    return {"gen": as_embeddings(gen), "ref": as_embeddings(ref)}


def test_equal_rows_have_equal_hashes_and_others_not():
    rows = np.round(normal(3000, 0, 4) * 4)
    rows[rows == 0] = -0.0
    hashes = row_hashes(as_embeddings(rows))
    assert len(np.unique(hashes)) == len(np.unique(rows + 0.0, axis=0)) < 3000
    assert np.array_equal(hashes, row_hashes(as_embeddings(rows + np.float32(0))))
    assert 0.4 < (np.unique(hashes) & np.uint64(1)).mean() < 0.6  # the fold of a group is a fair coin


def test_equal_images_have_equal_hashes_in_arrays_and_caches(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (6, 4, 4, 3), dtype=np.uint8)[[0, 1, 2, 0, 1, 5]]
    with fe.extract(images, "pixels", tmp_path / "c.h5") as cache:
        assert np.array_equal(row_hashes(as_embeddings(cache)), row_hashes(as_embeddings(cache[:])))
        assert len(np.unique(row_hashes(as_embeddings(cache)))) == 4


def pictures(n=70, repeated=60):
    images = np.random.default_rng(5).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    images[: repeated - 1] = images[-1]  # the last of them lies in the last, smaller batch
    return images


def network_of(images, out, **options):
    return as_embeddings(fe.extract(images, "efficientnet-lite0", out, run=fe.Run(batch_size=32), **options))


@pytest.mark.long
def test_equal_images_are_equal_samples_though_a_smaller_batch_has_other_bits(tmp_path):
    gen = network_of(pictures(), tmp_path / "gen.h5")
    ref = network_of(np.random.default_rng(6).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), tmp_path / "ref.h5")
    assert len(np.unique(row_hashes(gen))) > 11, "bits no longer depend on the batch: this test shows nothing"
    assert share_of_repeats(gen) == pytest.approx(59 / 70)
    _, (said,) = repeats_as_groups({"gen": gen, "ref": ref})
    assert "11 distinct samples among 70" in said
    assert "11 distinct samples among 70, one of them 60 times" in describe_equal({"gen": gen})[("gen",)]
    half = Subset(gen, np.arange(20, 70))
    assert share_of_repeats(half) == pytest.approx(39 / 50)
    found = sample_hashes({"gen": half, "ref": gen})
    assert np.array_equal(found["gen"], found["ref"][20:])
    prompts = np.array([1] * 64 + [0, 1, 0, 0, 1, 1])
    assert count_distinct(gen, prompts, 2, fe.Run()).tolist() == [3, 8]


def test_images_that_the_network_does_not_tell_apart_are_equal_samples(tmp_path):
    black = np.zeros((6, 8, 8, 3), np.uint8)
    black[3:, 0] = 1
    with fe.extract(black, "pixels", tmp_path / "c.h5") as cache:
        found = sample_hashes({"a": as_embeddings(cache), "b": as_embeddings(cache[:][[0, 5]])})
    assert len(np.unique(found["a"])) == 2 and found["b"].tolist() == [found["a"][0], found["a"][5]]


@pytest.mark.parametrize("times", [1, 3], ids=["equal times", "other times"])
def test_clips_of_equal_pixels_are_equal_samples_only_at_equal_times(tmp_path, times):
    (tmp_path / "set").mkdir()
    first, *rest = [Image.fromarray(frame) for frame in scene(33)]
    for name, shown in (("a", 40), ("b", 40 * times)):
        first.save(tmp_path / "set" / f"{name}.gif", save_all=True, append_images=rest, duration=shown)
    with fe.extract(tmp_path / "set", "motion", tmp_path / "c.h5", run=fe.Run(batch_size=1)) as cache:
        assert cache.n == 2 and len(np.unique(cache.content)) == 1
        assert share_of_repeats(as_embeddings(cache)) == (0.5 if times == 1 else 0)


@pytest.mark.parametrize(
    ("gen", "ref", "expected"),
    [
        (copied(normal(200, 1), 5), normal(1000, 2), {"gen"}),
        (copied(normal(200, 1), 5), copied(normal(200, 2), 5), {"gen", "ref"}),
        (copied(normal(10, 1), 100), normal(1000, 2), {"gen"}),
        (copied(normal(1000, 2)[:10], 100), normal(1000, 2), {"gen"}),
    ],
    ids=["copies in gen", "copies in both", "collapsed", "memorized and collapsed"],
)
def test_copies_become_groups(gen, ref, expected):
    sets, sentences = repeats_as_groups(opened(gen, ref))
    assert {label for label, one in sets.items() if one.group_hashes() is not None} == expected
    assert len(sentences) == len(expected) and "the tests count each once" in sentences[0]
    assert sets["gen"].grouping == "exact repeats"
    assert len(np.unique(sets["gen"].group_hashes())) == len(np.unique(gen, axis=0))


def test_the_sentence_counts_the_distinct_samples():
    _, (sentence,) = repeats_as_groups(opened(copied(normal(200, 1), 5), normal(1000, 2)))
    assert sentence.startswith("gen has only 200 distinct samples among 1,000: the tests count each once")


@pytest.mark.parametrize(
    ("sizes", "zipf"), [((300, 300), False), ((300, 5000), False), ((300, 300), True), ((300, 5000), True)]
)
@pytest.mark.parametrize("atoms", [30, 300])
def test_draws_of_a_law_with_few_values_are_independent(sizes, zipf, atoms):
    gen, ref = (drawn(n, seed, atoms, zipf) for n, seed in zip(sizes, (1, 2), strict=True))
    sets, sentences = repeats_as_groups(opened(gen, ref))
    assert all(one.group_hashes() is None for one in sets.values())
    assert "count as independent" in sentences[0]


def test_a_few_repeats_and_named_groups_are_left_alone():
    few = np.concatenate([normal(995, 1), normal(995, 1)[:5]])
    sets, sentences = repeats_as_groups(opened(few, normal(1000, 2)))
    assert sentences == [] and sets["gen"].group_hashes() is None
    named = fe.EmbeddingSet(copied(normal(100, 1), 5), metadata={"g": range(500)}).grouped("g")
    sets, sentences = repeats_as_groups({"gen": named, "ref": as_embeddings(normal(500, 2))})
    assert sentences == [] and sets["gen"].grouping == "g"


@pytest.mark.parametrize(
    ("gen", "ref"),
    [
        (normal(100, 1), normal(100, 2)),
        (normal(100, 1), normal(5000, 2)),
        (normal(200, 1, 2000), normal(200, 2, 2000)),
        (np.random.default_rng(1).standard_t(2, (500, 16)), np.random.default_rng(2).standard_t(2, (500, 16))),
        (drawn(1000, 1, 50) + 0.05 * normal(1000, 3), drawn(1000, 2, 50) + 0.05 * normal(1000, 4)),
        (drawn(500, 1, 200, True) + 0.05 * normal(500, 3), drawn(2000, 2, 200, True) + 0.05 * normal(2000, 4)),
        (drawn(300, 1), drawn(300, 2)),
        (normal(1000, 1) + 5, normal(1000, 2)),
        (0.5 * normal(1000, 1, 16), normal(1000, 2, 16)),
        example_sets(500),
        (np.concatenate([around(168, 1, 60), copied(around(5, 3, 60) / 2, 14)]), around(240, 2, 60)),
        (np.concatenate([around(168, 1, 120), copied(around(5, 3, 120) * 0.8, 14)]), around(240, 2, 120)),
    ],
    ids=[
        "small",
        "unequal",
        "2000-d",
        "heavy tails",
        "clusters",
        "rare clusters",
        "atoms",
        "far apart",
        "narrow",
        "digits",
        "five pictures again and again",
        "five pictures again and again, of more kinds",
    ],
)
def test_independent_samples_raise_no_alarm(gen, ref):
    assert near_repeat_warnings(opened(gen, ref)) == []


@pytest.mark.parametrize(
    ("gen", "times"),
    [(copied(normal(200, 1), 3, 0.3), 3), (copied(normal(300, 1), 2, 0.5), 2), (copied(normal(60, 1), 10, 0.3), 10)],
    ids=["three frames", "one augmentation", "ten frames"],
)
def test_near_copies_are_seen_in_the_set_that_has_them(gen, times):
    sets = opened(gen, normal(600, 2))
    assert near_repeats(sets, ["gen"])["gen"] > 0.9
    (sentence,) = near_repeat_warnings(sets)
    assert "of the samples of gen have a near-copy in gen: if they are frames of one video" in sentence
    told = fe.EmbeddingSet(gen, metadata={"clip": np.arange(600) // times}).grouped("clip")
    assert near_repeat_warnings({"gen": told, "ref": sets["ref"]}) == []


def test_near_copies_are_seen_in_the_second_set_too():
    found = near_repeats(opened(normal(600, 2), copied(normal(200, 1), 3, 0.3)), ["gen", "ref"])
    assert found["gen"] < 0.1
    assert found["ref"] > 0.9


def test_shifted_digits_beside_their_originals_are_seen():
    gen, ref = example_sets(500)
    moved = np.roll(gen[:250].reshape(-1, 28, 28), 1, axis=2).reshape(250, -1)
    sets = opened(np.concatenate([gen[:250], moved]), ref)
    found = near_repeats(sets, ["gen", "ref"])
    assert found["gen"] > 0.25
    assert found["ref"] < 0.1


def test_samples_that_a_generator_repeats_are_grouped_only_where_all_files_are_doubled():
    sets, (sentence,) = repeats_as_groups(opened(copied(normal(1, 1), 60), normal(100, 2)))
    assert sets["gen"].group_hashes() is None
    assert sentence.endswith("repeats itself: 1 distinct sample among 60, which count as they come")
    sets, (sentence,) = repeats_as_groups(opened(copied(normal(2, 1), 30), normal(100, 2)))
    assert len(set(sets["gen"].group_hashes())) == 2 and "the tests count each once" in sentence
    rows = normal(300, 1)
    sets, (sentence,) = repeats_as_groups(opened(np.concatenate([rows, rows[:15]]), normal(300, 2)))
    assert sets["gen"].group_hashes() is None  # nearly all occur equally often, but once: nothing was duplicated
    assert sentence.endswith("300 distinct samples among 315, which count as they come")


def test_sets_that_share_samples_are_named_in_one_sentence():
    rows = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    parts = {"a": rows[:100], "b": rows[90:190], "c": np.concatenate([rows[:20], rows[300:380]])}
    sets = {label: fe.EmbeddingSet(one) for label, one in parts.items()}
    assert repeats_as_groups(sets)[1] == [
        "sets share samples with equal embeddings, and are not independent: a and c (20), a and b (10)"
    ]
    (pair,) = repeats_as_groups({label: sets[label] for label in "ab"})[1]
    assert pair.startswith("10 of the 100 samples of a are also in b, with equal embeddings: the sets are not")
