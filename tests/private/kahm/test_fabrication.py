"""Noise on elements and its promise, smoothing, fabricated samples, and the classifiers made of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from finc_eval.core.errors import FincEvalError
from finc_eval.core.record import plain
from finc_eval.private.dp.gaussian_mechanism import secure_uniform
from finc_eval.private.kahm.element_noise import ElementNoise, noise_quantile
from finc_eval.private.kahm.fabrication import (
    fabricate,
    fabricate_classes,
    fit_private_classes,
    published_steps,
    smooth,
)
from finc_eval.private.kahm.machine import fit_machine, kernel_matrix
from finc_eval.private.kahm.membership import membership_score, nearest_distances
from finc_eval.private.kahm.settings import KahmSettings

X, Y = load_digits(return_X_y=True)
X = X / 16
ORDER = np.random.default_rng(0).permutation(len(X))
TRAIN, TEST = ORDER[:1200], ORDER[1200:]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_uniform_numbers_are_uniform_and_never_an_end():
    u = secure_uniform((200_000,))
    assert float(u.min()) > 0 and float(u.max()) < 1
    assert float(u.mean()) == pytest.approx(0.5, abs=0.004) and float(u.var()) == pytest.approx(1 / 12, rel=0.02)
    assert not torch.equal(secure_uniform((10,)), secure_uniform((10,)))


def test_the_noise_has_its_moment_and_its_atom():
    v = noise_quantile(secure_uniform((400_000,)), epsilon=2.0, delta=0.1, diameter=3.0)
    assert float((v == 0).double().mean()) == pytest.approx(0.1, abs=0.003)
    assert float(v.abs().mean()) == pytest.approx(0.9 * 3 / 2, rel=0.01)
    assert float(v.mean()) == pytest.approx(0, abs=0.02)
    torch.testing.assert_close(noise_quantile(torch.tensor([0.3, 0.7]), 1.0, 0.1, 1.0).sum(), torch.tensor(0.0))


def test_likelihoods_of_neighbors_differ_by_the_promise_at_most():
    """P(v ≤ t) ≤ e^ε P(v + d ≤ t) + δ for all t: by their distribution functions, on a grid."""
    u = torch.linspace(1e-6, 1 - 1e-6, 200_001, dtype=torch.double)
    v, epsilon, delta = noise_quantile(u, 1.5, 0.01, 1.0).numpy(), 1.5, 0.01
    t = np.linspace(-8, 8, 4001)
    here, there = np.searchsorted(v, t, "right") / len(v), np.searchsorted(v, t - 1, "right") / len(v)
    assert (here <= np.exp(epsilon) * there + delta + 1e-5).all()
    assert (1 - there <= np.exp(epsilon) * (1 - here) + delta + 1e-5).all()


def test_noise_is_never_that_of_a_seed_unless_asked():
    samples = torch.zeros(4, 3)
    torch.manual_seed(0)
    first = ElementNoise(1.0).add(samples)
    torch.manual_seed(0)
    assert not torch.equal(first, ElementNoise(1.0).add(samples))
    assert torch.equal(ElementNoise(1.0).add(samples, seeded()), ElementNoise(1.0).add(samples, seeded()))


def test_entries_outside_the_bounds_are_clipped_before_the_noise():
    noisy = ElementNoise(1e6, 0.0, (0.0, 1.0)).add(torch.tensor([[-50.0, 0.5, 50.0]]))
    torch.testing.assert_close(noisy, torch.tensor([[0, 0.5, 1]], dtype=torch.double), atol=1e-4, rtol=0)


def test_the_promise_about_a_record_is_always_said():
    by_element, by_record = (ElementNoise(1.0, 1e-5, adjacency=unit).guarantee(784) for unit in ("element", "record"))
    assert (by_element.record_epsilon, by_element.record_delta) == pytest.approx((784, 784e-5))
    assert (by_record.record_epsilon, by_record.epsilon) == pytest.approx((1, 1 / 784))
    for promise in (by_element, by_record):
        assert "per element" in str(promise) and "per record of 784 entries" in str(promise)
        assert plain(promise)["record_epsilon"] == promise.record_epsilon
    assert "NOT PRIVATE" in str(ElementNoise(1.0).guarantee(3, private=False))


def test_record_adjacency_has_the_noise_of_its_share():
    noisy = ElementNoise(10.0, 0.0, adjacency="record").add(torch.full((4000, 5), 0.5))
    assert float((noisy - 0.5).abs().mean()) == pytest.approx(5 / 10, rel=0.03)


def test_smoothing_is_the_regression_of_the_samples_on_themselves():
    rows = torch.from_numpy(X[Y == 0])
    machine = fit_machine(rows, KahmSettings(10))
    kernel = kernel_matrix(machine.encoded)
    eye = torch.eye(len(rows), dtype=torch.double)
    expected = kernel @ torch.linalg.solve(kernel + machine.lam * eye, rows)
    torch.testing.assert_close(smooth(rows, KahmSettings(10)), expected, atol=1e-10, rtol=0)
    assert float(smooth(rows, KahmSettings(10)).norm()) < float(rows.norm())


def test_fabricated_samples_are_images_of_noisy_ones():
    noisy = ElementNoise(4.0).add(torch.from_numpy(X[Y == 0]), seeded())
    first = fabricate(noisy, KahmSettings(20), steps=1, centered=False)
    torch.testing.assert_close(first.samples, fit_machine(noisy, KahmSettings(20)).images(noisy).points)
    second = fabricate(noisy, KahmSettings(20), centered=False)
    once = smooth(noisy, KahmSettings(20))
    torch.testing.assert_close(second.samples, fit_machine(once, KahmSettings(20)).images(once).points)


def test_centered_fabrication_does_not_depend_on_the_origin_and_keeps_it():
    noisy = ElementNoise(4.0).add(torch.from_numpy(X[Y == 0]), seeded())
    here, there = fabricate(noisy, KahmSettings(20)).samples, fabricate(noisy + 30, KahmSettings(20)).samples
    torch.testing.assert_close(there, here + 30, atol=1e-8, rtol=0)


def test_the_published_number_of_steps_reads_the_raw_samples():
    raw = torch.from_numpy(X[Y == 0][:60])
    noisy = ElementNoise(4.0).add(raw, seeded())
    assert 2 <= published_steps(raw, noisy, KahmSettings(20)) <= 10
    assert published_steps(0.05 * raw, noisy, KahmSettings(20)) > published_steps(raw, noisy, KahmSettings(20))


def made(epsilon, **how):
    return fit_private_classes(X[TRAIN], Y[TRAIN], ElementNoise(epsilon), KahmSettings(20), generator=seeded(), **how)


def score(models):
    found = membership_score(nearest_distances(models, X[TRAIN]), nearest_distances(models, X[TEST]), permutations=0)
    return found.difference.standardized


def test_noisy_samples_classify_and_fabricated_ones_too():
    for fabricated in (False, True):
        models = made(4.0, fabricated=fabricated).models
        assert (models.predict(X[TEST]) == Y[TEST]).mean() >= 0.96


@pytest.mark.long
def test_members_are_told_less_with_more_noise_and_after_fabrication():
    noisy = [score(made(epsilon, fabricated=False).models) for epsilon in (1.0, 8.0, 32.0)]
    assert noisy[0] < noisy[1] < noisy[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert score(made(32.0, strict=False).models) < 0.8 * noisy[2]


def test_nothing_but_noisy_samples_is_read_unless_asked(monkeypatch):
    """Strict models are a function of the noisy samples: with the noise replaced, the raw ones do not matter."""
    noisy = torch.from_numpy(np.random.default_rng(1).normal(size=(60, 8)))
    monkeypatch.setattr(ElementNoise, "add", lambda self, samples, generator=None: noisy[: len(samples)])
    settings, queries = KahmSettings(3, branches=2), np.random.default_rng(2).normal(size=(20, 8))
    rng = np.random.default_rng(3)

    def distances(strict):
        raw = rng.random((60, 8)) * 0.1 ** rng.integers(0, 4)
        found = fit_private_classes(raw, np.zeros(60), ElementNoise(1.0), settings, strict=strict)
        return found.models.distances(queries).values

    np.testing.assert_array_equal(distances(True), distances(True))
    with pytest.warns(UserWarning, match="the models have no guarantee"):
        assert not np.array_equal(distances(False), distances(False))


def test_noisy_samples_that_differ_by_little_are_no_mistake():
    rows = np.array([[0.5, 0.2], [0.50001, 0.7]] * 3, np.float32)  # in float64, that little is much to float32
    made = fabricate_classes(rows, list("aaaabb"), ElementNoise(epsilon=1e8), fabricated=False)
    np.testing.assert_allclose(made.samples, rows, atol=1e-6)
    assert np.isfinite(fabricate_classes(rows, list("aaaabb"), ElementNoise(epsilon=1e8)).samples).all()


def test_the_result_says_what_is_promised_and_whether_it_holds():
    strict = fit_private_classes(X[:80], Y[:80], ElementNoise(1.0), KahmSettings(5))
    assert strict.guarantee.private and "NOT" not in str(strict) and "per record of 64 entries" in str(strict)
    assert plain(strict)["guarantee"]["record_epsilon"] == 64 and set(strict.steps) == {2}
    with pytest.warns(UserWarning):
        published = fit_private_classes(X[:80], Y[:80], ElementNoise(1.0), KahmSettings(5), strict=False)
    assert "does NOT reach these models" in str(published) and plain(published)["strict"] is False


def test_classes_of_one_member_and_copies_are_no_trouble():
    rows = np.concatenate([np.tile(X[:1], (5, 1)), X[1:2]])
    found = fit_private_classes(rows, [0] * 5 + [1], ElementNoise(4.0), KahmSettings(20))
    assert np.isfinite(found.models.distances(X[:3]).values).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ElementNoise(0.0), "epsilon must be a positive number, got 0"),
        (lambda: ElementNoise(1.0, 1.0), "delta must lie between 0 and 1"),
        (lambda: ElementNoise(1.0, bounds=(1.0, 0.0)), "the lower first"),
        (lambda: ElementNoise(1.0, adjacency="records"), 'did you mean "record"'),
        (lambda: ElementNoise(1.0).add(torch.tensor([[np.nan]])), "hold NaN or infinity"),
        (lambda: fabricate([["a"]]), r"finite numbers of shape \(N, p\), got list"),
        (lambda: fabricate(torch.ones(3)), r"got shape \(3,\)"),
        (lambda: fabricate([[np.nan]]), "samples must be finite numbers, and hold NaN"),
        (lambda: fabricate(torch.ones(3, 2), KahmSettings(), steps=0), "steps must be a whole number of at least 1"),
        (
            lambda: fit_private_classes(X[:4], [0, 1], ElementNoise(1.0), KahmSettings()),
            "4 samples came with 2 labels: pass one label per sample",
        ),
    ],
)
def test_what_cannot_be_promised_is_refused_in_a_sentence(call, words):
    with pytest.raises(FincEvalError, match=words):
        call()
