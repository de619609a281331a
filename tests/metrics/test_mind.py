import numpy as np
import pytest
import torch

from finc_eval.measures import mind as module
from finc_eval.measures.mind import mind


def draw(n, seed, dim=12, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32) + np.float32(shift)


def test_it_is_the_definition_with_the_draw_of_torch_fidelity():
    x, y = draw(50, 0), draw(50, 1, shift=0.5)
    directions = torch.randn(40, 12, generator=torch.Generator().manual_seed(7))
    directions = (directions / directions.norm(dim=1, keepdim=True)).numpy().astype(float)
    total = [np.mean((np.sort(x @ u) - np.sort(y @ u)) ** 2) for u in directions]
    assert mind(x, y, projections=40, seed=7).value == pytest.approx(3 * 12 * np.mean(total), rel=1e-5)


@pytest.mark.long
def test_for_a_shift_it_is_three_times_its_square_and_what_few_samples_add():
    assert mind(draw(4000, 0), draw(4000, 0, shift=0.3)).value == pytest.approx(3 * 12 * 0.3**2, rel=0.1)
    assert mind(draw(200, 0), draw(200, 1)).value > 4 * mind(draw(2000, 0), draw(2000, 1)).value > 0
    assert mind(draw(50, 0), draw(50, 0)).value == 0


def test_of_the_larger_set_a_seeded_part_enters():
    x, y = draw(60, 0), draw(40, 1)
    rows = torch.randperm(60, generator=torch.Generator().manual_seed(2020))[:40].numpy()
    found = mind(x, y)
    assert found.n == 40
    # The directions are drawn after the part, so that they are others.
    assert found.value == pytest.approx(mind(x[rows], y).value, rel=0.1)
    assert found.value != mind(x, y, seed=1).value


def test_what_is_held_together_changes_nothing(monkeypatch):
    x, y = draw(60, 0), draw(60, 1)
    whole = mind(x, y, projections=50).value
    monkeypatch.setattr(module, "MAX_PROJECTED", 400)
    assert mind(x, y, projections=50).value == pytest.approx(whole, rel=1e-6)
