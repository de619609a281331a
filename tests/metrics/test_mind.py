import numpy as np
import pytest
import torch

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures import mind as module
from finc_eval.measures.inputs import MetricInputs
from finc_eval.measures.mind import mind
from finc_eval.measures.registry import METRICS


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


def in_units(units, dim=6, seed=0):
    """A set whose samples of a unit are nearly alike."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(units.max() + 1, dim))[units] + 0.3 * rng.normal(size=(len(units), dim))
    return ArrayEmbeddings(rows.astype("f4"), "gen").with_groups(units.astype(np.uint64), "video")


def test_groups_of_a_single_sample_change_nothing_bit_for_bit():
    gen, ref = draw(220, 0, dim=6), ArrayEmbeddings(draw(240, 1, dim=6), "ref")
    plain, grouped = (
        METRICS["mind"].estimator(ref, Run())(one, None)
        for one in (ArrayEmbeddings(gen), ArrayEmbeddings(gen).with_groups(np.arange(220, dtype=np.uint64), "video"))
    )
    assert plain.value == grouped.value == mind(gen, ref).value
    assert plain.interval == grouped.interval


def test_what_groups_add_is_left_out_of_the_unbiased_value_alone():
    units = np.arange(60).repeat(4)
    gen, ref = in_units(units), ArrayEmbeddings(draw(240, 1, dim=6), "ref")
    (score,) = METRICS["mind"].compute(MetricInputs("mind", gen=gen, ref=ref))
    assert score.value == mind(gen, ref).value
    assert score.unbiased == METRICS["mind"].estimator(ref, Run())(gen, None).value < 0.8 * score.value
    assert score.interval[0] <= score.unbiased <= score.interval[1] and module.OF_GROUPS_OF_MIND in score.notes


def test_the_mean_of_grouped_sets_is_that_of_single_samples():
    """Over draws, the unbiased value is that of single samples within three errors, and the value is not."""
    means = []
    for units in (np.arange(40).repeat(6), np.arange(240)):
        found = []
        for seed in range(12):
            gen = in_units(units, seed=seed)
            law = in_units(np.arange(240), seed=100 + seed)
            ref = ArrayEmbeddings(law.rows_at(np.arange(240)), "ref")
            found.append((METRICS["mind"].estimator(ref, Run())(gen, None).value, mind(gen, ref).value))
        means.append((np.mean(found, 0), np.std(found, 0, ddof=1) / 12**0.5))
    (grouped, error), (single, other) = means
    assert abs(grouped[0] - single[0]) < 3 * np.hypot(error[0], other[0])
    assert grouped[1] - single[1] > 5 * np.hypot(error[1], other[1])


@pytest.mark.parametrize("sizes", [[5, 5], [1, 9, 2], [30, 1, 1, 1], [2, 12] * 8, [3] * 7])
def test_halves_keep_units_whole_and_are_nearly_as_large(sizes):
    units, drawn = np.arange(len(sizes)).repeat(sizes), np.random.default_rng(0)
    for _ in range(20):
        first, share = module._split(units, drawn)
        assert all(len(np.unique(first[units == unit])) == 1 for unit in range(len(sizes)))
        assert 0 < first.sum() < len(units) and abs(2 * first.sum() - len(units)) <= max(sizes)
        parts = [np.bincount(units[which]) / which.sum() for which in (first, ~first)]
        whole = np.square(np.array(sizes) / len(units)).sum()
        assert share == pytest.approx(whole / sum(np.square(part).sum() for part in parts))
