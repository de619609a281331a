import pytest

from finc_eval.naming.columns import registered_columns, unregister_column


@pytest.fixture(autouse=True)
def no_other_columns():
    yield
    for one in registered_columns():
        unregister_column(one.name)
