"""Boards of few models: fewer exchanges, steps and splits."""

import pytest
from _quick import BOARDS, MAPS, YARDSTICKS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_boards():
    with quick(BOARDS, MAPS, YARDSTICKS):
        yield
