"""Any function of two sets becomes estimates: the error is that of other samples, of groups and of pairs."""

import numpy as np
import pytest

from finc_eval.core.errors import DataError
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.estimates.estimate import difference
from finc_eval.estimates.of_statistic import estimate_statistic


def mean(one):
    return float(one.rows_at(np.arange(one.n)).double().mean())


def shift(gen, ref):
    return {"shift": mean(gen) - mean(ref), "ratio": mean(gen) / mean(ref)}


def drawn(seed, n, group=1):
    values = np.random.default_rng(seed).normal(3, 1, (n // group, 1)).repeat(group, 0)
    found = ArrayEmbeddings(values.astype(np.float32))
    return found if group == 1 else found.with_groups(np.arange(n, dtype=np.uint64) // np.uint64(group), "group")


@pytest.mark.parametrize(("group", "wanted"), [(1, (1 / 400 + 1 / 600) ** 0.5), (4, (1 / 100 + 1 / 150) ** 0.5)])
def test_the_error_is_that_of_other_samples_and_groups_are_units(group, wanted):
    found = [
        estimate_statistic(shift, drawn(2 * seed, 400, group), drawn(2 * seed + 1, 600, group))["shift"]
        for seed in range(60)
    ]
    assert np.mean([one.standard_error for one in found]) == pytest.approx(wanted, rel=0.12)
    assert sum(one.interval[0] <= 0 <= one.interval[1] for one in found) >= 53


def test_every_number_of_a_statistic_is_estimated():
    found = estimate_statistic(shift, drawn(0, 200), drawn(1, 200))
    assert [*found] == ["shift", "ratio"]
    assert found["ratio"].standard_error == pytest.approx(found["shift"].standard_error / 3, rel=0.2)


def test_units_of_one_number_are_left_out_together():
    rng = np.random.default_rng(0)
    shared, order = rng.normal(3, 1, (300, 1)), rng.permutation(300)
    new = ArrayEmbeddings((shared + 0.1 * rng.normal(size=(300, 1))).astype(np.float32))
    old = ArrayEmbeddings(shared[order].astype(np.float32))
    ref = drawn(1, 300)
    paired = [
        estimate_statistic(shift, one, ref, units)["shift"] for one, units in ((new, np.arange(300)), (old, order))
    ]
    assert difference(*paired).standard_error < 0.2 * paired[0].standard_error
    alone = [estimate_statistic(shift, one, ref)["shift"] for one in (new, old)]
    assert difference(*alone).standard_error > 0.5 * alone[0].standard_error


def test_too_few_units_are_refused():
    with pytest.raises(DataError, match="19 independent samples, too few for 10 blocks: give at least 20"):
        estimate_statistic(shift, drawn(0, 19), drawn(1, 40))
    with pytest.raises(DataError, match="10 independent samples"):
        estimate_statistic(shift, drawn(0, 40, 4), drawn(1, 40))


def test_numbers_of_units_must_make_two_units_for_each_block():
    with pytest.raises(DataError, match="19 independent samples, too few for 10 blocks"):
        estimate_statistic(shift, drawn(0, 38), drawn(1, 40), np.arange(38) // 2)
    assert estimate_statistic(shift, drawn(0, 40), drawn(1, 40), np.arange(40) // 2)["shift"].standard_error > 0
