"""Each row of the papers in docs/papers.md has a verdict, and a command that exists."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
VERDICTS = ("reproduced", "other data", "wrong", "not to be had")


def rows():
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] != "item" and set(cells[0]) != {"-"}:
            yield cells


ROWS = list(rows())


def test_every_verdict_is_explained_and_every_paper_is_there():
    assert [row for row in ROWS if row[3] not in VERDICTS] == []
    assert all(re.search(rf"^\| {verdict} \|", TEXT, re.MULTILINE) for verdict in VERDICTS)
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE) == ["FINC", "DP-HP", "KAHM"]
    assert len(ROWS) > 90 and all(all(cell for cell in row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_claimed_can_be_run(row):
    if row[4] == "–":
        assert row[3] == "not to be had"
        return
    words = shlex.split(row[4].strip("`"))
    if words[0] == "finc-eval":
        return  # test_docs looks at its verb and options
    path = ROOT / words[1]
    assert words[0] in ("pytest", "python") and path.exists()
    if "-k" in words:
        assert re.search(rf"def test_\w*{words[-1]}", path.read_text(encoding="utf-8"))
