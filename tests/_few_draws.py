"""Fewer random exchanges, and fewer steps of maps, in rooms whose tests measure no rate and look at no map.

Tests of p-values of boards and of maps are in tests/leaderboards, tests/numerics and tests/partitions.
"""

from contextlib import contextmanager

import pytest

EXCHANGES = {
    "finc_eval.comparison.findings.EXCHANGES_OF_BOARDS": 999,
    "finc_eval.comparison.findings.EXCHANGES_OF_SETS": 249,
}
"""An eighth of the exchanges that a hundred models need."""

MAPS = {"finc_eval.numerics.neighbor_embedding.STEPS": 30}
"""A fifth of the steps of a map."""


@contextmanager
def few(*tables):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (pair for table in tables for pair in table.items()):
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    with few(EXCHANGES, MAPS):
        yield
