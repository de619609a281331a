import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.numerics import eigen as spectrum
from finc_eval.numerics.eigen import LowRank, all_eigenpairs, extreme_eigenpairs, top_eigenpairs

SIZE = 800  # more than 2·LANCZOS_BLOCK·LANCZOS_STEPS, below which there is nothing to iterate for
COUNT = 10


def orthonormal(count, generator):
    return torch.linalg.qr(torch.randn(SIZE, count, generator=generator, dtype=torch.double)).Q


def with_eigenvalues(values, noise=0.0):
    """A symmetric matrix with these leading eigenvalues and, beside them, noise of that spectral norm."""
    generator = torch.Generator().manual_seed(0)
    basis = orthonormal(len(values), generator)
    half = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.double)
    return (basis * values) @ basis.T + noise * (half + half.T) / (8 * SIZE) ** 0.5


def doubles(*values):
    return torch.tensor(values, dtype=torch.double)


PLANTED = torch.linspace(1, 0.1, 20, dtype=torch.double)
ALL_NEGATIVE_BUT_THREE = torch.cat([doubles(0.5, 0.4, 0.3), -torch.linspace(0.01, 1, SIZE - 3, dtype=torch.double)])

CASES = {
    "a few leading eigenvalues in noise": lambda: with_eigenvalues(PLANTED, noise=0.01),
    "nearly equal ones": lambda: with_eigenvalues(1 - 1e-6 * torch.arange(20), noise=1e-3),
    "nearly equal ones, more than asked for and kept": lambda: with_eigenvalues(1 - 1e-6 * torch.arange(70), 1e-3),
    "nothing but noise": lambda: with_eigenvalues(doubles(0.0), noise=1.0),
    "tiny scale": lambda: 1e-12 * with_eigenvalues(PLANTED, noise=0.01),
    "huge scale": lambda: 1e15 * with_eigenvalues(PLANTED, noise=0.01),
    "all negative but three": lambda: with_eigenvalues(ALL_NEGATIVE_BUT_THREE),
    "far more negative than positive": lambda: with_eigenvalues(doubles(1e-2, 8e-3, 6e-3, -10, -20), noise=1e-3),
    "rank one": lambda: with_eigenvalues(doubles(0.7)),
    "rank five": lambda: with_eigenvalues(doubles(0.7, 0.5, -0.6, 0.1, 0.2)),
    "zero": lambda: torch.zeros(SIZE, SIZE, dtype=torch.double),
    "identity": lambda: torch.eye(SIZE, dtype=torch.double),
    "minus rank one": lambda: with_eigenvalues(doubles(-0.7)),
    "one entry": lambda: torch.zeros(SIZE, SIZE, dtype=torch.double).index_put_(
        tuple(torch.tensor([[7], [7]])), doubles(3)
    ),
}
LEADING = ("a few leading eigenvalues in noise", "all negative but three", "zero")
"""Cases in which `make test` computes a single end of the spectrum alone."""

BOTH = (*LEADING, "nearly equal ones, more than asked for and kept", "tiny scale", "rank five", "one entry")
"""Cases in which it computes both ends."""

DEGENERATE = ("zero", "identity", "minus rank one", "one entry")


def check_eigenpairs(matrix, values, vectors, count):
    """Values are the largest `count`, descending, and vectors are theirs, of norm 1, at right angles."""
    exact = torch.linalg.eigvalsh(matrix.double()).flip(0)
    scale = float(exact.abs().max()) or 1.0
    assert float((values[:count].double() - exact[:count]).abs().max()) < 2e-6 * scale
    assert (values.diff() <= 1e-6 * scale).all()
    assert vectors.shape == (len(matrix), count)
    residual = matrix @ vectors - vectors * values[:count]
    assert float(residual.div(scale).norm(dim=0).max()) < spectrum.RESIDUAL_TOLERANCE
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(count), rtol=0, atol=1e-5)
    assert (vectors.gather(0, vectors.abs().argmax(0, keepdim=True)) > 0).all()


@pytest.fixture
def full_decompositions(monkeypatch):
    """The sizes of all matrices that are decomposed in full, as it happens."""
    sizes = []

    def counted(matrix):
        sizes.append(len(matrix))
        return all_eigenpairs(matrix)

    monkeypatch.setattr(spectrum, "all_eigenpairs", counted)
    return sizes


@pytest.mark.one_of_each
@pytest.mark.by_turns(3)
@pytest.mark.parametrize(
    "case, both",
    [
        *(pytest.param(case, True, marks=[pytest.mark.long] * (case not in BOTH)) for case in CASES),
        *(pytest.param(case, False, marks=[pytest.mark.long] * (case not in LEADING)) for case in CASES),
    ],
    ids=lambda value: ("leading", "both ends")[value] if isinstance(value, bool) else value,
)
def test_the_eigenpairs_at_the_ends_are_those_of_a_full_decomposition(case, both, full_decompositions, monkeypatch):
    if case in DEGENERATE:
        monkeypatch.setattr(spectrum, "MAX_RESTARTS", 2)  # they may fall back, and need not be waited for
    matrix = CASES[case]().float()
    found = extreme_eigenpairs(matrix, COUNT) if both else [top_eigenpairs(matrix, COUNT)]
    for end, (values, vectors) in zip((matrix, -matrix), found, strict=False):
        check_eigenpairs(end, values, vectors, COUNT)
        assert len(values) == COUNT
    assert case in DEGENERATE or SIZE not in full_decompositions


def test_both_ends_of_a_matrix_of_low_rank_are_those_of_the_whole_matrix():
    generator = torch.Generator().manual_seed(2)
    rows, weights = torch.randn(60, 300, generator=generator), torch.linspace(-1, 2, 60)
    whole = (rows.T * weights) @ rows
    for mine, other in zip(extreme_eigenpairs(LowRank(rows, weights), 5), extreme_eigenpairs(whole, 5), strict=True):
        torch.testing.assert_close(mine[0], other[0], rtol=1e-4, atol=1e-3)
        torch.testing.assert_close((mine[1] * other[1]).sum(0).abs(), torch.ones(5), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("size", "count"), [(1, 1), (2, 1), (30, 30), (300, 7), (SIZE, 60)])
def test_small_matrices_and_many_pairs_are_decomposed_in_full(size, count, full_decompositions):
    half = torch.randn(size, size, generator=torch.Generator().manual_seed(1))
    matrix = half + half.T
    values, vectors = top_eigenpairs(matrix, count)
    check_eigenpairs(matrix, values, vectors, count)
    assert full_decompositions == [size]


@pytest.mark.parametrize("tolerance", [1e-4, 1e-2])
def test_the_iteration_ends_as_soon_as_the_residuals_are_within_the_tolerance(tolerance, full_decompositions):
    matrix = CASES["nothing but noise"]().float()
    values, vectors = top_eigenpairs(matrix, COUNT, tolerance=tolerance)
    lengths = torch.linalg.vector_norm(matrix @ vectors - vectors * values, dim=0) / values
    assert float(lengths.max()) <= tolerance
    steps = [size // spectrum.LANCZOS_BLOCK for size in full_decompositions]
    assert steps == ([6, 8, 10, 12, 6, 8, 10] if tolerance < 1e-2 else [6, 8, 10, 12])


@pytest.mark.parametrize("case", ["a few leading eigenvalues in noise", "nearly equal ones"])
def test_the_same_matrix_always_gives_the_same_bits(case):
    matrix = CASES[case]().float()
    first = top_eigenpairs(matrix, COUNT, spectrum=25)
    torch.manual_seed(123)
    state = torch.get_rng_state()
    second = top_eigenpairs(matrix, COUNT, spectrum=25)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)  # nobody else's random numbers were used


def test_where_the_iteration_does_not_converge_a_full_decomposition_takes_over(full_decompositions, monkeypatch):
    monkeypatch.setattr(spectrum, "MAX_RESTARTS", 0)
    matrix = CASES["a few leading eigenvalues in noise"]().float()
    values, vectors = top_eigenpairs(matrix, COUNT, spectrum=25)
    check_eigenpairs(matrix, values, vectors, COUNT)
    assert len(values) == 25
    assert full_decompositions == [SIZE]


def test_more_eigenvalues_for_a_plot_come_without_vectors_and_within_a_percent(digits):
    x, labels = digits
    gen, ref = x[:900][labels[:900] != 0], x[900:1800]
    phi = fe.Sketch.reference(ref, features=400).feature_map
    difference = fe.Sketch.of(gen, phi).covariance - fe.Sketch.of(ref, phi).covariance
    values, vectors = top_eigenpairs(difference, COUNT, spectrum=25)
    exact = torch.linalg.eigvalsh(difference.double()).flip(0)[:25]
    assert vectors.shape == (SIZE, COUNT)
    torch.testing.assert_close(values[:COUNT], exact[:COUNT], rtol=1e-4, atol=0, check_dtype=False)
    torch.testing.assert_close(values, exact, rtol=0.01, atol=0, check_dtype=False)


def factors(rows=60, size=300):
    generator = torch.Generator().manual_seed(2)
    phi = torch.randn(rows, size, generator=generator) / size**0.5
    weights = torch.cat([torch.full((rows // 2,), 0.5), torch.full((rows - rows // 2,), -0.3)])
    return LowRank(phi, weights * torch.linspace(1, 2, rows))


def dense(low_rank):
    return (low_rank.rows.T * low_rank.weights) @ low_rank.rows


def test_a_matrix_known_by_its_factors_has_the_eigenpairs_of_the_dense_one():
    low_rank = factors()
    values, vectors = top_eigenpairs(low_rank, COUNT, spectrum=25)
    check_eigenpairs(dense(low_rank), values, vectors, COUNT)
    assert len(low_rank) == 300
    assert len(values) == 25
    expected, same = top_eigenpairs(dense(low_rank), COUNT, spectrum=25)
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(vectors, same, rtol=0, atol=1e-4)
    torch.testing.assert_close(low_rank @ vectors, dense(low_rank) @ vectors, rtol=1e-4, atol=1e-5)


def test_asked_for_more_pairs_than_rows_the_factors_give_one_a_row():
    low_rank = factors(rows=12)
    values, vectors = top_eigenpairs(low_rank, 40, spectrum=50)
    exact = torch.linalg.eigvalsh(dense(low_rank).double())
    # The six largest and the six smallest of 300; all between are zero, and left out.
    np.testing.assert_allclose(values.numpy(), torch.cat([exact[-6:].flip(0), exact[:6].flip(0)]).numpy(), atol=1e-5)
    assert vectors.shape == (300, 12)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(12), rtol=0, atol=1e-5)


def test_equal_rows_among_the_factors_do_no_harm():
    one = factors(rows=20)
    twice = LowRank(torch.cat([one.rows, one.rows]), torch.cat([one.weights, one.weights]) / 2)
    values, vectors = top_eigenpairs(twice, 5)
    check_eigenpairs(dense(one), values, vectors, 5)


class LikeCuda(torch.Tensor):
    """A tensor of the CPU that says that it is on a GPU."""

    is_cuda = True


def broken(values, vectors):
    raise torch.linalg.LinAlgError("the algorithm failed to converge")


def not_finite(values, vectors):
    vectors[0, 0] = float("nan")
    return values, vectors


@pytest.mark.parametrize("solver", [broken, not_finite])
def test_where_the_solver_of_the_gpu_fails_that_of_the_cpu_takes_over_in_float64(solver, monkeypatch):
    matrix = factors(rows=40, size=50)
    matrix = dense(matrix)
    eigh = torch.linalg.eigh
    types = []

    def flawed(given):
        types.append(given.dtype)
        values, vectors = eigh(given)
        return (values, vectors) if given.dtype == torch.double else solver(values, vectors)

    monkeypatch.setattr(torch.linalg, "eigh", flawed)
    values, vectors = all_eigenpairs(matrix.as_subclass(LikeCuda))
    assert types == [torch.float32, torch.double]
    assert values.dtype == vectors.dtype == torch.float32
    check_eigenpairs(matrix, values.as_subclass(torch.Tensor), sign_fixed(vectors.as_subclass(torch.Tensor)), 50)


def test_where_the_solver_of_the_gpu_works_nothing_leaves_the_gpu(monkeypatch):
    matrix = dense(factors(rows=40, size=50))
    monkeypatch.setattr(LikeCuda, "cpu", lambda self: pytest.fail("moved to the CPU"))
    values, vectors = all_eigenpairs(matrix.as_subclass(LikeCuda))
    check_eigenpairs(matrix, values.as_subclass(torch.Tensor), sign_fixed(vectors.as_subclass(torch.Tensor)), 50)


@pytest.mark.parametrize("error", [torch.linalg.LinAlgError, RuntimeError])
def test_where_the_iteration_fails_on_the_gpu_a_full_decomposition_takes_over(error, monkeypatch):
    matrix = CASES["a few leading eigenvalues in noise"]().float()

    def failing(*arguments):
        raise error("cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED")

    monkeypatch.setattr(spectrum, "_block_lanczos", failing)
    values, vectors = (part.as_subclass(torch.Tensor) for part in top_eigenpairs(matrix.as_subclass(LikeCuda), COUNT))
    check_eigenpairs(matrix, values, vectors, COUNT)
    with pytest.raises(error):  # on a CPU nothing is known to fail, and nothing is hidden
        top_eigenpairs(matrix, COUNT)


def sign_fixed(vectors):
    return vectors * vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
