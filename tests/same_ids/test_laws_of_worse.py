"""Laws of what is worse: errors as of a jackknife, bounds as scipy has them, and both sides of each limit."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest, t

from finc_eval.naming.traits import TRAITS
from finc_eval.same_ids.pairs import PairTable
from finc_eval.same_ids.worse import (
    MARGIN,
    REPEATS_MARGIN,
    SHARE_MARGIN,
    causes_among,
    error_of,
    find_moved,
    judge_diversity,
    judge_fit,
    judge_kinds,
    judge_looks,
    judge_repeats,
)

N, ERROR = 60, 0.01
NAMES = [trait.name for trait in TRAITS]
BAD = {trait.name: trait.bad for trait in TRAITS if trait.bad}
LEAST_SPREADS = {trait.name: trait.least_spread or 0.07 for trait in TRAITS if trait.bad}


def drawn(seed=0, shift=0.4, n=N):
    """Values of a reference, and what a run is worse by: with a mean, and dependent on the reference."""
    rng = np.random.default_rng(seed)
    before = 3 + 2 * rng.gamma(3, size=n)
    return before, shift + 0.3 * rng.normal(size=n) + 0.2 * (before - before.mean())


def jackknife(statistic, units):
    """Return the standard error of a statistic of rows, without one unit at a time."""
    groups = np.unique(units)
    left = np.array([statistic(units != one) for one in groups])
    return np.sqrt((len(groups) - 1) / len(groups) * ((left - left.mean()) ** 2).sum())


def half_width(margin):
    low, high = margin.interval
    assert margin.difference == pytest.approx((low + high) / 2)
    return (high - low) / 2


@pytest.mark.parametrize("size", [1, 3])
def test_the_error_of_a_fit_is_that_of_a_jackknife_over_units(size):
    before, worse = drawn(n=90)
    units = np.arange(90) // size
    (found,) = judge_fit((before - worse, before), units, ERROR)
    error = jackknife(lambda kept: worse[kept].mean() / before[kept].std(), units)
    assert found.difference == pytest.approx(worse.mean() / before.std())
    assert half_width(found) == pytest.approx(t.ppf(1 - ERROR, 90 / size - 1) * error, rel=0.04)


def test_a_single_unit_shows_nothing_and_a_reference_that_never_varies_is_its_own_unit():
    before, worse = drawn()
    (found,) = judge_fit((before - worse, before), np.zeros(N, int), ERROR)
    assert (found.interval, found.verdict) == ((-np.inf, np.inf), "undecided")
    (found,) = judge_fit((2 - worse, np.full(N, 2.0)), np.arange(N), ERROR)
    assert found.difference == pytest.approx(worse.mean())
    assert half_width(found) == pytest.approx(t.ppf(1 - ERROR, N - 1) * worse.std(ddof=1) / N**0.5)


def table_of(changes, spread=10.0, n=N, seed=0):
    """Pairs whose traits are `spread` times the least spreads, and move by so many of their standard deviations."""
    rng = np.random.default_rng(seed)
    unit = rng.normal(size=n)
    unit = (unit - unit.mean()) / unit.std()
    before = np.column_stack([50 + spread * LEAST_SPREADS.get(name, 0.1) * unit for name in NAMES])
    small = rng.normal(0, 0.01, before.shape)
    moves = np.array([changes.get(name, 0.0) for name in NAMES])
    sizes = np.array([max(spread, 1.0) * LEAST_SPREADS.get(name, 0.1) for name in NAMES])
    return PairTable({}, np.zeros(n), (before + sizes * (moves + small - small.mean(0)), before))


def look(name):
    return next(trait for trait in TRAITS if trait.name == name)


@pytest.mark.parametrize("name", [name for name in BAD if look(name).least is None])
def test_a_look_is_worse_in_its_bad_direction_alone_by_so_many_standard_deviations(name):
    trait = look(name)
    expected = (trait.more or trait.high) if BAD[name] > 0 else trait.less
    for spread in (10.0, 0.5):  # of a reference that varies by half of what it has at least, this counts
        found = judge_looks(table_of({name: BAD[name] * 0.8}, spread), np.arange(N), ERROR)
        assert [(one.name, one.verdict) for one in found if one.verdict == "worse"] == [(expected, "worse")]
        assert found[0].difference == pytest.approx(0.8)
        better = judge_looks(table_of({name: -BAD[name] * 0.8}, spread), np.arange(N), ERROR)
        assert [one.difference for one in better if one.name == expected] == pytest.approx([-0.8])
        assert {one.verdict for one in better} == {"not worse"}
        assert len(better) == len(BAD)


@pytest.mark.parametrize("part", [0.99, 1.01])
def test_the_spread_of_a_reference_has_an_error_where_it_is_the_unit(part):
    name, least = "contrast", LEAST_SPREADS["contrast"]
    table = table_of({})
    before, worse = drawn()
    before *= part * least / before.std()
    for values, own in zip(table.traits, (before - least * worse, before), strict=True):
        values[:, NAMES.index(name)] = own
    found = next(one for one in judge_looks(table, np.arange(N), ERROR) if one.name == look(name).less)
    unit = (lambda kept: before[kept].std()) if part > 1 else (lambda kept: least)
    error = jackknife(lambda kept: (least * worse)[kept].mean() / unit(kept), np.arange(N))
    assert found.difference == pytest.approx((least * worse).mean() / max(before.std(), least))
    assert half_width(found) == pytest.approx(t.ppf(1 - ERROR, N - 1) * error, rel=0.06 if part > 1 else 1e-9)


@pytest.mark.parametrize(
    ("halves", "verdict"), [(1.2, "worse"), (0.8, "undecided"), (-0.8, "undecided"), (-1.2, "not worse")]
)
def test_a_look_is_worse_or_not_where_its_whole_interval_is_on_one_side_of_the_margin(halves, verdict):
    before, worse = drawn()
    wide = worse + (MARGIN - worse.mean() / before.std()) * before.std()
    half = half_width(judge_fit((before - wide, before), np.arange(N), ERROR)[0])
    (found,) = judge_fit((before - wide - halves * half * before.std(), before), np.arange(N), ERROR)
    assert found.difference == pytest.approx(0.25 + halves * half)
    assert (found.verdict, found.margin) == (verdict, 0.25)


def test_noise_that_no_eye_sees_is_not_worse():
    table = table_of({})
    column, unseen = NAMES.index("noise"), np.log(9 / 255)
    own, before = table.traits
    own[:, column], before[:, column] = unseen - 0.01, unseen - 5 - np.arange(N) / N
    assert {one.difference for one in judge_looks(table, np.arange(N), ERROR) if one.name == "noisier"} == {0.0}
    own[:, column] = unseen + LEAST_SPREADS["noise"]
    (found,) = [one for one in judge_looks(table, np.arange(N), ERROR) if one.name == "noisier"]
    assert found.difference == pytest.approx(1)


CAUSES = {
    "a look that brings another, clearer": ({"specks": 2.0, "noise": 1.5}, ["specks"]),
    "a look that brings another, as clear": ({"specks": 1.5, "noise": 2.0}, ["specks"]),
    "a look that brings another, too faint to be its cause": ({"specks": 0.5, "noise": 2.0}, ["noise"]),
    "two looks of which none brings the other": ({"noise": 1.0, "contrast": -1.5}, ["noise", "contrast"]),
    "two looks, the second far clearer": ({"specks": 0.5, "saturation": -2.0}, ["saturation", "specks"]),
}
"""Standard deviations by which looks change, and the looks that are then worse, in order."""


@pytest.mark.parametrize("case", CAUSES)
def test_a_look_that_changes_with_a_clearer_one_is_not_a_cause(case):
    changes, expected = CAUSES[case]
    found = judge_looks(table_of(changes), np.arange(N), ERROR)
    names = [(look(one).more or look(one).high) if BAD[one] > 0 else look(one).less for one in expected]
    assert [one.name for one in found if one.verdict == "worse"] == names
    verdicts = [one.verdict for one in found]
    assert verdicts == sorted(verdicts, key=lambda one: one != "worse")


def test_looks_that_moved_are_said_by_their_way_without_those_that_follow():
    changes = {"warmth": 0.9, "top": -1.5, "green": 0.1, "saturation": -2.0}
    found = find_moved(table_of(changes), np.arange(N), ERROR)
    assert {one.margin.name for one in found} == {"redder, of a warmer tint", "brighter at the bottom", "paler"}
    assert [one.is_bad for one in found if one.trait.name in ("saturation", "top")] == [True, False]
    causes = [(cause.trait.name, [one.trait.name for one in follows]) for cause, follows in causes_among(found)]
    assert causes == [("saturation", ["warmth"]), ("top", [])]
    table = table_of(changes)
    table.traits[1][:, NAMES.index("top")] = 1.0  # all of the reference have it alike
    assert "top" not in {one.trait.name for one in find_moved(table, np.arange(N), ERROR)}
    assert find_moved(PairTable({}, np.zeros(N), None), np.arange(N), ERROR) == []
    assert judge_looks(PairTable({}, np.zeros(N), None), np.arange(N), ERROR) == []


@pytest.mark.parametrize(("part", "verdict"), [(0.2, "worse"), (0.0, "not worse")])
def test_a_look_that_samples_have_or_have_not_is_judged_as_a_share(part, verdict):
    table = table_of({})
    for values in table.traits:
        values[:, NAMES.index("gray")] = 0.0
    table.traits[0][: round(part * N), NAMES.index("gray")] = 1.0
    (found,) = [one for one in judge_looks(table, np.arange(N), ERROR) if one.name == look("gray").high]
    assert (found.what, found.difference, found.verdict) == ("part", pytest.approx(part), verdict)
    assert found.shares == (pytest.approx(part), 0.0)


def exact(count, n, error):
    """Bounds of Clopper and Pearson."""
    low = beta.ppf(error, count, n - count + 1) if count else 0.0
    return low, beta.ppf(1 - error, count + 1, n - count) if count < n else 1.0


def flips(lost, gained, n, names=2):
    """Kinds of pairs, of which so many leave the first kind for the second, and so many the other way."""
    before = np.repeat([0, 1], [n - n // 2, n // 2])
    own = before.copy()
    own[:lost], own[n - gained :] = 1, 0
    return own, before


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (7, 3), (30, 2), (3, 30), (100, 100)])
def test_the_loss_of_a_kind_has_exact_bounds_of_both_ways(lost, gained):
    n = 200
    found = judge_kinds(flips(lost, gained, n), ["a", "b"], ERROR)
    away, back = exact(lost, n, ERROR / 2), exact(gained, n, ERROR / 2)
    of_kinds = {"a": (away[0] - back[1], away[1] - back[0]), "b": (back[0] - away[1], back[1] - away[0])}
    worst = max(of_kinds, key=lambda kind: of_kinds[kind][0])
    if of_kinds[worst][0] > SHARE_MARGIN:
        (one,) = found
        assert (one.name, one.what, one.verdict) == (worst, "kind", "worse")
        assert one.interval == pytest.approx(of_kinds[worst])
        assert one.difference == pytest.approx(abs(lost - gained) / n) == pytest.approx(one.shares[1] - one.shares[0])
        assert one.shares[1] == 0.5
    else:
        (one,) = found
        assert (one.name, one.what, one.difference) == ("kinds", "kinds", pytest.approx(abs(lost - gained) / n))
        assert one.interval == pytest.approx(tuple(map(max, zip(*of_kinds.values(), strict=True))))
        assert one.verdict == ("not worse" if one.interval[1] <= SHARE_MARGIN else "undecided")
    assert one.margin == SHARE_MARGIN == 0.02


def test_kinds_that_are_worse_come_the_surest_first():
    before = np.repeat([0, 1, 2, 3], 100)
    own = before.copy()
    own[:60], own[100:180], own[200:201] = 3, 3, 3
    assert [one.name for one in judge_kinds((own, before), list("abcd"), ERROR)] == ["b", "a"]


@pytest.mark.parametrize(("more", "fewer"), [(0, 0), (4, 0), (12, 2), (2, 12), (30, 0), (300, 280), (40, 0)])
def test_repeats_are_worse_by_an_exact_sign_test_and_a_share_beyond_its_margin(more, fewer):
    n = 2000
    own, before = np.arange(n) < more, np.arange(n) >= n - fewer
    own[n // 2], before[n // 2] = True, True  # repeated in both: no flip
    (found,) = judge_repeats((own, before), "one picture", ERROR)
    surely = binomtest(more, more + fewer, 0.5, "greater").pvalue <= ERROR if more + fewer else False
    assert (found.interval[0] > 0) == surely
    if more and fewer:
        low = exact(more, more + fewer, ERROR)[0]
        assert found.interval[0] == pytest.approx((2 * low - 1) * (more + fewer) / n)
    assert found.interval[1] == pytest.approx(exact(more, n, ERROR / 2)[1] - exact(fewer, n, ERROR / 2)[0])
    assert (found.difference, found.margin) == (pytest.approx((more - fewer) / n), REPEATS_MARGIN)
    assert found.shares == ((more + 1) / n, (fewer + 1) / n)
    is_worse = surely and (more - fewer) / n > 0.01
    verdict = "worse" if is_worse else "not worse" if found.interval[1] <= 0.01 else "undecided"
    assert (found.verdict, found.name) == (verdict, "one picture" if is_worse else "repeats")


@pytest.mark.parametrize(("more", "verdict"), [(20, "undecided"), (21, "worse")])
def test_repeats_are_worse_beyond_a_hundredth_of_the_samples(more, verdict):
    (found,) = judge_repeats((np.arange(2000) < more, np.zeros(2000, bool)), "one picture", ERROR)
    assert found.verdict == verdict


def test_diversity_is_judged_from_ten_prompts_on_if_it_varies():
    before, worse = drawn(n=10)
    assert judge_diversity((before[:9], before[:9]), ERROR) == []
    assert judge_diversity((before[:0], before[:0]), ERROR) == []
    assert judge_diversity((before, np.full(10, 2.0)), ERROR) == []
    (found,) = judge_diversity((before - worse, before), ERROR)
    assert found.difference == pytest.approx(worse.mean() / before.std())
    error = jackknife(lambda kept: worse[kept].mean() / before[kept].std(), np.arange(10))
    assert half_width(found) == pytest.approx(t.ppf(1 - ERROR, 9) * error, rel=0.25)


def test_all_bounds_share_the_whole_error():
    assert [error_of(count) for count in (0, 1, 4)] == pytest.approx([0.025, 0.025, 0.00625])
    assert error_of(5, 0.2) == pytest.approx(0.02)
