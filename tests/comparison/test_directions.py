from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import norm

import finc_eval as fe
from finc_eval.comparison import directions as differential
from finc_eval.comparison.directions import (
    DUAL,
    REFIT_TOLERANCE,
    EigenProblem,
    FoldedMoments,
    RotationSample,
    covariance_difference,
    cross_fit,
    eigen_directions,
    fit_directions,
    match,
    r_squared,
)
from finc_eval.comparison.estimates import Estimates, Masses
from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.numerics.eigen import RESIDUAL_TOLERANCE, LowRank, top_eigenpairs, varimax
from finc_eval.numerics.inference import critical_value, significant
from finc_eval.numerics.moments import Moments


@pytest.mark.parametrize("size", [60, 900])
def test_leading_eigenpairs_are_those_of_the_full_decomposition(size):
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(size, size, generator=generator, dtype=torch.double)
    matrix = (half + half.T) / size
    values, vectors = top_eigenpairs(matrix.float(), 7)
    expected = torch.linalg.eigvalsh(matrix).flip(0)[:7]
    np.testing.assert_allclose(values.numpy(), expected.numpy(), atol=1e-5)
    residual = matrix.float() @ vectors - vectors * values
    assert float(residual.abs().max()) < 1e-4
    assert torch.allclose(vectors.T @ vectors, torch.eye(7), atol=1e-5)


def test_varimax_undoes_a_rotation_of_sparse_loadings():
    generator = torch.Generator().manual_seed(0)
    clusters = torch.eye(4).repeat_interleave(50, dim=0) + 0.01 * torch.randn(200, 4, generator=generator)
    mixing, _ = torch.linalg.qr(torch.randn(4, 4, generator=generator))
    recovered = (clusters @ mixing) @ varimax(clusters @ mixing)
    # Up to order and sign, each column is one cluster again.
    assert float(recovered.abs().max(0).values.min()) > 0.95
    assert torch.allclose(recovered.abs().sort(1).values[:, :3], torch.zeros(200, 3), atol=0.05)


def test_varimax_is_a_rotation():
    rotation = varimax(torch.randn(100, 5, generator=torch.Generator().manual_seed(1)))
    assert torch.allclose(rotation @ rotation.T, torch.eye(5), atol=1e-6)


def test_matching_pairs_each_direction_with_its_noisy_copy():
    basis, _ = torch.linalg.qr(torch.randn(40, 6, generator=torch.Generator().manual_seed(0)))
    shuffled = -basis[:, torch.tensor([3, 0, 5, 1, 4, 2])]
    _, order = match((basis.T @ shuffled).square())
    assert torch.allclose(shuffled[:, order], -basis, atol=1e-6)


def masses_of(n, mean, variance):
    """Masses of independent samples."""
    return Masses(n, mean, variance, torch.ones(mean.shape[1]))


def test_the_standard_error_is_that_of_independent_means_with_the_allowance_for_correlated_halves():
    first = masses_of(torch.tensor([100.0, 300.0]), torch.tensor([[0.2], [0.4]]), torch.tensor([[0.04], [0.09]]))
    second = masses_of(torch.tensor([200.0, 200.0]), torch.tensor([[0.1], [0.1]]), torch.tensor([[0.01], [0.01]]))
    estimates = Estimates.of(first, second, rho=2.0)
    assert float(estimates.excess) == pytest.approx(0.35 - 0.2)
    variance = 0.25**2 * 0.04 / 100 + 0.75**2 * 0.09 / 300 + 4 * 0.01 / 400
    assert float(estimates.error) == pytest.approx((1.5 * variance) ** 0.5)


def test_p_values_and_intervals_are_those_of_the_normal_law():
    n = torch.tensor([100.0, 100.0])
    one, other = (masses_of(n, torch.full((2, 1), mass), torch.full((2, 1), 0.02)) for mass in (0.25, 0.2))
    estimates = Estimates.of(one, other, rho=1.0)
    error = (1.5 * 2 * 0.02 / 200) ** 0.5
    assert float(estimates.p_values()) == pytest.approx(float(norm.sf(0.05 / error)))
    assert float(Estimates.of(other, one, rho=1.0).p_values()) == pytest.approx(1 - float(estimates.p_values()))
    assert critical_value(1) == pytest.approx(1.96, abs=1e-3)
    assert float(critical_value(26) * estimates.error) == pytest.approx(float(norm.ppf(1 - 0.05 / 52)) * error)


def test_intervals_of_an_excess_end_where_masses_do():
    n = torch.tensor([20.0, 20.0])
    near, far = (masses_of(n, torch.full((2, 1), mass), torch.full((2, 1), 0.09)) for mass in (0.91, 0.0))
    over = Estimates.of(near, far, rho=1.0)
    assert float(over.excess + critical_value(26) * over.error) > 1
    low, high = over.interval(0, 26, 1.0)
    assert high == 1 and low == pytest.approx(float(over.excess - critical_value(26) * over.error))
    low, high = Estimates.of(far, near, rho=0.5).interval(0, 26, 0.5)
    assert low == -0.5 and high < 0.5


def populations(sizes=((40, 35), (30, 50)), size=600, seed=0):
    """Two sets of unit vectors around unlike means, by their moments and by all their vectors."""
    generator = torch.Generator().manual_seed(seed)
    result = []
    for number, of_folds in enumerate(sizes):
        folds, features = [], []
        for n in of_folds:
            rows = torch.randn(n, size, generator=generator) / size**0.5
            rows[: n // 2, number] += 1
            rows = torch.nn.functional.normalize(rows)
            moments = Moments(size, "float32", torch.device("cpu"))
            moments.update(rows)
            folds.append(moments)
            features.append(rows)
        result.append(FoldedMoments((folds[0], folds[1]), (features[0], features[1])))
    return result


def by_definition(terms, folds):
    """Σ weight · E[yyᵀ] over the vectors of these folds, in float64."""
    total = 0.0
    for weight, population in terms:
        rows = torch.cat([population.features[fold] for fold in folds]).double()
        total = total + weight * rows.T @ rows / len(rows)
    return total


@pytest.mark.parametrize("folds", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("size", [200, 4 * 155])
def test_a_difference_is_that_of_the_covariances_of_its_folds(folds, size):
    x, y = populations(size=size)
    difference = covariance_difference(x, y, rho=2.0, folds=folds)
    samples = sum(len(population.features[fold]) for population in (x, y) for fold in folds)
    expected = by_definition([(1.0, x), (-2.0, y)], folds)
    if samples * DUAL <= size:
        assert isinstance(difference, LowRank)
        assert len(difference.rows) == samples
        difference = (difference.rows.T * difference.weights) @ difference.rows
    torch.testing.assert_close(difference.double(), expected, rtol=0, atol=1e-6)


def test_without_the_features_of_all_samples_a_difference_is_the_whole_matrix():
    x, y = populations(size=4 * 155)
    known = covariance_difference(x, y, rho=1.0)
    unknown = covariance_difference(x, FoldedMoments(y.folds), rho=1.0)
    assert isinstance(known, LowRank)
    assert isinstance(unknown, torch.Tensor)


def scores_on(sample):
    return lambda vectors: sample @ vectors


def test_directions_are_orthonormal_and_sorted_by_their_excess():
    x, y = populations()
    dense = by_definition([(1.0, x), (-1.0, y)], (0, 1)).float()
    sample = torch.cat([*x.features, *y.features])
    raw, rotated = (fit_directions(top_eigenpairs(dense, 6, 25), scores) for scores in (None, scores_on(sample)))
    for found in (raw, rotated):
        torch.testing.assert_close(found.vectors.T @ found.vectors, torch.eye(6), rtol=0, atol=1e-5)
        assert (found.excess.diff() <= 0).all()
        torch.testing.assert_close(found.excess, (found.vectors * (dense @ found.vectors)).sum(0), rtol=0, atol=1e-6)
        assert len(found.eigenvalues) == 25
    torch.testing.assert_close(raw.excess, raw.eigenvalues[:6], rtol=0, atol=1e-6)
    # A rotation within the eigenspace: it spans the same, and has the same excess altogether.
    assert float((raw.vectors.T @ rotated.vectors).square().sum()) == pytest.approx(6, abs=1e-3)
    assert float(rotated.excess.sum()) == pytest.approx(float(raw.excess.sum()), abs=1e-5)
    assert not torch.allclose(raw.excess, rotated.excess, atol=1e-4)


def test_r_squared_is_the_squared_correlation_of_scores():
    x, y = populations(size=30, sizes=((400, 400), (400, 400)))
    generator = torch.Generator().manual_seed(3)
    vectors, others, more = (torch.linalg.qr(torch.randn(30, k, generator=generator)).Q for k in (3, 4, 2))
    # With folds of one size each weighs as its samples do.
    rows = torch.cat([*x.features, *y.features]).double().numpy()
    expected = np.corrcoef((rows @ vectors.numpy()).T, (rows @ torch.cat([others, more], 1).numpy()).T)[:3, 3:] ** 2
    found = r_squared(vectors, [others, more], [x, y])
    assert [tuple(part.shape) for part in found] == [(3, 4), (3, 2)]
    np.testing.assert_allclose(torch.cat(found, 1).numpy(), expected, atol=1e-4)


def test_r_squared_lets_every_fold_weigh_the_same():
    x, _ = populations(size=30, sizes=((500, 20), (20, 20)))
    vectors = torch.eye(30)[:, :2]
    once = r_squared(vectors, [vectors.roll(1, 1)], [x])[0]
    tripled = Moments(30, "float32", torch.device("cpu"))
    for _ in range(3):
        tripled.update(x.features[1])
    again = r_squared(vectors, [vectors.roll(1, 1)], [FoldedMoments((x.folds[0], tripled))])[0]
    torch.testing.assert_close(once, again)


def fitted(x, y, sample, halves=None):
    propose = partial(eigen_directions, EigenProblem(x, y, 1.0, 3, 10), sample)
    return cross_fit(propose, [x, y], halves)


def test_directions_of_all_data_are_exact_and_those_of_halves_nearly():
    generator, sets = torch.Generator().manual_seed(0), []
    for _ in range(2):  # noise: its eigenvalues are close together
        folds = [Moments(900, "float32", torch.device("cpu")) for _ in range(2)]
        for fold in folds:
            fold.update(torch.randn(900, 900, generator=generator))
        sets.append(FoldedMoments(tuple(folds)))
    x, y = sets
    problem = EigenProblem(x, y, 1.0, 6, 10)
    for folds, most in (((0, 1), RESIDUAL_TOLERANCE), ((0,), REFIT_TOLERANCE)):
        ((values, vectors),) = problem.pairs(folds, [])[0]
        difference = covariance_difference(x, y, 1.0, folds)
        residual = (difference @ vectors - vectors * values[:6]).norm(dim=0)
        assert float(residual.max()) < most * float(values[0])


def test_each_half_is_scored_by_the_directions_of_the_other():
    x, y = populations(sizes=((300, 300), (300, 300)), size=40)
    sample, folds = torch.cat([*x.features]), torch.cat([torch.zeros(300), torch.ones(300)])
    fit = fitted(x, y, RotationSample((sample,), folds))
    for fold, scoring in enumerate(fit.scoring):
        other = 1 - fold
        alone = fit_directions(
            top_eigenpairs(by_definition([(1.0, x), (-1.0, y)], [other]).float(), 3), scores_on(sample[folds == other])
        ).vectors
        # The same directions up to order and sign.
        assert float((scoring.T @ alone).square().max(1).values.min()) > 0.999
        assert (scoring * fit.full.vectors).sum(0).min() >= 0
        assert float((fit.full.vectors[:, 0] @ scoring[:, 0]) ** 2) > 0.5


@pytest.mark.parametrize("size", [60, 4 * 155 * 2])
def test_stability_is_what_two_halves_of_the_samples_and_two_of_the_frequencies_find_again(size):
    x, y = populations(size=size)
    halves = tuple(torch.arange(size).tensor_split(2))
    sample, folds = torch.cat([*x.features]), torch.cat([torch.zeros(40), torch.ones(35)])
    fit = fitted(x, y, RotationSample((sample,), folds), halves)
    full, again = fit.full.vectors, []
    for found in fit.scoring:
        again.append(r_squared(full, [found], [x, y])[0].diagonal())
    for entries in halves:
        alone = torch.zeros(size, 3)
        part = by_definition([(1.0, x), (-1.0, y)], [0, 1]).float()[entries][:, entries]
        alone[entries] = fit_directions(top_eigenpairs(part, 3), scores_on(sample[:, entries])).vectors
        similar = r_squared(full, [alone], [x, y])[0]
        again.append(similar[match(similar)])
    torch.testing.assert_close(fit.stability, torch.stack(again).mean(0), rtol=0, atol=5e-3)
    # What x has more of is in an entry of the first half, so three refits of four find it again.
    assert float(fit.stability[0]) == pytest.approx(0.75, abs=0.05)
    # Without frequencies to halve, only the samples are.
    without = fitted(x, y, RotationSample((sample,), folds))
    torch.testing.assert_close(without.stability, torch.stack(again[:2]).mean(0), rtol=0, atol=5e-3)


@pytest.mark.long
def test_few_samples_and_many_features_give_the_same_by_either_eigenproblem(digits, monkeypatch):
    x = digits[0]
    gen, ref = x[:80] * 0.6, x[80:200]
    options = {"features": 300, "method": fe.Finc(clusters=False)}
    dual = fe.compare(gen=gen, ref=ref, **options)
    monkeypatch.setattr(differential, "DUAL", 10**6)
    primal = fe.compare(gen=gen, ref=ref, **options)
    np.testing.assert_allclose(dual.spectrum.over, primal.spectrum.over, atol=1e-4)
    sure, others = (significant(one.directions, 0.05) for one in (dual, primal))
    assert sure and [mode.id for mode in sure] == [mode.id for mode in others]
    for mine, other in zip(sure, others, strict=True):
        assert abs(float(mine.direction @ other.direction)) > 0.99
        assert mine.excess == pytest.approx(other.excess, abs=1e-3)
        assert mine.stability == pytest.approx(other.stability, abs=0.01)


def test_masses_of_a_sketch_without_samples_are_exact_and_their_variances_as_large_as_can_be():
    x, _ = populations(size=30, sizes=((400, 300), (20, 20)))
    vectors = tuple(torch.linalg.qr(torch.randn(30, 3, generator=torch.Generator().manual_seed(s))).Q for s in (1, 2))
    masses = Masses.of_sketch(x.folds, vectors, torch.zeros(2, 2, 3), 1.0)
    for fold, (rows, columns) in enumerate(zip(x.features, vectors, strict=True)):
        squares = (rows @ columns).double().square()
        torch.testing.assert_close(masses.mean[fold], squares.mean(0), rtol=0, atol=1e-6)
        assert (masses.variance[fold] >= squares.var(0)).all()
        torch.testing.assert_close(masses.variance[fold], masses.mean[fold] * (1 - masses.mean[fold]))
    assert masses.n.tolist() == [400, 300]
    mean, variance = (one[1:] for one in masses.pooled())
    torch.testing.assert_close(mean, (400 * masses.mean[0, 1:] + 300 * masses.mean[1, 1:]) / 700)
    expected = (400 * masses.variance[0, 1:] + 300 * masses.variance[1, 1:]) / 700**2
    torch.testing.assert_close(variance, expected)


def test_a_signature_parses_back_and_names_the_field_that_differs():
    mine = Signature("finc", (("n", "5/6"), ("fx", "pixels@12:3"), ("sigma", "8.9")))
    assert Signature.parse(str(mine)) == mine
    other = Signature.parse("finc|n:5/6|fx:pixels@12:3|sigma:10")
    assert mine.differences(other) == ["sigma: 8.9 and 10"]
    assert mine.differences(mine) == []
    with pytest.raises(FincEvalError, match="not a signature"):
        Signature.parse("finc|nonsense")
