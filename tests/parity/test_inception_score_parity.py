from functools import cache

import numpy as np
import pytest
from _theirs import theirs

from finc_eval.metrics.inception_score import inception_score

TORCH_FIDELITY = """
import torch
from torch_fidelity.metric_isc import isc_features_to_metric
def their(x, splits):
    found = isc_features_to_metric(torch.from_numpy(x), splits=int(splits), rng_seed=2020)
    return [found["inception_score_mean"], found["inception_score_std"]]
"""
CASES = [(503, 10), (20, 20), (2, 1)]


def logits(n):
    rows = np.random.default_rng(0).normal(0, 3, (n, 1008)).astype(np.float32)
    rows[: n // 3] = rows[0]
    return rows


@cache
def expected():
    return theirs("torch_fidelity", TORCH_FIDELITY, {str(n): {"x": logits(n), "splits": splits} for n, splits in CASES})


@pytest.mark.parametrize("n, splits", CASES)
def test_the_score_is_torch_fidelitys(n, splits):
    found = inception_score(logits(n), splits=splits)
    assert [found.mean, found.std] == pytest.approx(expected()[str(n)], rel=1e-6, abs=1e-12)
