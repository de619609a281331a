import pytest
from _quick import MAPS, MONITORS, quick


@pytest.fixture(scope="module", autouse=True)
def quick_results(request):
    with quick(MAPS, *(() if "exchange" in request.module.__name__ else (MONITORS,))):
        yield
