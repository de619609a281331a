"""Kinds of a comparison: shares that add up, what is found and what is not, FINC alone, files, order of the samples."""

import numpy as np
import pytest
from _files import forge
from _portions import portions_of

import finc_eval as fe
from finc_eval.comparison import compare as comparing
from finc_eval.comparison.headline import details
from finc_eval.numerics.inference import significant

CENTERS = 6 * np.random.default_rng(99).standard_normal((30, 16))


def tight(shares, n, seed, groups=1, jitter=0.0):
    """Samples of tight kinds, each drawn once and copied with jitter."""
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.choice(len(shares), n, p=shares)] + 0.5 * rng.standard_normal((n, 16))
    return (np.repeat(rows, groups, 0) + jitter * rng.standard_normal((groups * n, 16))).astype(np.float32)


def nested(shares, n, seed):
    """Samples of three distant places with four tight kinds each."""
    rng = np.random.default_rng(5)
    centers = (8 * rng.standard_normal((3, 24))).repeat(4, 0) + 2 * rng.standard_normal((12, 24))
    rng = np.random.default_rng(seed)
    which = rng.choice(12, n, p=np.array(shares) / sum(shares))
    return (centers[which] + 0.5 * rng.standard_normal((n, 24))).astype(np.float32), which


def even(left_out=()):
    shares = np.ones(30)
    shares[list(left_out)] = 0
    return shares / shares.sum()


@pytest.fixture(scope="module")
def without_two():
    """gen lacks kinds 0 and 1, which are 10 % and 5 % of ref."""
    shares = 0.85 * even((0, 1)) + 0.1 * np.eye(30)[0] + 0.05 * np.eye(30)[1]
    return tight(even((0, 1)), 600, 0), tight(shares, 600, 1)


@pytest.fixture(scope="module")
def found(without_two):
    return fe.compare(*without_two, features=100)


@pytest.fixture(scope="module")
def of_kinds(without_two):
    """The same without directions."""
    return fe.compare(*without_two, method="clusters", features=50)


def test_the_shares_of_all_kinds_add_to_one(found):
    for label in ("gen", "ref"):
        assert sum(kind.shares[label].share for kind in found.kinds) == pytest.approx(1)
        assert sum(kind.shares[label].count for kind in found.kinds) == 600
    assert sum(kind.share_difference for kind in found.kinds) == pytest.approx(0, abs=1e-12)


def test_no_two_kinds_overlap_and_a_heading_is_the_sum_of_its_kinds():
    (gen, _), (ref, in_ref) = nested([0, 2, 0, 4] + [8] * 8, 800, 0), nested([8] * 12, 800, 1)
    found = fe.compare(gen, ref, method="clusters", features=50)
    tree = found.divided.tree.tree
    leaves = {kind.id: tree.members[int(kind.id[1:])] for kind in (*found.kinds, *found.headings)}
    assert sum(leaves[kind.id].astype(int) for kind in found.kinds).tolist() == [1] * tree.leaves
    by_id = {kind.id: kind for kind in found.kinds}
    assert found.headings and found.kinds[: len(found.significant())] == found.significant()
    for heading in found.headings:
        inside = [by_id[name] for name in heading.children]
        assert {kind.share_difference > 0 for kind in inside} == {heading.share_difference > 0}
        assert all(kind.p_value <= 0.05 and not (leaves[kind.id] & ~leaves[heading.id]).any() for kind in inside)
        assert sum(kind.share_gen for kind in inside) <= heading.share_gen + 1e-12
    places = found.assign(ref)
    for place, kind in enumerate(found.significant()):
        most = np.bincount(in_ref[places == place]).max() / kind.shares["ref"].count
        assert most > 0.9 or kind.share_difference > 0


def test_assigned_samples_are_the_counted_ones_also_from_a_file(found, without_two, tmp_path):
    found.save(tmp_path / "c.h5")
    loaded = fe.load(tmp_path / "c.h5")
    for label, rows in zip(("gen", "ref"), without_two, strict=True):
        places = found.assign(rows)
        counts = np.bincount(places, minlength=len(found.kinds))
        assert counts.tolist() == [kind.shares[label].count for kind in found.kinds]
        assert (loaded.assign(rows) == places).all()
        for place, kind in enumerate(found.kinds):
            shown = [*kind.shares[label].top, *kind.shares[label].drawn]
            assert set(places[shown]) <= {place}
    assert loaded.to_dict() == found.to_dict()


def test_fresh_samples_of_a_planted_kind_are_of_the_kind_that_shows_it(found):
    fresh = tight(np.eye(30)[0], 100, 5)
    (place,) = set(found.assign(fresh).tolist())
    kind = found.kinds[place]
    assert kind in found.significant() and kind.share_gen == 0
    assert kind.share_ref == pytest.approx(0.1, abs=0.03)


def test_kinds_of_other_embeddings_are_refused(found):
    with pytest.raises(fe.IncompatibleError, match="the kinds divide embeddings of 16 entries"):
        found.assign(np.zeros((5, 7), np.float32))


@pytest.mark.parametrize("result", ["found", "of_kinds"])
def test_planted_kinds_are_found_with_their_shares_and_what_they_explain(result, request):
    found = request.getfixturevalue(result)
    first, second = found.significant()[:2]
    assert (first.share_gen, second.share_gen) == (0, 0)
    assert (first.share_ref, second.share_ref) == pytest.approx((0.1, 0.05), abs=0.025)
    for kind in found.significant():
        low, high = kind.share_difference_interval
        assert low <= kind.share_difference <= high and (low > 0 or high < 0)
        assert kind.shares["ref"].interval[0] < kind.share_ref < kind.shares["ref"].interval[1]
    assert 0 < found.explained <= found.difference
    assert found.difference_interval[0] <= found.difference <= found.difference_interval[1]


def test_the_intervals_of_all_kinds_hold_together(of_kinds):
    kind = of_kinds.significant()[0]
    # Both shares and the difference of every node of the tree, by Bonferroni.
    confidence = 1 - 0.05 / (3 * of_kinds.kinds_tested)
    assert kind.share_gen == 0
    assert kind.shares["gen"].interval[1] == pytest.approx(1 - ((1 - confidence) / 2) ** (1 / 600))


def test_kinds_alone_fit_no_directions(of_kinds):
    assert of_kinds.tested == 0 and of_kinds.kinds_tested > len(of_kinds.kinds)
    assert of_kinds.spectrum.over == of_kinds.spectrum.under == of_kinds.directions == ()
    assert of_kinds.significant() and "direction" not in of_kinds.headline


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_a_small_and_a_large_sample_of_one_law_do_not_differ(seed):
    found = fe.compare(tight(even(), 100, seed), tight(even(), 1000, 100 + seed), features=60, seed=seed)
    assert found.significant() == significant(found.directions, 0.05) == ()
    assert found.explained == 0 and found.headings == ()


@pytest.mark.one_of_each
@pytest.mark.parametrize("method", ["clusters", fe.Finc()])
def test_a_small_novel_kind_is_found_with_its_share(method):
    rng = np.random.default_rng(0)
    gen, ref = (rng.standard_normal((1000, 64)).astype(np.float32) for _ in range(2))
    gen[:20] = rng.standard_normal((20, 64)) * 0.3 + 1.5
    found = fe.compare(gen, ref, method=method, features=50, modes=2)
    kind = min(found.significant(), key=lambda kind: kind.share_gen)
    assert kind.share_gen == pytest.approx(0.02, abs=0.003) and kind.share_ref == 0
    assert kind.shares["gen"].interval[0] < 0.02 < kind.shares["gen"].interval[1]
    assert max(kind.shares["gen"].top[:15]) < 20
    assert found.detectable <= 0.02
    # All other samples are no kind that gen has less of.
    assert found.significant() == (kind,)


def test_a_large_kind_is_told_whole():
    centers = 10 * np.eye(4)
    gen, ref = (
        (centers[np.random.default_rng(k).choice(4, 600, p=p)] + 0.1 * np.random.default_rng(k).normal(size=(600, 4)))
        for k, p in enumerate(([0.4, 0.2, 0.2, 0.2], [0.1, 0.3, 0.3, 0.3]))
    )
    found = fe.compare(gen, ref, method="clusters", features=50, sigma=3.0)
    largest = max((*found.headings, *found.significant()), key=lambda kind: kind.share_difference)
    assert (largest.share_gen, largest.share_ref) == pytest.approx((0.4, 0.1), abs=0.05)


def test_both_kinds_and_directions_show_what_is_planted_and_point_to_each_other(found):
    first, ids = found.significant()[0], {kind.id for kind in found.kinds}
    assert all(set(mode.kinds) <= ids for mode in found.directions)
    shows = [mode for mode in found.under if mode.kinds[:1] == (first.id,)]
    assert shows and shows[0].shown_by_kinds and shows[0].p_value <= 0.05
    assert shows[0].share_ref == pytest.approx(0.1, abs=0.03) and shows[0].share_gen < 0.01


@pytest.mark.parametrize("options", [{"rotation": None, "clusters": False}, {"clusters": False}])
def test_finc_alone_divides_nothing_says_nothing_of_kinds_and_has_the_same_directions(
    options, without_two, found, monkeypatch
):
    monkeypatch.setattr(comparing, "divide", lambda *_, **__: pytest.fail("the samples were divided"))
    alone = fe.compare(*without_two, features=100, method=fe.Finc(**options))
    assert alone.directions and (alone.kinds, alone.headings, alone.kinds_tested) == ((), (), 0)
    assert (alone.difference, alone.explained, alone.detectable) == (None, None, None)
    assert not any(mode.kinds or mode.shown_by_kinds for mode in alone.directions)
    assert "direction" in alone.headline and "kind" not in alone.headline
    with pytest.raises(fe.UsageError, match="the comparison has no kinds: compare embeddings, with clusters"):
        alone.assign(without_two[0])
    if "rotation" not in options:
        assert [mode.id for mode in alone.directions] == [mode.id for mode in found.directions]
        assert [mode.excess for mode in alone.directions] == [mode.excess for mode in found.directions]


@pytest.mark.parametrize("case", ["a shift along an axis", pytest.param("less brightness", marks=pytest.mark.long)])
def test_a_drift_of_all_samples_is_found_by_directions_and_told_as_one(digits, case, monkeypatch):
    """Kinds are told by the directions of embeddings, so what all samples share is of none of them."""
    monkeypatch.setattr("finc_eval.numerics.eigen.MAX_STEPS", 500)  # with fewer steps, directions do not show the drift
    if case == "less brightness":
        x = digits[0]
        gen, ref = x[1200:2400] * np.float32(0.75), x[2400:3600]
    else:
        gen, ref = (np.random.default_rng(seed).standard_normal((1200, 32)) for seed in (2, 3))
        axis = np.random.default_rng(7).standard_normal(32)
        gen = gen + 0.8 * axis / np.linalg.norm(axis)
    found = fe.compare(gen, ref, features=100)
    drifts = [mode for mode in significant(found.directions, 0.05) if mode.firm and not mode.shown_by_kinds]
    assert found.significant() == () and drifts
    assert "sets" in found.says
    assert any(mode.title in details(found)["drifts"] for mode in drifts)


def test_the_order_of_the_rows_and_the_portions_do_not_change_the_kinds(without_two):
    gen, ref = (rows[:300] for rows in without_two)
    names, order = [f"{place}.png" for place in range(300)], np.random.default_rng(0).permutation(300)
    one = fe.compare(fe.EmbeddingSet(gen, names), ref, method="clusters", features=50)
    with portions_of(97):
        again = fe.EmbeddingSet(gen[order], [names[place] for place in order])
        two = fe.compare(again, ref, method="clusters", features=50, run=fe.Run(batch_size=7, workers=1))
    assert [(kind.id, kind.share_gen, kind.p_value) for kind in one.kinds] == [
        (kind.id, kind.share_gen, kind.p_value) for kind in two.kinds
    ]
    assert (one.assign(gen)[order] == two.assign(gen[order])).all()


def test_another_seed_gives_another_division_and_the_same_finding(without_two, found):
    other = fe.compare(*without_two, method="clusters", features=50, seed=1)
    assert other.divided.tree.seed == 1 and found.divided.tree.seed == 0
    assert [kind.share_ref for kind in other.significant()[:2]] == pytest.approx(
        [kind.share_ref for kind in found.significant()[:2]], abs=0.01
    )


def beyond_the_kinds(_, arrays):
    arrays["kinds/place"][0] = 10_000


def places_too_few(_, arrays):
    arrays["kinds/place"] = arrays["kinds/place"][:-1]


def joins_in_a_circle(_, arrays):
    arrays["kinds/joins"][0] = len(arrays["kinds/leaf"]) + 5


def no_tree(_, arrays):
    for name in [name for name in arrays if name.startswith("kinds/")]:
        del arrays[name]


@pytest.mark.parametrize("damage", [beyond_the_kinds, places_too_few, joins_in_a_circle, no_tree])
def test_a_comparison_whose_tree_of_kinds_is_damaged_is_refused(found, tmp_path, damage):
    found.save(tmp_path / "c.h5")
    forge(tmp_path / "c.h5", damage)
    with pytest.raises(fe.DataError, match=r"c\.h5 is damaged"):
        fe.load(tmp_path / "c.h5")


@pytest.mark.one_of_each
@pytest.mark.parametrize("as_sketch", [False, True])
def test_groups_that_are_told_give_no_false_kinds_where_copies_that_are_not_told_do(as_sketch):
    gen, ref = (tight(even(), 60, k, groups=5, jitter=0.3) for k in range(2))
    clip = {"clip": [row // 5 for row in range(len(gen))]}
    gen, ref = (fe.EmbeddingSet(rows, metadata=clip) for rows in (gen, ref))
    assert fe.compare(gen, ref, method="clusters", features=60).significant()
    other = fe.Sketch.reference(ref, features=60, groups="clip") if as_sketch else ref
    grouped = fe.compare(gen, other, features=60, groups="clip")
    assert grouped.significant() == significant(grouped.directions, 0.05) == ()


def test_a_sketch_as_reference_finds_nearly_what_embeddings_find(without_two, found):
    gen, ref = without_two
    sketched = fe.compare(gen, fe.Sketch.reference(ref, features=50), method="clusters")
    for mine, other in zip(sketched.significant()[:2], found.significant()[:2], strict=True):
        assert mine.share_ref == pytest.approx(other.share_ref, abs=0.01)
        assert mine.share_gen == pytest.approx(other.share_gen, abs=0.01)
    assert sketched.difference == pytest.approx(found.difference, abs=0.01)


def test_a_sketch_that_does_not_know_its_groups_has_no_kinds_and_says_so():
    rows = tight(even(), 60, 0, groups=3, jitter=0.3)
    one = fe.EmbeddingSet(rows, metadata={"clip": [row // 3 for row in range(len(rows))]})
    sketch = fe.Sketch.reference(one, features=50, groups="clip")
    assert fe.compare(one, sketch, groups="clip").kinds
    sketch.sample.columns = {}  # as of a file of a version before
    found = fe.compare(one, sketch, groups="clip")
    assert found.settings.method == fe.Finc(clusters=False) and found.difference is None and found.kinds == ()
    assert any("the sketch of ref keeps too few samples to divide into kinds" in note for note in found.warnings)
    with pytest.raises(fe.DataError, match="or not their groups"):
        fe.compare(one, sketch, groups="clip", method="clusters")


@pytest.mark.parametrize("n", [20, 40])
def test_two_small_sets_of_one_kind_each_are_told_apart(n):
    """At 20 against 20, the expected number of tests that could become significant rounds to 0."""
    noise = np.random.default_rng(0).normal(size=(20 + n, 4))
    near, far = noise[:20] + 50 * np.eye(4)[0], noise[20:] + 50 * np.eye(4)[1]
    found = fe.compare(near, far, method="clusters", features=50).significant()
    assert {kind.share_difference > 0 for kind in found} == {True, False}
    assert all(min(kind.share_gen, kind.share_ref) == 0 for kind in found)
    assert sum(kind.share_gen for kind in found) == 1
