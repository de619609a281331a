"""Kinds add up, do not depend on who is who, and differ only where the sets do."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from _portions import portions_of

import finc_eval as fe
from finc_eval import report
from finc_eval.core.errors import UsageError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions.counts import NEAREST, Counts, count, tallied
from finc_eval.partitions.kmeans import kmeans, spread_rows
from finc_eval.partitions.partition import Partition, pooled_sample
from finc_eval.partitions.tests import test_kinds as tests_of

CENTERS = np.random.default_rng(0).normal(0, 1, (21, 64))


def clusters(n: int, seed: int, novel: int = 0, count: int = 20) -> np.ndarray:
    """Samples of 20 clusters, the first `novel` of them of a cluster of their own."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, count, n)
    which[:novel] = 20
    return (CENTERS[which] + rng.normal(0, 1, (n, 64))).astype(np.float32)


@pytest.fixture(scope="module")
def planted() -> fe.Kinds:
    return fe.kinds({"gen": clusters(1000, 1, novel=20), "ref": clusters(1000, 2)})


def test_shares_add_up_at_every_level_and_are_those_of_the_assigned_samples(planted):
    for level in planted.levels:
        assert all(share.sum() == pytest.approx(1) for share in planted.shares_at(level).values())
    assigned = np.bincount(planted.assign(clusters(1000, 1, novel=20)), minlength=planted.level) / 1000
    assert assigned == pytest.approx(planted.shares["gen"])


def test_a_novel_cluster_of_two_percent_is_found_and_nothing_else(planted):
    (kind,) = planted.significant()
    assert kind.set_with_most == "gen"
    assert kind.shares["gen"].count >= 18
    assert kind.shares["ref"].count == 0
    assert (kind.share_gen, kind.share_ref) == (kind.shares["gen"].share, 0)
    assert (kind.name, kind.title) == (None, kind.id)
    assert sum(int(name) < 20 for name in kind.shares["gen"].top_ids) >= 14
    assert kind.interval[0] < 0.02 < kind.interval[1]
    assert 0.01 < planted.detectable < 0.02


def test_samples_of_a_kind_are_drawn_from_all_of_it(planted):
    """Of 20 clusters of which each has 250 samples, not only those nearest to the center are shown."""
    rows = clusters(5000, 1)
    found = count(as_embeddings(rows, "rows"), planted.partition)
    kinds = planted.partition.assign(torch.from_numpy(rows))[0][:, 0]
    drawn = [found.drawn[number][found.drawn[number] >= 0] for number in range(planted.levels[0])]
    for number, own in enumerate(drawn):
        assert len(set(own)) == len(own) == min(200, (kinds == number).sum())
        assert (kinds[own] == number).all()
    inner = [np.isin(own[:16], found.nearest[number]).mean() for number, own in enumerate(drawn) if len(own) == 200]
    assert 0.1 < np.mean(inner) < 0.4


def test_shares_of_sets_with_other_names_are_found_under_them(planted):
    (kind,) = planted.significant()
    other = replace(kind, shares={"fgan": kind.shares["gen"], "ddpm": kind.shares["ref"]})
    with pytest.raises(UsageError, match=r"no set is called 'gen', but fgan, ddpm: use shares\[name\]"):
        _ = other.share_gen


def test_a_kind_is_named_by_what_its_samples_are_labeled():
    gen, ref = clusters(1000, 1, novel=40), clusters(1000, 2)
    labels = ["striped" if number < 40 else "plain" for number in range(1000)]
    sets = {"gen": (gen, labels), "ref": (ref, ["plain"] * 1000)}
    told = {name: fe.EmbeddingSet(rows, metadata={"label": values}) for name, (rows, values) in sets.items()}
    (kind,) = fe.kinds(told).significant()
    assert kind.name.startswith("mostly striped")
    assert kind.evidence[0].p_value < 1e-6


def test_the_share_in_a_name_is_that_of_all_samples_of_the_kind():
    """The third of a kind that lies at its center is "core", and makes all of its most typical samples."""
    rng, gen = np.random.default_rng(0), clusters(1000, 1)
    gen[:50] = CENTERS[20] + 0.1 * rng.normal(0, 1, (50, 64))
    gen[50:150] = CENTERS[20] + rng.normal(0, 1, (100, 64))
    labels = ["core"] * 50 + ["rim"] * 100 + ["plain"] * 850
    found = fe.kinds(
        {
            "gen": fe.EmbeddingSet(gen, metadata={"label": labels}),
            "ref": fe.EmbeddingSet(clusters(1000, 2), metadata={"label": ["plain"] * 1000}),
        },
        levels=(20,),
    )
    kind = max(found.significant(), key=lambda one: one.share_gen)
    assert all(int(name) < 50 for name in kind.shares["gen"].top_ids)
    shares = {one.value: one.share_members for one in kind.evidence if one.source == "label"}
    assert 0.18 < shares["core"] < 0.5 < shares["rim"] < 0.82


def test_the_names_of_the_sets_do_not_change_the_kinds(planted):
    swapped = fe.kinds({"ref": clusters(1000, 2), "gen": clusters(1000, 1, novel=20)})
    assert swapped.detectable == planted.detectable
    assert swapped.significant()[0].set_with_most == "gen"
    assert swapped.difference == pytest.approx(planted.difference, abs=0.02)


def test_a_saved_result_comes_back_and_counts_later_sets(planted, tmp_path):
    planted.save(tmp_path / "kinds.h5")
    back = fe.load(tmp_path / "kinds.h5")
    assert back.to_dict() == planted.to_dict()
    later = back.count({"near": clusters(500, 3), "shifted": clusters(500, 4) + 5})
    assert later.shares["near"][-1] < 0.05
    assert later.shares["shifted"][-1] == 1
    assert later.modes[0].id.endswith("far")
    assert later.modes[0].set_with_most == "shifted"


def test_a_result_without_arrays_says_where_they_are(planted):
    read = fe.Kinds.from_dict(planted.to_dict())
    assert read.modes == planted.modes
    with pytest.raises(fe.DataError, match=r"load its \.h5 file"):
        read.shares  # noqa: B018


def test_of_several_sets_each_is_tested_against_all_others():
    found = fe.kinds({"a": clusters(500, 1), "b": clusters(500, 2, novel=25), "c": clusters(800, 3)})
    assert {kind.set_with_most for kind in found.significant()} == {"b"}
    assert found.differences["b"].p_value < 0.05 < found.differences["a"].p_value
    assert found.difference == found.differences["b"].value


def test_what_one_of_several_sets_lacks_is_told():
    """Each of the other three has as much of it as the two others, and not more than all together."""
    rng, rows = np.random.default_rng(0), {label: clusters(600, seed) for seed, label in enumerate("abc")}
    for own in rows.values():
        own[:90] = CENTERS[20] + rng.normal(0, 1, (90, 64))
    found = fe.kinds(rows | {"less": clusters(600, 9)})
    lacking = found.significant()
    assert {(one.side, one.set_with_least, one.shares["less"].count) for one in lacking} == {
        ("least in less", "less", 0)
    }
    assert all(one.set_with_most in rows for one in lacking)
    assert lacking[0].interval[0] < lacking[0].difference < lacking[0].interval[1] < 0
    assert 0.12 < -sum(one.difference for one in lacking) < 0.16
    assert "less has significantly less of" in report.outline(found).headline
    two = fe.kinds({"a": rows["a"], "less": clusters(600, 9)})
    assert {one.set_with_least for one in two.modes} == {None}


def test_what_one_set_lacks_is_not_told_again_where_another_has_more_of_it():
    """One kind is missing in "a" and most frequent in "c": a coarser kind that holds it shows that "a" lacks it."""
    rng, rows = np.random.default_rng(5), {}
    for number, label in enumerate("abc"):
        rows[label] = clusters(600, 50 + number)
        rows[label][: 45 * number] = CENTERS[20] + 1.3 * rng.normal(0, 1, (45 * number, 64))
    (kind,) = fe.kinds(rows, levels=(5, 20, 50), level=20).significant()
    assert kind.side == "most in c"


def test_a_sketch_is_counted_by_its_sample():
    gen, ref = clusters(600, 1, novel=60), clusters(600, 2)
    reference = fe.Sketch.reference(ref, features=50)
    small = fe.Sketch.of(ref, reference, sample=300)
    found = fe.kinds({"gen": gen, "ref": small})
    assert found.counts["ref"].n == 300
    assert "300 embeddings that it holds are counted, of 600 samples" in found.warnings[0]
    assert {kind.set_with_most for kind in found.significant()} == {"gen"}


def test_copies_are_not_evidence_once_they_are_grouped():
    """Each sample of gen five times, a little altered: without groups, copies of a rare one look like a kind."""
    once, ref = clusters(200, 1), clusters(1000, 2)
    gen = np.repeat(once, 5, 0)
    gen += np.random.default_rng(3).normal(scale=1e-3, size=gen.shape).astype(gen.dtype)
    told = fe.EmbeddingSet(gen, metadata={"source": np.repeat(np.arange(200), 5)})
    reference = fe.EmbeddingSet(ref, metadata={"source": np.arange(1000)})
    assert fe.kinds({"gen": gen, "ref": ref}).significant()
    found = fe.kinds({"gen": told, "ref": reference}, groups="source")
    assert not found.significant()
    assert found.difference_p_value > 0.05


@pytest.mark.parametrize("rows", [np.ones((60, 8)), np.repeat(np.eye(8), 10, 0)], ids=["constant", "eight points"])
def test_repeated_rows_are_one_kind_and_nothing_crashes(rows):
    found = fe.kinds({"a": rows.astype(np.float32), "b": rows.astype(np.float32)[::-1].copy()})
    assert found.difference == 0
    assert not found.significant()


def test_levels_that_are_too_large_for_the_samples_are_left_out():
    assert fe.kinds({"a": clusters(100, 1), "b": clusters(900, 2)}).levels == (20, 35, 50)
    assert fe.kinds({"a": clusters(20, 1), "b": clusters(20, 2)}).levels == (2,)


def test_a_level_is_chosen_by_its_number_of_kinds_or_the_next_lower_one():
    partition = Partition.fit(torch.from_numpy(clusters(1000, 1)), (10, 20, 50))
    assert [partition.place_of(kinds) for kinds in (5, 10, 20, 49, 50, 200)] == [0, 0, 1, 1, 2, 2]


def test_false_findings_at_very_unequal_sizes_stay_at_their_level():
    """100 against 3 000 samples: the wrong kinds form around single samples of the small set if it is drawn whole."""
    runs = 40
    false = 0
    for run in range(runs):
        sets = {"a": clusters(60, run), "b": clusters(1500, 1000 + run)}
        one, other = (as_embeddings(rows) for rows in sets.values())
        partition = Partition.fit(pooled_sample([one, other], 800), (20, 50, 100), seed=run)
        tests = tests_of(tallied({"a": count(one, partition).counts, "b": count(other, partition).counts}))
        false += tests.adjusted.min() <= 0.05
    assert false <= 6


def test_the_sample_that_kinds_are_fitted_to_is_in_proportion_to_the_sets():
    a, b = clusters(300, 1), clusters(2700, 2) + 100
    rows = pooled_sample([as_embeddings(a), as_embeddings(b)], 1000)
    assert 70 < int((rows.mean(1) < 50).sum()) < 130
    assert torch.equal(rows, pooled_sample([as_embeddings(a), as_embeddings(b)], 1000))


def test_counts_of_shards_add():
    rng = np.random.default_rng(0)
    cells, groups = rng.integers(0, 4, (90, 2)), np.repeat(np.arange(30), 3).astype(np.uint64)
    whole = Counts.of((4, 4), cells, groups)
    parts = Counts.of((4, 4), cells[:50], groups[:50]) + Counts.of((4, 4), cells[50:], groups[50:])
    assert parts.n == whole.n == 90
    assert (parts.members(1) == whole.members(1)).all()
    assert parts.tally().effects == pytest.approx(whole.tally().effects)
    with pytest.raises(fe.IncompatibleError, match="group both, or neither"):
        whole + Counts.of((4, 4), cells)


def test_the_nearest_samples_do_not_depend_on_the_portions():
    rows = as_embeddings(clusters(500, 5))
    partition = Partition.fit(pooled_sample([rows]), (20,))
    whole = count(rows, partition, run=fe.Run(device="cpu"))
    with portions_of(64):
        portions = count(rows, partition, run=fe.Run(device="cpu"))
    assert (whole.nearest == portions.nearest).all()
    kinds, squared = partition.assign(clusters(500, 5))
    mine = np.flatnonzero(kinds[:, 0] == 3)
    assert (whole.nearest[3, : len(mine)] == mine[squared[mine, 0].argsort(kind="stable")][:50]).all()


def test_kinds_are_found_without_faiss_too(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    rows = clusters(1000, 1) * 3
    centers = kmeans(rows, 40, 0, torch.device("cpu"))
    nearest = np.sqrt(((CENTERS[:20, None] * 3 - centers) ** 2).sum(-1)).min(1)
    assert centers.shape == (40, 64)
    assert np.median(nearest) < 12  # the clusters' own radius is 3 · √64 = 24


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fe.kinds({"a": clusters(100, 1)}), "at least two sets"),
        (lambda: fe.kinds({"": clusters(100, 1), "b": clusters(100, 2)}), "a set has an empty name"),
        (lambda: fe.kinds({"a": clusters(10, 1), "b": clusters(100, 2)}), "a has 10 samples"),
        (lambda: fe.kinds({"a": clusters(50, 1), "b": clusters(50, 2)[:, :9]}), "64 entries"),
        (lambda: fe.kinds({"a": clusters(50, 1), "b": clusters(50, 2)}, levels=(1,)), "whole number of at least 2"),
        (lambda: fe.kinds({"a": clusters(50, 1), "b": clusters(50, 2)}, level=20).shares_at(7), "choose from 5"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(fe.FincEvalError, match=message):
        call()


def test_a_kind_that_the_fitted_sample_hardly_holds_is_not_called_detectable():
    counts = {name: Counts.of((2,), np.repeat([[0], [1]], 25_000, 0)) for name in ("a", "b")}
    assert tests_of(tallied(counts)).detectable() == pytest.approx(10.2 / 5000, rel=0.1)


def test_exact_repeats_are_counted_once():
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(20, 16))

    def draw(n):
        return (centers[rng.integers(20, size=n)] + rng.normal(size=(n, 16))).astype(np.float32)

    copied, single = np.repeat(draw(100), 5, axis=0), draw(500)
    found = fe.kinds({"gen": copied, "ref": single})
    assert found.significant() == ()
    assert any("100 distinct samples among 500" in warning for warning in found.warnings)


def test_a_sketch_that_does_not_tell_its_groups_is_refused():
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    grouped = fe.EmbeddingSet(rows, metadata={"group": [str(place // 2) for place in range(200)]})
    sketch = fe.Sketch.reference(grouped, features=50, groups="group")
    with pytest.raises(fe.DataError, match="not which groups they are of: pass its embeddings"):
        fe.kinds({"gen": rows, "ref": sketch})


def test_first_centers_that_are_spread_do_not_miss_a_few_samples_far_from_all_others():
    x = clusters(2000, 0)
    x[:20] += 30
    drawn = [spread_rows(x, 30, seed) for seed in range(10)]
    assert all((np.linalg.norm(rows, axis=1) > 100).any() for rows in drawn)
    same = np.ones((5, 3), np.float32)
    assert spread_rows(same, 4, 0).shape == (4, 3)


def test_few_groups_give_a_warning_and_hardly_any_are_refused():
    def in_groups(seed: int, size: int) -> fe.EmbeddingSet:
        return fe.EmbeddingSet(clusters(120, seed), metadata={"clip": [row // size for row in range(120)]})

    (note,) = fe.kinds({"a": in_groups(1, 10), "b": in_groups(2, 1)}, groups="clip").warnings
    assert note.startswith("the groups of a are so few or so large that its 120 samples tell as much as 12 ")
    with pytest.raises(fe.DataError, match="the 120 samples of a lie in too few groups by clip, or nearly"):
        fe.kinds({"a": in_groups(1, 60), "b": in_groups(2, 1)}, groups="clip")


def test_a_page_says_that_a_class_can_lie_in_several_kinds_and_what_was_not_tested(planted):
    twice = replace(planted, modes=2 * planted.significant())
    assert report.kinds.CLUSTERS in report.kinds.summary(twice)
    differences = {label: replace(one, p_value=None) for label, one in planted.differences.items()}
    assert report.kinds.UNTESTED in report.kinds.summary(replace(planted, differences=differences))
    assert report.kinds.UNTESTED not in report.kinds.summary(planted)


@pytest.mark.parametrize("together", [64, 1 << 13])
def test_the_samples_nearest_to_a_center_are_kept_whatever_is_sorted_together(together, monkeypatch):
    monkeypatch.setattr("finc_eval.partitions.counts.SORTED_ROWS", together)
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=(700, 4)).astype(np.float32))
    partition = Partition.fit(rows, (4, 8), 0)
    kinds, squared = partition.assign(rows)
    nearest = count(as_embeddings(rows), partition).nearest
    first = 0
    for level, number in enumerate(partition.levels):
        for kind in range(number):
            members = np.flatnonzero(kinds[:, level] == kind)
            expected = members[squared[members, level].argsort(kind="stable")][:NEAREST]
            found = nearest[first + kind]
            assert found[found >= 0].tolist() == expected.tolist()
        first += number
