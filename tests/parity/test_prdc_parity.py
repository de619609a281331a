"""Against the package of the paper (prdc 0.2), on the same arrays."""

import numpy as np
import pytest

from finc_eval.measures.precision_recall import precision_recall

METRICS = ("precision", "recall", "density", "coverage")


def theirs(gen, ref, k):
    prdc = pytest.importorskip("prdc", reason="needs the package prdc: pip install prdc")
    return prdc.compute_prdc(real_features=ref.astype(np.float64), fake_features=gen.astype(np.float64), nearest_k=k)


def normal(n, d, seed):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@pytest.fixture
def ucf101(assets):
    with np.load(assets / "ucf101" / "vgg16_relu6_mean.npz") as data:
        return data["features"].astype(np.float32), data["label"]


SETS = {
    "random": lambda: (normal(400, 32, 0), normal(500, 32, 1)),
    "random, of many entries": lambda: (normal(300, 1000, 0), normal(300, 1000, 1)),
    "shifted": lambda: (normal(400, 8, 0) + 1, normal(500, 8, 1)),
    "every sample three times": lambda: (normal(100, 16, 0).repeat(3, 0), normal(150, 16, 1).repeat(3, 0)),
    "the same set": lambda: (normal(200, 16, 0), normal(200, 16, 0)[::-1].copy()),
    "integers": lambda: (np.round(2 * normal(300, 3, 0)), np.round(2 * normal(300, 3, 1))),
}


@pytest.mark.one_of_each("k", "sets")
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("k", [1, 5])
def test_equals_the_package(sets, k):
    gen, ref = SETS[sets]()
    ours, expected = precision_recall(gen, ref, k=k), theirs(gen, ref, k)
    for metric in METRICS:
        assert getattr(ours, metric) == pytest.approx(expected[metric], rel=1e-6, abs=1e-9), metric


def test_equals_the_package_on_three_samples_the_fewest_it_takes():
    gen, ref = normal(3, 5, 0), normal(3, 5, 3)
    for other in (ref, ref + 10, gen[::-1].copy()):
        ours, expected = precision_recall(gen, other, k=1), theirs(gen, other, 1)
        assert [getattr(ours, metric) for metric in METRICS] == [expected[metric] for metric in METRICS]


@pytest.mark.long
@pytest.mark.parametrize("k", [3, pytest.param(5, marks=pytest.mark.long)])
def test_equals_the_package_on_real_clips(ucf101, k):
    features, labels = ucf101
    gen, ref = features[labels != 3][::2], features[labels != 7][1::2]
    ours, expected = precision_recall(gen, ref, k=k), theirs(gen, ref, k)
    for metric in METRICS:
        assert getattr(ours, metric) == pytest.approx(expected[metric], rel=1e-6), metric
