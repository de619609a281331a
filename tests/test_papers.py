"""Each row of the papers in docs/papers_*.md has a verdict, and a command that exists."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
HUB = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PAPERS = {"FINC": "papers_finc.md", "DP-HP": "papers_dp_hp.md", "KAHM": "papers_kahm.md"}
VERDICTS = (
    "reproduced",
    "agrees",
    "better than printed",
    "worse than printed",
    "order contradicted",
    "not earned",
    "wrong",
)


def rows(page):
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0] != "item" and set(cells[0]) != {"-"}:
            yield cells


OF_PAPER = {name: list(rows(page)) for name, page in PAPERS.items()}
ROWS = [row for part in OF_PAPER.values() for row in part]


def test_every_verdict_is_explained_and_every_paper_is_there():
    assert [row for row in ROWS if row[4] not in VERDICTS] == []
    assert set(VERDICTS) <= set(re.findall(r"^\| ([a-z ]+) \|", HUB, re.MULTILINE))
    assert len(ROWS) > 80 and all(all(cell for cell in row) for row in ROWS)
    assert sum(len((ROOT / "docs" / page).read_text(encoding="utf-8").split()) for page in PAPERS.values()) <= 3000


def test_the_page_of_all_papers_counts_the_verdicts_of_each():
    shown = re.findall(r"^\| \[([\w-]+)\]\((\w+\.md)\) \| ([\d |]+) \|$", HUB, re.MULTILINE)
    assert {name: page for name, page, _ in shown} == PAPERS
    counted = {
        name: [sum(row[4] == verdict for row in part) for verdict in VERDICTS] for name, part in OF_PAPER.items()
    }
    assert {name: [int(count) for count in counts.split(" | ")] for name, _, counts in shown} == counted


def test_what_beats_the_papers_is_in_a_record_of_the_command():
    """Each number of the last columns stands in a record that its command writes."""
    section = HUB.split("## Where this program beats them")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if "`python " in line]
    assert len(lines) >= 7
    for line in lines:
        scripts = re.findall(r"`python benchmarks/(\w+)\.py`", line)
        kept = " ".join((ROOT / "benchmarks/results" / f"{name}.json").read_text(encoding="utf-8") for name in scripts)
        (ours,) = re.findall(r"^[\d.]+", line.split(" | ")[2])
        kept_numbers = {float(number) for number in re.findall(r"\d+\.\d+", kept)}
        places = len(ours.partition(".")[2])
        assert any(round(number, places) == float(ours) for number in kept_numbers), line


def test_what_is_claimed_can_be_run():
    assert [(row[0], fault) for row in ROWS if (fault := fault_of(*row[3:]))] == []


def fault_of(command, verdict, date):
    """What is wrong with the last cells of a row, if anything."""
    if (date == "–") != (command == "–") or not (date == "–" or re.fullmatch(r"20\d\d-\d\d-\d\d", date)):
        return f"its date is {date!r}"
    if command == "–":
        return "no command" if verdict != "not earned" else None
    words = shlex.split(command.strip("`"))
    if words[0] == "finc-eval":
        return None  # test_docs looks at its verb and options
    path = ROOT / words[1]
    if words[0] not in ("pytest", "python") or not path.exists():
        return f"{command} cannot be run"
    if "-k" in words and not re.search(rf"def test_\w*{words[-1]}", path.read_text(encoding="utf-8")):
        return f"{words[1]} has no test {words[-1]}"
    return None
