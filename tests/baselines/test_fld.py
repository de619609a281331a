import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

import finc_eval as fe
from finc_eval.baselines import fld as module
from finc_eval.baselines.fld import fit, fld, negative_likelihoods, sample_likelihoods
from finc_eval.baselines.spectral_clustering import most_novel
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search import distance_blocks


def law(n, seed, shift=0.0, d=24):
    """A mixture of five Gaussians, in a basis that leaves no feature constant."""
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(99).standard_normal((d, d)) / d**0.5
    centers = 3 * np.random.default_rng(98).standard_normal((5, d))
    rows = centers[rng.integers(5, size=n)] + rng.standard_normal((n, d)) + shift
    return (rows @ basis).astype(np.float32)


def standard(test, *others):
    mean, deviation = test.astype(np.float64).mean(0), test.astype(np.float64).std(0, ddof=1)
    return [torch.from_numpy((rows - mean) / deviation) for rows in (test, *others)]


def naive_terms(x, centers, log_variances):
    d = x.shape[1]
    squared = torch.cdist(x, centers, compute_mode="donot_use_mm_for_euclid_dist").square()
    return -0.5 * (squared / log_variances.exp() + d * (log_variances + np.log(2 * np.pi))) - np.log(len(centers))


def fitted_by_adam(centers, train, steps):
    """The published protocol, written down naively: Adam, learning rate 0.5, log variances from the nearest sample."""
    squared = torch.cdist(train, centers).square()
    log_variances = ((squared.amin(0) + 1e-3) / train.shape[1]).log().requires_grad_()
    background = torch.zeros((), dtype=torch.double, requires_grad=True)
    to_mean = 0.81 * (train - train.mean(0)).square().sum(1)
    optimizer = torch.optim.Adam([log_variances, background], lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        alone = -0.5 * (to_mean / background.exp() + train.shape[1] * (background + np.log(2 * np.pi)))
        terms = naive_terms(train, centers, log_variances)
        loss = -torch.cat([terms, alone[:, None]], 1).logsumexp(1).mean() / train.shape[1]
        loss.backward()
        optimizer.step()
    return log_variances.detach(), -float(loss.detach())


def test_the_fit_is_at_least_as_likely_as_the_published_optimizer_s():
    _, train, gen = standard(law(200, 0), law(300, 1), law(250, 2))
    ours = fit(as_embeddings(gen), as_embeddings(train))
    _, theirs = fitted_by_adam(gen, train, 50)
    assert ours.objective[-1] >= theirs - 1e-5
    assert (np.diff(ours.objective) > -1e-9).all(), "no step lowers the likelihood"


@pytest.mark.long
def test_fld_is_that_of_the_published_protocol_within_its_optimizer_s_error():
    raw = law(300, 0), law(400, 1), law(200, 2, shift=0.3)
    test, train, gen = standard(*raw)
    found = fld(raw[2], raw[1], raw[0], seed=5)
    order = np.random.default_rng(5).permutation(400)
    nll = []
    for centers, fitted_to in ((gen, train), (train[np.sort(order[:200])], train[np.sort(order[200:])])):
        log_variances, _ = fitted_by_adam(centers, fitted_to, 300)
        nll.append(float(-naive_terms(test, centers, log_variances).logsumexp(1).mean()) / 24)
    assert found.nll == pytest.approx(nll[0], abs=0.005)
    assert found.baseline == pytest.approx(nll[1], abs=0.005)
    assert found.fld == pytest.approx(100 * (nll[0] - nll[1]), abs=0.5)


def test_no_variance_or_background_makes_the_samples_of_the_fit_likelier():
    """The background is a Gaussian of weight one around the mean of the samples, their distances shrunk to 0.9."""
    _, train, gen = standard(law(60, 0, d=6), law(40, 1, 0.7, d=6), law(25, 2, d=6))
    found = fit(as_embeddings(gen), as_embeddings(train))
    to_mean = 0.81 * (train - train.mean(0)).square().sum(1)

    def objective(log_variances, background):
        alone = -0.5 * (to_mean / background.exp() + 6 * (background + np.log(2 * np.pi)))
        return torch.cat([naive_terms(train, gen, log_variances), alone[:, None]], 1).logsumexp(1).mean() / 6

    widths = torch.from_numpy(found.log_variances).requires_grad_()
    searched = minimize_scalar(lambda one: -float(objective(widths.detach(), torch.tensor(one).double())), (-1, 1))
    background = torch.tensor(searched.x).double()
    best = objective(widths, background)
    assert found.objective[-1] == pytest.approx(float(best.detach()), abs=1e-5)
    (slope,) = torch.autograd.grad(best, widths)
    assert float(slope.abs().max()) < 2e-3
    wider, narrower = (objective(widths.detach() + change, background) for change in (0.1, -0.1))
    assert max(wider, narrower) < best


@pytest.mark.parametrize("n", [10, 22])
def test_fld_compares_the_mixture_of_the_generated_set_with_one_of_training_samples(n):
    raw = law(40, 0, d=6), law(31, 1, d=6), law(n, 2, 0.3, d=6)
    test, train, gen = standard(*raw)
    order, centers = np.random.default_rng(3).permutation(31), min(n, 15)
    base = train[np.sort(order[:centers])], train[np.sort(order[centers:])]

    def losses(centers, fitted_to, samples):
        widths = fit(as_embeddings(centers.float()), as_embeddings(fitted_to.float())).log_variances
        return -naive_terms(samples, centers, torch.from_numpy(widths)).logsumexp(1).numpy() / 6

    own, others, seen = losses(gen, train, test), losses(*base, test), losses(gen, train, train)
    found = fld(raw[2], raw[1], raw[0], seed=3)
    assert (found.nll, found.baseline) == pytest.approx((own.mean(), others.mean()), abs=1e-4)
    assert found.fld == pytest.approx(100 * (own - others).mean(), abs=0.01)
    assert found.standard_error == pytest.approx(100 * (own - others).std(ddof=1) / 40**0.5, rel=1e-3)
    assert found.gap == pytest.approx(100 * (seen.mean() - own.mean()), abs=0.01)
    for one, expected in zip(negative_likelihoods(raw[2], raw[1], raw[0], Run()), (seen, own), strict=True):
        np.testing.assert_allclose(one, expected, atol=1e-3)
    by_test = -losses(test, train, gen)
    np.testing.assert_allclose(sample_likelihoods(raw[2], raw[1], raw[0]).scores, by_test, atol=1e-3)


def test_the_likelihood_of_a_mixture_is_that_of_its_definition():
    test, train, gen = standard(law(100, 0), law(120, 1), law(90, 2))
    mixture = fit(as_embeddings(gen), as_embeddings(train))
    expected = naive_terms(test, gen, torch.from_numpy(mixture.log_variances)).logsumexp(1)
    np.testing.assert_allclose(mixture.log_likelihood(as_embeddings(test)), expected, rtol=1e-4)


def test_blocks_and_what_is_kept_change_nothing(monkeypatch):
    sets = law(40, 2), law(50, 1), law(45, 0)
    whole, scores = fld(*sets), sample_likelihoods(*sets).scores
    for name, value in (("BLOCK_ROWS", 17), ("HELD_BLOCKS", 2)):
        monkeypatch.setattr(distance_blocks, name, value)
    monkeypatch.setattr(module, "DENSITY_ROWS", 7)
    monkeypatch.setattr(module, "MAX_KEPT_DISTANCES", 0)
    assert fld(*sets).fld == pytest.approx(whole.fld, abs=1e-3)
    np.testing.assert_allclose(sample_likelihoods(*sets).scores, scores, atol=1e-4)


@pytest.mark.long
def test_the_same_law_is_near_zero_and_a_shift_raises_it():
    train, test = law(2000, 1), law(1000, 0)
    same, shifted, far = (fld(law(1000, 2, shift), train, test) for shift in (0, 0.5, 2))
    assert abs(same.fld) < 4 * same.standard_error + 1
    assert same.fld < shifted.fld < far.fld
    assert same.warning is None


def test_copies_of_training_samples_are_punished_and_named():
    train, test = law(600, 1), law(400, 0)
    fresh, copied = fld(law(300, 2), train, test), fld(train[:300], train, test)
    assert copied.fld > 1000 > fresh.fld
    assert copied.gap < -1000 < fresh.gap and fresh.warning is None
    assert copied.warning == "300 of 300 generated samples are copies of training samples"


def test_samples_off_the_law_are_found_novel():
    gen = np.concatenate([law(95, 2), law(5, 3, shift=4)])
    found = sample_likelihoods(gen, law(400, 1), law(300, 0))
    assert sorted(most_novel(found, 0.05)) == [95, 96, 97, 98, 99]


def test_the_unit_of_a_feature_changes_nothing():
    sets = law(90, 2), law(120, 1), law(100, 0)
    units = np.geomspace(1e-3, 1e3, 24).astype(np.float32)
    assert fld(*(rows * units + 5 for rows in sets)).fld == pytest.approx(fld(*sets).fld, abs=0.05)


@pytest.mark.long  # quicker ones are of digits and of laws
def test_real_clips_score_better_than_noise_around_them(assets):
    with np.load(assets / "ucf101" / "vgg16_relu6_mean.npz") as data:
        features = data["features"].astype(np.float32)
    rng = np.random.default_rng(0)
    features = features[rng.permutation(len(features))]
    features = features[:, features[:600].std(0) > 0][:, :500]
    test, train, real = features[:600], features[600:1400], features[1400:]
    noisy = real + features.std(0) * rng.standard_normal(real.shape).astype(np.float32)
    assert fld(noisy, train, test).fld > fld(real, train, test).fld + 10


def constant_feature():
    sets = [law(30, seed) for seed in range(3)]
    for rows in sets:
        rows[:, [3, 7]] = 0.1
    return sets


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            constant_feature,
            "FLD cannot standardize entries .* constant in the test set, 2 of 24, the first of them number 3",
        ),
        (lambda: (law(5, 0), law(3, 1), law(5, 2)), "train has too few samples, 3: the baseline needs at least 4"),
        (
            lambda: (law(5, 0), law(9, 1), law(1, 2)),
            "test has too few samples, 1: their standard deviation needs at least 2",
        ),
        (lambda: (law(5, 0), law(9, 1, d=7), law(9, 2)), "train has 7 entries per embedding and test 24"),
        (lambda: (law(5, 0) * np.nan, law(9, 1), law(9, 2)), "gen: the embedding in row 0 is not finite"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(sets, message):
    with pytest.raises(fe.FincEvalError, match=message):
        fld(*sets())
