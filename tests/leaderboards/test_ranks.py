"""Rank sets: against a literal implementation of the paper on a stored example, and their properties."""

from math import inf

import numpy as np
import pytest

from finc_eval.core.errors import UsageError
from finc_eval.leaderboards.ranks import joint_covariance, model_estimate, rank
from finc_eval.numerics.inference import student_quantile

# Mean scores in mathematics and their standard errors, PISA 2018 (OECD), as the authors' R package csranks prints them:
# Australia, Austria, Belgium, Canada, Chile, Colombia.
PISA = np.array([491.3600, 498.9423, 508.0703, 512.0169, 417.4066, 390.9323])
PISA_ERRORS = np.array([1.939833, 2.970999, 2.262662, 2.357476, 2.415888, 2.989559])


def literal_rank_sets(values, covariance, alpha, draws, seed):
    """The procedure of Mogstad et al., written down step by step: a set of hypotheses, quantiles."""
    rng = np.random.default_rng(seed)
    p = len(values)
    left = {(j, k) for j in range(p) for k in range(p) if j != k}
    noise = rng.multivariate_normal(np.zeros(p), covariance, draws)
    error = {(j, k): np.sqrt(covariance[j, j] + covariance[k, k] - 2 * covariance[j, k]) for j, k in left}
    rejected = set()
    while left:
        largest = np.max([(noise[:, j] - noise[:, k]) / error[j, k] for j, k in left], axis=0)
        critical = np.quantile(largest, 1 - alpha)
        new = {(j, k) for j, k in left if (values[j] - values[k]) / error[j, k] > critical}
        if not new:
            break
        rejected |= new
        left -= new
    return tuple(
        (1 + sum((k, j) in rejected for k in range(p)), p - sum((j, k) in rejected for k in range(p))) for j in range(p)
    )


def test_pisa_scores_get_the_rank_sets_of_a_literal_implementation():
    covariance = np.diag(PISA_ERRORS**2)
    found = rank(PISA, covariance, higher_is_better=True)
    assert found.rank_sets == literal_rank_sets(PISA, covariance, 0.05, 20_000, 1)
    assert found.rank_sets == ((3, 4), (2, 4), (1, 3), (1, 2), (5, 5), (6, 6))
    assert found.order == (3, 2, 1, 0, 4, 5)


@pytest.mark.parametrize("seed", range(6))
def test_random_boards_with_a_shared_reference_agree_with_the_literal_implementation(seed):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(7, 3))
    covariance = shared @ shared.T + np.diag(rng.uniform(0.05, 1, 7))
    values = np.round(rng.normal(0, 3, 7))
    found = rank(values, covariance, higher_is_better=True).rank_sets
    # Two sets of draws may differ on a pair whose p-value is within their error of α.
    near = [literal_rank_sets(values, covariance, alpha, 20_000, 1) for alpha in (0.045, 0.05, 0.055)]
    assert found in near


def test_lower_is_better_turns_the_order_around():
    covariance = np.eye(3)
    up, down = rank([0, 9, 20], covariance, higher_is_better=True), rank([0, 9, 20], covariance)
    assert up.rank_sets == ((3, 3), (2, 2), (1, 1))
    assert down.rank_sets == ((1, 1), (2, 2), (3, 3))
    assert down.groups == ((0,), (1,), (2,))


def test_paired_differences_separate_what_overlapping_intervals_do_not():
    values, noise = [1.0, 2.0], np.eye(2) * 0.01
    alone, paired = rank(values, noise + np.eye(2)), rank(values, noise + np.ones((2, 2)))
    assert not alone.separable[0, 1]
    assert paired.separable[0, 1]
    assert paired.rank_sets == ((1, 1), (2, 2))


@pytest.mark.parametrize("higher_is_better", [False, True])
@pytest.mark.parametrize(
    ("values", "shown", "order", "better"),
    [
        ([0.0, 0.1, 0.2], [0.3, 0.2, 0.1], (2, 1, 0), []),  # nothing is sure
        ([0.0, 9.0, 18.0], [0.1, 0.2, 0.3], (0, 1, 2), [(0, 1), (0, 2), (1, 2)]),
        ([0.0, 9.0, 18.0], [0.3, 0.2, 0.1], (2, 1, 0), []),  # all is contradicted
        ([0.0, 9.0, 18.0], [0.2, 0.1, 0.3], (1, 0, 2), [(0, 2), (1, 2)]),
        ([18.0, 0.0, 9.0], [0.0, 0.0, 0.1], (1, 0, 2), [(1, 0), (1, 2)]),  # equal numbers contradict nothing
    ],
)
def test_nothing_is_sure_that_the_numbers_contradict(values, shown, order, better, higher_is_better):
    sign = -1 if higher_is_better else 1
    found = rank(sign * np.array(values), np.eye(len(values)), higher_is_better=higher_is_better)
    found = found.ordered([sign * one for one in shown], (-inf, inf), higher_is_better)
    assert found.order == order
    assert [*map(tuple, np.argwhere(found.better).tolist())] == better
    assert all(low == 1 + sum(b == one for _, b in better) for one, (low, _) in enumerate(found.rank_sets))
    assert found.gaps[0, 1] == pytest.approx(abs(shown[0] - shown[1]))


def test_groups_have_a_fixed_anchor_and_do_not_chain():
    """Each model is close to the next; only those close to the anchor are in its group."""
    found = rank([0.0, 2.0, 4.0, 6.0, 8.0], np.eye(5) * 0.5)
    assert not any(found.separable[i, i + 1] for i in range(4))
    assert found.groups == ((0, 1), (2, 3), (4,))
    assert found.separable_neighbors == 0
    assert found.separable_pairs == 6
    assert found.smallest_separable_gap == 4.0


def test_step_down_finds_more_than_one_step():
    """Models far from all others leave the family, and the critical value of the others falls."""
    values = np.array([0.0, 2.95, 100, 200, 300, 400, 500, 600])
    found = rank(values, np.eye(8) * 0.5)
    assert found.separable[0, 1]
    draws = np.random.default_rng(5).normal(size=(50_000, 8)) * np.sqrt(0.5)
    one_step = np.quantile(draws.max(1) - draws.min(1), 0.95)
    assert one_step > 2.95


def test_equal_models_are_not_told_apart_and_share_all_ranks():
    found = rank([1.0] * 4, np.eye(4))
    assert found.rank_sets == ((1, 4),) * 4
    assert found.groups == ((0, 1, 2, 3),)
    assert found.smallest_separable_gap is None


def test_models_beyond_the_best_value_are_equal():
    """Unbiased estimates of a distance of 0 may differ from each other below 0, which says nothing."""
    values, covariance = [-0.9, -0.1, 0.0, 2.0], np.eye(4) * 1e-4
    assert rank(values, covariance).rank_sets == ((1, 1), (2, 2), (3, 3), (4, 4))
    found = rank(values, covariance, best=0)
    assert found.rank_sets == ((1, 3), (1, 3), (1, 3), (4, 4))
    assert found.smallest_separable_gap == 2.0


def test_known_values_without_error_are_ranked_exactly():
    found = rank([3.0, 1.0, 1.0], np.zeros((3, 3)))
    assert found.rank_sets == ((3, 3), (1, 2), (1, 2))


def test_all_true_ranks_are_covered_in_95_percent_of_boards_with_ties():
    truth = np.array([0, 0, 0, 1, 1, 3, 3, 6.0])
    lowest = np.array([1 + (truth < one).sum() for one in truth])
    rng, covered = np.random.default_rng(0), 0
    covariance = 0.3 * np.eye(8) + 0.5
    boards = 200
    for values in rng.multivariate_normal(truth, covariance, boards):
        sets = np.array(rank(values, covariance).rank_sets)
        covered += bool(((sets[:, 0] <= lowest) & (lowest <= sets[:, 1])).all())
    assert covered / boards >= 0.93


@pytest.mark.parametrize("values, covariance", [([1.0, np.nan], np.eye(2)), ([1.0, 2.0], np.eye(3))])
def test_values_that_cannot_be_ranked_are_refused(values, covariance):
    with pytest.raises(UsageError):
        rank(values, covariance)


def test_what_models_share_is_wider_if_few_units_say_how_much_it_varies():
    influence = np.array([0.3, -0.1, 0.2])
    few, many = (
        joint_covariance([model_estimate(0.0, 0.0, influence, degrees=degrees) for _ in range(3)])
        for degrees in (4.0, float("inf"))
    )
    assert np.allclose(many, influence @ influence)
    # Student's quantile over the normal one, at the level of one comparison of six.
    wider = student_quantile(4.0, 1 - 0.05 / 6) / student_quantile(float("inf"), 1 - 0.05 / 6)
    assert wider > 1.5 and np.allclose(few, many * wider**2)
