import pytest
from _quick import MAPS, ROTATIONS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(MAPS, ROTATIONS):
        yield
