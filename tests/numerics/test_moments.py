import pytest
import torch

from finc_eval import CosineFeatures, RandomFourierFeatures
from finc_eval.numerics.moments import HELD, MOMENT_BLOCK, Moments, from_upper, upper, upper_size, weighted_sum

CPU = torch.device("cpu")

SIZES = [1, MOMENT_BLOCK - 1, MOMENT_BLOCK, MOMENT_BLOCK + 1, 2 * MOMENT_BLOCK + 50]


def vectors(size, n=700, seed=0):
    """Vectors with a mean, entries of unlike scale and correlated neighbors."""
    rows = torch.randn(n, size, generator=torch.Generator().manual_seed(seed))
    return (rows + 0.5 * rows.roll(1, 1) + 0.3) * torch.linspace(0.5, 2, size)


def moments_of(rows, precision="float32", batch=256):
    moments = Moments(rows.shape[1], precision, CPU)
    for part in rows.split(batch):
        moments.update(part)
    return moments


@pytest.mark.parametrize("size", SIZES)
def test_moments_in_blocks_are_those_of_all_rows_at_once(size):
    rows = vectors(size)
    moments = moments_of(rows)
    exact = rows.double()
    assert moments.n == 700
    torch.testing.assert_close(moments.mean().double(), exact.mean(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moments.mean_square().double(), exact.T @ exact / 700, rtol=1e-5, atol=1e-5)
    assert torch.equal(moments.mean_square(), moments.mean_square().T)


def test_moments_whose_products_are_known_are_added_without_settings(monkeypatch):
    parts = [moments_of(vectors(5, seed=seed)) for seed in range(3)]
    known = [part.mean_square() * part.n for part in parts]
    monkeypatch.setattr("finc_eval.numerics.moments.arithmetic", None)
    torch.testing.assert_close(sum(parts[1:], parts[0]).mean_square() * 2100, sum(known))


@pytest.mark.parametrize("size", SIZES)
def test_only_the_block_rows_from_the_diagonal_on_are_kept(size):
    blocks = list(moments_of(vectors(size, n=3)).blocks())
    assert [rows.start for rows, _ in blocks] == list(range(0, size, MOMENT_BLOCK))
    assert [rows.stop for rows, _ in blocks] == [*range(MOMENT_BLOCK, size, MOMENT_BLOCK), size]
    assert all(block.shape == (rows.stop - rows.start, size - rows.start) for rows, block in blocks)


@pytest.mark.parametrize("size", SIZES)
def test_a_block_row_comes_back_from_what_is_on_and_above_the_diagonal(size):
    for _, block in moments_of(vectors(size, n=30)).blocks():
        kept = upper(block)
        assert kept.shape == (upper_size(*block.shape),) == (int(torch.ones_like(block).triu().sum()),)
        again = from_upper(kept, *block.shape)
        assert torch.equal(again.triu(), block.triu())
        assert torch.equal(again[:, : len(block)], again[:, : len(block)].T)


@pytest.mark.parametrize("size", SIZES)
def test_applying_the_blocks_multiplies_by_the_whole_matrix(size):
    moments = moments_of(vectors(size), "float64")
    columns = torch.randn(size, 4, generator=torch.Generator().manual_seed(1))
    expected = moments.mean_square() @ columns.double()
    torch.testing.assert_close(moments.apply(columns), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_sum_of_two_parts_is_that_of_their_union_and_leaves_the_parts_alone(size):
    rows = vectors(size)
    parts = moments_of(rows[:200], "float64"), moments_of(rows[200:], "float64")
    before = [(part.n, part.mean(), part.mean_square()) for part in parts]
    total = parts[0] + parts[1]
    whole = moments_of(rows, "float64")
    assert total.n == whole.n
    torch.testing.assert_close(total.mean(), whole.mean(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(total.mean_square(), whole.mean_square(), rtol=1e-12, atol=1e-12)
    for part, (n, mean, square) in zip(parts, before, strict=True):
        assert part.n == n
        assert torch.equal(part.mean(), mean)
        assert torch.equal(part.mean_square(), square)


def test_a_weighted_sum_of_moments_is_the_whole_symmetric_matrix():
    rows = vectors(MOMENT_BLOCK + 1)
    first, second = moments_of(rows[:300], "float64"), moments_of(rows[300:], "float64")
    total = weighted_sum([(0.25, first), (-2.0, second)])
    expected = 0.25 * 300 * first.mean_square() - 2 * 400 * second.mean_square()
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-9)


@pytest.fixture(scope="module", params=["gaussian", "cosine"])
def features(request, digits):
    x = digits[0][:2000]
    return RandomFourierFeatures(784, 150, sigma=6.0)(x) if request.param == "gaussian" else CosineFeatures(784)(x)


def test_the_covariance_is_the_more_exact_the_higher_the_precision(features):
    exact = features.double().T @ features.double() / len(features)
    double, single = (moments_of(features, one).mean_square().double() for one in ("float64", "float32"))
    errors = [float((one - exact).norm() / exact.norm()) for one in (double, single)]
    assert errors[0] <= 1e-14 and 1e-9 < errors[1] <= 1e-6
    # Masses are read off these matrices: they are wrong by no more than the largest eigenvalue of the error.
    assert float(torch.linalg.eigvalsh(single - exact).abs().max()) < 1e-6


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_few_vectors_are_applied_without_their_products(precision):
    """Until somebody asks for the products, and to the same result."""
    rows = vectors(MOMENT_BLOCK + 1, n=HELD)
    moments, columns = moments_of(rows, precision), torch.eye(MOMENT_BLOCK + 1)[:, :3]
    before = moments.apply(columns)
    assert not moments._second and len(moments._waiting) == HELD // 256
    moments.mean_square()
    assert moments._second and not moments._waiting
    torch.testing.assert_close(before, moments.apply(columns), rtol=1e-5, atol=1e-5)
    moments.update(rows[:5])
    assert not moments._waiting
    more = moments_of(vectors(5, n=HELD + 1), precision)
    assert more._second and not more._waiting


def test_no_vectors_change_nothing():
    moments = moments_of(vectors(5, n=10))
    before = moments.mean_square()
    moments.update(torch.empty(0, 5))
    assert moments.n == 10
    assert torch.equal(moments.mean_square(), before)
