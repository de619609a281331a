"""Estimates, ranks and shares of boards on tiny numbers: against binomial and normal laws and direct formulas."""

from math import inf, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.estimates.error_source import GEN, MAX_PARTS, REF, TRAINING, ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.judges.doubts import say_prompts
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.parts import gains_of
from finc_eval.leaderboards import entry as entries
from finc_eval.leaderboards.assemble import _unequal, _unranked, noise_of
from finc_eval.leaderboards.board_table import about_real_data, estimate_text, gap_text, heading
from finc_eval.leaderboards.columns import metric_column, over_runs, too_few, training_noise
from finc_eval.leaderboards.entry import Entry
from finc_eval.leaderboards.judged import _estimates
from finc_eval.leaderboards.measures import Measure, Measuring
from finc_eval.leaderboards.ranks import DRAWS, joint_covariance, model_estimate, rank
from finc_eval.leaderboards.reference import BoardReference
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.shares import ShareRule, _count, estimate_unmatched, share_estimates
from finc_eval.leaderboards.standings import Criterion, Standing
from finc_eval.leaderboards.yardsticks import Yardsticks
from finc_eval.measures.inputs import split_reference
from finc_eval.measures.registry import METRICS
from finc_eval.partitions.tests import EffectiveCounts

SIGNATURE = Signature.of("kid", [3], "array-3")


def t(degrees, confidence=0.95):
    return stats.t.ppf((1 + confidence) / 2, degrees) if degrees < inf else stats.norm.ppf((1 + confidence) / 2)


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_of_two_models_the_p_value_is_that_of_a_two_sided_normal_test(shared):
    covariance = np.array([[1.0, shared], [shared, 2.0]])
    for gap in (0.0, 1.0, 3.0):
        z = gap / sqrt(3 - 2 * shared)
        found = rank([5.0, 5.0 + gap], covariance)
        assert found.p_values[0, 1] == pytest.approx(2 * stats.norm.sf(z), abs=0.015)
        assert found.p_values[1, 0] == pytest.approx(max(stats.norm.cdf(z), 2 * stats.norm.sf(z)), abs=0.015)
        assert found.p_values.diagonal().tolist() == [1, 1] and found.gaps[0, 1] == found.gaps[1, 0] == gap
    assert rank([0.0, 99.0], covariance).p_values[0, 1] == pytest.approx(1 / (1 + DRAWS))


def test_a_model_is_worse_than_what_is_best_only_if_it_is_surely_not_there():
    """A distance below 0 counts as 0: of two models, the other one is tested against 0, too."""
    covariance = np.diag([4.0, 1.0])
    for value in (1.0, 2.5):
        found = rank([-3.0, value], covariance, best=0.0)
        assert found.gaps[0, 1] == value
        assert found.p_values[0, 1] >= stats.norm.sf(value) - 0.01
        up = rank([4.0, 1.0 - value], covariance, best=1.0, higher_is_better=True)
        assert up.p_values[0, 1] == pytest.approx(found.p_values[0, 1], abs=0.02) and up.gaps[0, 1] == value


def test_shown_values_beyond_their_bounds_are_no_further_apart():
    found = rank([-0.2, 0.3, 1.4], np.eye(3)).ordered([-0.2, 0.3, 1.4], (0.0, 1.0), False)
    assert found.gaps[0].tolist() == [0, 0.3, 1] and found.gaps[1, 2] == pytest.approx(0.7)
    assert found.smallest_separable_gap is None
    sure = rank([0.0, 9.0, 30.0], np.eye(3))
    assert (sure.separable_pairs, sure.separable_neighbors, sure.smallest_separable_gap) == (3, 2, 9)


@pytest.mark.parametrize("degrees", [3.0, inf])
def test_an_estimate_of_a_model_has_the_variances_of_its_sources_and_students_interval(degrees):
    one = model_estimate(2.0, 0.0, np.array([0.3, -0.4]), degrees=degrees)
    assert (one.variance_of(GEN), one.variance_of(REF)) == (0, pytest.approx(0.25))
    assert one.interval == pytest.approx((2 - t(degrees) * 0.5, 2 + t(degrees) * 0.5))
    both = model_estimate(2.0, 0.75, np.array([0.3, -0.4]), degrees=degrees)
    assert both.standard_error == pytest.approx(1.0) and both.variance_of(GEN, REF) == pytest.approx(1.0)
    assert model_estimate(2.0, 0.5, interval=(1.0, 4.0)).interval == (1.0, 4.0)


def test_covariances_widen_what_few_runs_know_at_the_level_of_one_comparison():
    shared = ErrorSource(REF, np.array([0.3, -0.4]))
    models = [
        Estimate.of(0.0, [ErrorSource.of_variance(GEN, 0.5, one), ErrorSource.of_variance(TRAINING, 0.2, one), shared])
        for one in (3.0, inf, 7.0)
    ]
    found = joint_covariance(models)
    level = 1 - 0.05 / 6  # six ordered pairs of three models
    wider = [(t(degrees, level) / t(inf, level)) ** 2 for degrees in (3.0, inf, 7.0)]
    assert found.diagonal() == pytest.approx([0.7 * one + 0.25 for one in wider])
    assert found[np.triu_indices(3, 1)] == pytest.approx([0.25] * 3)
    alone = joint_covariance(models[:1])  # one model has no comparison, and the level of one
    assert alone[0, 0] == pytest.approx(0.7 * (t(3.0) / t(inf)) ** 2 + 0.25)


@pytest.mark.parametrize("n", [MAX_PARTS, MAX_PARTS + 1, 5 * MAX_PARTS])
def test_parts_of_the_reference_keep_sums_and_mean_products(n):
    units = np.random.default_rng(n).normal(0.1, 1, n)
    found = ErrorSource(REF, units, 7.0).summed()
    assert (found.name, found.degrees) == (REF, 7.0)
    found = found.parts
    assert len(found) == MAX_PARTS
    factor = 1 if n == MAX_PARTS else sqrt(MAX_PARTS / (MAX_PARTS - 1))
    assert found.sum() == pytest.approx(factor * units.sum())
    centered = units - units.mean()
    assert ErrorSource(REF, centered).summed().variance == pytest.approx(centered @ centered, rel=0.15)


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("of_ref", "model", "ref"), [(True, [1, 5, 4], [5, 3, 2]), (False, [5, 3, 2], [1, 5, 4])])
def test_where_kinds_are_clear_a_share_is_a_difference_of_binomial_shares(of_ref, model, ref):
    """The first kind has share .5 in one set and .1 in the other: .5 − 2 · .1 is counted, of either set."""
    n, m = 100_000.0, 300_000.0
    (found,) = share_estimates(ShareRule(of_ref, 2.0), [np.array(model) * n / 10], np.array(ref) * m / 10)
    p, q = model[0] / 10, ref[0] / 10
    a, b = (2, 1) if of_ref else (1, 2)
    assert found.value == pytest.approx(0.3, abs=1e-6)
    assert found.variance_of(GEN) == pytest.approx(a**2 * p * (1 - p) / n + (a / n) ** 2 + (b / m) ** 2, rel=1e-4)
    assert found.variance_of(REF) == pytest.approx(b**2 * q * (1 - q) / m, rel=1e-4)
    assert found.source(REF).parts @ np.sqrt(np.array(ref)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("of_ref", [True, False])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_shares_have_no_bias_and_the_variance_of_their_draws(of_ref, factor):
    """Some kinds are near ρ, where they are counted by chance: the value is Σ e·Φ(e/σ − 1), σ that of half the sets."""
    rng, rule = np.random.default_rng(0), ShareRule(of_ref, factor)
    law, ref = np.array([0.1, 0.2, 0.35, 0.15, 0.2]), np.array([0.25, 0.15, 0.14, 0.26, 0.2])
    n, m = 400, 900
    found = [
        share_estimates(rule, [rng.multinomial(n, law).astype(float)], rng.multinomial(m, ref) * 1.0)[0]
        for _ in range(250)
    ]
    a, b = (-factor, 1) if of_ref else (1, -factor)
    excess = a * law + b * ref
    error = np.sqrt(a**2 * law * (1 - law) / (n / 2) + b**2 * ref * (1 - ref) / (m / 2))
    wanted = (excess * stats.norm.cdf(excess / error - 1)).sum()
    values = np.array([one.value for one in found])
    assert abs(values.mean() - wanted) < 4 * values.std() / sqrt(250) + 0.002
    assert 0.9 < np.mean([one.standard_error**2 for one in found]) / values.var() < 1.9


def test_what_a_kind_adds_has_the_derivative_that_is_stated():
    excess, squared, spread = np.array([-0.2, -0.01, 0.0, 0.02, 0.3]), np.full(5, 4e-4), np.full(5, 0.03)
    least = 0.036
    ahead, behind = (_count(excess + step, least, squared, spread)[0] for step in (1e-6, -1e-6))
    assert _count(excess, least, squared, spread)[1] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)
    # Given all samples, the part that chooses has the excess e + σ·z: E e·1(e + σz > l), and what both share.
    assert _count(np.array([9.0]), least, squared[:1], spread[:1])[0] == pytest.approx([9.0])
    assert _count(np.array([-9.0]), least, squared[:1], spread[:1])[0] == pytest.approx([0.0])


def test_the_total_variation_has_the_errors_of_multinomial_counts():
    model, ref = np.array([30.0, 50.0, 20.0, 100.0]), np.array([50.0, 50.0, 160.0, 140.0])
    found = estimate_unmatched(EffectiveCounts.of(model), EffectiveCounts.of(ref), 0)
    slope = np.array([0.5 if a > b else -0.5 for a, b in zip(model / 200, ref / 400, strict=True)])
    of_model, of_ref = (
        slope @ (np.diag(p) - np.outer(p, p)) @ slope / n for p, n in ((model / 200, 200), (ref / 400, 400))
    )
    assert found.variance_of(GEN) == pytest.approx(of_model)
    assert found.variance_of(REF) == pytest.approx(of_ref)
    # More of a kind that the reference has more of brings the distance up by half.
    assert np.sign(found.source(REF).parts).tolist() == [-1 if one > 0 else 1 for one in slope]
    assert found.interval[0] <= found.value <= found.interval[1]


def test_a_share_of_more_kinds_than_samples_has_a_reason():
    runs = [EffectiveCounts.of(np.full(4, size)) for size in (5.0, 1.0, 0.9)]
    assert [too_few([one]) is None for one in runs] == [True, True, False]
    assert "needs 4" in too_few(runs)


def test_the_yardstick_of_the_unmatched_share_is_for_as_many_samples_as_the_model_has(monkeypatch):
    ref = ArrayEmbeddings(np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32), "ref")
    one = Yardsticks(ref, 0, Run())
    monkeypatch.setattr(one, "_splits", lambda n: [(1, 0), (2, 0)])
    shares = {1: {"unmatched": 0.1, "missing": 0.2}, 2: {"unmatched": 0.3}}
    monkeypatch.setattr(one, "_shares_of", lambda part, _: shares[part])
    for n, part in ((20, 20), (80, 50)):
        scale = sqrt((1 / n + 1 / 100) / (1 / part + 1 / (100 - part)))
        assert one.shares(n) == pytest.approx({"unmatched": 0.2 * scale, "missing": 0.2})
    shares[2] = {"unmatched": 9.0, "missing": -0.4}
    assert one.shares(30) == {"unmatched": 1.0, "missing": 0.0}


# ── measures and columns ─────────────────────────────────────────────────────────────────────────────────────────────


def test_an_estimate_of_a_model_keeps_its_interval():
    rng = np.random.default_rng(0)
    found = Estimate.of(3.0, tuple(one - one.mean() for one in (rng.normal(size=12), rng.normal(size=9))))
    one = found.as_known()
    assert one.interval == pytest.approx(found.interval) and one.value == 3.0 and one.degrees == inf
    assert one.variance_of(GEN) / one.variance_of(REF) == pytest.approx(found.variance_of(GEN) / found.variance_of(REF))
    wider = t(found.degrees) / t(inf)
    assert one.source(REF).parts == pytest.approx(wider * found.source(REF).parts)
    assert one.source(GEN).parts == pytest.approx([wider * sqrt(found.variance_of(GEN))])


def measure(value=1.0, interval=(0.5, 1.5), variance=0.1, reason=None, floor=None):
    return Measure(value, interval, variance, None, False, "t", reason, SIGNATURE, floor)


def test_negative_intervals_and_variances_are_refused():
    assert measure(interval=(1.0, 1.0), variance=0.0).estimate().variance_of(GEN) == 0
    for wrong in ({"interval": (1.5, 0.5)}, {"variance": -1e-9}):
        with pytest.raises(DataError, match="is negative"):
            measure(**wrong)
    assert measure(variance=None).estimate() is None


def test_a_measure_has_the_floor_of_a_part_of_the_reference_as_large_as_the_model():
    rows = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
    ref, model = ArrayEmbeddings(rows, "ref"), ArrayEmbeddings(rows[:30] + 1, "model")
    kid = METRICS["kid"]
    found = Measuring(kid, ref, Run()).measure("model", model)
    part, rest = split_reference(ref, 30)
    assert part.n == 30 and found.floor == pytest.approx(kid.estimator(rest, Run())(part, None).value)
    estimate = kid.estimator(ref, Run())(model, None)
    assert (found.value, *found.interval) == pytest.approx((estimate.value, *estimate.interval))
    whole = Measuring(kid, ref, Run()).measure("model", ArrayEmbeddings(rows, "whole"))
    assert whole.floor == pytest.approx(
        kid.estimator(split_reference(ref, 45)[1], Run())(split_reference(ref, 45)[0], None).value
    )


def test_a_model_with_a_run_that_was_not_measured_has_no_estimate():
    models = {"a": [measure(), measure(3.0)], "b": [measure(), measure(variance=None, reason="why")]}
    models |= {"c": [measure(7.0, variance=None, reason="few")], "d": [measure(), None]}
    found = metric_column("kid", models, SIGNATURE)
    assert [*found.runs] == ["a"] and [one.value for one in found.runs["a"]] == [1.0, 3.0]
    assert found.values == {"c": 7.0} and {**found.reasons, "d": ""} == {"b": "why", "c": "few", "d": ""}


def test_training_noise_is_pooled_over_models_and_never_negative():
    runs = {"a": [1.0, 3.0, 5.0], "b": [2.0, 2.0], "c": [9.0]}
    models = {
        name: [model_estimate(one, 0.5, np.ones(1), degrees=8.0 - one) for one in own] for name, own in runs.items()
    }
    assert training_noise(models) == (pytest.approx((2 * (4 - 0.5) + (0 - 0.5)) / 3), 3.0)
    assert training_noise({"b": models["b"]}) == (0.0, 1.0)
    assert training_noise({"c": models["c"]}) == (0.0, inf)
    found = over_runs(models)
    own, training, shared = (found["a"].source(one) for one in (GEN, TRAINING, REF))
    assert own.variance == pytest.approx(1.5 / 9) and training.variance == pytest.approx(6.5 / 3 / 3)
    assert shared.variance == pytest.approx(1) and (own.degrees, training.degrees, shared.degrees) == (3, 3, 3)
    half = t(3.0) * sqrt(1.5 / 9 + 6.5 / 9 + 1)
    assert found["a"].interval == pytest.approx((3 - half, 3 + half))
    alone = over_runs({"c": [model_estimate(9.0, 0.5, interval=(8.0, 11.0))]})
    assert alone["c"].interval == (8.0, 11.0)


def test_judges_have_students_interval_and_the_least_variance_of_shares():
    influences = np.array([[0.3, -0.4], [0.0, 0.0]])
    found = _estimates(("a", "b"), np.array([0.5, 1.0]), influences, 9.0, np.array([0.0, 0.04]))
    for name, value, variance in (("a", 0.5, 0.25), ("b", 1.0, 0.04)):
        (one,) = found[name]
        half = t(9.0) * sqrt(variance)
        assert one.interval == pytest.approx((value - half, value + half)) and one.source(REF).degrees == 9.0
        assert one.variance_of(GEN) == pytest.approx(0.04 if name == "b" else 0)


@pytest.mark.parametrize("is_paired", [True, False])
def test_gains_are_over_the_mean_of_the_other_models_on_the_same_prompts(is_paired):
    prompts = {"a": ["p", "q", "r", "s"], "b": ["p", "q", "r", "s"], "c": ["p", "q", "r", "s"]}
    if not is_paired:
        prompts["c"] = ["t", "u", "v", "w"]
    values = {"a": [1, 2, 3, 7], "b": [2, 4, 0, 1], "c": [0, 0, 1, 3]}
    scores = {name: np.array(own, float) for name, own in values.items()}
    means = mean_scores(scores, prompts)
    assert means.is_paired == is_paired
    found, names = gains_of(means, scores, prompts, {}, True)
    assert [one.model for one in found] == ["a", "b", "c", ""] and len(names) == (4 if is_paired else 8)
    table = np.array([*values.values()], float)
    for place, one in enumerate(found[:3]):
        others = np.delete(table, place, 0)
        assert one.values == pytest.approx(table[place] - (others.mean(0) if is_paired else others.mean()))
    assert found[3].values == pytest.approx((table - table.mean(1)[:, None]).ravel())
    said = [*say_prompts("j", means, prompts, False)]
    assert said == [] if is_paired else "models share 0 of 8 prompts" in said[0]


# ── what a board says ────────────────────────────────────────────────────────────────────────────────────────────────


def criterion(metric="fd", is_share=False, p_values=((1.0, 0.04, 0.01), (0.96, 1.0, 0.05), (1.0, 0.97, 1.0))):
    signature = Signature.of(metric, [3], "array-3")
    return Criterion(
        metric, "t", is_share, False, ("a", "b", "c"), (("a",), ("b",), ("c",)), p_values, 2, 3, 0.1, None, signature
    )


def test_pairs_of_models_are_sure_at_the_level():
    one = criterion()
    assert one.pairs == 3 and one.p_value("b", "a") == one.p_value("a", "b") == 0.04
    assert one.better("b", "c", 0.05) and not one.better("b", "c", 0.0499) and not one.better("b", "a", 0.05)
    assert not one.better("a", "nobody", 0.05)


def test_thousandths_are_written_as_such():
    kid, fd = criterion("kid"), criterion("fd")
    standing = Standing(0.00123, (0.001, 0.002), None, None, None)
    assert heading(kid) == "kid × 10³" and "×" not in heading(fd)
    assert estimate_text(kid, standing).startswith("1.23 [1") and "0.00123" in estimate_text(fd, standing)
    assert "1.23" in gap_text(kid, 0.00123) and gap_text(kid, 0.00123).endswith("× 10⁻³")
    assert gap_text(fd, 2.5) == "2.5"


def test_real_data_is_a_part_of_the_reference_as_large_as_models():
    floors = {"fd": Standing(1.0, None, None, None, None, floor=0.5)}
    row = lambda name, scores=floors: SimpleNamespace(name=name, scores=scores)  # noqa: E731
    sizes = {"a": 30, "b": 900, "ref": 101}
    board = SimpleNamespace(rows=[row("a"), row("b")], sets={name: SimpleNamespace(n=n) for name, n in sizes.items()})
    assert "30 to 50 of its samples" in about_real_data(board)[0]
    board.rows = [row("b")]
    assert ": 50 of its samples" in about_real_data(board)[0]
    board.rows = [row("a", {"fd": Standing(1.0, None, None, None, None)})]
    assert about_real_data(board) == []


@pytest.mark.parametrize(("sizes", "ref", "said"), [((100, 102), 100, 0), ((100, 103), 103, 1), ((103, 103), 100, 1)])
def test_models_of_unlike_sizes_are_told_for_numbers_that_grow_with_them(sizes, ref, said):
    run = lambda n: SimpleNamespace(runs=[SimpleNamespace(counted=n)])  # noqa: E731
    reference = SimpleNamespace(settings=SimpleNamespace(metrics=("fd", "vendi")), tally=SimpleNamespace(n=ref))
    assert len(_unequal(reference, [*map(run, sizes)])) == said
    reference.settings.metrics = ("fd",)
    assert _unequal(reference, [*map(run, (1, 999))]) == []


@pytest.mark.parametrize(("runs", "is_enough"), [((3, 3), True), ((5, 1), True), ((4, 1), False), ((3, 2), False)])
def test_training_runs_are_enough_from_four_degrees_of_freedom(runs, is_enough):
    covers, warnings = noise_of({f"m{place}": count for place, count in enumerate(runs)})
    assert (not warnings) == is_enough and ("taken to be alike" in covers) == (1 in runs)
    assert not noise_of({"m": 1})[1]


def test_floors_and_own_numbers_end_at_the_bounds_of_a_column():
    own = {"a": model_estimate(1.2, 0.1, interval=(0.9, 1.5)), "b": model_estimate(0.2, 0.1, interval=(-1.0, 0.4))}
    column = SimpleNamespace(bounds=(0.0, 1.0), key="k", values={}, reasons={}, shown=own)
    floors = {"a": 1.7, "b": -0.1, "c": 0.4}
    found = _unranked(column, floors)
    assert {name: one.floor for name, one in found.items()} == {"a": 1.0, "b": 0.0, "c": 0.4}
    assert (found["a"].value, found["a"].interval) == (1.0, (0.9, 1.0)) and found["b"].interval == (0.0, 0.4)


def test_a_model_surely_makes_more_of_kinds_whose_intervals_do_not_meet():
    share = lambda value, half: SimpleNamespace(share=value, interval=(value - half, value + half))  # noqa: E731
    kinds = [
        SimpleNamespace(id=name, shares={"ref": share(*one), "x": share(*other)})
        for name, one, other in (
            ("little", (0.5, 0.01), (0.25, 0.01)),
            ("much", (0.75, 0.01), (0.25, 0.01)),
            ("meets", (0.5, 0.125), (0.25, 0.125)),
            ("less", (0.1, 0.01), (0.25, 0.01)),
        )
    ]
    board = type("Board", (), {"kinds": kinds, "__getitem__": lambda *_: None})()
    assert [one.id for one in Leaderboard.more_of(board, "ref", "x")] == ["much", "little"]
    assert [one.id for one in Leaderboard.more_of(board, "x", "ref")] == ["less"]


def test_samples_far_from_all_kinds_are_the_last_leaf_and_have_a_name_of_their_own():
    reference = SimpleNamespace(kinds=SimpleNamespace(tree=SimpleNamespace(leaves=3)))
    ids = [BoardReference.id_of(reference, node) for node in range(7)]
    assert ids[3] == "far" and [*ids[:3], *ids[4:]] == ["k0", "k1", "k2", "k3", "k4", "k5"]
    tally = lambda far: SimpleNamespace(members=[1, 1, 1, far])  # noqa: E731
    assert BoardReference.leaves(reference, [tally(0), tally(0)]).tolist() == [0, 1, 2]
    assert BoardReference.leaves(reference, [tally(0), tally(2)]).tolist() == [0, 1, 2, 3]


def test_pictures_are_of_the_kinds_that_a_model_has_more_of(monkeypatch):
    monkeypatch.setattr(entries, "pictures_to_keep", lambda info, examples, excess, of_findings: excess)
    monkeypatch.setattr(entries, "kept_pictures", lambda info, ids: ids)
    monkeypatch.setattr(entries, "replace", lambda one, pictures, pictures_ref: pictures)
    tally = lambda n, *members: SimpleNamespace(n=n, members=np.array(members))  # noqa: E731
    one = SimpleNamespace(runs=[SimpleNamespace(tally=tally(10, 5, 1, 4), info=None, examples=None, findings=None)])
    assert Entry.with_pictures(one, None, tally(100, 20, 60, 20), 2) == pytest.approx([0.3, -0.5])
