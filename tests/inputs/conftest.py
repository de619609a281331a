"""A cache for each test."""

import pytest
from _quick import quick_results  # noqa: F401


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
