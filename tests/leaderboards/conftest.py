"""Boards of few models: an eighth of the random exchanges that a hundred models need."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def fewer_exchanges():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finc_eval.comparison.findings.EXCHANGES_OF_BOARDS", 999)
        patch.setattr("finc_eval.comparison.findings.EXCHANGES_OF_SETS", 249)
        yield
