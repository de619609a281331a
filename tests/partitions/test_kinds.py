"""`kinds`: shares add up, do not depend on who is who, and differ only where the sets do."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from _blobs import CENTERS, blobs
from _portions import portions_of

import finc_eval as fe
from finc_eval import report
from finc_eval.core.errors import UsageError
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.partitions import counts
from finc_eval.partitions.counts import count


@pytest.fixture(scope="module")
def planted() -> fe.Kinds:
    return fe.kinds({"gen": blobs(1000, 1, novel=20), "ref": blobs(1000, 2)})


def test_shares_add_up_and_are_those_of_the_assigned_samples(planted):
    for label, rows in (("gen", blobs(1000, 1, novel=20)), ("ref", blobs(1000, 2))):
        assert planted.shares[label].sum() == pytest.approx(1)
        place_of = planted.assign(rows)
        count = np.bincount(place_of, minlength=len(planted.kinds))
        assert count.tolist() == [kind.shares[label].count for kind in planted.kinds]
        for place, kind in enumerate(planted.kinds):
            shown = [*kind.shares[label].top, *kind.shares[label].drawn]
            assert (place_of[shown] == place).all()
            assert kind.shares[label].top_ids == tuple(map(str, kind.shares[label].top))


def test_the_significant_kinds_come_first_and_have_their_shares_and_interval(planted):
    (kind,) = planted.significant()
    assert kind == planted.kinds[0] and all(one.p_value > 0.05 for one in planted.kinds[1:])
    assert kind.set_with_most == "gen"
    assert (kind.share_gen, kind.share_ref) == (kind.shares["gen"].share, 0)
    assert (kind.share_difference, kind.share_difference_interval) == (kind.difference, kind.interval)
    assert (kind.name, kind.title) == (None, kind.id)
    assert sum(int(name) < 20 for name in kind.shares["gen"].top_ids) >= 14
    assert 0 < kind.interval[0] < 0.02 < kind.interval[1]
    assert 0.01 < planted.detectable < 0.02


def test_samples_of_a_kind_are_drawn_from_all_of_it(planted):
    """Of 20 blobs of which each has 250 samples, not only those nearest to the middle are shown."""
    rows, tree = blobs(5000, 1), planted.divided.tree
    found, leaves = count(as_embeddings(rows), tree), tree.assign(torch.from_numpy(rows))[0]
    for node in tree.tree.cut(20):
        pieces = np.flatnonzero(tree.tree.members[node])
        nearest, drawn = (found.samples(indices, pieces) for indices in (found.nearest, found.drawn))
        own = np.flatnonzero(np.isin(leaves, pieces))
        assert len(set(drawn)) == len(drawn) and np.isin(drawn, own).all() and np.isin(nearest, own).all()
        if len(own) > 150:
            assert np.isin(drawn[:16], nearest[:50]).mean() < 0.7


def test_samples_that_are_sorted_in_portions_are_those_of_a_set_at_once(planted, monkeypatch):
    rows, tree = as_embeddings(blobs(1000, 1)), planted.divided.tree
    whole = count(rows, tree)
    monkeypatch.setattr(counts, "SORTED_ROWS", 70)
    monkeypatch.setattr(counts, "COPIED_ROWS", 1)
    with portions_of(130):
        portions = count(rows, tree)
    assert np.array_equal(portions.nearest, whole.nearest) and np.array_equal(portions.drawn, whole.drawn)


def test_shares_of_sets_with_other_names_are_found_under_them(planted):
    (kind,) = planted.significant()
    other = replace(kind, shares={"fgan": kind.shares["gen"], "ddpm": kind.shares["ref"]})
    with pytest.raises(UsageError, match=r"no set is called 'gen', but fgan, ddpm: use shares\[name\]"):
        _ = other.share_gen


def test_a_kind_is_named_by_what_its_samples_are_labeled():
    gen, ref = blobs(400, 1, novel=40), blobs(400, 2)
    labels = ["striped" if number < 40 else "plain" for number in range(400)]
    sets = {"gen": (gen, labels), "ref": (ref, ["plain"] * 400)}
    told = {name: fe.EmbeddingSet(rows, metadata={"label": values}) for name, (rows, values) in sets.items()}
    (kind,) = fe.kinds(told).significant()
    assert kind.name.startswith("mostly striped")
    assert kind.evidence[0].p_value < 1e-6


def test_the_share_in_a_name_is_that_of_all_samples_of_the_kind():
    """The third of a kind that lies at its middle is "core", and makes most of its most typical samples."""
    rng, gen = np.random.default_rng(0), blobs(1000, 1)
    gen[:50] = CENTERS[20] + 0.5 * rng.normal(0, 1, (50, 80))
    gen[50:150] = CENTERS[20] + rng.normal(0, 1, (100, 80))
    labels = ["core"] * 50 + ["rim"] * 100 + ["plain"] * 850
    found = fe.kinds(
        {
            "gen": fe.EmbeddingSet(gen, metadata={"label": labels}),
            "ref": fe.EmbeddingSet(blobs(1000, 2), metadata={"label": ["plain"] * 1000}),
        }
    )
    kind = found.kinds[found.assign(gen)[60]]
    assert kind in found.significant()
    assert kind.shares["gen"].count == pytest.approx(150, abs=3)
    assert np.mean([int(name) < 50 for name in kind.shares["gen"].top_ids]) > 0.6
    shares = {one.value: one.share_members for one in kind.evidence if one.source == "label"}
    assert 0.18 < shares["core"] < 0.5 < shares["rim"] < 0.82


def test_the_names_of_the_sets_do_not_change_the_kinds(planted):
    swapped = fe.kinds({"ref": blobs(1000, 2), "gen": blobs(1000, 1, novel=20)})
    assert swapped.detectable == planted.detectable
    ((kind,), (other,)) = (one.significant() for one in (planted, swapped))
    assert (kind.share_gen, kind.share_ref, kind.share_difference) == (0.02, 0, 0.02)
    assert (other.share_gen, other.share_ref, other.share_difference) == (0.02, 0, 0.02)
    assert swapped.difference == pytest.approx(planted.difference, abs=0.02)


def test_a_saved_result_comes_back_and_counts_later_sets_by_its_tree(planted, tmp_path):
    planted.save(tmp_path / "kinds.h5")
    back = fe.load(tmp_path / "kinds.h5")
    assert back.to_dict() == planted.to_dict()
    rows = blobs(500, 3)
    assert (back.assign(rows) == planted.assign(rows)).all()
    later = back.count({"same": rows, "novel": blobs(500, 4, novel=40)})
    assert later.divided.tree.digest == planted.divided.tree.digest
    (kind,) = later.significant()
    assert (kind.set_with_most, kind.id) == ("novel", planted.significant()[0].id)


def test_a_result_without_arrays_says_where_they_are(planted):
    read = fe.Kinds.from_dict(planted.to_dict())
    assert read.kinds == planted.kinds and read.shares["gen"].sum() == pytest.approx(1)
    with pytest.raises(fe.DataError, match=r"load its \.h5 file"):
        read.assign(blobs(5, 1))


def test_of_several_sets_each_is_tested_against_all_others():
    found = fe.kinds({"a": blobs(500, 1), "b": blobs(500, 2, novel=25), "c": blobs(800, 3)})
    assert {kind.set_with_most for kind in found.significant()} == {"b"}
    assert found.differences["b"].p_value < 0.05 < found.differences["a"].p_value
    assert found.difference == found.differences["b"].value


def test_what_one_of_several_sets_lacks_is_told():
    """Each of the other three has as much of it as the two others, and not more than all together."""
    rng, rows = np.random.default_rng(0), {label: blobs(400, seed) for seed, label in enumerate("abc")}
    for own in rows.values():
        own[:60] = CENTERS[20] + rng.normal(0, 1, (60, 80))
    found = fe.kinds(rows | {"less": blobs(400, 9)})
    (lacking,) = found.significant()
    assert (lacking.side, lacking.set_with_least, lacking.shares["less"].count) == ("least in less", "less", 0)
    assert lacking.set_with_most in rows
    assert lacking.interval[0] < lacking.difference < lacking.interval[1] < 0
    assert 0.12 < -lacking.difference < 0.16
    assert "less has significantly less of" in report.outline(found).headline
    two = fe.kinds({"a": rows["a"], "less": blobs(400, 9)})
    assert {one.set_with_least for one in two.kinds} == {None}


@pytest.mark.parametrize("counts, side", [((0, 45, 90), "least in a"), ((20, 20, 110), "most in c")])
def test_a_kind_is_told_once_by_the_set_that_it_sets_apart_most_clearly(counts, side):
    rng, rows = np.random.default_rng(5), {}
    for label, many in zip("abc", counts, strict=True):
        rows[label] = blobs(600, 50 + many)
        rows[label][:many] = CENTERS[20] + rng.normal(0, 1, (many, 80))
    found = fe.kinds(rows)
    assert found.significant()[0].side == side
    assert np.mean(found.assign(rows["c"])[: counts[2]] == 0) > 0.95


def test_a_sketch_is_counted_by_its_sample():
    gen, ref = blobs(600, 1, novel=60), blobs(600, 2)
    reference = fe.Sketch.reference(ref, features=50)
    small = fe.Sketch.of(ref, reference, sample=300)
    found = fe.kinds({"gen": gen, "ref": small})
    assert sum(kind.shares["ref"].count for kind in found.kinds) == 300
    assert "300 embeddings that it holds are counted, of 600 samples" in found.warnings[0]
    assert {kind.set_with_most for kind in found.significant()} == {"gen"}


def test_copies_are_not_evidence_once_they_are_grouped():
    """Each sample of gen five times, a little altered: without groups, copies of a rare one look like a kind."""
    once, ref = blobs(200, 1), blobs(1000, 2)
    gen = np.repeat(once, 5, 0)
    gen += np.random.default_rng(3).normal(scale=1e-3, size=gen.shape).astype(gen.dtype)
    told = fe.EmbeddingSet(gen, metadata={"source": np.repeat(np.arange(200), 5)})
    reference = fe.EmbeddingSet(ref, metadata={"source": np.arange(1000)})
    assert fe.kinds({"gen": gen, "ref": ref}).significant()
    found = fe.kinds({"gen": told, "ref": reference}, groups="source")
    assert not found.significant()
    assert found.difference_p_value > 0.05


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: fe.kinds({"a": blobs(100, 1)}), "at least two sets"),
        (lambda: fe.kinds({"": blobs(100, 1), "b": blobs(100, 2)}), "a set has an empty name"),
        (lambda: fe.kinds({"a": blobs(10, 1), "b": blobs(100, 2)}), "a has 10 samples"),
        (lambda: fe.kinds({"a": blobs(50, 1), "b": blobs(50, 2)[:, :9]}), "80 entries"),
        (lambda: fe.kinds({"a": blobs(50, 1), "b": blobs(50, 2)}).assign(blobs(50, 2)[:, :9]), "80 entries"),
        (lambda: fe.kinds({"a": blobs(50, 1), "b": blobs(50, 2)}, seed=-1), "seed must be"),
        (lambda: fe.kinds({"a": blobs(50, 1), "b": blobs(50, 2)}).significant(1.5), "alpha must"),
    ],
)
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(fe.FincEvalError, match=message):
        call()


def test_files_that_are_there_five_times_are_counted_once():
    copied, single = np.repeat(blobs(100, 1), 5, axis=0), blobs(500, 2)
    found = fe.kinds({"gen": copied, "ref": single})
    assert found.significant() == ()
    assert any("100 distinct samples among 500" in warning for warning in found.warnings)


def test_a_sketch_that_does_not_tell_its_groups_is_refused():
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    grouped = fe.EmbeddingSet(rows, metadata={"group": [str(place // 2) for place in range(200)]})
    sketch = fe.Sketch.reference(grouped, features=50, groups="group")
    assert fe.kinds({"gen": rows, "ref": sketch}).to_dict()
    sketch.sample.columns = {}  # as of a file of a version before
    with pytest.raises(fe.DataError, match="not which groups they are of: pass its embeddings"):
        fe.kinds({"gen": rows, "ref": sketch})


def test_few_groups_give_a_warning_and_hardly_any_are_refused():
    def in_groups(seed: int, size: int) -> fe.EmbeddingSet:
        return fe.EmbeddingSet(blobs(120, seed), metadata={"clip": [row // size for row in range(120)]})

    (note,) = fe.kinds({"a": in_groups(1, 10), "b": in_groups(2, 1)}, groups="clip").warnings
    assert note.startswith("the groups of a are so few or so large that its 120 samples are equivalent to 12 ")
    with pytest.raises(fe.DataError, match="the 120 samples of a lie in too few groups by clip, or nearly"):
        fe.kinds({"a": in_groups(1, 60), "b": in_groups(2, 1)}, groups="clip")
