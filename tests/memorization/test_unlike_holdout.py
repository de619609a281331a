"""A generator that copied nothing is not accused because the holdout is another set."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.memorization.holdout import holdout_p_value
from finc_eval.memorization.verdict import exceeds

pytestmark = pytest.mark.usefixtures("quick_audits")

N, DIM = 300, 16
CENTERS = np.random.default_rng(5).normal(size=(10, DIM)) * 4


def normal(rng, n=N, scale=1.0, mean=0.0):
    return scale * rng.normal(size=(n, DIM)) + mean


def classes(rng, n=N, first=0, weights=None):
    return rng.normal(size=(n, DIM)) + CENTERS[rng.choice(np.arange(first, 10), n, p=weights)]


SHIFTS = {
    "a class is missing": (classes, lambda rng: classes(rng, first=1)),
    "two classes are missing": (classes, lambda rng: classes(rng, first=2)),
    "a class is three times as frequent": (classes, lambda rng: classes(rng, weights=[0.3] + [0.7 / 9] * 9)),
    "1.1 times as wide": (normal, lambda rng: normal(rng, scale=1.1)),
    "1.3 times as wide": (normal, lambda rng: normal(rng, scale=1.3)),
    "twice as wide": (normal, lambda rng: normal(rng, scale=2)),
    "0.7 times as wide": (normal, lambda rng: normal(rng, scale=0.7)),
    "shifted a little": (normal, lambda rng: normal(rng, mean=0.2)),
    "shifted": (normal, lambda rng: normal(rng, mean=0.5)),
    "heavy tails": (normal, lambda rng: rng.standard_t(4, (N, DIM))),
    "noisy": (classes, lambda rng: classes(rng) + 0.5 * rng.normal(size=(N, DIM))),
    "one axis is wider": (normal, lambda rng: normal(rng) * np.where(np.arange(DIM) == 0, 3, 1)),
}


def sets(shift, seed):
    rng = np.random.default_rng([seed, 11])
    law, other = SHIFTS[shift]
    return [one.astype(np.float32) for one in (law(rng), law(rng), other(rng))]


def accuses(audit):
    words = ("nearer to the training set than fresh", "training samples, altered")
    return any(word in audit.verdict for word in words)


QUICK = ("a class is missing", "twice as wide", "heavy tails")


@cache
def audited(shift):
    return fe.audit(*sets(shift, 0), stated_epsilon=0.5, stated_delta=1e-5)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "shift", [pytest.param(shift, marks=[pytest.mark.long] * (shift not in QUICK)) for shift in SHIFTS]
)
def test_no_copying_and_no_false_guarantee_is_concluded_from_another_holdout(shift):
    audit = audited(shift)
    assert not accuses(audit) and not audit.stated.is_falsified


@pytest.mark.parametrize("shift", QUICK[:2])
def test_the_verdict_and_a_warning_say_that_the_holdout_is_another_set(shift):
    audit = audited(shift)
    assert audit.holdout_differs and audit.nearer_to is None
    assert audit.verdict.endswith("nothing is concluded from how near samples are to the training set.")
    assert any("not of one distribution (p = " in one for one in audit.warnings)


def test_exact_copies_are_said_whatever_the_holdout_is():
    gen, train, holdout = sets("twice as wide", 0)
    gen[:30] = train[:30]
    audit = fe.audit(gen, train, holdout)
    assert audit.verdict.startswith("30 of 300 samples are training samples, with equal embeddings.")
    assert audit.holdout_differs


@pytest.mark.parametrize("runs, least", [(1, 1), pytest.param(5, 3, marks=pytest.mark.long)])
def test_altered_copies_are_found_with_a_holdout_of_the_same_law(runs, least):
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 3])
        gen, train, holdout = (classes(rng).astype(np.float32) for _ in range(3))
        gen[:60] = train[:60] + 0.02 * rng.normal(size=(60, DIM))
        found += "training samples, altered" in fe.audit(gen, train, holdout).verdict
    assert found >= least  # 1 in 20 tests of equal laws is significant


def p_value(one, other):
    return holdout_p_value(
        as_embeddings(one.astype(np.float32)), as_embeddings(other.astype(np.float32)), 0, Run(device="cpu")
    )


@pytest.mark.long  # fewer draws: tests/intervals
@pytest.mark.parametrize("draws", [120])
def test_sets_of_one_law_are_seldom_called_unlike(draws):
    rng = np.random.default_rng(0)
    pairs = [(law, n, m) for law in (normal, classes) for n, m in ((200, 200), (150, 400)) for _ in range(draws // 4)]
    found = sum(p_value(law(rng, n), law(rng, m)) <= 0.05 for law, n, m in pairs)
    assert binom.sf(found - 1, draws, 0.05) > 0.001


@pytest.mark.long  # fewer draws: tests/intervals
@pytest.mark.parametrize("draws", [60])
def test_windows_of_videos_are_exchanged_as_videos(draws):
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(draws):
        both = []
        for _ in range(2):
            rows = np.repeat(rng.normal(size=(60, DIM)), 4, 0) + 0.1 * rng.normal(size=(240, DIM))
            clips = fe.EmbeddingSet(rows.astype(np.float32), metadata={"clip": np.repeat(np.arange(60), 4)})
            both.append(clips.grouped("clip"))
        found += holdout_p_value(*both, 0, Run(device="cpu")) <= 0.05
    assert binom.sf(found - 1, draws, 0.05) > 0.001


@pytest.mark.parametrize("draws", [8, pytest.param(20, marks=pytest.mark.long)])
def test_blanks_of_both_sets_do_not_make_them_unlike(draws):
    rng, found = np.random.default_rng(3), 0
    for _ in range(draws):
        both = normal(rng), normal(rng)
        for one in both:
            one[:30] = 0
        found += p_value(*both) <= 0.05
    assert binom.sf(found - 1, draws, 0.05) > 0.001


def test_attacks_alone_falsify_no_guarantee():
    """In this draw a tenth of the holdout is twice as wide, the test misses it, and an attack succeeds by it."""
    rng = np.random.default_rng([9, 93])
    three = normal(rng), normal(rng), normal(rng) * np.where(rng.random((N, 1)) < 0.1, 2, 1)
    found = fe.audit(*(one.astype(np.float32) for one in three), stated_epsilon=0.5, stated_delta=1e-5)
    assert any(exceeds(one, found.stated.epsilon, found.stated.ceilings) for one in found.attacks)
    assert not (found.holdout_differs or found.copying.finds_training or found.stated.is_falsified)


@pytest.mark.long
def test_repeated_blanks_are_no_reason_to_refuse_a_holdout():
    rng = np.random.default_rng(2)
    gen, train, holdout = (normal(rng).astype(np.float32) for _ in range(3))
    for one in (gen, train, holdout):
        one[:15] = 0
    assert "so are 15 of 300 fresh samples" in fe.audit(gen, train, holdout).verdict
    holdout[:60] = train[100:160]
    with pytest.raises(fe.DataError, match=r"60 of the 300 .* that occurs once: the two share samples, or"):
        fe.audit(gen, train, holdout)
