"""Samples near to real ones in general are told from copies of training samples."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import binom

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.memorization.holdout import MOST_SUSPICIOUS, Sides, find_sides
from finc_eval.memorization.nearness import Near, Nearness
from finc_eval.memorization.settings import AuditSettings

pytestmark = pytest.mark.usefixtures("quick_audits")

SIZE = 300


@pytest.fixture(scope="module")
def real(digits):
    """Three disjoint sets of digits, as 14 x 14 pixels."""
    return digits[0][: 3 * SIZE].reshape(3, SIZE, 28, 28)[..., ::2, ::2].reshape(3, SIZE, 196).copy()


@pytest.mark.long
@pytest.mark.parametrize("order", [(0, 1), pytest.param((1, 0), marks=pytest.mark.long)], ids=str)
def test_smooth_samples_point_to_no_set_whichever_of_two_is_called_the_training_set(real, order):
    smooth = np.stack([gaussian_filter(one.reshape(14, 14), 0.7).ravel() for one in real[2]])
    found = fe.audit(smooth, real[order[0]], real[order[1]])
    assert {"authpct", "c_t", "mifid"} <= set(found.copying.found_by)
    assert found.copying.training_found_by == () and found.nearer_to == "real"
    assert found.verdict.startswith("Samples are nearer to real samples than fresh samples are, but nothing shows them")
    share = found.copying.measure("dcr").value
    assert f"{100 * share:.1f} % of them are (DCR share; 50 % without copies)" in found.verdict
    assert "Samples that are smoother than real samples are so without copying." in found.headline


@pytest.mark.long
def test_samples_that_both_sets_have_are_no_copies_of_one_but_those_that_one_has_are(real):
    train, holdout, gen = real.copy()
    rng = np.random.default_rng(0)
    for part in (train, holdout):  # 40 pictures that all sets have, nearly
        part[:40] = real[0][:40] + 0.01 * rng.normal(size=(40, 196))
    gen[:40] = real[0][:40]
    popular = fe.audit(gen, train, holdout)
    measure = popular.copying.measure("calibrated")
    assert measure.adjusted < 0.05 < measure.against_holdout
    assert "calibrated" not in popular.copying.training_found_by
    gen[:40] = real[2][:40]
    gen[40:60] = train[40:60] + 0.01 * rng.normal(size=(20, 196))
    copied = fe.audit(gen, train, holdout)
    measure = copied.copying.measure("calibrated")
    assert max(measure.adjusted, measure.against_holdout) < 0.05
    assert copied.verdict.startswith("At least ") and " are training samples, altered" in copied.verdict


def near(gen, fresh):
    return Near(np.array(gen), np.array(fresh), np.arange(len(gen)))


def test_the_sign_test_asks_the_most_suspicious_samples_and_those_of_a_stratum():
    rng = np.random.default_rng(1)
    fresh, (to_train, to_holdout) = rng.random(500), rng.random((2, 300))
    to_train[:10], to_holdout[10:12] = 0, 0
    sides = Sides.of(near(to_train, fresh), near(to_holdout, fresh))
    assert sides.p_value() == pytest.approx(binom.sf(9, MOST_SUSPICIOUS, 0.5))
    among = np.zeros(300, bool)
    among[:5] = True
    assert sides.p_value(among) == pytest.approx(0.5**5)
    assert sides.p_value(np.zeros(300, bool)) == 1  # of no sample, nothing is said


@pytest.mark.one_of_each("factor")
@pytest.mark.parametrize(("n", "m", "factor"), [(2000, 200, 1.0), (200, 2000, 1.0), (200, 2000, 3.0)])
def test_sets_of_unlike_sizes_are_alike_to_fresh_samples(n, m, factor):
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(400):
        gen, train, holdout = rng.random((2, 3000)), rng.random(m), rng.random(n)
        p_values.append(Sides.of(near(gen[0], train), near(factor * gen[1], factor * holdout)).p_value())
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05


def test_samples_near_to_one_real_sample_are_asked_once():
    to_train, to_holdout = np.full((2, 40), 1.0)
    to_train[:20] = 0.1
    repeats = Near(to_train, np.ones(50), np.zeros(40, int))
    others = Near(to_train, np.ones(50), np.arange(40))
    base = Near(to_holdout, np.ones(50), np.arange(40))
    assert Sides.of(others, base).p_value() < 0.001 < 0.5 < Sides.of(repeats, base).p_value()


@pytest.mark.one_of_each
@pytest.mark.parametrize(("m", "h"), [(400, 2000), (2000, 400)])
def test_neither_of_two_sets_of_unlike_sizes_is_nearer_to_fresh_samples(m, h):
    rng, told = np.random.default_rng(3), 0
    for _ in range(10):
        centers = 5 * rng.normal(size=(40, 6))  # of which a small set has few samples each
        sets_of = (centers[rng.integers(40, size=n)] + rng.normal(size=(n, 6)) for n in (500, m, h))
        gen, train, holdout = (as_embeddings(one.astype(np.float32)) for one in sets_of)
        ways = {"calibrated": Near.of(nearest(gen, train, 10), nearest(holdout, train, 10))}
        sets = {"gen": gen, "train": train, "holdout": holdout}
        told += find_sides(sets, Nearness(ways), 10, AuditSettings(), Run())["calibrated"].p_value() <= 0.05
    assert told <= 2
