"""Each row of the papers in docs/papers.md has a verdict, and a command that exists."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
VERDICTS = ("reproduced", "agrees", "contradicts", "not converged", "wrong", "missing")


def rows():
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0] != "item" and set(cells[0]) != {"-"}:
            yield cells


ROWS = list(rows())


def test_every_verdict_is_explained_and_every_paper_is_there():
    assert [row for row in ROWS if row[4] not in VERDICTS] == []
    explained = re.findall(r"^\| ([a-z, ]+) \|", TEXT, re.MULTILINE)
    assert set(VERDICTS) <= {word for cell in explained for word in cell.split(", ")}
    assert re.findall(r"^## (.+)$", TEXT, re.MULTILINE) == ["FINC", "DP-HP", "KAHM"]
    assert len(ROWS) > 80 and all(all(cell for cell in row) for row in ROWS)
    assert len(TEXT.split()) <= 2500


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_is_claimed_can_be_run(row):
    command, verdict, date = row[3:]
    assert (date == "–") == (verdict == "missing") and (date == "–" or re.fullmatch(r"20\d\d-\d\d-\d\d", date))
    if command == "–":
        assert verdict == "missing"
        return
    words = shlex.split(command.strip("`"))
    if words[0] == "finc-eval":
        return  # test_docs looks at its verb and options
    path = ROOT / words[1]
    assert words[0] in ("pytest", "python") and path.exists()
    if "-k" in words:
        assert re.search(rf"def test_\w*{words[-1]}", path.read_text(encoding="utf-8"))
