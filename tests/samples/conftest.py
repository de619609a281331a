"""Results of few steps."""

import pytest
from _quick import BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
