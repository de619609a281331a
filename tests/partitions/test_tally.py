"""A tally says how many independent samples a set informs like, also where one kind has all of them."""

import numpy as np
import pytest

from finc_eval.partitions.counts import Counts, tally_sets

GROUPS = np.repeat(np.arange(50, dtype=np.uint64), 20)


@pytest.mark.parametrize("kinds", [1, 2, 10])
def test_copies_count_once_in_however_many_kinds_they_are(kinds):
    cells = (GROUPS % np.uint64(kinds)).astype(np.int32)
    (tally,) = tally_sets({"one": Counts.of(10, cells, GROUPS)}).values()
    assert tally.n == 1000
    assert tally.effective().n == pytest.approx(50, rel=0.05)


def test_samples_without_groups_count_for_themselves():
    (tally,) = tally_sets({"one": Counts.of(10, np.zeros(300, np.int32))}).values()
    assert tally.effective().n == 300
