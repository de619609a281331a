"""There is one reader for each kind of foreign text and table: nothing reads CSV, JSON or columns past it."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from _trees import nodes_of

PACKAGE = Path(__file__).parents[2] / "finc_eval"

READERS = {
    "csv.reader": "core/files/csv_text.py",
    "csv.DictReader": "core/files/csv_text.py",
    "csv.writer": "core/files/csv_text.py",
    "csv.DictWriter": "core/files/csv_text.py",
    "json.loads": "core/files/parsed.py",
    "json.load": "core/files/parsed.py",
    "to_pylist": "core/files/columns_in.py",
    "to_pydict": "core/files/columns_in.py",
    "splitlines": None,
}
"""Calls that read or write tables, and the module that may make them."""

REVIEWED = {
    "core/isolation.py": {"json.loads": 1},  # of a process of our own
    "embeddings/recipe.py": {"json.loads": 1},  # of what was just written
    "engines/columns.py": {"to_pylist": 1},  # of a column that the engine of the program holds
    "samples/hugging_face.py": {"to_pylist": 1},  # of a dataset that is opened already
    "core/errors.py": {"splitlines": 1},  # of a message
}
"""Calls outside of the readers, by module: each was looked at."""


def call_of(node):
    """Name of a call that reads or writes tables; None for others, and for the first line of an error or docstring."""
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        for name in (f"{owner}.{node.attr}", node.attr):
            if name in READERS and not (name == "splitlines" and ast.unparse(node.value).startswith("str(")):
                return name
    if isinstance(node, ast.ImportFrom) and node.module in ("csv", "json"):
        return next((f"{node.module}.{one.name}" for one in node.names if f"{node.module}.{one.name}" in READERS), None)
    return None


def test_tables_are_read_and_written_by_their_readers_alone():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        calls = Counter(name for node in nodes_of(path) if (name := call_of(node)) and READERS[name] != place)
        if calls:
            found[place] = dict(calls)
    assert found == REVIEWED


@pytest.mark.parametrize(
    "line",
    [
        "csv.reader(file)",
        "from csv import DictReader",
        "rows = map(csv.reader, files)",
        "json.loads(text)",
        "from json import loads",
        "table.column(0).to_pylist()",
        "text.splitlines()",
        "csv.writer(file).writerows(rows)",
    ],
)
def test_a_reader_of_its_own_is_found(line):
    assert any(map(call_of, ast.walk(ast.parse(line))))
