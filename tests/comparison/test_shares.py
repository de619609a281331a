"""Shares of members, their intervals, and the variances and design effects that p-values rest on."""

from dataclasses import replace
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import beta

import finc_eval as fe
from finc_eval.comparison import score_pass
from finc_eval.comparison.assemble import assemble_directions, share_of
from finc_eval.comparison.estimates import HALVES_CORRELATION, Masses, variance_floors
from finc_eval.comparison.fits import finc_fit
from finc_eval.comparison.inputs import sketch_sets
from finc_eval.comparison.score_pass import ScorePass, score_sets
from finc_eval.core.run import Run
from finc_eval.numerics.arrays import rows_of
from finc_eval.numerics.inference import critical_value, significant, upper_tail
from finc_eval.numerics.thresholds import BINS, thresholds_of

ALONE = fe.Finc(clusters=False)


def kinds(shares, n, seed, spread=0.3, dim=8):
    rng = np.random.default_rng(seed)
    rows = 6 * np.eye(len(shares), dim)[rng.choice(len(shares), n, p=shares)] + spread * rng.standard_normal((n, dim))
    return rows.astype(np.float32)


def clopper_pearson(k, n, confidence):
    tail = (1 - confidence) / 2
    return (beta.ppf(tail, k, n - k + 1) if k else 0.0, beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0)


@pytest.fixture(scope="module")
def scored():
    """A pass over 500 samples of unit norm with three directions of each kind, in portions."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.standard_normal((500, 12)).astype(np.float32))
    features /= features.norm(dim=1, keepdim=True)
    shown, *scoring = (torch.linalg.qr(torch.from_numpy(rng.standard_normal((12, 3))))[0].float() for _ in range(3))
    folds = torch.from_numpy(rng.integers(0, 2, 500))
    scores = ScorePass(shown, tuple(scoring))
    for fold in (0, 1):
        for index in torch.split(rows_of(folds, fold), 120):
            scores.update(features[index], fold, index)
    return scores.result(), features, folds, scoring


@pytest.mark.parametrize("threshold", [0.25, 0.125, -0.25, -0.5])
def test_counts_of_a_histogram_are_those_of_the_held_out_scores(scored, threshold):
    scores, features, folds, scoring = scored
    for fold in (0, 1):
        held_out = features[folds == fold] @ scoring[fold]
        beyond = held_out >= threshold if threshold > 0 else held_out < threshold
        assert [scores.beyond(fold, column, threshold) for column in range(3)] == beyond.sum(0).tolist()
        assert beyond.sum() > 0


def other_set(scores, directions=1):
    """A set of which all samples of either fold have these scores on every direction."""
    bins = torch.from_numpy(np.histogram(scores, BINS, (-1, 1))[0] / len(scores))
    return lambda fold: bins.expand(directions, -1)


def test_thresholds_come_from_the_half_that_is_not_counted(scored):
    scores, features, folds, scoring = scored
    found = thresholds_of(scores.fitted, other_set(np.zeros(10), 3), slice(1, 3))
    assert found.shape == (2, 2)
    for fold, threshold in enumerate(found[:, 0].tolist()):
        fitted = (features[folds != fold] @ scoring[fold][:, 1]).double()
        tails = [fitted.clamp_min(0), (-fitted).clamp_min(0)]
        tail = max((0, 1), key=lambda tail: float(tails[tail].square().sum()))
        typical = sqrt(tails[tail].pow(4).sum() / tails[tail].square().sum())
        assert threshold == pytest.approx((0.4, -0.4)[tail] * typical, rel=1e-3)


@pytest.mark.parametrize(("noise", "threshold"), [(0.01, 0.24), (0.13, 2.25 * 0.13), (0.25, 0.39)])
def test_a_threshold_stands_clear_of_those_that_are_no_members(noise, threshold):
    """A fifth of a set score 0.6, and a fifth of the other −0.9; all else scores ± `noise`."""
    rest = np.tile([noise, -noise], 400)
    own, other = (other_set(np.concatenate([rest, np.full(200, score)])) for score in (0.6, -0.9))
    found = thresholds_of(own, other, slice(0, 1))
    assert found.flatten().tolist() == pytest.approx([threshold] * 2, abs=0.001)


@pytest.mark.parametrize("n", [120, 600])
def test_shares_are_fractions_of_held_out_members(n):
    gen, ref = kinds([0.3, 0.1, 0.3, 0.3], n, 0), kinds([0.1, 0.3, 0.3, 0.3], n, 1)
    opened = sketch_sets({"gen": gen, "ref": ref}, fe.Settings(features=60, modes=3, method=ALONE), Run())
    sets = opened.sets
    fit = finc_fit(opened.settings, sets["gen"], sets["ref"])
    fits = {"over": fit(sets["gen"], sets["ref"]), "under": fit(sets["ref"], sets["gen"])}
    found = assemble_directions(score_sets(sets, list(fits.values()), {}, Run()), fits, opened.settings)
    assert {one.role for one, _ in found} == {"over", "under"}
    for one, members in found:
        # The bottom-k sample is the whole set. A histogram is exact to a bin.
        assert one.share_gen == pytest.approx(float(members["gen"].double().mean()), abs=0.009)
        assert one.share_ref == pytest.approx(float(members["ref"].double().mean()), abs=0.009)


def test_a_direction_whose_members_are_not_more_frequent_shows_no_kind(monkeypatch):
    gen, ref = kinds([0.3, 0.1, 0.3, 0.3], 300, 0), kinds([0.1, 0.3, 0.3, 0.3], 300, 1)
    assert fe.compare(gen, ref, features=60, modes=3, method=ALONE).over
    members = score_pass.ScoredSet.members

    def of_ref_alone(self, column, thresholds):
        found = members(self, column, thresholds)
        return (0, found[1]) if self.sketched.label == "gen" else found

    monkeypatch.setattr(score_pass.ScoredSet, "members", of_ref_alone)
    found = fe.compare(gen, ref, features=60, modes=3, method=ALONE)
    assert found.under and not found.over


def test_intervals_of_shares_are_exact_and_hold_for_all_directions_together():
    found = fe.compare(
        kinds([0.3, 0.1, 0.3, 0.3], 600, 0), kinds([0.1, 0.3, 0.3, 0.3], 700, 1), features=60, modes=3, method=ALONE
    )
    assert significant(found.directions, 0.05)
    confidence = 1 - 2 * upper_tail(sqrt(1 + HALVES_CORRELATION) * critical_value(found.tested))
    for mode in found.directions:
        assert mode.share_gen_interval == pytest.approx(
            clopper_pearson(round(600 * mode.share_gen), 600, confidence), abs=1e-6
        )
        assert mode.share_ref_interval == pytest.approx(
            clopper_pearson(round(700 * mode.share_ref), 700, confidence), abs=1e-6
        )
        (low, high), (ref_low, ref_high) = mode.share_gen_interval, mode.share_ref_interval
        down = np.hypot(mode.share_gen - low, ref_high - mode.share_ref)
        up = np.hypot(high - mode.share_gen, mode.share_ref - ref_low)
        assert mode.share_difference == pytest.approx(mode.share_gen - mode.share_ref)
        assert mode.share_difference_interval == pytest.approx(
            (mode.share_difference - down, mode.share_difference + up), abs=1e-6
        )
        width = critical_value(found.tested) * mode.standard_error
        assert mode.interval == pytest.approx((mode.excess - width, mode.excess + width))
    clearest = sorted(found.directions, key=lambda mode: -mode.excess / mode.standard_error)
    p_values = [mode.p_value for mode in clearest]
    assert p_values == sorted(p_values)
    assert p_values[0] == pytest.approx(found.tested * upper_tail(clearest[0].excess / clearest[0].standard_error))


def test_a_sketch_without_samples_says_that_a_share_can_be_anything():
    phi = fe.RandomFourierFeatures(8, 50, sigma=3.0)
    sets = [fe.Sketch.of(kinds(one, 300, 0), phi, sample=0) for one in ([0.9, 0.1], [0.1, 0.9])]
    found = fe.compare(*sets, method=fe.Finc(rotation=None), modes=2)
    assert [mode.role for mode in significant(found.directions, 0.05)][:1] == ["over"]
    assert {mode.share_gen_interval for mode in found.directions} == {(0.0, 1.0)}
    assert all(mode.share_gen == pytest.approx(mode.mass_gen) for mode in found.directions)
    assert any("directions alone" in note for note in found.warnings)


def test_an_interval_of_groups_is_that_of_fewer_samples():
    sets = [
        SimpleNamespace(
            scores=SimpleNamespace(n=100),
            sketched=SimpleNamespace(is_testable=True),
            masses=SimpleNamespace(effect=torch.tensor([effect])),
        )
        for effect in (1.0, 5.0)
    ]
    (low, value, high), grouped = (share_of(one, 0, 10, 0.95) for one in sets)
    assert (low, high) == pytest.approx(clopper_pearson(10, 100, 0.95))
    assert grouped[::2] == pytest.approx(clopper_pearson(2, 20, 0.95))
    assert value == grouped[1] == 0.1


def masses(n, variance, effect=1.0):
    n = torch.tensor([n / 2, n / 2], dtype=torch.double)
    variance = torch.full((2, 1), variance, dtype=torch.double)
    return Masses(n, torch.zeros(2, 1, dtype=torch.double), variance, torch.tensor([effect], dtype=torch.double))


def test_variance_has_no_floor_at_equal_sizes_and_one_that_grows_with_their_ratio():
    floors = [
        [float(one) for one in variance_floors([masses(n, 0.0), masses(1000, 0.1)], [1.0, 1.0])]
        for n in (1000, 999, 500, 10)
    ]
    assert floors[0] == [0, 0]
    assert all(larger == 0 for _, larger in floors)
    assert 0 < floors[1][0] < 1e-3 < floors[2][0] < floors[3][0]
    # The weight is 1 − (n / n_max)⁴, of the variance of both sets together.
    assert floors[2][0] == pytest.approx(15 / 16 * 1000 * 0.1 / 1500)
    assert floors[3][0] == pytest.approx(1000 * 0.1 / 1010)


def test_a_grouped_set_has_the_floor_of_as_many_independent_samples():
    grouped = variance_floors([masses(1500, 0.02, effect=3.0), masses(1000, 0.1)], [1.0, 1.0])
    single = variance_floors([masses(500, 0.02), masses(1000, 0.1)], [1.0, 1.0])
    assert [float(one) for one in grouped] == pytest.approx([float(one) for one in single])


def test_the_floor_of_a_set_that_rho_multiplies_is_smaller_by_rho():
    first, second = variance_floors([masses(1000, 0.1), masses(500, 0.0)], [1.0, 2.0])
    assert float(first) == 0
    assert float(second) == pytest.approx(15 / 16 * (1000 * 0.1 / 1500) / 2)


def scores_of(squares, sizes):
    """Scores of which s² is given, shape (n, t), of groups of these sizes, in order."""
    squares = torch.as_tensor(squares, dtype=torch.double)
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.as_tensor(sizes))
    passed = ScorePass(torch.eye(1), (torch.eye(1), torch.eye(1)), np.asarray(sizes))
    sums = torch.zeros(len(sizes), squares.shape[1], dtype=torch.double).index_add_(0, group, squares)
    half = torch.full((2,), len(squares) / 2, dtype=torch.double)
    powers = torch.stack([squares.sum(0), squares.square().sum(0)]).expand(2, -1, -1) / 2
    return replace(passed.result(), folds=half, powers=powers, group_sums=sums)


def effects_of(*sets):
    """Design effects of sets of which s² and the sizes of groups are given."""
    scores = {str(number): scores_of(*one) for number, one in enumerate(sets)}
    return [effect.numpy() for effect in score_pass._effects(scores).values()]


@pytest.mark.parametrize("copies", [1, 5])
def test_copies_count_once(copies):
    squares = np.random.default_rng(0).random((400, 6))
    (effect,) = effects_of((np.repeat(squares, copies, 0), [copies] * 400))
    np.testing.assert_allclose(effect, copies, rtol=0.02)


def test_groups_of_independent_samples_have_a_design_effect_near_one():
    (effect,) = effects_of((np.random.default_rng(0).random((5000, 6)), [5] * 1000))
    assert (effect >= 1).all() and effect.mean() < 1.1


def test_a_set_that_has_a_kind_by_chance_alone_is_taken_to_be_as_grouped_as_the_other():
    """In both sets the kind comes in groups of 25; gen has four of them, and ref none."""
    sizes = [1] * 400 + [25] * 4
    gen, ref = np.full((500, 1), 0.01), np.full((500, 1), 0.01)
    gen[400:] = 0.6
    assert all(effect > 10 for effect in effects_of((gen, sizes), (ref, sizes)))
    assert effects_of((gen, sizes), (ref, [1] * 500))[1] == pytest.approx(1)
