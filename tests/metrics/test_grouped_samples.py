"""`Metric.by_units`: whether an interval knows that samples of a group are alike; else a factor does."""

import numpy as np
import pytest

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.inputs import MetricInputs
from finc_eval.measures.registry import METRICS

OF_UNITS = ("fd", "sfid", "fvmd", "mind", "vendi", "vendi_q2", "vendi_qinf")
OF_SAMPLES = ("kid", "mmd", "cmmd", "jedi", "rke", "fld")


def sets_of_units(seed, samples):
    """Three sets whose units have so many samples, which are nearly alike."""
    found, rng = {}, np.random.default_rng(seed)
    for label, n, shift in (("gen", 210, 0.4), ("ref", 220, 0.0), ("test", 205, 0.0)):
        rows = rng.normal(shift, 1, (n, 6)).repeat(samples, 0)
        rows += 1e-4 * np.random.default_rng(0).normal(size=rows.shape)
        one = ArrayEmbeddings(rows.astype("f4"), label)
        units = np.arange(n * samples, dtype=np.uint64) // np.uint64(samples)
        found[label] = one if samples == 1 else one.with_groups(units, "video")
    return found


def width(metric, sets):
    (score,) = [
        one
        for one in metric.compute(MetricInputs(metric.name, **{label: sets[label] for label in metric.sets}))
        if one.interval is not None
    ]
    return score.interval[1] - score.interval[0]


@pytest.mark.parametrize("name", [*OF_UNITS, *OF_SAMPLES])
def test_samples_of_a_unit_that_are_alike_make_no_error_smaller(name):
    """Three nearly equal samples of each unit say as much as a single one, by the interval or by the factor."""
    metric = METRICS[name]
    draws = range(6 if "vendi" in name else 1)  # ten blocks know an error to a quarter
    alone, grouped = ([sets_of_units(seed, samples) for seed in draws] for samples in (1, 3))
    factor = metric.error_factor(grouped[0]["gen"], grouped[0]["ref"])
    assert factor == pytest.approx(1.0 if metric.by_units else 3**0.5)
    widths = [np.mean([width(metric, sets) for sets in of_size]) for of_size in (alone, grouped)]
    assert 0.75 < factor * widths[1] / widths[0] < 1.35  # 0.58 if samples of a unit counted as independent
    assert metric.error_factor(alone[0]["gen"], alone[0]["ref"]) == metric.error_factor() == 1.0
    assert metric.by_units == (name in OF_UNITS)
