"""Attacks by generated samples, and what they can say of a stated guarantee."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gaussian_kde

from finc_eval.core.errors import UsageError
from finc_eval.core.record import plain
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.memorization.attacks import (
    Attack,
    AttackedSets,
    AttackScores,
    density_ratio,
    log_density,
    membership_difference,
    run_attacks,
    score_by_ball,
    score_by_nearest,
)
from finc_eval.memorization.distances import measure
from finc_eval.memorization.settings import AuditSettings
from finc_eval.memorization.verdict import guarantee_ceilings, judge_guarantee
from finc_eval.numerics.attack_statistics import attack_statistics, auc
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.kahm.attack import score_by_kahm


def draw(n, seed, dim=6):
    return as_embeddings(np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32))


def noisy(samples, scale, seed):
    rows = samples.rows_at(np.arange(samples.n)).numpy()
    return as_embeddings(rows + scale * np.random.default_rng(seed).normal(size=rows.shape).astype(np.float32))


MEMBERS, OTHERS, REFERENCE, FRESH = (draw(400, seed) for seed in range(4))
COPIES = noisy(MEMBERS, 0.1, 9)


def measured(gen):
    return measure(gen, MEMBERS, OTHERS, 1, Run())


def aucs(gen):
    distances, sets = measured(gen), AttackedSets(gen, MEMBERS, OTHERS)
    return {
        "nearest": score_by_nearest(distances),
        "ball": score_by_ball(distances),
        "domias": density_ratio(REFERENCE, 0)(sets),
        "kahm": score_by_kahm(sets, 0),
    }


def test_every_attack_tells_members_by_noisy_copies_and_none_by_fresh_samples():
    for name, scores in aucs(COPIES).items():
        assert auc(*scores) > 0.7, name
    for name, scores in aucs(FRESH).items():
        assert auc(*scores) == pytest.approx(0.5, abs=0.06), name


def test_the_density_is_that_of_a_gaussian_kernel_estimate():
    import torch

    rng = np.random.default_rng(0)
    centers, points = rng.normal(size=(500, 3)), rng.normal(size=(40, 3))
    # A whitened sample has the covariance I, by which scipy scales its kernels.
    white = (centers - centers.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(centers.T))).T
    expected = gaussian_kde(white.T).logpdf(points.T) + 1.5 * np.log(2 * np.pi)
    found = log_density(torch.from_numpy(points), torch.from_numpy(white)).numpy()
    assert found == pytest.approx(expected, rel=1e-9)


def test_domias_allows_for_places_that_are_dense_anyway():
    """In dense regions members and others both have many generated neighbors; the ratio cancels that."""
    scores = density_ratio(REFERENCE, 0)(AttackedSets(FRESH, MEMBERS, OTHERS))
    norms = np.linalg.norm(OTHERS.rows_at(np.arange(400)).numpy(), axis=1)
    ball = score_by_ball(measured(FRESH)).non_members
    assert np.corrcoef(norms, ball)[0, 1] < -0.5
    assert abs(np.corrcoef(norms, scores.non_members)[0, 1]) < 0.35


def test_all_attacks_run_on_the_generated_set_and_its_control_and_without_a_reference_one_is_left_out(monkeypatch):
    monkeypatch.setattr("finc_eval.memorization.attacks.PERMUTATIONS", 9)  # the next test has them all
    both = [(measured(gen), AttackedSets(gen, MEMBERS, OTHERS)) for gen in (COPIES, FRESH)]
    found, difference = run_attacks(*both, REFERENCE, delta=0.0, confidence=0.99, seed=0)
    assert [attack.name for attack in found] == ["nearest", "ball", "domias", "kahm"]
    assert all(attack.control_is_sound for attack in found)
    assert plain(found[0])["statistics"]["confidence"] == 0.99
    found, again = run_attacks(*both, None, delta=0.0, confidence=0.99, seed=0)
    assert again == difference, "machines draw by their own seed"
    assert [attack.name for attack in found] == ["nearest", "ball", "kahm"]


def test_the_membership_score_tells_copies_and_not_fresh_samples_and_has_its_null():
    both = [(measured(gen), AttackedSets(gen, MEMBERS, OTHERS)) for gen in (COPIES, FRESH)]
    _, found = run_attacks(*both, None, delta=0.0, confidence=0.99, seed=0)
    assert found.generated.p_value == 0.01 and len(found.generated.null) == 99
    assert found.generated.standardized > 2 * found.generated.threshold()
    assert found.control.p_value > 0.05 and found.control.standardized < found.generated.standardized


def test_distances_without_a_density_have_no_membership_score():
    infinite = AttackScores(np.full(50, -np.inf), np.full(50, -np.inf))
    assert membership_difference(infinite, infinite, 0) is None


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1e-5), (3.0, 0.1), (8.0, 1e-5)])
def test_the_ceilings_are_those_of_the_best_attack_on_any_private_mechanism(epsilon, delta):
    def tpr(alpha):
        return min(np.exp(epsilon) * alpha + delta, 1 - np.exp(-epsilon) * (1 - delta - alpha), 1)

    most = guarantee_ceilings(epsilon, delta)
    bend = (1 - delta) / (1 + np.exp(epsilon))
    assert most.auc == pytest.approx(quad(tpr, 0, 1, points=[bend, 1 - delta])[0])
    assert most.advantage == pytest.approx(max(tpr(a) - a for a in np.append(np.linspace(0, 1, 1001), bend)))
    assert most.tpr_at_1_percent == pytest.approx(tpr(0.01))
    if epsilon and delta:
        gaussian = Guarantee.of(epsilon, delta).ceilings
        assert gaussian.auc <= most.auc
        assert gaussian.tpr_at_01_percent <= most.tpr_at_01_percent


def attack(members, others, control=None):
    fresh = np.random.default_rng(7).normal(size=(2, 500)) if control is None else control
    return Attack("nearest", attack_statistics(members, others), attack_statistics(*fresh))


def test_a_statement_is_falsified_by_an_attack_that_gets_more_and_never_confirmed():
    rng = np.random.default_rng(0)
    strong = attack(rng.normal(3, 1, 2000), rng.normal(0, 1, 2000))
    weak = attack(rng.normal(0.1, 1, 2000), rng.normal(0, 1, 2000))
    assert judge_guarantee(0.5, 1e-5, [weak, strong], True).falsified_by == ("nearest",)
    assert plain(judge_guarantee(0.5, 1e-5, [strong], True))["is_falsified"] is True
    assert not judge_guarantee(0.5, 1e-5, [weak], True).is_falsified
    assert not judge_guarantee(20, 1e-5, [strong], True).is_falsified
    assert not judge_guarantee(0.5, 1e-5, [strong], False).is_falsified  # nothing else finds the training set nearer


def test_an_attack_that_tells_by_fresh_samples_too_falsifies_nothing():
    rng = np.random.default_rng(0)
    shifted = (rng.normal(3, 1, 2000), rng.normal(0, 1, 2000))
    unsound = attack(*shifted, control=shifted)
    assert not unsound.control_is_sound
    assert not judge_guarantee(0.5, 1e-5, [unsound], True).is_falsified


@pytest.mark.parametrize("runs", [60, pytest.param(200, marks=pytest.mark.long)])
def test_mechanisms_at_their_limit_are_not_called_false_more_often_than_stated(runs):
    """Randomized response is the strongest attack that a pure guarantee allows."""
    rng = np.random.default_rng(1)
    epsilon, false = 1.0, 0
    for _ in range(runs):
        kept = np.exp(epsilon) / (1 + np.exp(epsilon))
        members, others = rng.random(500) < kept, rng.random(500) > kept
        false += judge_guarantee(epsilon, 0.0, [attack(members.astype(float), others.astype(float))], True).is_falsified
    assert false <= 0.05 * runs


def test_a_guarantee_that_is_not_one_is_refused():
    AuditSettings()
    AuditSettings(1.0, 0.0)
    for epsilon, delta, sentence in (
        (1.0, None, "pass both, or neither"),
        (None, 1e-5, "pass both, or neither"),
        (-1.0, 0.0, "the stated epsilon must be a positive number, got -1"),
        (float("nan"), 0.0, "the stated epsilon must be a positive number, got nan"),
        (1.0, 1.0, "delta must lie between 0 and 1, got 1"),
    ):
        with pytest.raises(UsageError, match=sentence):
            AuditSettings(epsilon, delta)
