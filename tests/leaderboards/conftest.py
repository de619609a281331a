"""Boards of few models."""

import pytest
from _quick import BOARDS, quick


@pytest.fixture(scope="module", autouse=True)
def fewer_exchanges():
    with quick(BOARDS):
        yield
