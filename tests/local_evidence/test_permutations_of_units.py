"""Labels of two sets are permuted by units, inside blocks; weights give differences of means."""

import numpy as np
import pytest
from _pictures import likeness

from finc_eval.local_evidence.inputs import LocalInput
from finc_eval.local_evidence.permutations import permute
from finc_eval.numerics.exchanges import UnitSums, exchange_units


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


@pytest.mark.parametrize("uneven", [False, True])
def test_differences_are_those_of_the_means_and_of_uneven_groups_in_units_of_their_errors(uneven):
    units = np.repeat(np.arange(12), np.r_[np.ones(6, int), np.full(6, 4)]) if uneven else np.arange(30)
    permuted = labeled(30, 30, units=(units, units))
    values = np.random.default_rng(1).normal(size=60)
    found = permuted.differ(values[permuted.rows][None])
    means = values[:30].mean() - values[30:].mean()
    if not uneven:
        assert found[0] == pytest.approx(means, rel=1e-4)
        return
    sums = [
        UnitSums(np.bincount(units, of_set)[:, None].astype("f4"), np.bincount(units).astype(float))
        for of_set in np.split(values, 2)
    ]
    assert found[0] == pytest.approx(exchange_units(*sums, 0, exchanges=1).z[0, 0], rel=1e-4)
