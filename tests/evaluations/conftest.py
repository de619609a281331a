import pytest
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS):
        yield
