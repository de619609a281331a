"""A cache for each test, results of few steps, and embeddings of few numbers."""

import pytest
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick, small_pixels  # noqa: F401


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
