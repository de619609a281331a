"""Limits on the membership-inference score (KAHM, eq. 69): beyond the limit and beyond its null, or held."""

import re

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.gates.facts import membership
from finc_eval.gates.facts.membership import ScoreAboveNull
from finc_eval.memorization.attacks import score_membership
from finc_eval.numerics.density_difference import density_difference

POLICY = {"basics": {"membership": 0.001}}


@pytest.fixture(autouse=True)
def few_permutations(monkeypatch):
    monkeypatch.setattr(membership, "NULL", 99)


@pytest.fixture(scope="module")
def drawn():
    """Training samples, fresh samples, a generator of their law, and one that repeats training samples."""
    rows = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    train, ref, gen, other = rows.reshape(4, 100, 4)
    return {"train": train, "ref": ref, "gen": gen, "copied": train + 0.01 * other}


def test_a_release_of_its_training_samples_is_a_regression_and_one_of_their_law_is_not(drawn):
    failed = fe.gate(drawn["copied"], drawn["gen"], drawn["ref"], POLICY, train=drawn["train"])
    (limit,) = failed.limits
    assert (failed.exit_code, limit.name, limit.verdict) == (1, "basics.membership", "regressed")
    members = [fe.EmbeddingSet(drawn[name]) for name in ("copied", "train", "ref")]
    of_paper = score_membership(*members, seed=0, permutations=0).value  # eq. 69, in 1/distance
    assert limit.value == pytest.approx(of_paper, rel=1e-9)
    assert failed.findings[0].limit == "basics.membership" and limit.note.startswith("p = 0.01")
    held = fe.gate(drawn["gen"], drawn["gen"], drawn["ref"], POLICY, train=drawn["train"])
    assert held.limits[0].verdict == "held" and held.exit_code == 0
    assert fe.Verdict.from_dict(held.to_dict()).to_dict() == held.to_dict()


MISSING = {
    "no training set": ({}, slice(None), "pass train"),
    "too few samples": ({"train": "train"}, slice(60), "at least 100"),
    "another law": ({"train": "far"}, slice(None), "not of one distribution"),
    "the training set as the reference": (
        {"train": "ref"},
        slice(None),
        "100 of the 100 samples .* are training samples",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_cannot_be_judged_is_missing_and_never_passes(case, drawn):
    given, rows, why = MISSING[case]
    sets = {**drawn, "far": drawn["train"] + 3}
    verdict = fe.gate(
        drawn["gen"], drawn["gen"], drawn["ref"][rows], POLICY, **{name: sets[key] for name, key in given.items()}
    )
    assert (verdict.limits[0].verdict, verdict.exit_code) == ("missing", 3)
    assert re.search(why, verdict.limits[0].note)


def test_a_score_is_beyond_its_null_where_its_p_value_is_small_enough():
    null = tuple(np.arange(1, 100) / 100)
    score = ScoreAboveNull(name="x", value=0.97, margin=0.5, surely=0.0, is_search=True, null=null)
    for level in (0.005, 0.02, 0.03, 0.04, 0.05):
        p = (1 + sum(value >= score.value for value in null)) / (1 + len(null))
        assert score.is_regression(level) == (p <= level)


@pytest.mark.long
def test_equal_laws_are_a_regression_no_more_often_than_the_level():
    hits = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        found = density_difference(rng.gamma(2, size=80), rng.gamma(2, size=60), permutations=99, seed=seed)
        null = tuple(value / found.deviation for value in found.null)
        score = ScoreAboveNull(name="x", value=found.value, margin=0.0, surely=0.0, is_search=True, null=null)
        hits += score.is_regression(0.05)
    assert hits <= 13  # of Binomial(120, 0.05), 99.5 % are at most 13


@pytest.mark.parametrize(("value", "message"), [(-1, "from 0 to"), ("much", "must be a number")])
def test_a_limit_on_the_score_is_a_number_that_is_not_negative(value, message):
    with pytest.raises((fe.UsageError, fe.DataError), match=message):
        fe.Policy.of({"basics": {"membership": value}})
