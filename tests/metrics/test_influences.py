"""The influences that a metric's estimator states, of either set, are those of leaving out samples.

Errors, ranks and gates stand on them: a factor 2 in one set, or a wrong sign, is seen here for each metric.
"""

import numpy as np
import pytest

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.mmd import _gaussian_minus_one, mmd_estimator
from finc_eval.measures.registry import METRICS

N, PARTS = 240, 12
SAME = {"fid": "fd", "fd_dinov2": "fd"}  # metrics that compute as another one does
ESTIMATED = ["cmmd", "fd", "jedi", "kid", "mind", "mmd"]


def sets():
    rng = np.random.default_rng(3)
    return [rng.normal(shift, scale, (N, 3)).astype("f4") for shift, scale in ((0.7, 1.4), (0.0, 1.0))]


def estimate(name, gen, ref):
    # The influence of a reference on MMD is for one bandwidth: other samples of it have nearly the same.
    of = mmd_estimator(_gaussian_minus_one(1.0)) if name == "mmd" else METRICS[name].estimator
    return of(ArrayEmbeddings(ref, "ref"), Run())(ArrayEmbeddings(gen, "gen"), None)


def test_all_metrics_with_an_influence_of_each_sample_are_here():
    names = [one for one in METRICS if METRICS[one].estimator and one not in SAME and one != "fwd"]  # fwd is of pixels
    assert [one for one in names if len(estimate(one, *sets()).sources[0].parts) == N] == ESTIMATED


@pytest.mark.parametrize("side", [0, 1], ids=["generated set", "reference"])
@pytest.mark.parametrize("name", ESTIMATED)
def test_influences_are_those_of_leaving_samples_out(name, side):
    both = sets()
    part = np.random.default_rng(4).permutation(N) % PARTS
    stated = np.bincount(part, estimate(name, *both).sources[side].parts)
    found = np.empty(PARTS)
    for one in range(PARTS):
        left = [*both]
        left[side] = both[side][part != one]
        found[one] = -estimate(name, *left).value * (PARTS - 1) / PARTS
    assert np.polyfit(stated, found, 1)[0] == pytest.approx(1, abs=0.2)
    assert np.corrcoef(stated, found)[0, 1] > 0.9
