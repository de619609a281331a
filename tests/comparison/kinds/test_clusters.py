"""Clusters beside directions: what each finds, how they are joined, and that chance finds nothing."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.numerics.inference import critical_value, upper_tail
from finc_eval.partitions.overlap import distinct_kinds

CENTERS = 6 * np.random.default_rng(99).standard_normal((30, 16))


def tight(shares, n, seed, groups=1, jitter=0.0):
    """Samples of tight kinds, each drawn once and copied with jitter."""
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.choice(len(shares), n, p=shares)] + 0.5 * rng.standard_normal((n, 16))
    return (np.repeat(rows, groups, 0) + jitter * rng.standard_normal((groups * n, 16))).astype(np.float32)


def even(left_out=()):
    shares = np.ones(30)
    shares[list(left_out)] = 0
    return shares / shares.sum()


@pytest.fixture(scope="module")
def without_two():
    """gen lacks kinds 0 and 1, which are 10 % and 5 % of ref."""
    shares = 0.85 * even((0, 1)) + 0.1 * np.eye(30)[0] + 0.05 * np.eye(30)[1]
    return tight(even((0, 1)), 800, 0), tight(shares, 800, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_small_and_a_large_sample_of_one_law_do_not_differ(seed):
    found = fe.compare(tight(even(), 100, seed), tight(even(), 5000, 100 + seed), features=100, seed=seed)
    assert found.significant() == ()


@pytest.mark.parametrize("method", [fe.Finc(), "clusters"])
def test_a_small_novel_kind_is_found_by_clusters_with_its_share(method):
    rng = np.random.default_rng(0)
    gen, ref = (rng.standard_normal((1000, 64)).astype(np.float32) for _ in range(2))
    gen[:20] = rng.standard_normal((20, 64)) * 0.3 + 1.5
    found = fe.compare(gen, ref, method=method, features=100, modes=5)
    (mode,) = found.significant()
    assert mode.role == "over" and mode.found_by in ("clusters", "both")
    assert mode.share_gen == pytest.approx(0.02, abs=0.003) and mode.share_ref == 0
    assert mode.share_gen_interval[0] < 0.02 < mode.share_gen_interval[1]
    assert (mode.top_gen[:15] < 20).all()
    assert found.detectable <= 0.02
    assert set(found.score(gen[:20], [mode])[:, 0] > found.score(gen[20:], [mode]).max()) == {True}


def test_clusters_alone_fit_no_directions(without_two):
    found = fe.compare(*without_two, method="clusters", features=50)
    assert found.tested == 0 and found.clusters_tested > 0
    assert found.spectrum.over == found.spectrum.under == ()
    assert {mode.found_by for mode in found.modes} == {"clusters"}
    assert [mode.p_value <= 0.05 for mode in found.modes] == [True] * len(found.modes)
    shares = sorted(mode.share_ref for mode in found.under)[-2:]
    assert shares == pytest.approx([0.05, 0.1], abs=0.03)


def test_intervals_of_clusters_hold_together_at_their_part_of_the_level(without_two):
    found = fe.compare(*without_two, method="clusters", features=50)
    confidence = 1 - 2 * upper_tail(critical_value(found.clusters_tested))
    mode = found.under[0]
    assert mode.share_gen == 0
    assert mode.share_gen_interval[1] == pytest.approx(1 - ((1 - confidence) / 2) ** (1 / 800))


def test_what_both_find_is_one_mode_that_says_so(without_two):
    both, alone = (fe.compare(*without_two, features=200, method=fe.Finc(clusters=on)) for on in (True, False))
    first = both.under[0]
    assert first.found_by == "both" and first.stability is not None and first.threshold is not None
    assert first.share_ref == pytest.approx(0.1, abs=0.03) and first.share_gen < 0.01
    # Kind 0 stands once in the list.
    of_kind = [mode for mode in both.significant() if abs(both.feature_map(CENTERS[:1]).numpy() @ mode.direction) > 0.7]
    assert of_kind == [first]
    assert {mode.found_by for mode in alone.modes} == {"directions"}
    assert (alone.clusters_tested, alone.detectable) == (0, None) and alone.difference == both.difference


def test_a_large_kind_that_many_clusters_cut_in_pieces_is_one_mode():
    centers = 10 * np.eye(4)
    gen, ref = (
        (centers[np.random.default_rng(k).choice(4, 1500, p=p)] + 0.1 * np.random.default_rng(k).normal(size=(1500, 4)))
        for k, p in enumerate(([0.4, 0.2, 0.2, 0.2], [0.1, 0.3, 0.3, 0.3]))
    )
    found = fe.compare(gen, ref, features=100, sigma=3.0)
    # No cluster is left beside its direction.
    assert {mode.found_by for mode in found.significant()} <= {"directions", "both"}
    kind = found.feature_map(centers[:1]).numpy()[0]
    likeness = [float(kind @ mode.direction) ** 2 for mode in found.over]
    (mode,) = [mode for mode, like in zip(found.over, likeness, strict=True) if like > 0.5]
    assert mode.found_by == "both" and mode.share_gen == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize("seed", [6, 14])  # where counting all samples as independent leaves a piece beside its kind
def test_copies_in_groups_do_not_make_a_piece_a_kind_of_its_own(seed):
    sets, groups = [], {"group": [str(row // 3) for row in range(1500)]}
    for number, shares in enumerate(([0.4, 0.2, 0.2, 0.2], [0.1, 0.3, 0.3, 0.3])):
        rng = np.random.default_rng([seed, number])
        rows = 10 * np.eye(4)[rng.choice(4, 500, p=shares)] + 0.1 * rng.normal(size=(500, 4))
        rows = np.repeat(rows, 3, 0) + 0.02 * rng.normal(size=(1500, 4))
        sets.append(fe.EmbeddingSet(rows.astype(np.float32), metadata=groups))
    found = fe.compare(*sets, features=100, sigma=3.0, groups="group")
    assert {mode.found_by for mode in found.significant()} <= {"directions", "both"}


def test_kinds_that_a_direction_blends_stand_beside_it():
    # Kinds 4 and 5, of gen alone, lie near kind 0, of which both sets have equally many: one direction holds all three.
    # Some samples of kind 0 have more of gen around them by chance.
    centers = 10 * np.eye(4)[[0, 1, 2, 3, 0, 0]] + np.eye(6, 4, k=-3)
    gen, ref = (
        centers[np.random.default_rng(k).choice(6, 1500, p=p)] + 0.1 * np.random.default_rng(k).normal(size=(1500, 4))
        for k, p in enumerate(([0.1, 0.25, 0.25, 0.2, 0.1, 0.1], [0.1, 0.3, 0.3, 0.3, 0, 0]))
    )
    blend, *kinds = fe.compare(gen, ref, features=100, sigma=3.0, modes=2).over
    assert blend.found_by == "directions" and 0.2 < blend.share_gen < 0.27
    assert [mode.share_gen for mode in kinds] == pytest.approx([0.1, 0.1], abs=0.02)
    assert [mode.share_ref for mode in kinds] == [0, 0]


def test_a_whole_kind_is_kept_rather_than_its_pieces():
    # Kind 0 is made of 1 and 2, whose evidence together is that of the whole.
    shared = np.array([[20.0, 10, 10], [10, 10, 0], [10, 0, 10]])
    assert distinct_kinds(np.array([1e-8, 1e-4, 1e-4]), np.arange(3), shared).tolist() == [0]


def test_pieces_are_kept_rather_than_a_mixture_of_them():
    # Both pieces have strong evidence of their own; the mixture of them and of others has less.
    shared = np.array([[60.0, 20, 20], [20, 20, 0], [20, 0, 20]])
    assert sorted(distinct_kinds(np.array([1e-6, 1e-9, 1e-9]), np.arange(3), shared).tolist()) == [1, 2]


def test_a_sketch_as_reference_finds_nearly_what_embeddings_find(without_two):
    gen, ref = without_two
    direct, sketched = (fe.compare(gen, one, features=200) for one in (ref, fe.Sketch.reference(ref, features=200)))
    assert len(sketched.significant()) >= 0.7 * len(direct.significant()) > 0
    assert sketched.significant()[0].role == direct.significant()[0].role
    for mine, other in zip(sketched.under[:2], direct.under[:2], strict=True):
        assert mine.share_ref == pytest.approx(other.share_ref, abs=0.01)
        assert mine.share_gen == pytest.approx(other.share_gen, abs=0.01)
    assert sketched.difference == pytest.approx(direct.difference, abs=0.01)


@pytest.mark.parametrize("as_sketch", [False, True])
def test_groups_that_are_told_give_no_false_modes_where_copies_that_are_not_told_do(as_sketch):
    told, untold = 0, 0
    for seed in range(2):
        gen, ref = (tight(even(), 80, 10 * seed + k, groups=5, jitter=0.3) for k in range(2))
        clip = {"clip": [row // 5 for row in range(len(gen))]}
        gen, ref = (fe.EmbeddingSet(rows, metadata=clip) for rows in (gen, ref))
        untold += len(fe.compare(gen, ref, features=100).significant())
        other = fe.Sketch.reference(ref, features=100, groups="clip") if as_sketch else ref
        told += len(fe.compare(gen, other, features=100, groups="clip").significant())
    assert told == 0 < untold


def test_a_sketch_of_grouped_samples_has_no_clusters_and_says_so():
    rows = tight(even(), 60, 0, groups=3, jitter=0.3)
    one = fe.EmbeddingSet(rows, metadata={"clip": [row // 3 for row in range(len(rows))]})
    sketch = fe.Sketch.reference(one, features=50, groups="clip")
    found = fe.compare(one, sketch, groups="clip")
    assert found.settings.method == fe.Finc(clusters=False) and found.difference is None
    assert any("the sketch of ref keeps too few samples" in note for note in found.warnings)
    with pytest.raises(fe.DataError, match="not which groups they are of"):
        fe.compare(one, sketch, groups="clip", method="clusters")


@pytest.mark.parametrize("n", [20, 40])
def test_two_small_sets_of_one_cluster_each_are_told_apart(n):
    """At 20 against 20, the expected number of tests that could become significant rounds to 0."""
    near, far = np.zeros((20, 4)), np.full((n, 4), 50.0)
    noise = np.random.default_rng(0).normal(size=(20 + n, 4))
    found = fe.compare(near + noise[:20], far + noise[20:], method="clusters", features=50)
    significant = found.significant()
    assert {mode.role for mode in significant} == {"over", "under"}
    assert all(min(mode.share_gen, mode.share_ref) == 0 for mode in significant)
    assert sum(mode.share_gen for mode in significant) == 1
