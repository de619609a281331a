"""Arrays that are embeddings, arrays that are a mean and a covariance, and what float32 would lose."""

import re

import numpy as np
import pytest
import torch

from finc_eval.core.errors import DataError, UsageError
from finc_eval.numerics import arrays
from finc_eval.numerics.arrays import Pair, as_rows, as_tensor, from_sums, is_covariance, pair_in

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(9, 4))
COVARIANCE = np.cov(ROWS.T)


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((3, 4, 4, 3), ": embed images or clips first, by fe.extract(x)"),
        ((3, 4, 3), ": embed images or clips first, by fe.extract(x)"),
        ((0, 4), ": it has no samples"),
        ((3, 0), ": its rows have no entries"),
        ((3,), ""),
    ],
)
def test_what_is_not_a_row_for_each_sample_is_told_what_it_lacks(shape, advice):
    with pytest.raises(UsageError, match=re.escape(f"got shape {shape}{advice}") + "$"):
        as_rows(np.zeros(shape), "gen")


@pytest.mark.parametrize(
    ("matrix", "is_refused"),
    [
        (COVARIANCE, True),
        (-COVARIANCE, False),  # a negative diagonal
        (COVARIANCE[:2, :2], False),  # two samples of two entries are often symmetric by chance
        (np.diag([1.0, 2.0, 3.0]), False),
        (np.ones((3, 3)), False),
        (np.ones((3, 3)) + np.eye(3), True),
        (ROWS[:4], False),
    ],
)
def test_a_symmetric_matrix_is_a_covariance_unless_it_is_diagonal_constant_or_small(matrix, is_refused):
    for kind in (np.float32, np.float64):
        rows = torch.from_numpy(matrix.astype(kind))
        assert as_rows(rows, "gen", whole=False) is rows
        if is_refused:
            with pytest.raises(UsageError, match="is a symmetric matrix"):
                as_rows(rows, "gen")
        else:
            assert as_rows(rows, "gen") is rows


def two_values(size, spread, n=100):
    """Rows of one entry, of this largest magnitude and standard deviation."""
    step = 2 * spread / np.sqrt(n / (n - 1))
    return size - step * (np.arange(n)[:, None] % 2)


@pytest.mark.parametrize("size", [-3e5, 1.0, 5e9])
@pytest.mark.parametrize(("spread", "is_refused"), [(1.1e-4, True), (1.3e-4, False), (1e-10, True), (0.0, False)])
def test_entries_whose_rounding_by_float32_is_a_thousandth_of_their_spread_are_refused(size, spread, is_refused):
    """The rounding is 2⁻²³ of the entry, so the limit is a spread of 1.192e-4 of its size."""
    rows = np.hstack([RNG.normal(size=(100, 1)), np.sign(size) * two_values(abs(size), spread * abs(size))])
    as_rows(rows.astype(np.float32), "gen")
    as_rows(rows[:1], "gen")
    if not is_refused:
        as_rows(rows, "gen")
        return
    with pytest.raises(UsageError, match="which float32 loses") as caught:
        as_rows(rows, "gen")
    assert f"near {abs(size):.3g} that differ by {spread * abs(size):.3g}" in str(caught.value)


def test_what_float32_cannot_hold_at_all_is_left_to_the_check_of_values():
    lost, enormous = two_values(1.0, 1e-6), two_values(1e39, 1e38)
    assert len(as_rows(np.hstack([lost, enormous]), "gen")) == 100
    with pytest.raises(UsageError, match="near 1 that"):
        as_rows(np.hstack([enormous / 1e5, lost]), "gen")


def test_sizes_and_spreads_are_those_of_columns_however_few_are_looked_at_together(monkeypatch):
    rows = torch.from_numpy(RNG.normal(size=(6, 5)))
    for seen in (1 << 22, 13, 1):
        monkeypatch.setattr(arrays, "ENTRIES_SEEN", seen)
        size, spread = arrays._size_and_spread(rows)
        np.testing.assert_allclose(size, np.abs(rows.numpy()).max(0))
        np.testing.assert_allclose(spread, rows.numpy().std(0, ddof=1))


def test_an_array_is_read_in_place_if_torch_can_and_keeps_its_digits():
    for kind in (np.float16, np.float32, np.float64):
        values = ROWS.astype(kind)
        assert np.shares_memory(as_tensor(values, "x").numpy(), values)
    wide = as_tensor(ROWS.astype(np.longdouble), "x")
    assert wide.dtype == torch.float64 and (wide.numpy() == ROWS).all()
    assert (as_tensor(ROWS[::-1], "x").numpy() == ROWS[::-1]).all()
    assert (as_tensor(ROWS.astype(">f4"), "x").numpy() == ROWS.astype(np.float32)).all()


@pytest.mark.parametrize("n", [2, 9])
def test_sums_of_samples_give_their_mean_and_covariance(n):
    rows = ROWS[:n] + 3
    mean, covariance = from_sums(Pair("sum", "sums", ""), rows.sum(0), rows.T @ rows, n, "file")
    np.testing.assert_allclose(mean, rows.mean(0))
    np.testing.assert_allclose(covariance, np.cov(rows.T))


def test_sums_of_one_sample_have_no_covariance():
    with pytest.raises(DataError, match="sums of 1 samples"):
        from_sums(Pair("sum", "sums", ""), ROWS[0], np.outer(ROWS[0], ROWS[0]), 1, "file")


@pytest.mark.parametrize("seen", [1 << 22, 8, 1])
def test_a_covariance_is_symmetric_up_to_rounding_and_has_no_negative_diagonal(seen, monkeypatch):
    monkeypatch.setattr(arrays, "ENTRIES_SEEN", seen)  # rows that are compared together
    big = COVARIANCE * 1e6 / np.abs(COVARIANCE).max()  # the largest entry is 1e6
    assert is_covariance(big) and is_covariance(-np.ones((2, 2)) * 1e-12 + np.array([[1, 0], [0, 1]]))
    for place in ((0, 1), (1, 3), (3, 2)):
        for error, expected in ((9.0, True), (11.0, False)):
            other = big.copy()
            other[place] += error
            assert is_covariance(other) is expected
    for lowest, expected in ((-9.0, True), (-11.0, False)):
        other = big.copy()
        other[2, 2] = lowest
        assert is_covariance(other) is expected
    other = big.copy()
    other[0, 0] = np.inf
    assert not is_covariance(other)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4,), (2, 2, 2)])
def test_what_is_not_a_matrix_of_several_rows_is_no_covariance(shape):
    assert not is_covariance(np.ones(shape))


def found_in(**held):
    return pair_in({name: value.shape for name, value in held.items()}, held.__getitem__, "file")


def test_the_mean_of_a_covariance_is_found_and_several_are_refused():
    mean = ROWS.mean(0)
    assert found_in(m1=mean, s1=COVARIANCE, n=np.array(9)) == Pair("m1", "s1", "*1")
    assert found_in(x=ROWS) is None
    with pytest.raises(DataError, match="several means and covariances"):
        found_in(m1=mean, s1=COVARIANCE, m2=mean, s2=COVARIANCE)
    with pytest.raises(DataError, match="a, b may be its mean"):
        found_in(a=mean, b=mean, sigma=COVARIANCE)
    # Sums with the number of samples, next to sums without: the former can be used.
    sums = {"a_sum": mean, "a_cov_sum": COVARIANCE, "b_sum": mean, "b_cov_sum": COVARIANCE, "b_num": np.array(9)}
    assert found_in(**sums).covariance == "b_cov_sum"
