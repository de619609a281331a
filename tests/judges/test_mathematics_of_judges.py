"""Means, errors, parts, plans and fits of judges on tiny arrays: against direct formulas and scipy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from finc_eval.judges import bradley_terry as bt
from finc_eval.judges import parts as judged
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.parts import Division, Gains, JudgedPart, find_parts
from finc_eval.judges.power import TRUE, plan, reach
from finc_eval.judges.strengths import Strengths, record_of
from finc_eval.judges.votes import read_votes

LEFT, RIGHT, TIE = bt.LEFT, bt.RIGHT, bt.TIE


def gains_of(seed, inside=9, outside=14, answers=1, shift=0.0):
    """Gains of prompts in a part and outside of it, and their prompts."""
    rng = np.random.default_rng(seed)
    prompt = np.repeat(np.arange(inside + outside), answers)
    values = rng.normal(size=len(prompt)) + rng.normal(size=inside + outside)[prompt] + shift * (prompt < inside)
    return values, prompt, prompt < inside


def compared(values, prompt, inside):
    division = Division.of_texts(np.where(inside, "in", "out").tolist())
    return judged._compare("judge", "a", "label", values, prompt, division, division.names.index("in"))


def test_the_interval_of_a_part_is_students_of_the_means_of_its_prompts():
    for answers in (1, 3):
        values, prompt, _ = gains_of(1, answers=answers)
        means, inside = values.reshape(-1, answers).mean(1), np.ones(len(values), bool)
        mean, interval = judged._mean(values, prompt + 5, inside)  # numbers of prompts need not begin at 0
        assert mean == pytest.approx(means.mean())
        assert interval == pytest.approx(stats.t.interval(0.95, len(means) - 1, means.mean(), stats.sem(means)))


def test_the_error_of_a_difference_is_that_of_two_samples_or_of_pairs():
    values, prompt, inside = gains_of(2)
    n, (own, others) = len(values), (values[inside], values[~inside])
    found, _ = judged._differences(values, prompt, inside)
    assert found.value == pytest.approx(own.mean() - others.mean())
    assert found.standard_error == pytest.approx(np.hypot(stats.sem(own), stats.sem(others)))
    assert found.degrees == min(len(own), len(others)) - 1
    # Each prompt has an answer inside and an answer outside: what both share cancels.
    shared = np.random.default_rng(0).normal(size=n)
    both, twice = np.concatenate([values + shared, shared]), np.tile(prompt, 2)
    found, _ = judged._differences(both, twice, np.arange(2 * n) < n)
    assert (found.standard_error, found.degrees) == pytest.approx((stats.sem(values), n - 1))


def test_the_pooled_error_is_that_of_students_test_on_the_means_of_prompts():
    for answers in (1, 4):
        values, prompt, inside = gains_of(3, answers=answers)
        own, others = (values[rows].reshape(-1, answers).mean(1) for rows in (inside, ~inside))
        test = stats.ttest_ind(own, others)
        _, found = judged._differences(values, prompt, inside)
        assert (found.standard_error * test.statistic, found.p_value) == pytest.approx((found.value, test.pvalue))


def test_a_part_has_students_interval_and_the_larger_p_value():
    for seed, shift in ((4, 1.5), (5, 0.0), (6, -1.5)):
        values, prompt, inside = gains_of(seed, shift=shift)
        found = compared(values, prompt, inside)
        own, others = values[inside], values[~inside]
        assert found.interval == pytest.approx(stats.t.interval(0.95, 8, own.mean(), stats.sem(own)))
        assert found.elsewhere == pytest.approx(others.mean()) and found.prompts == 9
        gap = abs(own.mean() - others.mean())
        welch = 2 * stats.t.sf(gap / np.hypot(stats.sem(own), stats.sem(others)), 8)
        assert found.p_value == pytest.approx(max(welch, stats.ttest_ind(own, others).pvalue))
    # All right inside: their own variance is 0, and the pooled one is not.
    values = np.r_[np.ones(9), np.arange(14) % 2]
    found = compared(values, prompt, inside)
    pooled = np.sqrt((values[9:].var() * 14) / 21 * (1 / 9 + 1 / 14))
    assert found.p_value == pytest.approx(2 * stats.t.sf((1 - values[9:].mean()) / pooled, 21))
    assert compared(np.ones(23), prompt, inside).p_value == 1


@pytest.mark.parametrize(("inside", "outside", "is_tested"), [(5, 5, True), (4, 9, False), (9, 4, False), (5, 9, True)])
def test_parts_of_five_prompts_are_tested(inside, outside, is_tested):
    values, prompt, within = gains_of(0, inside, outside, answers=3)
    gains = Gains("a", values, prompt, {"label": Division.of_texts(np.where(within, "in", "").tolist())})
    rows = np.arange(len(values))
    assert judged._testable(gains, "label", rows) == [0] * is_tested
    assert judged._known(gains, "label").tolist() == np.flatnonzero(within).tolist()


def test_p_values_of_parts_are_corrected_for_all_parts_and_half_of_the_error():
    values, prompt, inside = gains_of(7, 12, 12, shift=4.0)
    own = {"label": Division.of_texts(np.where(inside, "in", "out").tolist())}
    several = [Gains(name, values * sign, prompt, own, has_words=False) for name, sign in (("a", 1), ("b", -1))]
    found = find_parts("judge", several, [f"p{number}" for number in range(24)])
    raw = compared(values, prompt, inside).p_value
    assert found[0].p_value == pytest.approx(2 * 4 * raw)  # two parts of two models
    assert all(one.p_value <= 0.05 for one in found)


def part(name, value, by="label", half=0.1):
    return JudgedPart("judge", name, by, "dark", value, (value - half, value + half), 0.0, 9, 0.01)


@pytest.mark.parametrize(
    ("own", "clearest", "models", "follows"),
    [
        (part("b", 0.5), part("a", -1.0), 3, True),  # what a loses, b and c gain in halves
        (part("b", 0.35), part("a", -1.0), 3, True),  # within both half-widths, .1 + .05
        (part("b", 0.34), part("a", -1.0), 3, False),
        (part("b", 0.66), part("a", -1.0), 3, False),
        (part("b", 1.0), part("a", -1.0), 2, True),
        (part("b", -1.0), part("a", -1.0), 2, False),
        (part("", 0.9), part("a", -1.0), 3, True),  # the mean moves by less
        (part("", 1.1), part("a", -1.0), 3, False),
        (part("b", 0.5), part("a", -1.0, by="look"), 3, False),  # of another division
    ],
)
def test_what_a_model_loses_the_others_gain(own, clearest, models, follows):
    assert judged._follows(own, [clearest, own], models) == follows
    assert not judged._follows(clearest, [clearest, own], models)


def scores(seed, models=2, prompts=8, answers=3):
    rng = np.random.default_rng(seed)
    own = {f"m{number}": rng.normal(size=prompts * answers) for number in range(models)}
    return own, {name: [f"p{number // answers}" for number in range(prompts * answers)] for name in own}


def test_means_of_paired_models_have_the_covariance_of_their_prompts():
    values, prompts = scores(1, models=3)
    found = mean_scores(values, prompts)
    table = np.array([own.reshape(-1, 3).mean(1) for own in values.values()])
    assert found.is_paired and found.degrees == 7 and found.seeds == 3 and found.prompts == (8, 8, 8)
    assert found.values == pytest.approx(table.mean(1))
    assert found.covariance == pytest.approx(np.cov(table) / 8)
    within = [own.reshape(-1, 3).var(1, ddof=1).mean() for own in values.values()]
    assert found.within == pytest.approx(np.mean(within))
    assert np.isnan(mean_scores(*scores(1, answers=1)).within)


@pytest.mark.parametrize(("shared", "is_paired"), [(10, True), (5, True), (4, False), (0, False)])
def test_models_that_share_half_of_the_prompts_are_paired(shared, is_paired):
    rng = np.random.default_rng(2)
    values = {"a": rng.normal(size=10), "b": rng.normal(size=max(shared, 3))}
    prompts = {
        "a": [f"p{n}" for n in range(10)],
        "b": [f"p{n}" if n < shared else f"q{n}" for n in range(max(shared, 3))],
    }
    found = mean_scores(values, prompts)
    assert found.is_paired == is_paired
    kept = {name: own[:shared] if is_paired else own for name, own in values.items()}
    assert found.values == pytest.approx([own.mean() for own in kept.values()])
    assert np.diag(found.covariance) == pytest.approx([stats.sem(own) ** 2 for own in kept.values()])
    assert found.degrees == min(map(len, kept.values())) - 1


def test_answers_that_are_all_alike_have_the_variance_of_agresti_and_coull():
    right = mean_scores({"a": np.ones(10), "b": np.zeros(10), "c": np.arange(10) % 2.0}, {k: range(10) for k in "abc"})
    assert right.floors == pytest.approx([12 / 14 * 2 / 14 / 14, 2 / 14 * 12 / 14 / 14, 0])
    stars = mean_scores({"a": np.ones(10), "b": np.full(10, 5.0)}, {k: range(10) for k in "ab"})
    assert stars.floors.tolist() == [0, 0]


def test_a_plan_has_the_prompts_and_seeds_that_bring_a_difference_to_the_reach():
    values, prompts = scores(3, models=3, prompts=20)
    values["m0"] += 0.1
    means = mean_scores(values, prompts)
    distance = reach(3)
    assert distance == pytest.approx(stats.norm.isf(0.05 / 6) + stats.norm.ppf(0.8))
    assert reach(1) == pytest.approx(stats.norm.isf(0.05) + stats.norm.ppf(0.8))
    found = plan("judge", means.models, means.values, means.covariance, "prompts", 20, means)
    order = np.argsort(-means.values)
    assert [(one.first, one.second) for one in found] == [
        (means.models[first], means.models[second]) for first, second in pairwise(order)
    ]
    for one, (first, second) in zip(found, pairwise(order), strict=True):
        error = stats.sem(means.table[first] - means.table[second])
        assert one.detectable == pytest.approx(distance * error)
        # The error goes by the root of the number of prompts.
        assert distance * error * np.sqrt(20 / one.needed) <= one.margin
        assert distance * error * np.sqrt(20 / (one.needed - 1)) > one.margin
        # More samples of each prompt shrink the part of the variance that samples have.
        of_sample = 2 * means.within / 20
        rest = max(error**2 - of_sample / 3, 0)
        variance_at = lambda seeds, rest=rest, of_sample=of_sample: rest + of_sample / seeds  # noqa: E731
        target = (one.margin / distance) ** 2
        if one.seeds is None:
            assert rest >= target
        else:
            assert variance_at(one.seeds) <= target * (1 + 1e-9)
            assert one.seeds == 1 or variance_at(one.seeds - 1) > target


@pytest.mark.parametrize(
    ("fixed", "most", "needed"),
    [(0.0, 10**7, 314), (0.001, 10**7, 1460), (0.01, 10**7, None), (0.0, 300, None), (0.0, 315, 314)],
)
def test_more_units_leave_what_they_do_not_shrink(fixed, most, needed):
    covariance, values = np.diag([0.004, 0.004]), np.array([0.1, 0.0])
    (found,) = plan("j", ("a", "b"), values, covariance, "labels", 50, fixed=np.diag([fixed / 2] * 2), most=most)
    distance = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    assert found.detectable == pytest.approx(distance * np.sqrt(0.008 + fixed))
    assert found.needed == needed and found.more == (None if needed is None else needed - 50)
    if needed is not None:
        assert (
            distance * np.sqrt(0.008 * 50 / needed + fixed)
            <= 0.1
            < distance * np.sqrt(0.008 * 50 / (needed - 1) + fixed)
        )
    assert ("more labels for each model, the order of a and b" in found.sentence) == (needed is not None)


def test_a_plan_of_what_is_at_hand_asks_for_no_more():
    (found,) = plan("j", ("a", "b"), np.array([1.0, 0.0]), np.diag([0.004, 0.004]), "votes", 50)
    assert (
        found.needed < 50 and found.more == 0 and "50 votes at hand decide" in found.sentence and TRUE in found.sentence
    )


@pytest.mark.parametrize(
    ("margin", "needed"),
    [(0.0, None), (1e-9, None), (reach(2), 2), (reach(2) / 1000, 1_000_000), (reach(2) / 4000, None)],
)
def test_a_margin_that_nobody_could_decide_has_no_plan(margin, needed):
    (found,) = plan("votes", ("a", "b"), np.array([0.0, margin]), np.diag([0.5, 0.5]) / 100, "votes", 100)
    assert found.first == ("b" if margin else "a") and found.seeds is None
    assert found.needed == (None if needed is None else pytest.approx(needed, abs=1))
    assert found.detectable == pytest.approx(reach(2) / 10)


def votes_at(seed, n=60, models=3, covariates=0, ties=True):
    rng = np.random.default_rng(seed)
    left = rng.integers(models, size=n)
    right = (left + rng.integers(1, models, size=n)) % models
    outcome = rng.choice(3, n, p=[0.5, 0.3, 0.2] if ties else [0.6, 0.4, 0])
    return left, right, outcome, rng.normal(size=(n, covariates))


@pytest.mark.parametrize("covariates", [0, 2])
@pytest.mark.parametrize("prior", [0.0, 1.0])
@pytest.mark.parametrize("ties", [True, False])
def test_derivatives_of_the_likelihood_are_those_of_its_values(covariates, prior, ties):
    left, right, outcome, differences = votes_at(1, covariates=covariates, ties=ties)
    design = bt.Design.of(left, right, outcome, 3, differences)
    at = np.random.default_rng(2).normal(size=design.basis.shape[1])
    value, slope, information = bt._with_prior(design, at, prior)
    steps = 1e-5 * np.eye(len(at))
    ahead, behind = ([bt._with_prior(design, at + sign * step, prior) for step in steps] for sign in (1, -1))
    assert slope == pytest.approx([(a[0] - b[0]) / 2e-5 for a, b in zip(ahead, behind, strict=True)], abs=1e-5)
    curve = np.array([(b[1] - a[1]) / 2e-5 for a, b in zip(ahead, behind, strict=True)])
    assert information == pytest.approx(curve, abs=1e-5)
    # The value itself, by the formula of Davidson.
    strengths, nu = design.basis @ at, np.exp(at[-1]) if ties else 0.0
    pull = differences @ (design.slopes @ at)
    a, b = np.exp(strengths[left] + pull / 2), np.exp(strengths[right] - pull / 2)
    chances = np.stack([a, b, nu * np.sqrt(a * b)], 1) / (a + b + nu * np.sqrt(a * b))[:, None]
    share = 1 / (1 + np.exp(-strengths))
    expected = np.log(chances[np.arange(60), outcome]).sum() + prior / 2 * np.log(share * (1 - share)).sum()
    assert value == pytest.approx(expected)
    assert abs(strengths.sum()) < 1e-12


def test_a_fit_without_a_cluster_is_near_the_fit_of_the_other_votes():
    left, right, outcome, differences = votes_at(3, n=600, covariates=1)
    cluster = np.arange(600) % 30
    fit = bt.fit_strengths(left, right, outcome, 3, differences)
    moved = fit.without(cluster)
    for number in (0, 7, 29):
        rest = cluster != number
        again = bt.fit_strengths(left[rest], right[rest], outcome[rest], 3, differences[rest])
        assert again.parameters - fit.parameters == pytest.approx(moved[number], abs=0.003)
    assert np.abs(moved[[0, 7, 29]]).max() > 0.02


def test_errors_add_what_clusters_add():
    left, right, outcome, _ = votes_at(4, n=300)
    fit, cluster = bt.fit_strengths(left, right, outcome, 3), np.arange(300) % 10
    alone = bt.spread_of(fit)
    assert alone.covariance == pytest.approx(fit.basis @ np.linalg.inv(fit.information) @ fit.basis.T)
    assert alone.degrees == np.inf == bt.spread_of(fit, np.zeros(300, int)).degrees  # one cluster adds nothing
    assert bt.spread_of(fit, np.zeros(300, int)).covariance == pytest.approx(alone.covariance)
    moved = fit.without(cluster) @ fit.basis.T
    values, vectors = np.linalg.eigh(moved.T @ moved * 0.9 - alone.covariance)
    added = (vectors * np.maximum(values, 0)) @ vectors.T
    found = bt.spread_of(fit, cluster)
    assert found.covariance == pytest.approx(alone.covariance + added)
    if np.trace(added):  # Welch and Satterthwaite: only what clusters add is estimated
        assert found.degrees == pytest.approx(9 * (np.trace(found.covariance) / np.trace(added)) ** 2)
    assert bt.effective_clusters(np.repeat([0, 1, 2], [4, 4, 4])) == pytest.approx(3)
    assert bt.effective_clusters(np.repeat([0, 1], [9, 1])) == pytest.approx(100 / 82)


def test_models_that_win_every_vote_are_ordered_best_first():
    beaten = np.zeros((4, 4))
    for winner, loser in ((2, 0), (0, 3), (3, 0), (2, 3), (0, 1), (3, 1)):
        beaten[winner, loser] = 1
    assert bt._separated(beaten) == ((2,), (0, 3), (1,))
    beaten[1, 2] = 1
    assert bt._separated(beaten) == ()


def read(rows):
    names = ("prompt", "left", "right", "winner")
    return read_votes([dict(zip(names, row, strict=True)) for row in rows], ["a", "b", "c"])


def test_expected_points_are_those_of_the_fit():
    rng = np.random.default_rng(5)
    rows = []
    for number in range(90):
        left, right = rng.choice(["a", "b", "c"], 2, replace=False).tolist()
        rows.append((f"p{number}", left, right, rng.choice([left, right, "tie"], p=[0.5, 0.3, 0.2])))
    votes = read(rows)
    found = Strengths.of(votes)
    strengths, nu = np.exp(found.fit.strengths), np.exp(found.fit.log_tie)
    a, b = strengths[votes.left], strengths[votes.right]
    tied = nu * np.sqrt(a * b)
    assert found.expected() == pytest.approx((a + tied / 2) / (a + b + tied))
    # A maximum of the likelihood: each model has as many points as it is expected to have.
    for number in range(3):
        of_rows, points = votes.points(number)
        own = found.expected()[of_rows]
        assert np.where(votes.left[of_rows] == number, own, 1 - own).sum() == pytest.approx(points.sum())
    counted = record_of(votes)
    assert {name: sum(own[1:]) for name, own in counted.items()} == pytest.approx(dict.fromkeys("abc", 1.0))
    assert sum(own[0] for own in counted.values()) == 180
    assert sum(own[0] * own[2] for own in counted.values()) == pytest.approx(2 * sum(row[3] == "tie" for row in rows))
