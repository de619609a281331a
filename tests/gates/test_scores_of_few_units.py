"""Limits on scores of sets of few units: bounds are Student's, with the degrees of freedom that the units give."""

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.estimates.estimate import difference
from finc_eval.measures.registry import METRICS

ALPHA = 0.01


def drawn(rng, sizes):
    """A set of videos of these numbers of windows, which are alike."""
    units = np.arange(len(sizes)).repeat(sizes)
    rows = rng.normal(size=(len(sizes), 3))[units] + 0.5 * rng.normal(size=(len(units), 3))
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"video": [str(unit) for unit in units]})


@pytest.mark.parametrize("rule", ["most", "difference"])
@pytest.mark.parametrize(
    "metric, sizes", [("mmd", np.full(6, 10)), ("kid", np.repeat([3, 17], 4)), ("fd", np.full(21, 10))]
)
def test_a_score_of_few_units_has_the_error_and_the_degrees_of_its_units(metric, sizes, rule):
    """The interval of 95 % of a score does not say how long the tails of few units are at other levels."""
    rng = np.random.default_rng(4)
    sets = gen, old, ref = drawn(rng, sizes), drawn(rng, sizes), drawn(rng, np.full(70, 3))
    (limit,) = fe.gate(gen, old, ref, {"metrics": {metric: {rule: 0.5}}, "groups": "video", "alpha": ALPHA}).limits
    gen, old, ref = (as_embeddings(one, "").grouped("video") for one in sets)
    new, before = (METRICS[metric].estimator(ref, Run())(one, None) for one in (gen, old))
    found = new if rule == "most" else difference(new, before, is_paired=False)
    assert found.degrees < 60
    half = stats.t.isf(ALPHA, found.degrees) * found.standard_error
    assert limit.interval == pytest.approx((limit.value - half, limit.value + half))


def test_noise_of_few_units_is_a_margin_by_their_degrees():
    rng = np.random.default_rng(5)
    sets = [drawn(rng, np.full(6, 10)), drawn(rng, np.full(6, 10)), drawn(rng, np.full(70, 3))]
    policy = {"metrics": {"mmd": {"difference": "noise"}}, "groups": "video"}
    (limit,) = fe.gate(*sets, policy).limits
    _, old, ref = (as_embeddings(one, "").grouped("video") for one in sets)
    before = METRICS["mmd"].estimator(ref, Run())(old, None)
    expected = 2 * stats.t.isf(0.05, before.degrees) * before.standard_error * 2**0.5
    assert limit.margin == pytest.approx(expected)
