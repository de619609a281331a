"""docs/promises.md: each promise names guards or tests that exist, and each guard is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("| ")]
PROMISES = [row for row in ROWS if len(row) == 2 and row != ["promise", "guard or test"]]


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row[0][:60])
def test_a_promise_has_its_guard_or_test(row):
    _, tests = row
    named = re.findall(r"`([^`]+)`", tests)
    assert named and [test for test in named if not (ROOT / test).is_file()] == []


def test_every_guard_is_named():
    named = " ".join(tests for _, tests in PROMISES)
    assert [path.name for path in (ROOT / "tests" / "guards").glob("test_*.py") if path.name not in named] == []
    assert len(PROMISES) > 25
