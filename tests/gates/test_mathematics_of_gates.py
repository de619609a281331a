"""Evidence of gates on tiny counts: against exact laws, direct formulas and limits that are known."""

from dataclasses import replace
from math import hypot, inf, sqrt

import numpy as np
import pytest
from scipy import stats

from finc_eval.gates.appearance import Beyond, Clearest
from finc_eval.gates.evidence import Distance, Moved, Normal, PlainFact, round_up
from finc_eval.gates.first_policy import _floor, _most
from finc_eval.gates.paired_shares import PairCounts, PairedGain, PairedLoss
from finc_eval.gates.retraining import SAMPLING_ONLY, between_scores, between_shares, moderate, noise_covered
from finc_eval.gates.rule import Judged, judge, too_fine
from finc_eval.gates.scores import MeasuredScore, ScoreChange
from finc_eval.gates.shares import (
    NODES,
    GainedShare,
    LostShare,
    TwoCounts,
    Unseen,
    members_to_hold,
    members_to_lose,
    power_beside,
    ratio_bound,
    whole_of,
)
from finc_eval.partitions.tests import EffectiveCounts

SEEN = stats.norm.ppf(0.8)


def normal(value=0.3, **others):
    return Normal(**{"name": "fd", "value": value, "margin": 0.5, "error": 0.1, "n": 1000} | others)


def gain_of(members, size, old_members, old_size, **others):
    counts = TwoCounts(members, size, old_members, old_size, **others)
    return GainedShare(name="", value=counts.share - counts.old_share, margin=0.02, counts=counts)


def loss_of(members, size, old_members, old_size, least=0.01, **others):
    counts = TwoCounts(members, size, old_members, old_size, **others)
    value = LostShare.value_of(counts.share, counts.old_share, least)
    return LostShare(name="", value=value, margin=0.5, counts=counts, least=least)


def exact(members, size, side, level):
    """Clopper and Pearson's bound."""
    if side == "low":
        return stats.beta.ppf(level, members, size - members + 1) if members else 0.0
    return stats.beta.isf(level, members + 1, size - members) if members < size else 1.0


@pytest.mark.parametrize("degrees", [inf, 4.0])
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_normal_bounds_are_quantiles_of_the_part_of_the_error_that_shrinks_and_the_part_that_stays(degrees, factor):
    one = normal(fixed=0.06, degrees=degrees)
    law = stats.norm if degrees == inf else stats.t(degrees)
    half = law.isf(0.01) * sqrt(0.08**2 / factor + 0.06**2)
    assert one.bound("low", 0.01, factor) == pytest.approx(0.3 - half)
    assert one.bound("high", 0.01, factor) == pytest.approx(0.3 + half)
    assert replace(one, fixed=0.2).bound("high", 0.01, 100) == pytest.approx(0.3 + law.isf(0.01) * 0.2)
    for harm, sign in (("high", 1), ("low", -1)):
        beyond = (law.isf(0.01) + law.isf(0.2)) * 0.1 * 2
        assert replace(one, harm=harm, growth=2.0).detectable(0.01) == pytest.approx(0.5 + sign * beyond)
    assert replace(one, error=inf).detectable(0.01) is None
    same = replace(one, unchanged=0.0, error_unchanged=0.04).without_change()
    assert (same.value, same.error, same.fixed) == (0.0, 0.04, 0.04)
    assert replace(one, unchanged=0.1).without_change().error == 0.1 and one.without_change() is None


@pytest.mark.parametrize("harm", ["high", "low"])
def test_a_value_on_the_limit_is_no_regression(harm):
    fact = PlainFact(name="n", value=2.0, margin=2.0, harm=harm)
    assert not fact.is_regression(0.05)
    beyond = replace(fact, value=3.0 if harm == "high" else 1.0)
    assert beyond.is_regression(0.05) and not replace(fact, value=1.0 if harm == "high" else 3.0).is_regression(0.05)
    assert fact.detectable(0.05) == 2.0
    assert beyond.bound("low", 0.05) == beyond.bound("high", 0.05) == beyond.value


def test_what_is_seen_is_beyond_the_margin_with_the_power():
    one = normal(surely=0.0)
    assert one.seen(0.01) == pytest.approx(0.5 + SEEN * 0.1)  # the margin binds
    assert replace(one, margin=0.01).seen(0.01) == pytest.approx((stats.norm.isf(0.01) + SEEN) * 0.1)  # the bound binds
    assert replace(one, part=0.5).seen(0.01) == pytest.approx(1 + SEEN * 0.1)
    assert normal().seen(0.01) == normal().detectable(0.01)


@pytest.mark.parametrize(("margin", "rounded"), [(0.0123, 0.013), (0.012, 0.012), (123.0, 130.0), (9.91, 10.0)])
def test_margins_are_rounded_up_to_two_digits(margin, rounded):
    assert round_up(margin) == rounded


@pytest.mark.parametrize(("k", "old"), [(3, 20), (0, 20), (20, 3), (7, 0), (15, 15)])
def test_bounds_of_a_ratio_are_those_of_the_binomial_law_of_both_counts(k, old):
    n, m, level = 100.0, 300.0, 0.02
    low, high = (ratio_bound(k, n, old, m, side, level) for side in ("low", "high"))
    at = lambda ratio: ratio * n / (ratio * n + m)  # noqa: E731
    if k:
        assert stats.binom.sf(k - 1, k + old, at(low)) == pytest.approx(level)
    else:
        assert low == 0
    if old:
        assert stats.binom.cdf(k, k + old, at(high)) == pytest.approx(level)
        assert low <= k / n / (old / m) < high
    else:
        assert high == inf


@pytest.mark.parametrize("members", [0.0, 5.0, 30.0, 55.0])
@pytest.mark.parametrize("least", [0.001, 0.2])
def test_bounds_of_a_loss_join_those_of_the_ratio_and_of_the_share(members, least):
    one, level = loss_of(members, 500.0, 40.0, 400.0, least), 0.05
    part = {side: min(1.0, exact(40, 400, side, 0.005) / least) for side in ("low", "high")}
    left = {side: 1 - ratio_bound(members, 500, 40, 400, side, 0.045) for side in ("low", "high")}
    high = left["low"] * part["high" if left["low"] > 0 else "low"]
    low = left["high"] * part["low"] if left["high"] > 0 else left["high"] * part["high"]
    assert one.bound("high", level) == pytest.approx(high)
    floor = -exact(members, 500, "high", 0.005) / least  # a kind cannot have gained more than all it has
    assert one.bound("low", level) == pytest.approx(low if low > 0 else max(low, floor))
    assert one.bound("low", level) <= one.value <= one.bound("high", level)


def test_a_kind_that_the_baseline_lacked_has_gained_at_most_its_share():
    one = loss_of(9.0, 100.0, 0.0, 100.0, 0.1)
    assert one.bound("low", 0.05) == pytest.approx(-exact(9, 100, "high", 0.005) / 0.1)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_bounds_of_a_gain_join_two_exact_intervals(level):
    one = gain_of(30.0, 300.0, 8.0, 400.0)
    p, q = 0.1, 0.02
    assert one.value == pytest.approx(p - q) == pytest.approx(one._value(one.counts))
    low = p - q - hypot(p - exact(30, 300, "low", level), exact(8, 400, "high", level) - q)
    high = p - q + hypot(exact(30, 300, "high", level) - p, q - exact(8, 400, "low", level))
    assert (one.bound("low", level), one.bound("high", level)) == pytest.approx((low, high))
    assert one.with_members(60.0).value == pytest.approx(0.2 - q) and one.without_change().value == pytest.approx(0)


def test_replicates_widen_bounds_by_students_half_width():
    given = {"training": 0.01, "degrees": 3.0}
    one = gain_of(30.0, 300.0, 8.0, 400.0, **given)
    share = max(0.02, 38.5 / 701)
    half = stats.t.isf(0.05, 3) * sqrt((1 - share) / share * (1 / 300 + 1 / 400 + 0.01)) * 0.1
    assert one.half(0.05) == pytest.approx(half) and one.half(0.05, 4.0) < half
    more = sqrt((1 - share) / share * ((1 / 300 + 1 / 400) / 4 + 0.01)) * 0.1 * stats.t.isf(0.05, 3)
    assert one.half(0.05, 4.0) == pytest.approx(more)
    assert one.bound("low", 0.05) == pytest.approx(0.08 - half)
    # Upwards u² − old, where u² = new + half · u / √larger.
    u = sqrt(one.bound("high", 0.05) + 0.02)
    assert u**2 == pytest.approx(0.1 + half * u / sqrt(0.1))
    lost = loss_of(30.0, 300.0, 80.0, 400.0, **given)
    own = stats.t.isf(0.05, 3) * sqrt((1 - 0.2) / 0.2 * (1 / 300 + 1 / 400 + 0.01)) * 0.2
    assert lost.half(0.05) == pytest.approx(own / 0.2)
    assert lost.bound("high", 0.05) == pytest.approx(0.5 + own / 0.2)
    assert loss_of(30.0, 300.0, 80.0, 400.0, 0.4, **given).half(0.05) == pytest.approx(own / 0.4)
    assert gain_of(30.0, 300.0, 8.0, 400.0).half(0.05) == 0.0


def test_a_gain_is_detected_with_the_power_whatever_the_size_of_the_baseline():
    rng = np.random.default_rng(0)
    for size, old, old_size in ((2000.0, 0.0, 500.0), (1000.0, 20.0, 1000.0), (500.0, 10.0, 4000.0)):
        one = gain_of(0.0, size, old, old_size)
        share = one.detectable(0.01)
        q = old / old_size
        pairs = zip(rng.binomial(int(size), q + share, 200), rng.binomial(int(old_size), q, 200), strict=True)
        seen = np.mean([gain_of(float(k), size, float(o), old_size).bound("low", 0.01) > 0.02 for k, o in pairs])
        assert 0.7 < seen < 0.95, size
    # The fewest members that are a regression, if the baseline is known: the power of a Poisson law of them.
    one = gain_of(0.0, 1000.0, 0.0, 1e9)
    fewest = next(k for k in range(1000) if one.with_members(float(k)).bound("low", 0.01) > 0.02)
    assert stats.poisson.sf(fewest - 1, 1000 * one.detectable(0.01)) == pytest.approx(0.8, abs=0.005)
    assert replace(one, margin=1.0).detectable(0.01) is None


def test_the_quantiles_stand_for_the_normal_law():
    assert len(NODES) == 8 and np.sum(NODES) == pytest.approx(0) and np.var(NODES) == pytest.approx(1, abs=0.2)
    assert stats.norm.cdf(NODES) == pytest.approx(np.arange(1, 16, 2) / 16)


def test_the_most_members_of_a_regression_are_on_its_side_of_the_bound():
    for old, margin in ((200.0, 0.5), (200.0, 0.1), (30.0, 0.3)):
        one = replace(loss_of(0.0, 1000.0, old, 2000.0), margin=margin)
        most = one._most_regressed(old, 0.02)
        assert most >= 0 and one.with_members(float(most)).bound("low", 0.02) > margin
        assert one.with_members(most + 1.0).bound("low", 0.02) <= margin
    assert loss_of(0.0, 1000.0, 1.0, 2000.0)._most_regressed(1.0, 0.02) == -1


def test_enough_members_are_the_fewest_that_hold_and_that_are_seen():
    for lose, kinds in ((0.5, 1), (0.5, 10), (0.8, 10)):
        rng, mean = np.random.default_rng(1), members_to_hold(lose, kinds)
        new, old = rng.poisson(mean, (400, kinds)), rng.poisson(mean, (400, kinds))
        worst = (new / np.maximum(old, 1)).argmin(1)
        pairs = zip(new[range(400), worst], old[range(400), worst], strict=True)
        held = [
            replace(loss_of(float(k), 1e9, float(o), 1e9, 1e-12), margin=lose).bound("high", 0.05) <= lose
            for k, o in pairs
        ]
        assert 0.9 < np.mean(held) < 0.99, (lose, kinds)
    for lose, level in ((0.5, 0.05), (0.8, 0.005)):
        mean = members_to_lose(lose, level)
        gone = [replace(loss_of(one, 1e9, one, 1e9, 1e-12), margin=lose) for one in (mean * 1.02, mean * 0.9)]
        assert gone[0].detectable(level) is not None and gone[1].detectable(level) is None


def test_parts_of_kinds_and_powers():
    assert whole_of(0.2, 0.8) == pytest.approx(0.25) and whole_of(0.8, 0.8) == 1 and whole_of(0.81, 0.8) is None
    assert power_beside(0.0) == pytest.approx(0.8)
    assert stats.norm.ppf(power_beside(3.0)) == pytest.approx(2 * SEEN)
    unseen = Unseen(name="", margin=0.1, enough=4.0)
    assert [unseen.bound(*one) for one in (("high", 0.1), ("high", 0.1, 3.9), ("high", 0.1, 4.0), ("low", 0.1))] == [
        1,
        1,
        0,
        0,
    ]


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


def score(value, error, fixed=0.0, higher=False):
    return MeasuredScore(value, error, fixed, higher)


@pytest.mark.parametrize("in_parts", [True, False])
def test_the_error_of_a_change_of_scores_is_by_the_delta_method(in_parts):
    old = [score(2.0, 0.3, 0.1), score(4.0, 0.4, 0.2)]
    change = ScoreChange(score(6.0, 0.5, 0.25), old, np.array([]), in_parts)
    unit, growth = (3.0, 2.0) if in_parts else (1.0, 1.0)
    base_error = sqrt(0.3**2 + 0.4**2) / 2
    assert (change.base, change.base_error) == (3.0, pytest.approx(base_error))
    assert (change.unit, change.growth) == (unit, growth)
    error, fixed, degrees = change.error(0.05)
    assert error == pytest.approx(sqrt(0.5**2 + (growth * base_error) ** 2) / unit) and degrees == inf
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
    change = ScoreChange(score(3.0, 0.1), old, runs, in_parts=False)
    spread = 2 * sqrt(1 + 1 / 3)
    assert change.error(0.05) == (pytest.approx(spread), pytest.approx(spread), 2.0)
    assert change.noise_if_unchanged(10, 30) == (
        pytest.approx(spread),
        pytest.approx(2 * stats.t.isf(0.05, 2) * spread),
    )
    calm = ScoreChange(score(3.0, 0.1), old, 3 + (runs - 3) / 1e6, in_parts=False)
    assert calm.error(0.05)[2] == inf
    assert between_scores(runs, 1) == (pytest.approx(2 * sqrt(2)), 2.0)


@pytest.mark.parametrize(
    ("base", "in_parts", "is_zero"), [(0.19, True, True), (0.2, True, False), (-0.2, True, False), (0.0, False, False)]
)
def test_parts_of_a_score_that_may_be_zero_are_not_judged(base, in_parts, is_zero):
    change = ScoreChange(score(1.0, 0.1), [score(base, 0.1)], np.array([]), in_parts)
    assert ("cannot be distinguished from 0" in change.why_not("fd")) == is_zero
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


def look(old, ref, trait="dark", level=0.0, error=0.1):
    both = [Normal(name="", value=one, margin=0.0, error=error) for one in (old, ref)]
    return Beyond(name="", value=min(old, ref), margin=0.0, trait=trait, old=both[0], ref=both[1], level_of_ref=level)


def test_a_look_is_a_gain_as_far_as_it_is_one_on_both():
    one, half = look(0.5, 0.4, level=0.02), stats.norm.isf
    assert one.bound("high", 0.05) == pytest.approx(0.4 + 0.1 * half(0.05))
    assert one.bound("low", 0.05) == pytest.approx(0.4 - 0.1 * half(0.05))
    assert one.bound("low", 0.001) == pytest.approx(min(0.5 - 0.1 * half(0.001), 0.4 - 0.1 * half(0.02)))
    assert one.detectable(0.001) == pytest.approx(0.1 * (half(0.001) + SEEN))
    assert one.detectable(0.05) == pytest.approx(0.1 * (half(0.05) + SEEN))
    assert look(0.5, 0.4, error=inf).detectable(0.05) is None


def test_the_clearest_look_shares_the_level_among_all():
    looks = (look(0.35, 0.35, "dark"), look(0.5, 0.5, "blurred"), look(0.1, 0.1, "gray"), look(0.19, 0.19, "sharp"))
    one = Clearest.of("appearance.part", 0.2, looks, 100)
    assert (one.value, one.n) == (0.5, 100)
    quarter = stats.norm.isf(0.05 / 4)
    assert one.bound("low", 0.05) == pytest.approx(0.5 - 0.1 * quarter)
    assert one.bound("high", 0.05) == pytest.approx(0.5 + 0.1 * stats.norm.isf(0.05))
    assert one.beyond(0.05) == {"dark", "blurred"}
    assert one.beyond(4 * stats.norm.sf(3.6)) == {"blurred"}  # 3.5 standard errors are not enough
    assert one.detectable(0.05) == pytest.approx(0.1 * (quarter + SEEN))
    # A look beyond the limit comes before a look that is surer, and is within it.
    sure = Clearest.of("x", 0.2, (look(0.19, 0.19, error=0.001), look(0.21, 0.21)), 10)
    assert sure.value == 0.21 and sure.bound("low", 0.05) == pytest.approx(0.21 - 0.1 * stats.norm.isf(0.025))
    within = Clearest.of("x", 0.2, (look(0.19, 0.19, error=0.001), look(0.1, 0.1)), 10)
    assert within.bound("low", 0.05) == pytest.approx(0.19 - 0.001 * stats.norm.isf(0.025)) and not within.beyond()


def test_samples_that_moved_have_bounds_around_the_total_variation():
    new, old = map(EffectiveCounts.of, ([300.0, 500.0, 200.0], [400.0, 400.0, 200.0]))
    one = Moved(name="", value=0.1, margin=0.2, new=new, old=old, unchanged=0.0)
    same = one.without_change()
    assert same.value == 0 and same.new.n == 1000 and same.new.members == pytest.approx(old.members)
    half = replace(one, new=new * 0.5).without_change()
    assert half.new.n == pytest.approx(500) and half.new.members == pytest.approx(old.members / 2)
    assert one.bound("low", 0.025) < 0.1 <= one.bound("high", 0.025)
    assert one.bound("low", 0.025) < one.bound("low", 0.025, 9.0)
    assert one.bound("high", 0.025, 9.0) < one.bound("high", 0.025)
    found = [one.detectable(level) for level in (0.05, 0.01)]
    assert (found[1] - 0.2) / (found[0] - 0.2) == pytest.approx(
        (stats.norm.isf(0.01) + SEEN) / (1.6449 + SEEN), rel=1e-3
    )
    more = replace(one, new=new * 4.0, old=old * 4.0).detectable(0.05)
    assert found[0] - 0.2 == pytest.approx(2 * (more - 0.2)) and 0.2 < found[0] < 0.3
    assert replace(one, margin=0.99).detectable(0.01) is None


def test_an_undecided_limit_has_the_interval_of_both_levels_and_the_samples_that_decide_it():
    one = Judged(normal(0.45), "undecided", near=0.01, far=0.05)
    assert one.interval == pytest.approx((0.45 - 0.1 * stats.norm.isf(0.01), 0.45 + 0.1 * stats.norm.isf(0.01)))
    assert replace(one, verdict="held").interval == pytest.approx((0.45 - 0.16449, 0.45 + 0.16449), abs=1e-4)
    assert one.needed == pytest.approx(1000 * (0.1 * stats.norm.isf(0.05) / 0.05) ** 2, rel=0.01)
    assert replace(one, verdict="held").needed is None


def test_levels_are_shared_by_limits_that_have_not_regressed():
    clear, calm = normal(2.0, name="clear"), normal(0.0)
    assert {one.near for one in judge([clear, calm, calm], 0.06)} == {0.03}
    assert {one.far for one in judge([clear, calm], 0.06, interim=3)} == {0.02}
    assert [one.near for one in judge([clear], 0.06)] == [0.06]


def test_a_limit_finer_than_samples_can_show_says_how_many_could():
    fine = normal(0.9, unchanged=0.0, margin=0.05, name="metrics.fd worse")
    (said,) = too_fine([fine], 0.05, 1)
    needed = 1000 * (0.1 * stats.norm.isf(0.05) / 0.05) ** 2
    drawn = int(said.rpartition("draw ")[2].split()[0].replace(",", ""))
    assert drawn == pytest.approx(needed, rel=0.01) and "allow at least 0.17 or" in said
    (stricter,) = too_fine([fine], 0.05, 5)
    assert "allow at least 0.24 or" in stricter
    assert int(stricter.rpartition("draw ")[2].split()[0].replace(",", "")) == pytest.approx(needed * 2.0, rel=0.02)
    assert not [*too_fine([replace(fine, margin=0.165)], 0.05, 1)]
    assert [*too_fine([replace(fine, margin=0.164)], 0.05, 1)]
    low = replace(fine, harm="low", margin=-0.164)
    assert [*too_fine([low], 0.05, 1)] and not [*too_fine([replace(low, margin=-0.165)], 0.05, 1)]
    assert "draw" not in next(too_fine([replace(fine, fixed=0.1)], 0.05, 1))


@pytest.mark.parametrize("family", [1, 20])
def test_an_unchanged_release_keeps_the_floor_of_a_first_policy(family):
    one = gain_of(50.0, 1000.0, 50.0, 1000.0)
    unlucky = stats.gamma.ppf(1 - 0.05 / family, 51)
    assert _floor(one, family) == pytest.approx(one.with_members(unlucky).bound("high", 0.05))
    lost = loss_of(50.0, 1000.0, 50.0, 1000.0)
    least = stats.gamma.ppf(0.05 / family, 50)
    assert _floor(lost, family) == pytest.approx(lost.with_members(least).bound("high", 0.05))
    assert _floor(one, 20) > _floor(one, 1) > 0


@pytest.mark.parametrize(
    ("share", "most"), [(0.0, 0.01), (0.004, 0.01), (0.1, 0.15), (0.5, 0.75), (0.9, 0.95), (0.99966, 0.99983)]
)
def test_a_first_limit_leaves_half_of_what_the_baseline_leaves(share, most):
    assert _most(share) == pytest.approx(most)


def test_a_distance_says_its_interval_unless_it_is_limited():
    one = Distance("baseline", 7, 0.1, (0.05, 0.2))
    assert "[" in one.say([])
    assert "[" not in one.say(["kinds.moved"]) and "[" in one.say(["kinds.moved-anchor"])
    assert "[" not in replace(one, to="anchor").say(["kinds.moved-anchor"])
