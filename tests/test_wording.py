"""Plain English where a person reads: patterns that take two readings do not come back."""

import ast
import re
from pathlib import Path

from _trees import nodes_of

ROOT = Path(__file__).parent.parent

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = sorted((ROOT / "finc_eval").rglob("*.py"))

AVOIDED = re.compile(r"\b(is|are) no [a-z]|when left out|\b[Aa]s of `")
"""Write "is not a", "default: …", "see `…`"."""

LONE_CLAUSE = re.compile(r"(That|Those|Of|As|What|Whether|Which|How|Where) [a-z]")
"""The start of a docstring that does not stand alone: begin with a verb or a noun phrase."""

BESIDE = re.compile(r"^[A-Z_]+(?:: [^=]+)? = .*  # (?!type: )(.+)$", re.MULTILINE)
"""The description of a constant that stands beside it."""


def texts():
    for path in [*TEXTS, *CODE]:
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def test_no_sentence_has_a_pattern_to_avoid():
    lines = ((path, number, line) for path, text in texts() for number, line in enumerate(text.splitlines(), 1))
    assert [f"{path}:{number}: {line.strip()}" for path, number, line in lines if AVOIDED.search(line)] == []


def test_every_docstring_begins_with_a_phrase_that_stands_alone():
    found = []
    for path, code in texts():
        if path.suffix != ".py":
            continue
        described = [(getattr(node, "lineno", 1), text) for node in nodes_of(ROOT / path) for text in texts_of(node)]
        beside = [(code[: one.start()].count("\n") + 1, one[1].capitalize()) for one in BESIDE.finditer(code)]
        faults = [(line, text) for line, text in [*described, *beside] if LONE_CLAUSE.match(text)]
        found += [f"{path}:{line}: {text.splitlines()[0]}" for line, text in faults]
    assert found == []


def texts_of(node):
    """The docstring of a node, and the strings that describe the constants in its body."""
    for part in getattr(node, "body", []) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []:
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
            yield part.value.value
