"""The rule of the gate: held and regressed exclude each other, nothing missing passes, and both errors keep α."""

from bisect import bisect_left
from dataclasses import replace
from itertools import product
from math import inf, nan

import numpy as np
import pytest
from scipy import stats

from finc_eval.estimates.retraining import MIN_REPLICATES, between_scores, between_shares, moderate
from finc_eval.gates.evidence import Missing, Normal, PlainFact
from finc_eval.gates.rule import decide, family_sentence, judge, overall_of
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts

ENDS = [-inf, -1.0, -0.2, 0.0, 0.3, 0.5, 0.6, 2.0, inf]


def estimate(name="fd", value=0.0, **others) -> Normal:
    return Normal(**{"name": name, "value": value, "margin": 0.5, "error": 0.1, "n": 1000, "unchanged": 0.0} | others)


def lost(members=200.0, old_members=200.0, size=10_000.0, old_size=10_000.0, margin=0.5, name="kind", **retraining):
    return LostShare(
        name=name,
        value=LostShare.value_of(members / size, old_members / old_size, 0.01),
        margin=margin,
        n=int(size),
        least=0.01,
        counts=TwoCounts(members, size, old_members, old_size, **retraining),
    )


def gained(members=0.0, old_members=0.0) -> GainedShare:
    counts = TwoCounts(members, 10_000.0, old_members, 10_000.0)
    return GainedShare(name="new", value=counts.share - counts.old_share, margin=0.02, n=10_000, counts=counts)


@pytest.mark.parametrize("low, high", [(a, b) for a, b in product(ENDS, ENDS) if a <= b])
def test_the_verdict_of_an_interval_says_where_all_of_it_lies(low, high):
    found = decide((low, high), 0.5, unchanged=0.0)
    assert (found == "regressed") == (low > 0.5)
    assert (found in ("held", "improved")) == (high <= 0.5)
    assert (found == "improved") == (high < 0)
    assert (found == "undecided") == (low <= 0.5 < high)
    mirrored = decide((-high, -low), -0.5, harm="low", unchanged=0.0)
    assert mirrored == found


@pytest.mark.parametrize(
    "value, error, more, verdict",
    [
        (0.7, 0.3, {"surely": 0.0}, "regressed"),  # surely there, and more than allowed by the estimate
        (0.7, 0.5, {"surely": 0.0}, "undecided"),  # perhaps not there
        (0.4, 0.1, {"surely": 0.0}, "undecided"),  # surely there, and less than allowed by the estimate
        (0.2, 0.1, {"surely": 0.0}, "held"),
        (0.7, 0.3, {}, "undecided"),  # a limit of its own needs all of the interval beyond it
        (0.7, 0.5, {"surely": 0.0, "is_search": True}, "held"),  # what is not found holds
        (0.7, 0.3, {"surely": 0.0, "is_search": True}, "regressed"),
        (nan, 0.3, {"surely": 0.0, "is_search": True}, "missing"),
    ],
)
def test_what_is_surely_there_is_a_regression_if_its_estimate_is_beyond_the_limit(value, error, more, verdict):
    assert [one.verdict for one in judge([estimate(value=value, error=error, **more)])] == [verdict]
    mirrored = estimate(value=-value, margin=-0.5, harm="low", error=error, **more)
    assert [one.verdict for one in judge([mirrored])] == [verdict]


def test_what_would_be_seen_is_surely_there_and_beyond_the_limit_in_four_of_five_draws():
    for margin in (0.05, 0.3, 0.9):
        one = estimate(margin=margin, surely=0.0)
        draws = np.random.default_rng(0).normal(one.seen(0.01), one.error, 4000)
        found = np.mean([replace(one, value=value).is_regression(0.01) for value in draws])
        assert 0.77 < found < 0.83, margin
    assert replace(lost(), surely=0.0, margin=0.99).seen(1e-9) is None  # no loss is more than all


def test_not_a_number_is_missing_whichever_end_it_is_in():
    assert {decide(ends, 0.5) for ends in [(nan, 0.1), (0.1, nan), (nan, nan)]} == {"missing"}
    assert decide((0.1, 0.2), nan) == "missing"
    (one,) = judge([estimate(value=nan)])
    assert (one.verdict, one.interval) == ("missing", None)


@pytest.mark.parametrize(
    "verdicts, overall",
    [
        ((), "error"),
        (("held",), "pass"),
        (("held", "improved"), "pass"),
        (("held", "undecided"), "undecided"),
        (("held", "missing"), "error"),
        (("undecided", "missing"), "error"),
        (("regressed", "missing"), "regression"),
        (("improved", "regressed", "undecided"), "regression"),
    ],
)
def test_a_release_passes_only_where_every_limit_holds_and_there_is_one(verdicts, overall):
    assert overall_of(verdicts) == overall


def test_the_order_of_limits_changes_no_verdict():
    limits = [estimate(str(i), value, error=0.12) for i, value in enumerate([-0.5, 0.0, 0.3, 0.75, 0.9, 2.0])]
    straight = {one.evidence.name: one for one in judge(limits)}
    turned = {one.evidence.name: one for one in judge(limits[::-1])}
    assert straight == turned
    assert straight["0"].verdict == "improved"
    assert straight["5"].verdict == "regressed"


def test_holm_lets_a_regression_make_room_for_the_next():
    near = estimate("near", 0.5 + 0.1 * 2.1)
    calm = [estimate(f"calm{i}") for i in range(2)]
    assert judge([near, *calm])[0].verdict == "undecided"  # 2.1 standard errors, 2.13 are needed at 0.05 / 3
    assert judge([near, estimate("clear", 2.0), *calm[:1]])[0].verdict == "regressed"  # 1.96 at 0.05 / 2


def family(evidence, alpha, interim):
    """Return the sentence on limits that are judged."""
    return family_sentence(judge(evidence, alpha, interim), alpha, interim)


def test_facts_are_sure_and_spend_nothing():
    fact = PlainFact(name="unreadable", value=3.0, margin=2.0)
    found = judge([estimate("fd"), fact])
    assert [one.verdict for one in found] == ["held", "regressed"]
    assert found[0].interval == judge([estimate("fd")])[0].interval
    assert "1 limit, besides 1 plain fact" in family([estimate(), fact], 0.05, 1)
    assert family([fact], 0.05, 1) == family([], 0.05, 1) == "Nothing that was judged is a matter of chance."


def test_missing_evidence_is_missing():
    (one,) = judge([Missing(name="fid", margin=1.0, note="not computed")])
    assert (one.verdict, one.interval, one.detectable, one.needed) == ("missing", None, None, None)


def test_an_undecided_limit_says_how_many_samples_decide_it():
    (one,) = judge([estimate(value=0.4)])
    assert one.verdict == "undecided"
    enough = replace(one.evidence, error=0.1 * np.sqrt(1000 / one.needed))
    few = replace(one.evidence, error=0.1 * np.sqrt(1000 / (0.98 * one.needed)))
    assert judge([enough])[0].verdict == "held"
    assert judge([few])[0].verdict == "undecided"


def test_what_more_samples_cannot_decide_has_no_number():
    (on_the_margin,) = judge([estimate(value=0.5)])
    (of_the_reference,) = judge([estimate(value=0.4, fixed=0.1)])
    assert (on_the_margin.verdict, on_the_margin.needed) == ("undecided", None)
    assert (of_the_reference.verdict, of_the_reference.needed) == ("undecided", None)


def test_interim_runs_share_alpha():
    one = estimate(value=0.0)
    assert judge([one], 0.05, interim=5)[0].interval == judge([one], 0.01)[0].interval
    assert "this run, 1 of 5, spends" in family([one], 0.05, 5)


def test_the_family_says_the_level_of_either_end():
    calm = [estimate(f"calm{i}") for i in range(3)]
    told = "is a one-sided bound of {}; for limits that held, of {}."
    assert told.format("98.33 %", "95 %") in family(calm, 0.05, 1)
    assert told.format("97.5 %", "95 %") in family([*calm[:2], estimate("clear", 2.0)], 0.05, 1)
    assert told.format("99.5 %", "99 %") in family(calm[:2], 0.05, 5)


def test_the_ratio_of_shares_has_the_bounds_of_the_conditional_binomial_law():
    one = lost(60.0, 200.0)
    level = 0.01
    bound = one.bound("low", level)
    # At this bound, as few members as were seen have the probability of the level (its main part).
    ratio = 1 - bound
    assert stats.binom.cdf(60, 260, ratio / (ratio + 1)) == pytest.approx(0.9 * level)
    assert bound < one.value < one.bound("high", level)


def test_a_lost_kind_is_a_regression_and_an_unchanged_one_holds():
    limits = [lost(0.0, 200.0, name="gone"), lost(201.0, 200.0, name="same"), lost(400.0, 200.0, name="grown")]
    assert [one.verdict for one in judge(limits)] == ["regressed", "held", "improved"]


def test_nothing_is_lost_of_a_kind_that_the_baseline_hardly_makes():
    absent = lost(0.0, 0.0)
    assert judge([absent])[0].verdict == "held"
    few = lost(0.0, 1.0, size=100.0, old_size=100.0)
    assert judge([few])[0].verdict == "undecided"


def test_a_new_kind_is_a_regression_where_the_baseline_has_it_not():
    assert judge([gained(400.0)])[0].verdict == "regressed"
    assert judge([gained(400.0, 400.0)])[0].verdict == "held"
    assert judge([gained(5.0)])[0].verdict == "held"
    assert judge([gained(200.0)])[0].verdict == "undecided"


def most_regressed(one: LostShare, level: float) -> int:
    """The largest number of members with which a release is a regression; −1 if there is none."""

    def regressed(members: int) -> bool:
        return one.with_members(float(members)).bound("low", level) > one.margin

    return bisect_left(range(int(one.counts.old_members) + 1), True, key=lambda members: not regressed(members)) - 1


@pytest.mark.parametrize(
    "share, size, margin",
    [(0.03, 2000, 0.5), (0.05, 2000, 0.5), (0.02, 10_000, 0.5), (0.1, 1000, 0.2), (0.1, 1000, 0.05), (0.4, 500, 0.3)],
)
def test_a_loss_of_the_detectable_size_is_seen_in_four_of_five_runs(share, size, margin):
    """The mean of the exact power, over all baselines that may be drawn: each one says what it would see."""
    power, level = 0.0, 0.05 / 10
    law = stats.binom(size, share)
    for old in range(int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4)) + 1):
        one = lost(share * size, float(old), size=float(size), old_size=float(size), margin=margin)
        detectable = one.detectable(level)
        power += law.pmf(old) * stats.binom.cdf(most_regressed(one, level), size, share * (1 - detectable))
    assert 0.8 <= power < 0.9


@pytest.mark.parametrize("old", [0.0, 30.0])
def test_a_gain_of_the_detectable_size_is_seen_in_four_of_five_runs(old):
    rng, level = np.random.default_rng(1), 0.05 / 20
    detectable = gained(old, old).detectable(level)
    runs, seen = 300, 0
    for _ in range(runs):
        before, now = rng.binomial(10_000, old / 10_000), rng.binomial(10_000, old / 10_000 + detectable)
        seen += gained(float(now), float(before)).bound("low", level) > 0.02
    assert 0.75 < seen / runs < 0.97


def test_a_change_of_which_a_part_is_seen_must_be_larger_to_be_detectable():
    whole, part = (judge([replace(gained(), part=part)])[0].detectable for part in (1.0, 0.8))
    assert part == pytest.approx(whole / 0.8)
    assert judge([replace(gained(), part=whole / 2)])[0].detectable is None


def test_a_detectable_distance_may_be_larger_than_one():
    (one,) = judge([Normal(name="fd", value=0.1, margin=1.2, error=0.1)])
    assert one.detectable == pytest.approx(1.2 + 0.1 * (1.645 + 0.842), abs=1e-3)


def test_what_a_gain_may_be_is_wider_than_the_noise_of_training_that_was_seen():
    """The noise grows with the share, and a larger share than the one that was seen may be true."""
    counts = TwoCounts(400.0, 10_000.0, 400.0, 30_000.0, training=0.004, degrees=6.0)
    one = GainedShare(name="kind", value=counts.share - counts.old_share, margin=0.02, counts=counts)
    below, above = one.value - one.bound("low", 0.05), one.bound("high", 0.05) - one.value
    assert 1.1 * below < above < 2 * below


def test_an_unchanged_release_is_rarely_called_a_regression_even_at_the_margin():
    rng, runs, false = np.random.default_rng(2), 120, 0
    for _ in range(runs):
        old, new = rng.binomial(2000, 0.05, 10), rng.binomial(2000, 0.025, 10)
        found = judge([lost(float(k), float(o), size=2000.0, old_size=2000.0) for k, o in zip(new, old, strict=True)])
        false += any(one.verdict == "regressed" for one in found)
    assert false <= stats.binom.ppf(0.99, runs, 0.05)


def retrained(rng, replicates: int, modes: int = 20, size: int = 4000, spread: float = 3.0):
    """Members of the replicates of a baseline and of a release without change, whose shares move by training."""
    share = np.full(modes, 1 / modes)
    moved = share * (1 + spread * rng.normal(0, 1, (replicates + 1, modes)) * np.sqrt((1 - share) / (share * size)))
    members = rng.binomial(size, np.clip(moved, 0.001, 1))
    return members[:-1].astype(float), members[-1].astype(float), float(size)


@pytest.mark.parametrize("anchored", [pytest.param(False, marks=pytest.mark.long), True])
def test_replicates_of_the_baseline_keep_alpha_under_the_noise_of_training(anchored):
    """A release is held against all replicates together, or against an anchor, which was trained once."""
    rng, runs, naive, false = np.random.default_rng(3), 60, 0, 0
    for _ in range(runs):
        before, now, size = retrained(rng, MIN_REPLICATES + anchored)
        before, old = (before[:-1], before[-1]) if anchored else (before, before.sum(0))
        found = between_shares(before, np.full_like(before, size), 1 if anchored else None)
        pairs = list(zip(now, old, strict=True))
        given = {"size": size, "old_size": size if anchored else 3 * size, "margin": 0.1}
        noisy = [
            lost(float(k), float(o), **given, training=float(training), degrees=found.degrees)
            for (k, o), training in zip(pairs, found.training, strict=True)
        ]
        alone = [lost(float(k), float(o), **given) for k, o in pairs]
        false += any(one.verdict == "regressed" for one in judge(noisy))
        naive += any(one.verdict == "regressed" for one in judge(alone))
    assert false <= stats.binom.ppf(0.99, runs, 0.05)
    assert naive > 0.5 * runs


@pytest.mark.one_of_each
@pytest.mark.parametrize("law", ["lognormal", "long tails"])
def test_gains_keep_alpha_under_the_noise_of_training(law):
    rng, runs, kinds, size, false = np.random.default_rng(6), 60, 100, 10_000.0, 0
    share = rng.dirichlet(np.ones(kinds)) + 0.2 / kinds
    share /= share.sum()

    def members():
        drawn = rng.standard_t(5, kinds) * np.sqrt(0.6) if law == "long tails" else rng.normal(size=kinds)
        moved = share * np.exp(np.clip(3 * drawn * np.sqrt((1 - share) / (size * share)), -3, 3))
        return rng.multinomial(int(size), moved / moved.sum()).astype(float)

    for _ in range(runs):
        before, now = np.array([members() for _ in range(4)]), members()
        found, old = between_shares(before, np.full_like(before, size)), before.sum(0)
        counts = [
            TwoCounts(k, size, o, 4 * size, float(training), found.degrees)
            for k, o, training in zip(now, old, found.training, strict=True)
        ]
        limits = [
            GainedShare(name="", value=one.share - one.old_share, margin=1e-9, n=int(size), counts=one)
            for one in counts
        ]
        false += any(one.bound("low", 0.05 / kinds) > one.margin for one in limits)
    assert false <= stats.binom.ppf(0.99, runs, 0.05)


def test_a_kind_that_no_replicate_has_says_nothing_of_training():
    rng = np.random.default_rng(7)
    before, _, size = retrained(rng, 3)
    found = between_shares(before, np.full_like(before, size))
    more = between_shares(np.c_[before, np.zeros((3, 5))], np.full((3, 25), size))
    assert more.degrees == found.degrees
    assert more.training[:20] == pytest.approx(found.training)
    assert more.training[20:] == pytest.approx(np.median(found.training), rel=0.5)


@pytest.mark.parametrize("training, least, most", [(0.0, 0.05, 0.07), (0.001, 0.09, 0.12)])
def test_a_new_kind_is_seen_where_replicates_differ(training, least, most):
    """A kind that no replicate has is a regression from some share on, and a larger one where training moves more."""
    counts = TwoCounts(0.0, 2000.0, 0.0, 6000.0, training, 40.0)
    one = GainedShare(name="", value=0.0, margin=0.02, n=2000, counts=counts)
    detectable = one.detectable(0.05 / 20)
    assert least < detectable < most
    assert judge([one.with_members(1.3 * detectable * 2000)])[0].verdict == "regressed"


def test_replicates_that_agree_cost_little():
    rng = np.random.default_rng(4)
    before, _, size = retrained(rng, 3, spread=0.0)
    found = between_shares(before, np.full_like(before, size))
    assert float(np.median(found.training)) < 0.5 / size
    assert found.degrees > 5


def test_two_replicates_are_too_few_for_a_variance():
    found = between_shares(np.full((2, 5), 10.0), np.full((2, 5), 100.0))
    assert (found.training.tolist(), found.degrees) == ([0.0] * 5, inf)
    few, enough = (between_scores(np.array(one)) for one in ([1.0, 2.0], [1.0, 2.0, 3.0]))
    assert (few.variance, few.degrees) == (0.0, inf)
    error, degrees = enough.variance**0.5, enough.degrees
    assert (error, degrees) == (pytest.approx(np.sqrt(4 / 3)), 2.0)


def test_modes_with_one_common_variance_are_moderated_to_it():
    rng = np.random.default_rng(5)
    raw = 4 * rng.chisquare(2, 200) / 2
    ratios, degrees = moderate(raw, 2)
    assert ratios.mean() == pytest.approx(4, rel=0.3)
    assert ratios.std() < raw.std() / 2
    assert degrees > 4
