"""Sets with planted kinds."""

import pytest
from _quick import MAPS, quick
from faults._planted import GEN, REF, compared, draw


@pytest.fixture(scope="module", autouse=True)
def quick_maps():
    with quick(MAPS):
        yield


@pytest.fixture(scope="module")
def planted():
    return draw(GEN, 600, 0), draw(REF, 700, 1)


@pytest.fixture(scope="module")
def usual(planted):
    """The comparison of the planted sets as they are."""
    return compared(*planted)


@pytest.fixture(scope="module")
def thinned(digits):
    x, labels = digits
    return x[:600, ::4][labels[:600] > 2], x[600:1200, ::4]
