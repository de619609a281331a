"""Plain English where a person reads: patterns that take two readings do not come back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = sorted((ROOT / "finc_eval").rglob("*.py"))

AVOIDED = re.compile(r"\b(is|are) no [a-z]|when left out|\b[Aa]s of `")
"""Write "is not a", "default: …", "see `…`"."""

LONE_CLAUSE = re.compile(r"(That|Those|Of|As|What|Whether|Which|How|Where) [a-z]")
"""The start of a docstring that does not stand alone: begin with a verb or a noun phrase."""

BESIDE = re.compile(r"^[A-Z_]+(?:: [^=]+)? = .*  # (?!type: )(.+)$", re.MULTILINE)
"""The description of a constant that stands beside it."""


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(ROOT)))


@named([*TEXTS, *CODE])
def test_no_sentence_has_a_pattern_to_avoid(path):
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    assert [(number, line.strip()) for number, line in lines if AVOIDED.search(line)] == []


@named(CODE)
def test_every_docstring_begins_with_a_phrase_that_stands_alone(path):
    code = path.read_text(encoding="utf-8")
    found = []
    for node in ast.walk(ast.parse(code)):
        for text in texts_of(node):
            if LONE_CLAUSE.match(text):
                found.append((node.lineno if hasattr(node, "lineno") else 1, text.splitlines()[0]))
    found += [text for text in BESIDE.findall(code) if LONE_CLAUSE.match(text.capitalize())]
    assert found == []


def texts_of(node):
    """The docstring of a node, and the strings that describe the constants in its body."""
    for part in getattr(node, "body", []) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []:
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
            yield part.value.value
