"""A cache for each test, and results of few steps."""

import pytest
from _quick import AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS, quick


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(AUDITS, BOARDS, MAPS, ROTATIONS, YARDSTICKS):
        yield
