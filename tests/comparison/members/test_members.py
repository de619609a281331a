"""Members of modes, told by their neighbors."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.comparison.inputs import open_sets
from finc_eval.comparison.members.neighbors import NEIGHBORS, Marks, MemberCount, Members, Neighborhood
from finc_eval.core.run import Run
from finc_eval.numerics.axes import PrincipalAxes
from finc_eval.sketches.folds import FoldChunks

CENTERS = 8 * np.eye(6)


def draw(shares, n, seed, spread=0.5):
    """Samples of separate kinds, and their kinds."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(len(shares), n, p=shares)
    return (CENTERS[kinds] + spread * rng.standard_normal((n, 6))).astype(np.float32), kinds


def neighborhood(own, other, marked, spread=0.1):
    """Samples around whole numbers: so many of either set at each, of which the first are marked."""
    rng = np.random.default_rng(0)
    places, is_own, is_marked = [], [], []
    for place, (mine, theirs, first) in enumerate(zip(own, other, marked, strict=True)):
        places += [place] * (mine + theirs)
        is_own += [1] * mine + [0] * theirs
        is_marked += [1] * first + [0] * (mine + theirs - first)
    rows = torch.tensor(np.array(places)[:, None] + spread * rng.standard_normal((len(places), 1)), dtype=torch.float32)
    weights = [1 / sum(own) if mine else -1 / sum(other) for mine in is_own]
    axes = PrincipalAxes(torch.zeros(1), torch.eye(1), 1.0)
    return Neighborhood.of(axes, rows, torch.tensor(is_marked).float()[:, None], torch.tensor(weights)[:, None])


def at(places):
    return torch.tensor(places, dtype=torch.float32)[:, None]


def test_samples_that_a_mode_misses_are_members_and_those_that_it_touches_are_not():
    # Half of a kind of one set alone is marked, and a fifth of one that both sets have.
    found = neighborhood(own=(60, 100, 100), other=(0, 130, 130), marked=(30, 20, 0))
    assert found.members(at([0.0, 0.05, -0.1, 1.0, 0.95, 2.0])).flatten().tolist() == [True] * 3 + [False] * 3


@pytest.mark.parametrize("marked", [3, 4])
def test_about_a_quarter_of_the_neighbors_of_the_set_must_be_marked(marked):
    for other in (0, NEIGHBORS // 4):  # those of the other set do not count
        found = neighborhood(own=(NEIGHBORS - other, 100), other=(other, 300), marked=(marked - other // 4, 0))
        assert bool(found.members(at([0.0]))) == (marked == 4)


def test_where_the_set_has_no_sample_there_is_no_member():
    found = neighborhood(own=(100, 0), other=(0, 100), marked=(100, 0))
    assert found.members(at([0.0, 1.0])).flatten().tolist() == [True, False]


def test_sets_of_unlike_sizes_prevail_as_those_of_one_size():
    found = neighborhood(own=(30, 70), other=(100, 900), marked=(20, 0))  # 30 % of one set, 10 % of the other
    assert bool(found.members(at([0.0])))
    found = neighborhood(own=(30, 70), other=(400, 600), marked=(20, 0))
    assert not found.members(at([0.0]))


@pytest.fixture(scope="module")
def sets():
    """gen has kind 0 alone, and kind 1 1.5 times as often."""
    shares = {"gen": [0.1, 0.3, 0.2, 0.2, 0.2, 0.0], "ref": [0.0, 0.2, 0.2, 0.3, 0.3, 0.0]}
    drawn = {label: draw(shares[label], 1500, seed) for seed, label in enumerate(shares)}
    rows = {label: rows for label, (rows, _) in drawn.items()}
    opened = open_sets(rows, ["ref"], fe.Settings(features=10), Run()).sets
    kinds = {
        label: kinds[[int(name) for name in opened[label].sketch.sample.ids]] for label, (_, kinds) in drawn.items()
    }
    return opened, kinds, {label: kinds for label, (_, kinds) in drawn.items()}


def marks_of(kinds, without=4):
    """The samples of kinds 0 and 1 of gen, but for every fourth."""
    chosen = torch.from_numpy(np.stack([kinds["gen"] == kind for kind in (0, 1)], 1))
    chosen[::without] = False
    blank = torch.zeros(len(kinds["ref"]), 2, dtype=torch.bool)
    return Marks({"gen": chosen, "ref": blank}, {"gen": torch.ones(2), "ref": -torch.ones(2)})


def test_members_are_the_samples_of_the_kind_in_both_sets(sets):
    opened, kinds, _ = sets
    told = Members.of(opened, marks_of(kinds))
    assert told.known.tolist() == [True, True]
    for label, one in opened.items():
        inside = told.of_sample(one).sample.numpy()
        for kind in (0, 1):
            assert np.mean(inside[:, kind] == (kinds[label] == kind)) > 0.98


def test_what_a_fold_marks_tells_members_of_the_other_alone(sets):
    opened, kinds, _ = sets
    marks = marks_of(kinds)
    first = opened["gen"].sample_folds == 0
    marks.samples["gen"][first] = False
    inside = Members.of(opened, marks).of_sample(opened["gen"]).sample
    assert inside[first].any() and not inside[~first].any()


def test_with_rho_a_kind_must_be_more_than_rho_times_as_frequent(sets):
    opened, kinds, _ = sets
    marks = marks_of(kinds)
    twice = Marks(marks.samples, {"gen": torch.ones(2), "ref": torch.full((2,), -20.0)})
    for given, both in ((marks, True), (twice, False)):
        found = Members.of(opened, given).of_sample(opened["gen"]).sample.any(0).tolist()
        # What lies around marked samples is allowed for, so that ρ alone makes nobody a member or not.
        assert found == [True, True] or not both


def test_members_of_a_whole_set_are_counted_in_one_pass(sets):
    opened, kinds, of_all = sets
    told = Members.of(opened, marks_of(kinds))
    one = opened["gen"]
    for portion in (97, 4096):
        counted = MemberCount(told)
        chunks = FoldChunks(portion)
        for batch in one.embeddings.batches(400):
            for chunk in chunks.add(batch.keys, batch.rows):
                counted.update(chunk)
        for chunk in chunks.rest():
            counted.update(chunk)
        assert counted.result().tolist() == told.of_sample(one).count.tolist()
    assert told.of_sample(one).count == pytest.approx([(of_all["gen"] == kind).sum() for kind in (0, 1)], rel=0.03)


def test_few_marks_tell_no_members(sets):
    opened, kinds, _ = sets
    told = Members.of(opened, marks_of(kinds, without=1))
    assert told.known.tolist() == [False, False]
    assert told.whole([0, 1]).known.tolist() == [False, False]


def test_few_samples_tell_no_members():
    rows = {label: draw([0.5, 0.5], 100, seed)[0] for seed, label in enumerate(("gen", "ref"))}
    opened = open_sets(rows, ["ref"], fe.Settings(features=10), Run()).sets
    blank = {label: torch.ones(100, 1, dtype=torch.bool) for label in rows}
    assert Members.of(opened, Marks(blank, {"gen": torch.ones(1), "ref": -torch.ones(1)})) is None


@pytest.fixture(scope="module")
def comparison():
    gen, _ = draw([0.1, 0.3, 0.3, 0.3, 0, 0], 1200, 2)
    ref, _ = draw([0, 0.3, 0.3, 0.2, 0.2, 0], 1200, 3)
    return fe.compare(gen, ref, features=200)


def test_members_among_fresh_samples(comparison, tmp_path):
    rows, kinds = draw([0.2, 0.2, 0.2, 0.2, 0.2, 0], 500, 4)
    found = [mode for mode in comparison.significant() if min(mode.share_gen, mode.share_ref) == 0]
    assert {mode.role for mode in found} == {"over", "under"}
    inside = comparison.members(rows, found)
    for column, mode in enumerate(found):
        kind = 0 if mode.role == "over" else 4
        assert np.mean(inside[:, column] == (kinds == kind)) > 0.99
    comparison.save(tmp_path / "c.h5")
    loaded = fe.load(tmp_path / "c.h5")
    np.testing.assert_array_equal(
        loaded.members(rows, [m for m in loaded.modes if m.id in {f.id for f in found}]), inside
    )
    assert comparison.tells_members().shape == (len(comparison.modes),)
    with pytest.raises(fe.UsageError, match="over-000000 is not a mode of this comparison"):
        comparison.members(rows, [replace(comparison.modes[0], id="over-000000")])


def test_a_kind_that_a_set_has_somewhat_more_often_keeps_its_share():
    shares = ([0.15, 0.07, 0.26, 0.26, 0.26], [0.1, 0.1, 0.27, 0.27, 0.26])
    gen, ref = (draw([*part, 0], 3000, seed)[0] for seed, part in enumerate(shares, 5))
    first = fe.compare(gen, ref, features=300).over[0]
    assert first.p_value <= 0.05
    assert (first.share_gen, first.share_ref) == pytest.approx((0.15, 0.1), abs=0.015)


def test_one_part_of_a_pass_is_as_the_whole(sets):
    opened, kinds, _ = sets
    told = Members.of(opened, marks_of(kinds))
    rows = opened["gen"].sketch.sample.rows
    whole = told.among(rows, 0)
    assert torch.equal(torch.cat([told.among(part, 0) for part in torch.split(rows, 100)]), whole)
