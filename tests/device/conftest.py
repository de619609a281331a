import pytest
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick
from _simulated import REASON, available

from finc_eval.embeddings.search import distance_blocks


@pytest.fixture(autouse=True)
def simulated_device():
    """Skip where this version of torch cannot simulate a device."""
    if not available():
        pytest.skip(REASON)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Steps of exact distances as small as on a CPU, which computes what is simulated."""
    monkeypatch.setattr(distance_blocks, "GPU_PAIR_ENTRIES", distance_blocks.PAIR_ENTRIES)


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
