import pytest
from _quick import BOARDS, MAPS, ROTATIONS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(BOARDS, MAPS, ROTATIONS):
        yield
