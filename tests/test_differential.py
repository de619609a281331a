import numpy as np
import pytest
import torch

from finc_eval.differential import Estimates, Masses, holm, match, squared_overlap
from finc_eval.errors import FincEvalError
from finc_eval.rotation import varimax
from finc_eval.signature import Signature
from finc_eval.spectrum import top_eigenpairs


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
    _, order = match(squared_overlap(basis, shuffled))
    assert torch.allclose(shuffled[:, order], -basis, atol=1e-6)


def test_holm_gives_the_textbook_values():
    adjusted = holm(torch.tensor([0.01, 0.04, 0.03, 0.005], dtype=torch.double))
    np.testing.assert_allclose(adjusted.numpy(), [0.03, 0.06, 0.06, 0.02], atol=1e-12)


def test_the_standard_error_is_that_of_independent_means_with_the_allowance_for_correlated_halves():
    first = Masses(torch.tensor([100.0, 300.0]), torch.tensor([[0.2], [0.4]]), torch.tensor([[0.04], [0.09]]))
    second = Masses(torch.tensor([50.0, 50.0]), torch.tensor([[0.1], [0.1]]), torch.tensor([[0.01], [0.01]]))
    estimates = Estimates.of([(1.0, first)], [(1.0, second)], rho=2.0)
    assert float(estimates.excess) == pytest.approx(0.35 - 0.2)
    variance = 0.25**2 * 0.04 / 100 + 0.75**2 * 0.09 / 300 + 4 * 0.01 / 100
    assert float(estimates.error) == pytest.approx((1.25 * variance) ** 0.5)


def test_a_signature_parses_back_and_names_the_field_that_differs():
    mine = Signature("finc", (("n", "5/6"), ("fx", "pixels@12:3"), ("sigma", "8.9")))
    assert Signature.parse(str(mine)) == mine
    other = Signature.parse("finc|n:5/6|fx:pixels@12:3|sigma:10")
    assert mine.differences(other) == ["sigma: 8.9 and 10"]
    assert mine.differences(mine) == []
    with pytest.raises(FincEvalError, match="no signature"):
        Signature.parse("finc|nonsense")
