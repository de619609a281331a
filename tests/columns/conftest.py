import pytest

from finc_eval.naming import kept_values
from finc_eval.naming.columns import registered_columns, unregister_column


@pytest.fixture(autouse=True)
def no_other_columns(monkeypatch, tmp_path):
    """Nothing is registered or kept before a test or after it."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_values, "_KEPT", {})
    yield
    for one in registered_columns():
        unregister_column(one.name)
