"""Clipped density and coverage: equal to their definition, linear in the share of bad samples."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import betabinom

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures.clipped import ReferenceBalls, expected_coverage


def by_definition(gen, ref, k):
    """Section 4 of the paper, from the matrices of all distances."""
    own, across = cdist(ref, ref), cdist(ref, gen)
    radius = np.sort(own, 1)[:, k]
    clipped = np.minimum(radius, np.median(radius))
    usual = np.minimum(((own <= clipped[:, None]).sum(0) - 1) / k, 1).mean()
    density = np.minimum((across <= clipped[:, None]).sum(0) / k, 1).mean() / usual
    covered = np.minimum((across < radius[:, None]).sum(1), k).mean() / k
    law = [betabinom(n, k, len(ref) - k) for n in range(k, len(gen) + 1)]
    mean = [0.0] * k + [float((np.minimum(np.arange(k + 1), k) * one.pmf(np.arange(k + 1))).sum()) for one in law]
    mean[k:] = [(got + k * one.sf(k)) / k for got, one in zip(mean[k:], law, strict=True)]
    return density, np.searchsorted(mean, covered) / (len(gen) + 1)


@pytest.mark.parametrize(("n", "m", "k", "bad"), [(60, 90, 5, 0), (80, 50, 3, 0.25), (40, 40, 1, 0.5)])
def test_both_are_as_defined(n, m, k, bad):
    rng = np.random.default_rng(n)
    ref, gen = rng.normal(size=(m, 4)).astype("f4"), rng.normal(size=(n, 4)).astype("f4")
    gen[: int(bad * n)] += 5
    found = ReferenceBalls(ArrayEmbeddings(ref), k).density_and_coverage(ArrayEmbeddings(gen))
    assert found == pytest.approx(by_definition(gen, ref, k), abs=1e-9)


def test_the_expected_coverage_of_one_law_is_near_the_coverage_of_draws():
    rng, k, n, m = np.random.default_rng(0), 5, 150, 100
    found = []
    for _ in range(100):
        ref, gen = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
        radius = np.sort(cdist(ref, ref), 1)[:, k]
        found.append(np.minimum((cdist(ref, gen) < radius[:, None]).sum(1), k).mean() / k)
    assert expected_coverage(n, m, k)[-1] == pytest.approx(np.mean(found), abs=0.01)


@pytest.mark.one_of_each
@pytest.mark.parametrize("bad", [0.1, 0.3, 0.6])
def test_both_read_as_the_share_of_good_samples(bad):
    rng = np.random.default_rng(1)
    ref, gen = (rng.normal(size=(800, 8)).astype("f4") for _ in range(2))
    gen[: int(bad * 800)] += 20
    scores = fe.metrics(gen, ref, "clipped")
    for key in ("clipped_density", "clipped_coverage"):
        low, high = scores[key].interval
        assert scores[key].value == pytest.approx(1 - bad, abs=0.08)
        assert low <= scores[key].value <= high <= 1
