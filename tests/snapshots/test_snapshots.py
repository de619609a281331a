"""What every type of result says, sentence by sentence: the only test of whole sentences that are no error."""

import runpy
from pathlib import Path

import pytest

from finc_eval.results import RESULTS

HERE = Path(__file__).parent


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_result_says_what_its_snapshot_says(type_name, documents):
    found = runpy.run_path(str(HERE / "write.py"))["snapshot"](documents[type_name])
    stored = (HERE / f"{type_name}.txt").read_text(encoding="utf-8")
    assert found.splitlines() == stored.splitlines(), "read the difference, then run python tests/snapshots/write.py"
