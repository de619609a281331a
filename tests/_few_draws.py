"""Fewer random exchanges, and fewer steps of maps, in rooms whose tests measure no rate and look at no map.

Tests of p-values of boards and of maps are in tests/leaderboards, tests/numerics and tests/partitions.
"""

import pytest

FEW = {
    "finc_eval.comparison.findings.EXCHANGES_OF_BOARDS": 999,
    "finc_eval.comparison.findings.EXCHANGES_OF_SETS": 249,
    "finc_eval.numerics.neighbor_embedding.STEPS": 30,
}
"""An eighth of the exchanges that a hundred models need, and a fifth of the steps of a map."""


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FEW.items():
            patch.setattr(name, value)
        yield
