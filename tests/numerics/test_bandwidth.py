from math import log

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.numerics.kernels import (
    BANDWIDTH_FACTOR,
    STABLE_VARIANCE,
    bandwidth_warnings,
    effective_kinds,
    gaussian_kernel,
    median_bandwidth,
    median_distance,
    stable_bandwidth,
)

QUICK = {"features": 50, "modes": 1, "method": fe.Finc(clusters=False)}


def test_the_median_is_that_of_the_distances_of_all_pairs(digits):
    rows = digits[0][:150].astype(np.float64)
    distances = [np.linalg.norm(x - y) for i, x in enumerate(rows) for y in rows[:i]]
    median = float(np.sort(distances)[(len(distances) - 1) // 2])
    assert median_distance(torch.from_numpy(digits[0][:150])) == pytest.approx(median, rel=1e-6)
    assert median_bandwidth(torch.from_numpy(digits[0][:150])) == pytest.approx(BANDWIDTH_FACTOR * median, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e30])
def test_the_median_follows_the_unit_of_the_embeddings(digits, scale):
    rows = torch.from_numpy(digits[0][:60])
    assert median_distance(rows * scale) == pytest.approx(scale * median_distance(rows), rel=1e-5)


def test_one_enormous_sample_leaves_the_median_as_it_is(digits):
    rows = torch.from_numpy(digits[0][:60]).clone()
    before = median_distance(rows)
    rows[7] *= 1e30
    assert median_distance(rows) == pytest.approx(before, rel=0.05)


def test_the_bandwidth_is_that_of_the_reference_alone(digits):
    x = digits[0][:, ::12]
    expected = median_bandwidth(torch.from_numpy(x[:500]))
    for gen in (x[500:600], 100 * x[500:600]):
        found = fe.compare(gen=gen, ref=x[:500], **QUICK)
        assert found.settings.sigma == pytest.approx(expected, rel=1e-6)
        assert found.sigma_rule == "0.5 x median distance of 500 reference samples"
    given = fe.compare(gen=gen, ref=x[:500], **QUICK, sigma=7.5)
    assert (given.settings.sigma, given.sigma_rule) == (7.5, "given")


@pytest.mark.parametrize("rows", [torch.zeros(30, 4), torch.ones(1, 4), torch.full((5, 3), 1e30)])
def test_samples_without_any_distance_give_no_bandwidth(rows):
    with pytest.raises(fe.FincEvalError, match=r"is 0, so no bandwidth follows from it: .* pass sigma \(--sigma\)"):
        median_distance(rows)


def block_kernel(*sizes):
    return torch.block_diag(*(torch.ones(size, size) for size in sizes))


@pytest.mark.parametrize("kinds", [1, 2, 7])
def test_equal_clusters_are_as_many_kinds(kinds):
    assert effective_kinds(block_kernel(*[6] * kinds)) == pytest.approx(kinds)


def test_samples_that_are_all_alone_are_as_many_kinds():
    assert effective_kinds(torch.eye(50)) == pytest.approx(50)


def test_unlike_clusters_count_by_their_shares():
    assert effective_kinds(block_kernel(6, 3, 1)) == pytest.approx(1 / (0.6**2 + 0.3**2 + 0.1**2))
    assert effective_kinds(torch.tensor([[1, 0.5], [0.5, 1]])) == pytest.approx(1.6)  # half alike


def test_planted_clusters_are_counted_at_a_good_bandwidth():
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(10 * np.eye(5)[np.arange(200) % 5] + 0.05 * rng.standard_normal((200, 5))).float()
    assert effective_kinds(gaussian_kernel(rows, rows, 2.0)) == pytest.approx(5, rel=0.01)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.02, "too small: among 500 samples it distinguishes"),
        (50.0, "too large: among 500 samples it distinguishes 1."),
    ],
)
def test_a_bandwidth_far_off_carries_a_warning(digits, factor, words):
    x = digits[0][:, ::12]
    default = fe.compare(gen=x[:100], ref=x[100:700], **QUICK)
    assert not any("sigma" in warning for warning in default.warnings)
    sigma = factor * default.settings.sigma
    found = fe.compare(gen=x[:100], ref=x[100:700], **QUICK, sigma=sigma)
    assert [warning for warning in found.warnings if f"sigma {sigma:.4g} is {words}" in warning]
    assert len([warning for warning in found.warnings if "sigma" in warning]) == 1
    sketched = fe.compare(
        gen=fe.Sketch.of(x[:100], found.feature_map),
        ref=fe.Sketch.of(x[100:700], found.feature_map),
        modes=1,
        method=QUICK["method"],
    )
    assert sketched.warnings == found.warnings


def test_where_the_warnings_begin():
    line = torch.arange(100.0)[:, None]
    sigmas = np.geomspace(0.01, 10_000, 60)
    kinds = [effective_kinds(gaussian_kernel(line, line, sigma)) for sigma in sigmas]
    assert kinds == sorted(kinds, reverse=True)
    for sigma, number in zip(sigmas, kinds, strict=True):
        warning = " ".join(bandwidth_warnings(line, float(sigma)))
        assert ("too small" in warning) == (number > 50)
        assert ("too large" in warning) == (number < 1.5)


def test_without_two_samples_there_is_nothing_to_warn_of(digits):
    for count in (0, 1):
        assert bandwidth_warnings(torch.ones(count, 3), 1.0) == []
    phi = fe.RandomFourierFeatures(784, 50, sigma=6.0)
    sketches = [fe.Sketch.of(part, phi, sample=0) for part in (digits[0][:600], digits[0][600:1200])]
    found = fe.compare(*sketches, method=fe.Finc(rotation=None))
    assert not any("bandwidth" in warning or "sigma" in warning for warning in found.warnings)
    assert found.kernel_error is None


def score_of(scatter):
    """A score that varies over resamples as much as `scatter` says for its bandwidth."""
    return lambda sigma, rng: log(1000) + scatter(sigma) * rng.standard_normal()


def test_the_papers_rule_takes_the_smallest_bandwidth_of_the_stable_range_at_the_top():
    # Stable from 4 on; below 1 every sample is alone and the score is log n whatever the resample.
    score = score_of(lambda sigma: 0.01 if sigma >= 4 else 1.0 if sigma > 1 else 0.0)
    assert stable_bandwidth([2, 0.25, 8, 4, 1, 0.5, 16], score) == 4
    assert stable_bandwidth([0.25, 0.5, 1], score) == 0.25
    assert stable_bandwidth([2, 0.5, 3], score) is None
    assert stable_bandwidth([], score) is None


def test_stable_means_a_variance_within_the_limit():
    scatter = lambda sigma: 1 / sigma  # noqa: E731
    draws = np.array([np.random.default_rng([0, draw]).standard_normal() for draw in range(10)])
    limit = (draws.var(ddof=1) / STABLE_VARIANCE) ** 0.5
    sigmas = [0.5 * limit, 0.99 * limit, 1.01 * limit, 2 * limit]
    assert stable_bandwidth(sigmas, score_of(scatter)) == sigmas[2]


def test_every_bandwidth_meets_the_same_resamples():
    drawn = {}

    def score(sigma, rng):
        drawn.setdefault(sigma, []).append(rng.integers(1 << 62))
        return 0.0

    stable_bandwidth([1, 2, 3], score)
    assert drawn[1] == drawn[2] == drawn[3]
    assert len(set(drawn[1])) == 10
