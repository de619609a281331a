"""Guards assert the promises of docs/promises.md themselves: by `make long`, each at most a minute on two cores."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # their designs


@pytest.hookimpl(tryfirst=True)  # before cases by turns are left out
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.long)
