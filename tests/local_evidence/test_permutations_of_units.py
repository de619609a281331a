"""Labels of two sets are permuted by units, inside blocks; weights give differences of means."""

import numpy as np
import pytest
from _planted_cells import likeness

from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.permutations import permute


def labeled(n, m, units=None, blocks=None, draws=19):
    rng = np.random.default_rng(0)
    given = [LocalInput(likeness=likeness(rng, size)) for size in (n, m)]
    for name, each in (("units", units), ("blocks", blocks)):
        for of_set, numbers in zip(given, each or (None, None), strict=True):
            object.__setattr__(of_set, name, numbers)
    return permute(*given, seed=3, draws=draws)


def test_groups_are_permuted_as_wholes_and_keep_their_number():
    permuted = labeled(30, 40, units=(np.arange(30) // 3, np.arange(40) // 4))
    labels = np.split(permuted.is_gen, permuted.starts[1:], axis=1)
    assert all((of_unit == of_unit[:, :1]).all() for of_unit in labels)
    assert (permuted.is_gen[:, permuted.starts].sum(1) == 10).all()
    assert len(np.unique(permuted.is_gen, axis=0)) == 20
    folds = np.split(permuted.folds, permuted.starts[1:])
    assert all(len(set(of_unit.tolist())) == 1 for of_unit in folds)


def test_labels_are_permuted_inside_prompts_and_other_prompts_are_left_out():
    permuted = labeled(40, 40, blocks=(np.arange(40) // 2, 10 + np.arange(40) // 2))
    blocks = np.concatenate([np.arange(40) // 2, 10 + np.arange(40) // 2])[permuted.rows]
    assert np.unique(blocks).tolist() == [*range(10, 20)]
    for block in range(10, 20):
        assert (permuted.is_gen[:, blocks == block].sum(1) == 2).all()
        assert len(set(permuted.folds[blocks == block].tolist())) == 1


def test_no_shared_prompt_leaves_nothing_to_compare():
    assert labeled(30, 30, blocks=(np.zeros(30, int), np.ones(30, int))) is None


def test_differences_are_those_of_the_means():
    permuted = labeled(30, 35)
    values = np.random.default_rng(1).normal(size=65)
    found = permuted.differ(values[permuted.rows][None])
    assert found[0] == pytest.approx(values[:30].mean() - values[30:].mean(), rel=1e-4)


def test_one_sample_of_each_group_is_drawn_if_groups_are_uneven():
    units = np.repeat(np.arange(12), np.r_[np.ones(6, int), np.full(6, 4)])
    permuted = labeled(30, 30, units=(units, units))
    both = np.concatenate([units, units + 12])
    assert sorted(both[permuted.rows].tolist()) == [*range(24)]
    assert permuted.units == (12, 12)


def test_blocks_without_both_sets_after_a_sample_of_each_unit_is_drawn_are_left_out():
    rng, blocks = np.random.default_rng(0), np.arange(90) // 3
    for seed in range(20):
        units = [rng.integers(0, 60, 90) for _ in range(2)]
        gen, ref = (LocalInput(likeness=rng.normal(size=(90, 5)), units=own, blocks=blocks) for own in units)
        permuted = permute(gen, ref, seed, 9)
        both = np.concatenate([blocks, blocks])[permuted.rows]
        of_gen, of_ref = both[permuted.rows < 90], both[permuted.rows >= 90]
        assert {*of_gen} == {*of_ref}
        assert np.isfinite(permuted.weights).all()
        assert np.ptp(permuted.weights.sum(1)) < 1e-5


def test_of_units_in_several_blocks_one_sample_is_tested():
    units, blocks = np.arange(60) // 2, np.arange(60) % 6
    sides = [LocalInput(likeness=np.zeros((60, 5)), units=units, blocks=blocks) for _ in range(2)]
    assert len(permute(*sides, 0, 9).rows) == 60
