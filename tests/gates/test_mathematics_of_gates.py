"""Evidence of gates on tiny counts: against exact laws, direct formulas and limits that are known."""

from dataclasses import replace
from math import hypot, inf, sqrt

import numpy as np
import pytest
from scipy import stats

from finc_eval.gates.appearance import Beyond, Clearest
from finc_eval.gates.evidence import Distance, Moved, Normal, PlainFact, round_up
from finc_eval.gates.first_policy import _floor, _most
from finc_eval.gates.rule import Judged, judge, too_fine
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
    assert replace(one, surely=0.2).seen(0.01) == pytest.approx(0.5 + SEEN * 0.1)  # from another start, the same error
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
