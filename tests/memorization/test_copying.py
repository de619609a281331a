"""Measures of copying: each as its definition says, with p-values that fresh samples keep, and a power that is true."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import betabinom, mannwhitneyu, norm

from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import Neighbors, nearest, radii
from finc_eval.embeddings.subset import Subset
from finc_eval.measures.authenticity import authpct as authpct_alone
from finc_eval.memorization.copying import (
    Closeness,
    authpct,
    cell_test,
    dcr,
    fld_gap,
    median_interval,
    mifid,
    nndr,
    tail,
)
from finc_eval.memorization.distances import cut_in_two, measure
from finc_eval.memorization.tails import (
    COPY_NOISES,
    calibrated_distances,
    counts_below,
    critical_counts,
    detection_probability,
    plant_copies,
    power_table,
    survival,
    tail_p_value,
)
from finc_eval.numerics.attack_statistics import threshold_ranks


def draw(n, seed, dim=8):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def between(x, y):
    return np.linalg.norm(x[:, None].astype(float) - y, axis=2)


TRAIN, HOLDOUT, FRESH = draw(400, 0), draw(300, 1), draw(350, 2)
COPIES = np.concatenate([TRAIN[:40], FRESH[40:]])


def calibrated_tail(gen, fresh, confidence):
    return tail("calibrated", gen.calibrated, fresh.calibrated, confidence)


def closeness(x, k=50):
    found = nearest(x, TRAIN, k)
    return Closeness.of(found.distances, radii(as_embeddings(TRAIN), 1).squared[found.indices[:, 0]] ** 0.5)


def test_one_pass_of_two_sets_finds_neighbors_both_ways_and_what_lies_in_balls():
    known = measure(as_embeddings(FRESH), as_embeddings(TRAIN), as_embeddings(HOLDOUT), 5, Run())
    for base, to_base, attacked in (
        (TRAIN, known.to_train, known.members),
        (HOLDOUT, known.to_non_members, known.non_members),
    ):
        distances = between(FRESH, base)
        assert to_base.distances == pytest.approx(np.sort(distances, 1)[:, : to_base.distances.shape[1]])
        assert to_base.indices[:, 0].tolist() == distances.argmin(1).tolist()
        assert attacked.distances == pytest.approx(distances.min(0))
        assert attacked.within.tolist() == (distances <= known.radius).sum(0).tolist()
    both = np.concatenate([between(FRESH, TRAIN).min(0), between(FRESH, HOLDOUT).min(0)])
    assert known.radius == pytest.approx(np.median(both))


def test_a_ball_of_radius_zero_holds_the_copies_of_its_center():
    known = measure(as_embeddings(TRAIN), as_embeddings(TRAIN), as_embeddings(TRAIN[:50]), 1, Run())
    assert known.radius == 0
    assert known.members.within.tolist() == [1] * 400


def test_the_halves_of_a_set_are_disjoint_and_hold_it_all():
    one, other = cut_in_two(as_embeddings(HOLDOUT))
    assert sorted([*one.rows, *other.rows]) == list(range(300))


def test_the_measures_of_single_samples_are_as_defined():
    distances = np.sort(between(COPIES, TRAIN), 1)
    found = closeness(COPIES)
    assert found.ratios == pytest.approx(distances[:, 0] / distances[:, 1])
    assert found.calibrated == pytest.approx(distances[:, 0] / distances[:, :50].mean(1))
    result = authpct(found, closeness(HOLDOUT), 0.95)
    assert result.value == pytest.approx(authpct_alone(COPIES, TRAIN).percent)
    assert result.control == pytest.approx(authpct_alone(HOLDOUT, TRAIN).percent)


def test_a_copy_of_a_duplicate_is_a_copy_and_not_undefined():
    found = Closeness.of(np.zeros((1, 3)), np.zeros(1))
    assert (found.ratios[0], found.calibrated[0], found.authenticity.authentic[0]) == (0, 0, False)


def test_measures_stay_where_fresh_samples_are_and_move_the_way_they_say_for_copies():
    noisy = TRAIN[:350] + 0.1 * draw(350, 3)
    fresh = closeness(HOLDOUT)
    for make in (authpct, nndr, calibrated_tail):
        alike, copied = (make(closeness(gen), fresh, 0.95) for gen in (FRESH, noisy))
        assert alike.p_value > 0.01
        assert copied.p_value < 1e-6
        assert (copied.value < alike.value) == alike.copies_lower
        assert alike.interval[0] <= alike.value <= alike.interval[1]


def test_a_few_copies_move_the_tail_and_nothing_else():
    few, fresh = closeness(np.concatenate([TRAIN[:20], FRESH[20:]])), closeness(HOLDOUT)
    assert calibrated_tail(few, fresh, 0.95).p_value < 1e-4
    assert nndr(few, fresh, 0.95).p_value > 0.01


def test_the_dcr_share_is_one_half_for_fresh_samples_however_unequal_the_sets_are():
    for n, m in ((400, 300), (400, 60)):
        train, holdout = as_embeddings(TRAIN[:n]), as_embeddings(HOLDOUT[:m])
        known = measure(as_embeddings(FRESH), train, holdout, 1, Run())
        found = dcr(known, known, 0.95)
        assert found.interval[0] < 0.5 < found.interval[1]
        ours = (known.to_train.distances < known.to_non_members.distances).mean()
        assert found.value == pytest.approx((ours / n) / (ours / n + (1 - ours) / m))
    copied = measure(as_embeddings(COPIES), train, holdout, 1, Run())
    assert dcr(copied, known, 0.95).value > found.value


def test_the_p_value_of_the_dcr_share_is_that_of_permuted_labels():
    gen, real = FRESH[:200], np.concatenate([TRAIN, HOLDOUT])
    known = measure(as_embeddings(gen), as_embeddings(TRAIN), as_embeddings(HOLDOUT), 1, Run())
    owners, rng = between(gen, real).argmin(1), np.random.default_rng(0)
    seen = (owners < 400).sum()
    permuted = np.array([(rng.permutation(700)[owners] < 400).sum() for _ in range(4000)])
    p = ((permuted > seen).mean() + (permuted >= seen).mean()) / 2
    assert dcr(known, known, 0.95).p_value == pytest.approx(p, abs=0.025)


def test_samples_of_one_owner_count_as_one_and_owners_of_the_two_sets_are_told_apart():
    gen = np.concatenate([np.repeat(TRAIN[:1], 150, axis=0), np.repeat(HOLDOUT[:1], 50, axis=0)])
    known = measure(as_embeddings(gen), as_embeddings(TRAIN[:300]), as_embeddings(HOLDOUT), 1, Run())
    deviation = np.sqrt((150**2 + 50**2) / 200**2 / 4)
    assert dcr(known, known, 0.95).p_value == pytest.approx(norm.sf((0.75 - 0.5) / deviation))


def test_the_dcr_share_of_samples_with_few_owners_is_little_known():
    one = as_embeddings(np.repeat(FRESH[:3], 100, axis=0))
    known = measure(one, as_embeddings(TRAIN), as_embeddings(HOLDOUT), 1, Run())
    low, high = dcr(known, known, 0.95).interval
    assert high - low > 0.6


def test_c_t_is_the_weighted_mean_of_mann_whitneys_z():
    rng = np.random.default_rng(0)
    x, y = rng.random(300), 0.1 + rng.random(200)
    cells, others = rng.integers(0, 3, 300), rng.integers(0, 3, 200)
    cells[cells == 2], others[:5] = 1, 2  # the third cell has too few
    others[others == 2] = np.where(np.arange((others == 2).sum()) < 5, 2, 1)
    found = cell_test(x, cells, y, others)
    assert found.by_cell[2] is None
    z = []
    for cell in (0, 1):
        a, b = x[cells == cell], y[others == cell]
        u = mannwhitneyu(a, b).statistic
        z.append((u - len(a) * len(b) / 2) / np.sqrt(len(a) * len(b) * (len(a) + len(b) + 1) / 12))
    assert found.by_cell[:2] == pytest.approx(z)
    weights = np.array([(others == 0).sum(), (others == 1).sum()], float)
    assert found.value == pytest.approx(weights @ z / weights.sum())
    assert found.deviation == pytest.approx(np.linalg.norm(weights / weights.sum()))
    assert cell_test(np.ones(50), np.zeros(50, int), np.ones(50), np.zeros(50, int)).value == 0


def test_mifid_punishes_a_collapsed_copier_that_others_measure_the_wrong_way():
    """Copies of a few training samples: each generated one has its original, but few originals have a copy."""
    collapsed, fresh = np.repeat(TRAIN[:10], 35, axis=0), as_embeddings(FRESH)
    found = mifid(as_embeddings(collapsed), as_embeddings(TRAIN), fresh, 0.95, 0)
    assert found.p_value < 1e-6
    assert found.value > 1e6 * found.control
    directions = TRAIN / np.linalg.norm(TRAIN, axis=1, keepdims=True)
    cosine = 1 - (FRESH / np.linalg.norm(FRESH, axis=1, keepdims=True)) @ directions.T
    again = mifid(fresh, as_embeddings(TRAIN), fresh, 0.95, 0)
    assert again.value == again.control
    assert again.interval[0] < again.value < again.interval[1]
    from finc_eval.measures.frechet import frechet_distance

    penalty = cosine.min(1).mean()
    expected = frechet_distance(FRESH, TRAIN).value / (penalty if penalty < 0.1 else 1)
    assert again.value == pytest.approx(expected, rel=1e-3)


def test_the_gap_of_fld_is_that_of_fld_and_falls_for_copies():
    from finc_eval.baselines.fld import fld

    gen, train = as_embeddings(COPIES[:150]), as_embeddings(TRAIN)
    halves = Subset(train, np.arange(0, 150)), Subset(train, np.arange(150, 300))
    found = fld_gap(gen, halves, as_embeddings(HOLDOUT), 0.95, 0)
    one, other = TRAIN[:150], TRAIN[150:300]
    assert found.value == pytest.approx(np.mean([fld(COPIES[:150], half, HOLDOUT).gap for half in (one, other)]))
    assert found.control == pytest.approx((fld(one, other, HOLDOUT).gap + fld(other, one, HOLDOUT).gap) / 2)
    assert found.p_value < 0.01
    assert found.value < found.control


def test_a_holdout_that_lacks_a_class_does_not_lower_the_gap_of_fld():
    rng = np.random.default_rng(4)
    centers = 6 * rng.normal(size=(10, 8))
    gen, train, holdout = (
        as_embeddings((rng.normal(size=(300, 8)) + centers[rng.integers(first, 10, 300)]).astype(np.float32))
        for first in (0, 0, 1)
    )
    assert fld_gap(gen, cut_in_two(train), holdout, 0.95, 0).p_value > 0.05


def test_the_interval_of_a_median_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(1)
    held = [low <= 0 <= high for low, high in (median_interval(rng.normal(size=101), 0.95) for _ in range(1000))]
    assert np.mean(held) == pytest.approx(0.95, abs=0.025)


def test_counts_below_order_statistics_are_beta_binomial():
    for n, m, k in ((7, 5, 1), (30, 20, 4), (200, 300, 128)):
        expected = betabinom(n, k, m - k + 1).sf(np.arange(n + 1) - 1)
        assert survival(n, m, k) == pytest.approx(expected, abs=1e-9)
    assert threshold_ranks(100) == [1, 2, 4, 8, 16, 32]
    assert counts_below([0, 1, 2, 2, 3], np.arange(2.0, 12)).tolist() == [
        2,
        4,
        5,
    ]  # ties with a fresh score say nothing


def test_the_p_value_of_the_tail_test_is_no_smaller_than_it_should_be_and_agrees_with_its_critical_counts():
    rng = np.random.default_rng(2)
    p = np.array([tail_p_value(rng.normal(size=120), rng.normal(size=100)) for _ in range(1000)])
    assert 0.01 < (p <= 0.05).mean() < 0.065
    x, y = rng.normal(size=120), rng.normal(size=100)
    for count in range(15):
        x[:count] = -9
        passed = bool((counts_below(x, y) >= critical_counts(120, 100, 0.05)).any())
        assert passed == (tail_p_value(x, y) <= 0.05)


@pytest.mark.one_of_each("n")
@pytest.mark.parametrize(
    ("copies", "n", "m", "alpha"), [(4, 200, 150, 0.05), (8, 200, 150, 0.05), (11, 200, 150, 0.05), (2, 8, 4, 0.4)]
)
def test_the_power_is_the_share_of_planted_sets_that_are_found(copies, n, m, alpha):
    rng = np.random.default_rng(copies)
    printed = detection_probability(np.zeros(1), copies, n, m, alpha, rng)
    found = []
    for _ in range(1500):
        scores = rng.random(n)
        scores[:copies] = 0
        found.append(tail_p_value(scores, rng.random(m)) <= alpha)
    assert np.mean(found) == pytest.approx(printed, abs=0.04)


def test_the_power_grows_with_the_share_and_falls_with_the_noise_and_tiny_shares_of_few_samples_are_left_out():
    train = as_embeddings(TRAIN)
    table = power_table(
        train, radii(train, 1).squared ** 0.5, closeness(HOLDOUT).calibrated, 350, neighbors=50, alpha=0.05, seed=0
    )
    by_noise = {noise: [one.probability for one in table if one.kind == kind] for kind, noise in COPY_NOISES.items()}
    for probabilities in by_noise.values():
        assert all(later >= before - 0.03 for before, later in pairwise(probabilities))
    assert by_noise[0.0][-1] == 1
    assert np.sum(by_noise[0.5]) < np.sum(by_noise[0.0])
    assert min(one.copies for one in table) >= 1


def test_planted_copies_lie_as_far_from_their_originals_as_they_say_and_are_of_no_duplicate():
    twins = np.concatenate([TRAIN, TRAIN[:100]])
    train = as_embeddings(twins)
    spaced = radii(train, 1).squared ** 0.5
    made = plant_copies(train, spaced, 0.25, np.random.default_rng(0))
    found = nearest(made, train, 2)
    assert len(made) == 300
    assert found.distances[:, 0] / spaced[found.indices[:, 0]] == pytest.approx(np.full(300, 0.25), rel=1e-3)
    assert calibrated_distances(np.array([[0.0, 1.0, 2.0]])).tolist() == [0.0]
    assert isinstance(found, Neighbors)
