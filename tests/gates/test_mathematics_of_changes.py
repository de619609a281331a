"""Changes between a release and its baseline: pairs, scores and the noise of training, against exact laws."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

from finc_eval.estimates.error_source import GEN, REF, TRAINING, ErrorSource
from finc_eval.estimates.estimate import Estimate, mean_of
from finc_eval.estimates.retraining import SAMPLING_ONLY, between_scores, between_shares, moderate, noise_covered
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.scores import ScoreChange


def exact(members, size, side, level):
    """Clopper and Pearson's bound."""
    if side == "low":
        return stats.beta.ppf(level, members, size - members + 1) if members else 0.0
    return stats.beta.isf(level, members + 1, size - members) if members < size else 1.0


def pair_counts(kept=40.0, lost=20.0, gained=10.0, size=500.0):
    return PairCounts(kept, lost, gained, size)


def paired(kind, counts, margin=0.1, least=0.01):
    if kind is PairedLoss:
        value = (counts.lost - counts.gained) / counts.size / max(counts.old_share, least)
        return PairedLoss(name="", value=value, margin=margin, counts=counts, least=least)
    return PairedGain(name="", value=(counts.gained - counts.lost) / counts.size, margin=margin, counts=counts)


def test_counts_of_pairs_are_those_of_a_table():
    new, old = np.array([1, 1, 0, 0, 1, 0], bool), np.array([1, 0, 1, 0, 1, 1], bool)
    one = PairCounts.of(new, old, None)
    assert (one.kept, one.lost, one.gained, one.size) == (2, 2, 1, 6)
    assert (one.old, one.share, one.old_share) == (4, 3 / 6, 4 / 6)
    assert one.times(3.0) == PairCounts(6, 6, 3, 18)
    # Each pair three times, as groups: as much as each pair once.
    groups = np.repeat(np.arange(40), 3).astype(np.uint64)
    rng = np.random.default_rng(0)
    single = [rng.random(40) < share for share in (0.3, 0.5)]
    thrice = PairCounts.of(*(np.repeat(own, 3) for own in single), groups)
    assert thrice.size == pytest.approx(40, rel=0.1)
    assert thrice.kept / thrice.size == pytest.approx((single[0] & single[1]).mean())


@pytest.mark.parametrize("kind", [PairedLoss, PairedGain])
def test_bounds_of_pairs_narrow_with_pairs_and_turn_with_the_sides(kind):
    one = paired(kind, pair_counts())
    low, high = one.bound("low", 0.05), one.bound("high", 0.05)
    assert low < one.value < high
    more = one.bound("low", 0.05, 100.0), one.bound("high", 0.05, 100.0)
    assert (one.value - low) / (one.value - more[0]) == pytest.approx(10, rel=0.3)
    assert (high - one.value) / (more[1] - one.value) == pytest.approx(10, rel=0.3)
    many = paired(kind, pair_counts().times(100.0))
    assert (many.bound("low", 0.05), many.bound("high", 0.05)) == pytest.approx(more)
    # Of many pairs, the error is that of McNemar's difference: cells of a multinomial law.
    if kind is PairedGain:
        p, q, n = 0.02, 0.04, 50_000
        error = sqrt((p + q - (p - q) ** 2) / n)
        assert more == pytest.approx((p - q - 1.645 * error, p - q + 1.645 * error), abs=0.1 * error)
        turned = paired(kind, pair_counts(lost=10.0, gained=20.0))
        assert turned.bound("high", 0.05) == pytest.approx(-low) and turned.bound("low", 0.05) == pytest.approx(-high)
    else:
        # The part that went, 1/3 of 6 000, and what came against these members, 1/6: the share of old members adds.
        error = sqrt(1 / 3 * 2 / 3 / 6000 + 1 / 6 / 6000)
        assert more[0] == pytest.approx(1 / 6 - 1.645 * error, abs=0.25 * error)
        assert one.bound("low", 0.05) > paired(kind, pair_counts(gained=12.0)).bound("low", 0.05)


def test_bounds_of_pairs_of_a_kind_that_the_baseline_lacked_or_all_have():
    absent = paired(PairedLoss, pair_counts(0.0, 0.0, 10.0), least=0.1)
    assert absent.bound("low", 0.05) == pytest.approx(-exact(10, 500, "high", 0.05) / 0.1)
    assert absent.bound("high", 0.05) == pytest.approx(exact(0, 500, "high", 0.005) / 0.1)
    rare = paired(PairedLoss, pair_counts(0.0, 5.0, 0.0), least=0.1)
    assert rare.bound("high", 0.05) == pytest.approx(exact(5, 500, "high", 0.005) / 0.1)
    every = paired(PairedGain, pair_counts(0.0, 0.0, 500.0))
    assert every.bound("high", 0.05) == pytest.approx(1) and every.bound("low", 0.05) > 0.98


@pytest.mark.parametrize("kind", [PairedLoss, PairedGain])
def test_what_pairs_detect_is_seen_in_four_of_five_draws(kind):
    rng, counts, level = np.random.default_rng(2), pair_counts(90.0, 10.0, 10.0, 1000.0), 0.02
    found = paired(kind, counts, margin=0.05).detectable(level)
    seen = []
    for _ in range(300):
        if kind is PairedLoss:
            lost, gained = rng.binomial(100, found + 0.1), rng.poisson(10)
            own = pair_counts(100.0 - lost, float(lost), float(gained), 1000.0)
        else:
            gained, lost = rng.binomial(1000, found + 0.01), rng.poisson(10)
            own = pair_counts(100.0 - lost, float(lost), float(gained), 1000.0)
        seen.append(paired(kind, own, margin=0.05).bound("low", level) > 0.05)
    assert 0.7 < np.mean(seen) < 0.97
    assert paired(kind, pair_counts(1.0, 0.0, 0.0, 10.0), margin=0.99).detectable(level) is None


def score(value, error, fixed=0.0):
    parts = ((GEN, error**2 - fixed**2), (REF, fixed**2))
    return Estimate.of(value, [ErrorSource.of_variance(*one) for one in parts])


def change_of(new, old, replicates, in_parts):
    return ScoreChange(new, mean_of(old), between_scores(np.array(replicates), len(old)), in_parts)


@pytest.mark.parametrize("in_parts", [True, False])
def test_the_error_of_a_change_of_scores_is_by_the_delta_method(in_parts):
    old = [score(2.0, 0.3, 0.1), score(4.0, 0.4, 0.2)]
    change = change_of(score(6.0, 0.5, 0.25), old, [], in_parts)
    unit, growth = (3.0, 2.0) if in_parts else (1.0, 1.0)
    base_error = sqrt(0.3**2 + 0.4**2) / 2
    assert (change.old.value, change.old.standard_error) == (3.0, pytest.approx(base_error))
    found = change.of_other_sets(0.05)
    assert found.value == pytest.approx(3 / unit) and found.degrees == inf and change.unit == unit
    error = found.standard_error
    assert error == pytest.approx(sqrt(0.5**2 + (growth * base_error) ** 2) / unit)
    fixed = sqrt(found.variance_of(REF, TRAINING))
    assert fixed == pytest.approx(sqrt(0.25**2 + (growth * sqrt(0.1**2 + 0.2**2) / 2) ** 2) / unit)
    if in_parts:  # the law of new / old, of many draws
        rng = np.random.default_rng(0)
        near = (6 + 0.05 * rng.normal(size=20_000)) / (3 + base_error / 10 * rng.normal(size=20_000))
        assert near.std() == pytest.approx(error / 10, rel=0.03)
    calm, margin = change.noise_if_unchanged(100, 300)
    assert calm == pytest.approx(base_error * 2 / unit) and margin == pytest.approx(2 * 1.6449 * calm, rel=1e-4)


def test_replicates_that_differ_more_than_samples_explain_make_the_error():
    runs = np.array([1.0, 3.0, 5.0])
    old = [score(one, 0.1) for one in runs]
    change = change_of(score(3.0, 0.1), old, runs, in_parts=False)
    spread = 2 * sqrt(1 + 1 / 3)
    found = change.of_other_sets(0.05)
    assert [one.name for one in found.sources] == [TRAINING] and found.value == 0
    assert (found.standard_error, found.degrees) == (pytest.approx(spread), 2.0)
    assert change.noise_if_unchanged(10, 30) == (
        pytest.approx(spread),
        pytest.approx(2 * stats.t.isf(0.05, 2) * spread),
    )
    calm = change_of(score(3.0, 0.1), old, 3 + (runs - 3) / 1e6, in_parts=False)
    assert calm.of_other_sets(0.05).degrees == inf
    alone = between_scores(runs, 1)
    assert (alone.variance, alone.degrees) == (pytest.approx(8), 2.0)


@pytest.mark.parametrize(
    ("base", "in_parts", "is_zero"), [(0.19, True, True), (0.2, True, False), (-0.2, True, False), (0.0, False, False)]
)
def test_parts_of_a_score_that_may_be_zero_are_not_judged(base, in_parts, is_zero):
    change = change_of(score(1.0, 0.1), [score(base, 0.1)], [], in_parts)
    assert ("cannot be distinguished from 0" in change.why_not("fd", False)) == is_zero
    assert "neither direction" in change.why_not("fd", None)
    assert change.unit == (abs(base) if in_parts else 1.0)


def test_noise_of_training_is_the_variance_beyond_that_of_samples():
    rng = np.random.default_rng(0)
    size, share, training = 5000.0, np.full(400, 0.2), 0.002
    moved = share + rng.normal(size=(5, 400)) * np.sqrt(training * 0.16)
    found = between_shares(rng.binomial(5000, moved).astype(float), np.full((5, 400), size))
    assert np.mean(found.training) == pytest.approx(training * 1.2, rel=0.1)
    single = between_shares(rng.binomial(5000, moved).astype(float), np.full((5, 400), size), 1)
    assert np.mean(single.training) == pytest.approx(training * 2, rel=0.1)
    two = np.array([[10.0, 30.0], [14.0, 30.0], [12.0, 30.0]])
    few = between_shares(two, np.full((3, 2), 100.0))  # two kinds are not moderated
    assert few.degrees == 2.0
    assert few.training == pytest.approx([max(4e-4 / (0.12 * 0.88 / 100) - 1, 0) / 100 * 4 / 3, 0])
    spread = between_shares(np.array([[2.0], [14.0], [20.0]]), np.full((3, 1), 100.0))
    assert spread.training == pytest.approx([(84e-4 / (0.12 * 0.88 / 100) - 1) / 100 * 4 / 3])
    # Less than one member a run says nothing; one does.
    rare = between_shares(np.array([[0.0, 0.0], [3.0, 2.0], [0.0, 0.9]]), np.full((3, 2), 10.0))
    assert rare.training[0] == rare.training[1] == pytest.approx((0.03 / (0.1 * 0.9 / 10) - 1) / 10 * 4 / 3)
    assert [noise_covered(runs) == SAMPLING_ONLY for runs in (1, 2, 3, 9)] == [True, True, False, False]


def test_moderated_variances_lie_between_their_own_and_the_common_value():
    rng = np.random.default_rng(1)
    prior, degrees = 8.0, 4
    truth = prior / rng.chisquare(prior, 4000)
    ratios = truth * rng.chisquare(degrees, 4000) / degrees
    found, total = moderate(ratios, degrees)
    assert total == pytest.approx(prior + degrees, rel=0.1)
    weight = degrees / total
    common = (found - weight * ratios) / (1 - weight)  # the same for all
    assert np.ptp(common) < 1e-9 and common[0] == pytest.approx(1, rel=0.05)
    with_gap, again = moderate(np.r_[ratios, np.nan], degrees)
    assert with_gap[-1] == pytest.approx(common[0]) and again == total
    one, free = moderate(np.array([2.0, np.nan]), 5)
    assert one.tolist() == [2.0, 2.0] and free == 5
    assert moderate(np.array([np.nan]), 5)[0].tolist() == [1.0]
    calm, most = moderate(np.array([1.0, 1.1, 0.9, 1.0]), 3)
    assert calm == pytest.approx(np.ones(4)) and most == 12
