"""docs/promises.md and docs/scale.md: each promise has its test, and each figure is a cell of its record."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
QUOTED = re.compile(r"`([^`]+)`")


def rows_in(page, columns):
    """The rows of the page's tables with that many columns, of which the last has names in the type of code."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if len(row) == columns and row[-1].startswith("`")]


ROWS, COSTS = rows_in("promises.md", 4), rows_in("scale.md", 3)


def rows_of(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def test_the_pages_have_their_rows():
    assert len(ROWS) > 25 and len(COSTS) == 10


@pytest.mark.parametrize("row", COSTS, ids=lambda row: row[0])
def test_a_cost_of_the_page_on_scale_is_a_cell_of_its_record(row):
    _, figure, record = row
    cells = {str(cell) for one in rows_of(record.strip("`")) for cell in one.values()}
    assert [one for one in QUOTED.findall(figure) if one not in cells] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_promise_has_its_test_and_its_figure(row):
    _, figure, record, tests = row
    assert [test for test in QUOTED.findall(tests) if not (ROOT / test).is_file()] == []
    figures = QUOTED.findall(figure)
    assert bool(figures) == bool(record), "a figure has a record, and a record a figure"
    for name in QUOTED.findall(record):
        cells = {str(cell) for one in rows_of(name) for cell in one.values()}
        assert [one for one in figures if one not in cells] == []


@pytest.mark.parametrize("column", ["false discovery", "shares hold", "excesses hold"])
def test_the_worst_regime_is_the_one_that_is_told(column):
    cells = [row[column] for row in rows_of("inference_null") if row[column]]
    worst = (max if column == "false discovery" else min)(cells, key=lambda cell: Fraction(cell.split()[0]))
    assert f"`{worst}`" in ROWS[column != "false discovery"][1]


def test_the_sum_of_all_regimes_is_the_one_that_is_told():
    found = [row["false discovery"].split()[0].split("/") for row in rows_of("inference_null")]
    wrong, runs = (f"{sum(int(pair[part]) for pair in found):,}".replace(",", " ") for part in (0, 1))
    assert f"{wrong} of {runs} runs in all" in ROWS[0][1]
