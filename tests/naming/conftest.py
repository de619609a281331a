import pytest
from _quick import MAPS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_maps():
    with quick(MAPS):
        yield
