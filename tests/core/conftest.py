"""Results of few steps: what is tested here are files and progress."""

import pytest
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
