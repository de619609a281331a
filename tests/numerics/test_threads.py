"""Small problems run on one thread, and nothing else does."""

import pytest
import torch

from finc_eval.numerics import eigen
from finc_eval.numerics.eigen import varimax
from finc_eval.numerics.precision import single_threaded


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_small_problem_runs_on_one_thread_and_a_large_one_on_all():
    with single_threaded():
        assert torch.get_num_threads() == 1
    with single_threaded(small=False):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_is_restored_after_nested_blocks_and_errors():
    with pytest.raises(ValueError), single_threaded():
        with single_threaded(), single_threaded(small=False):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        raise ValueError
    assert torch.get_num_threads() == 2


@pytest.fixture
def threads_of_eigh(monkeypatch):
    """The number of threads of every full decomposition."""
    seen, eigh = [], torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda matrix: seen.append(torch.get_num_threads()) or eigh(matrix))
    return seen


def test_a_decomposition_chooses_its_threads_by_its_size(monkeypatch, threads_of_eigh):
    monkeypatch.setattr(eigen, "MAX_SERIAL_ROWS", 20)
    eigen.all_eigenpairs(torch.eye(20))
    eigen.all_eigenpairs(torch.eye(21))
    assert threads_of_eigh == [1, 2]


@pytest.mark.long
def test_an_iteration_decomposes_on_one_thread_and_multiplies_on_all(threads_of_eigh):
    rows = torch.randn(900, 900, generator=torch.Generator().manual_seed(0))
    values, _ = eigen.top_eigenpairs(rows + rows.T, 3)
    assert set(threads_of_eigh) == {1} and len(values) == 3
    assert torch.get_num_threads() == 2


def test_varimax_gives_the_threads_back():
    varimax(torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
    assert torch.get_num_threads() == 2
