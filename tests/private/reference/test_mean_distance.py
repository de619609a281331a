"""Bias, variance and coverage of what is read from a private sketch, over many releases of real digits."""

import math

import numpy as np
import pytest
import torch

from finc_eval.privacy import PublicTransform, release_sketch
from finc_eval.private.dp import gaussian_mechanism as gaussian
from finc_eval.private.reference import mean_distance
from finc_eval.private.reference.mean_distance import NoisyMean, SampleMean


@pytest.fixture(scope="module")
def pools(digits):
    """Public digits, and populations of which private and generated samples are drawn."""
    images, labels = digits
    images = np.ascontiguousarray(images[:, 105:680:3])  # fewer entries, for speed
    private, first, second = images[500:2000], images[2000:3000], images[3000:]
    return images[:500], private, first[labels[2000:3000] != 7], second[labels[3000:] != 3]


@pytest.fixture(scope="module", params=[40, pytest.param(200, marks=pytest.mark.long)])
def drawn(pools, request):
    """Many times private records, a release of them, and two generated sets: sketches, and summaries of the sets."""
    public, *populations = pools
    transform = PublicTransform.fit(public, 4)
    rng = np.random.default_rng(0)
    generator = torch.Generator().manual_seed(0)
    phi = release_sketch(populations[0], public=transform, epsilon=4.0, ledger=None).feature_map
    repetitions = []
    with pytest.MonkeyPatch.context() as patch:
        normal = lambda shape: torch.randn(shape, generator=generator, dtype=torch.double)  # noqa: E731
        patch.setattr(gaussian, "secure_normal", normal)
        for _ in range(request.param):
            private, first, second = (
                population[rng.integers(len(population), size=size)]
                for population, size in zip(populations, (400, 300, 500), strict=True)
            )
            sketch = release_sketch(private, public=transform, epsilon=4.0, ledger=None, feature_map=phi)
            repetitions.append((sketch, private, sketch.summarize(first), sketch.summarize(second)))
    return repetitions


@pytest.fixture(scope="module")
def scores(drawn):
    return [sketch.score(first) for sketch, _, first, _ in drawn]


@pytest.fixture(scope="module")
def means(drawn, pools):
    """Of all populations, without noise or sampling."""
    sketch = drawn[0][0]
    return [sketch.feature_map.in_double(sketch.transform(torch.from_numpy(one))).mean(0) for one in pools[1:]]


def covers(hits, level):
    """Whether intervals of this level hold the truth as often as they say, but for chance (three deviations)."""
    return abs(np.mean(hits) - level) < 3 * math.sqrt(level * (1 - level) / len(hits))


def within_standard_errors(values, truth, errors=3):
    standard_error = np.std(values, ddof=1) / math.sqrt(len(values))
    return abs(np.mean(values) - truth) < errors * standard_error


def test_a_score_has_no_bias(drawn, scores, means):
    truth = float((means[0] - means[1]).square().sum())
    assert within_standard_errors([score.value for score in scores], truth)
    uncorrected = [float((sketch.mean - first.mean).square().sum()) for sketch, _, first, _ in drawn]
    assert not within_standard_errors(uncorrected, truth, 4)


def test_intervals_cover_the_distance_of_the_populations(scores, means):
    truth = float((means[0] - means[1]).square().sum())
    assert covers([score.interval[0] <= truth <= score.interval[1] for score in scores], 0.95)
    spread = np.std([score.value for score in scores], ddof=1)
    assert np.sqrt(np.mean([score.standard_error**2 for score in scores])) == pytest.approx(
        spread, rel=2 / math.sqrt(len(scores))
    )


@pytest.mark.parametrize("excess", [-3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 30.0])
def test_an_interval_holds_its_estimate_and_grows_with_it(excess):
    """Estimates so many deviations from zero, with a generator that varies along one direction alone."""
    size, s = 20, 0.01
    spread = torch.zeros(size, size, dtype=torch.double)
    spread[0, 0] = 0.1
    gen = SampleMean(100, torch.zeros(size, dtype=torch.double), spread)
    expected = size * s**2 + 0.1 / 100
    unsure = math.sqrt(2 * ((s**2 + 0.001) ** 2 + (size - 1) * s**4))

    def interval(value):
        mean = torch.zeros(size, dtype=torch.double)
        mean[0] = math.sqrt(value + expected)
        return mean_distance.interval(NoisyMean(mean, s, 0.0), gen, 0.95)

    value = max(excess * unsure, -expected)
    (low, high), (lower, _) = interval(value), interval(max(value - 0.01 * unsure, -expected))
    assert low <= value <= high
    assert lower <= low


def test_intervals_of_like_populations_cover_zero(drawn, pools):
    rng = np.random.default_rng(1)
    covered = []
    for sketch, *_ in drawn[:100]:
        score = sketch.score(pools[1][rng.integers(len(pools[1]), size=300)])
        covered.append(score.interval[0] <= 0 <= score.interval[1])
    assert np.mean(covered) > 0.95 or covers(covered, 0.95)


def test_real_data_of_the_same_size_stay_below_their_yardstick(drawn, pools):
    rng = np.random.default_rng(2)
    scores = [sketch.score(pools[1][rng.integers(len(pools[1]), size=300)]) for sketch, *_ in drawn[:100]]
    assert covers([abs(one.value) <= one.by_chance for one in scores], 0.95)
    assert "would get up to" in scores[0].to_markdown() and "Real data, same size" in scores[0].to_markdown()


def test_the_interval_of_the_noise_alone_covers_the_distance_of_the_sets(drawn, scores):
    """Whatever was drawn: the χ² interval is exact, and shifted by what the sets' sampling is expected to add."""
    covered = []
    for (sketch, private, first, _), score in zip(drawn, scores, strict=True):
        exact = sketch.feature_map.in_double(sketch.transform(torch.from_numpy(private))).mean(0)
        shift = float(first.covariance.trace()) / first.n + sketch.noisy_mean.sampling
        truth = float((exact - first.mean).square().sum()) - shift
        low, high = score.noise_interval
        covered.append(low <= truth <= high)
    assert covers(covered, 0.95)


def test_a_paired_difference_has_no_bias_and_the_stated_variance(drawn, means):
    truth = float((means[0] - means[1]).square().sum() - (means[0] - means[2]).square().sum())
    values, errors = [], []
    for sketch, _, first, second in drawn:
        found = mean_distance.difference(sketch.noisy_mean, first, second)
        values.append(found.value)
        errors.append(found.standard_error)
    assert within_standard_errors(values, truth)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values, ddof=1), rel=2 / math.sqrt(len(values)))
    assert covers(np.abs(np.array(values) - truth) < 1.96 * np.array(errors), 0.95)


def test_of_the_noise_a_paired_difference_keeps_what_lies_between_the_generators(drawn):
    """With the sets held, its variance is 4 s²‖q₁ − q₂‖², and of the scores themselves 4 s²Δ² + 2 A s⁴."""
    sketch, _, first, second = drawn[0]
    s, size = 0.01, sketch.size
    generator = torch.Generator().manual_seed(3)
    exact = first.mean + 0.02 * torch.randn(size, generator=generator, dtype=torch.double)
    draws = exact + s * torch.randn(20_000, size, generator=generator, dtype=torch.double)
    scores = [(draws - gen.mean).square().sum(1) for gen in (first, second)]
    gap = float((first.mean - second.mean).square().sum())
    assert float((scores[0] - scores[1]).var()) == pytest.approx(4 * s**2 * gap, rel=0.05)
    delta2 = float((exact - first.mean).square().sum())
    assert float(scores[0].var()) == pytest.approx(4 * s**2 * delta2 + 2 * size * s**4, rel=0.05)
    still = [SampleMean(gen.n, gen.mean, torch.zeros_like(gen.covariance)) for gen in (first, second)]
    of_noise = mean_distance.difference(NoisyMean(exact, s, 0.0), *still).standard_error ** 2
    assert of_noise == pytest.approx(4 * s**2 * gap)
    assert np.mean(
        [mean_distance.variance(NoisyMean(draw, s, 0.0), still[0]) for draw in draws[:2000]]
    ) == pytest.approx(4 * s**2 * delta2 + 2 * size * s**4, rel=0.02)


def test_the_sampling_of_the_records_is_estimated_without_bias(drawn, pools):
    sketch = drawn[0][0]
    features = sketch.feature_map.in_double(sketch.transform(torch.from_numpy(pools[1])))
    truth = float(features.var(0, correction=0).sum()) / 400
    assert within_standard_errors([sketch.noisy_mean.sampling for sketch, *_ in drawn], truth)


def test_one_pass_gives_the_mean_and_covariance_of_numpy():
    rows = np.random.default_rng(0).normal(size=(101, 7)) + 3
    found = mean_distance.sample_mean(torch.from_numpy(rows).split(10))
    assert found.n == 101
    assert found.mean.numpy() == pytest.approx(rows.mean(0))
    assert found.covariance.numpy() == pytest.approx(np.cov(rows.T), abs=1e-12)


@pytest.mark.parametrize(("degrees", "noncentrality"), [(1, 4.0), (66, 0.0), (231, 150.0), (1771, 9e4)])
def test_noncentralities_are_those_whose_tails_are_met(degrees, noncentrality):
    from scipy.stats import ncx2

    x = float(ncx2.ppf(0.3, degrees, noncentrality)) if noncentrality else float(ncx2.ppf(0.3, degrees, 0.0))
    low, high = mean_distance.noncentrality_interval(x, degrees, 0.95)
    assert low <= noncentrality <= high
    assert ncx2.cdf(x, degrees, high) == pytest.approx(0.025, rel=1e-4)
    if low:
        assert ncx2.cdf(x, degrees, low) == pytest.approx(0.975, rel=1e-4)


@pytest.mark.parametrize(
    ("m", "size", "delta2", "expected", "tolerance"),
    [
        (1797, 66, 0.0, 9.9e-5, 0.01),  # digits
        (7000, 231, 0.78e-4, 1.8e-5, 0.01),  # MNIST, degree 2
        (7000, 1771, 0.78e-4, 3.4e-5, 0.08),  # MNIST, degree 3
    ],
)
def test_the_standard_deviation_of_a_score_at_epsilon_1(m, size, delta2, expected, tolerance):
    """The measured values of the specification, from the formula: noise √2/m · 3.7306 and no sampling."""
    s = math.sqrt(2) / m * 3.7306316348
    gap = torch.full((size,), math.sqrt((delta2 + size * s**2) / size), dtype=torch.double)
    gen = SampleMean(10, torch.zeros(size, dtype=torch.double), torch.zeros(size, size, dtype=torch.double))
    ref = NoisyMean(gap, s, 0.0)
    assert mean_distance.squared_distance(ref, gen) == pytest.approx(delta2, abs=1e-15)
    assert math.sqrt(mean_distance.variance(ref, gen)) == pytest.approx(expected, rel=tolerance)


def test_what_the_noise_hides_is_two_of_its_standard_deviations():
    s = math.sqrt(2) / 1797 * 3.7306316348
    ref = NoisyMean(torch.zeros(66, dtype=torch.double), s, 0.0)
    assert mean_distance.smallest_detected(ref, 0.95) == pytest.approx(1.96 * 9.9e-5, rel=0.01)
