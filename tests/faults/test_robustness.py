"""Inputs that nobody would choose: each gets a right answer, or one clear error."""

import numpy as np
import pytest
from faults._planted import CENTERS, check_planted, compared, differing, draw, normal

import finc_eval as fe


def test_the_planted_kinds_are_found_where_nothing_is_wrong(usual):
    check_planted(usual)


ONE = normal(1, 6)
FEW = "has 1 sample: a comparison needs at least 20 of each set"
NO_SIGMA = "the median distance of the reference embeddings is 0, so no bandwidth follows from it: .*pass sigma"
NOT_FINITE = r"the embedding in row 3 is not finite \(NaN or Inf\): leave it out"


def with_value(value):
    rows = normal(60, 6)
    rows[3, 2] = value
    return rows


@pytest.mark.parametrize(
    ("gen", "ref", "settings", "message"),
    [
        (ONE, normal(50, 6), {}, f"gen {FEW}"),
        (normal(50, 6), ONE, {}, f"ref {FEW}"),
        (ONE, ONE, {"sigma": 1.0}, f"gen {FEW}"),
        (ONE, ONE, {"kernel": "cosine"}, f"gen {FEW}"),
        (np.ones((60, 6), np.float32), np.ones((60, 6), np.float32), {}, NO_SIGMA),
        (normal(60, 6), np.repeat(ONE, 1000, 0), {}, NO_SIGMA),
        (with_value(np.nan), normal(60, 6), {}, f"gen: {NOT_FINITE}"),
        (normal(60, 6), with_value(np.nan), {}, f"ref: {NOT_FINITE}"),
        (with_value(np.inf), normal(60, 6), {}, f"gen: {NOT_FINITE}"),
        (with_value(1e30).astype(np.float64) * 1e30, normal(60, 6), {}, r"gen: .* the entry 1e\+60, more than float32"),
        (normal(60, 6), normal(60, 6), {"rho": 0}, "rho must be a positive number, got 0"),
        (normal(60, 6), normal(60, 6), {"rho": 1e300}, r"rho must be at most 100, got 1e\+300"),
        (np.zeros((60, 6), np.float32), normal(60, 6), {"kernel": "cosine"}, "an embedding is zero"),
        (
            np.ones((60, 20_000), "f4"),
            np.ones((60, 20_000), "f4"),
            {"kernel": "cosine"},
            "1 to 16384 entries, got 20000",
        ),
        (normal(60, 6).ravel(), normal(60, 6), {}, r"gen must be embeddings of shape \(n, d\), got shape \(360,\)"),
    ],
)
def test_what_cannot_be_answered_is_one_clear_error(gen, ref, settings, message):
    with pytest.raises(fe.FincEvalError, match=message) as caught:
        compared(gen, ref, **settings)
    assert "\n" not in str(caught.value)


def test_fewer_samples_than_modes_are_no_error():
    found = compared(normal(25, 6), normal(30, 6, 1), modes=100)
    assert 0 < len(found.over) <= 55
    assert found.significant() == ()


@pytest.mark.long
def test_few_features_are_no_error(planted):
    for features in (1, 3):
        found = compared(*planted, features=features)
        assert len(found.over) <= 2 * features


def test_one_constant_in_both_sets_is_no_difference():
    constant = np.ones((100, 6), np.float32)
    found = compared(constant, constant[:70], sigma=1.0)
    assert found.directions == found.significant() == ()
    assert any("sigma 1 is too large" in warning for warning in found.warnings)


@pytest.mark.parametrize("settings", [{"sigma": 1.0}, {"kernel": "cosine"}])
def test_two_constants_are_one_mode_each(settings):
    first, second = (np.tile(np.float32(row), (200, 1)) for row in ([0.3, 0.7, -0.2, 0.9], [2.1, -0.9, 0.9, 0.2]))
    found = compared(first, second, **settings)
    assert sorted(kind.share_difference for kind in found.significant()) == [-1, 1]
    assert [mode.role for mode in differing(found)] == ["over", "under"]
    for mode in found.directions:
        own, other = (mode.mass_gen, mode.mass_ref) if mode.role == "over" else (mode.mass_ref, mode.mass_gen)
        assert own > 0.98
        assert other < 0.02


def test_masses_do_not_exceed_one_by_rounding():
    for seed in range(2):
        a, b = normal(2, 4, seed)
        b -= a * (a @ b) / (a @ a)
        # Cosine features of vectors at right angles: each set has all of its mass, 1 up to rounding, on its mode.
        found = compared(np.tile(a, (40, 1)), np.tile(b, (40, 1)), kernel="cosine")
        assert found.over[0].mass_gen == pytest.approx(1, abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("n", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_generated_set_of_copies_is_one_mode(n):
    ref = normal(500, 6)
    found = compared(np.repeat(ref[:1], n, 0), ref)
    (mode,) = found.over
    assert mode.mass_gen > 0.98
    assert mode.p_value < 1e-12
    # What of the reference lies near the copied sample is a member, too; far away nothing is.
    assert mode.share_gen == 1
    assert 0.7 < mode.share_difference < 1
    (mode,) = compared(np.repeat(ref[:1] + 10, n, 0), ref).over
    assert mode.excess == pytest.approx(1, abs=0.02)
    assert (mode.share_gen, mode.share_ref) == (1, 0)


@pytest.mark.long
def test_a_reference_of_copies_has_a_right_answer_under_a_given_bandwidth():
    gen = normal(500, 6)
    found = compared(gen, np.repeat(gen[:1], 3000, 0), sigma=2.0)
    (mode,) = found.under
    assert mode.mass_ref > 0.95
    assert mode.p_value < 1e-12
    assert found.over


@pytest.mark.long
def test_a_set_and_its_copies_do_not_differ(planted):
    gen, _ = planted
    found = compared(np.concatenate([gen, gen]), gen)
    assert found.significant() == () and not differing(found)
    assert all(abs(mode.excess) < 1e-3 for mode in found.directions)


@pytest.mark.long
def test_embeddings_of_one_entry_are_enough_for_two_clusters():
    rng = np.random.default_rng(0)

    def clusters(share, n):
        return (5.0 * (rng.random(n) < share) + 0.3 * rng.standard_normal(n)).astype(np.float32)[:, None]

    gen, ref = clusters(0.3, 800), clusters(0.5, 1000)
    found = compared(gen, ref, sigma=1.5)
    over, under = (next(mode for mode in differing(found) if mode.role == role) for role in ("over", "under"))
    assert (np.abs(gen[over.top_gen]) < 2).all()
    assert (np.abs(ref[under.top_ref] - 5) < 2).all()
    lower = (gen < 2.5).mean(), (ref < 2.5).mean()
    assert (over.mass_gen, over.mass_ref) == pytest.approx(lower, abs=0.05)
    assert (under.mass_gen, under.mass_ref) == pytest.approx(1 - np.array(lower), abs=0.05)
    assert differing(compared(gen, ref))[0].p_value < 1e-6  # whatever the bandwidth that follows from the reference


@pytest.mark.long
def test_more_entries_than_samples_are_no_error():
    ref, gen = normal(60, 1000), normal(60, 1000, 1)
    same = compared(gen, ref, features=50)
    assert same.significant() == () and not differing(same)
    gen[:30] = 3 + 0.1 * gen[:30]
    found = compared(gen, ref, features=50)
    (mode,) = (one for one in differing(found) if one.role == "over")
    assert set(mode.top_gen[:30]) == set(range(30))
    assert (mode.mass_gen, mode.mass_ref) == pytest.approx((0.5, 0), abs=0.05)


@pytest.mark.long  # a high ρ: test_compare.py
def test_the_largest_rho_is_passed_by_nothing_and_a_larger_one_refused(planted):
    assert compared(*planted, rho=100, features=60).significant() == ()
    with pytest.raises(fe.UsageError, match=r"rho must be at most 100, got 1e\+09"):
        compared(*planted, rho=1e9)


@pytest.mark.long
def test_a_tiny_rho_asks_whether_a_kind_exists_at_all(planted):
    found = compared(*planted, rho=1e-6)
    assert found.over[0].excess == pytest.approx(found.over[0].mass_gen, abs=1e-5)
    assert found.over[0].mass_gen == pytest.approx(0.4, abs=0.06)


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [
        pytest.param("gaussian", 2.0**-100, id="gaussian-small"),
        pytest.param("cosine", 2.0**100, id="cosine-large", marks=pytest.mark.long),
        pytest.param("gaussian", 2.0**100, id="gaussian-large", marks=pytest.mark.long),
        pytest.param("cosine", 2.0**-100, id="cosine-small", marks=pytest.mark.long),
    ],
)
def test_the_unit_of_the_embeddings_does_not_matter(planted, usual, scale, kernel):
    plain = usual if kernel == "gaussian" else compared(*planted, kernel=kernel)
    scaled = compared(*(rows * np.float32(scale) for rows in planted), kernel=kernel)
    assert scaled.difference == pytest.approx(plain.difference, abs=0.02)
    assert [kind.shares for kind in scaled.kinds] == [kind.shares for kind in plain.kinds]
    mine, others = differing(scaled), differing(plain)
    assert [mode.id for mode in mine] == [mode.id for mode in others]
    for one, other in zip(mine, others, strict=True):
        assert one.excess == pytest.approx(other.excess, abs=1e-4)
        assert one.p_value == pytest.approx(other.p_value, abs=1e-3)
    if kernel == "gaussian":
        check_planted(scaled, scale)
        assert scaled.kernel_error.rms == pytest.approx(plain.kernel_error.rms, rel=1e-3)


@pytest.mark.long
def test_sets_of_quite_unlike_scales_differ_in_everything(planted):
    gen, ref = planted
    for found in (compared(gen[:300] * np.float32(1e30), ref[:300]), compared(gen[:300], ref[:300] * np.float32(1e30))):
        assert found.significant()
        assert {kind.share_difference > 0 for kind in found.significant()} == {True, False}
        assert {mode.role for mode in differing(found)} == {"over", "under"}


@pytest.mark.parametrize("place", [0, pytest.param(1, marks=pytest.mark.long)])
def test_one_enormous_outlier_changes_nothing(planted, place):
    sets = [rows.copy() for rows in planted]
    sets[place][7] *= 1e6
    check_planted(compared(*sets))


@pytest.mark.long  # as arrays of float64 do: test_compare.py
def test_embeddings_in_half_precision_give_the_same_modes(planted, usual):
    half = compared(*(rows.astype(np.float16) for rows in planted))
    check_planted(half)
    pairs = zip(differing(usual)[:2], differing(half)[:2], strict=True)
    assert all(mine.excess == pytest.approx(other.excess, abs=1e-3) for mine, other in pairs)


LOOSE = np.array([0.3, 1.3, 0.3, 1.3, 0.3])
"""Spreads under which samples of two of the four kinds that differ resemble each other little."""


@pytest.mark.long
def test_shares_are_near_the_truth_where_the_mass_is_far_below_it():
    shares_gen, shares_ref = np.array([[0.3, 0.3, 0.05, 0.05, 0.3], [0.1, 0.1, 0.25, 0.25, 0.3]])
    gen, ref = draw(shares_gen, 3000, 0, LOOSE), draw(shares_ref, 3000, 1, LOOSE)
    found = compared(gen, ref, sigma=2.5, features=400, method=fe.Finc(clusters=False))
    kinds = {}
    for mode in differing(found):
        likeness = (found.feature_map(CENTERS).numpy() @ mode.direction) ** 2
        kinds.setdefault((mode.role, int(likeness.argmax())), mode)
    for role, kind in (("over", 0), ("over", 1), ("under", 2), ("under", 3)):
        assert kinds[role, kind].share_difference == pytest.approx(shares_gen[kind] - shares_ref[kind], rel=0.35)
    for key in (("over", 1), ("under", 3)):
        assert kinds[key].excess < 0.1


def test_equal_sets_have_shares_that_do_not_differ(digits):
    x = digits[0]
    found = compared(x[:600, ::4], x[600:1200, ::4], features=100)
    assert found.significant() == () and not differing(found)
    for one in (*found.kinds, *found.directions):
        low, high = one.share_difference_interval
        assert low <= 0 <= high and abs(one.share_difference) < 0.1


def test_planted_kinds_are_stable_and_the_noise_of_two_halves_is_not(usual, digits):
    stable = [mode.stability for mode in differing(usual) if mode.excess > 0.03 and mode.stability is not None]
    assert min(stable) > 0.95
    x = digits[0][:, ::4]
    of_noise = [mode.stability for mode in compared(x[:1000], x[1000:2000]).directions]
    assert np.mean(of_noise) < 0.75
    assert min(of_noise) < 0.6


def test_a_file_that_is_not_ours_is_not_called_a_cache(tmp_path):
    (tmp_path / "gen.zip").write_bytes(b"PK")
    with pytest.raises(fe.DataError, match="not a file of finc-eval"):
        fe.load(tmp_path / "gen.zip")
