"""The recipes in CONTRIBUTING.md, carried out in one copy of the repository as the text says it.

All changes come first, then one process checks what holds, each recipe by itself.

The sentence before a block of code says what to do with it: "New file `path`:", "`path`, after the line `line`:",
"`path`, in place of the line `line`:", "At the end of `path`:", "Run:", "Then this holds:".
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from finc_eval.comparison import settings

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

RECIPES = {
    section.splitlines()[0]: section for section in re.split(r"^## ", TEXT, flags=re.M) if section.startswith("Add ")
}
BLOCK = re.compile(r"(?P<before>(?:[^\n]+\n)+)\n```\w+\n(?P<code>.*?)```\n", re.DOTALL)
PATH = r"`(?P<path>[\w./-]+)`"
STEPS = {
    "create": re.compile(rf"New file {PATH}:$"),
    "insert": re.compile(rf"{PATH}, after the line `(?P<line>[^`]+)`:$"),
    "replace": re.compile(rf"{PATH}, in place of the line `(?P<line>[^`]+)`:$"),
    "append": re.compile(rf"At the end of {PATH}:$"),
    "run": re.compile(r"Run:$"),
    "check": re.compile(r"Then this holds:$"),
}


def steps(recipe):
    """Yield the steps of a recipe: what to do, the path and the line it names, and the code."""
    for block in BLOCK.finditer(recipe):
        sentence = " ".join(block["before"].split())
        found = [(step, match) for step, pattern in STEPS.items() if (match := pattern.search(sentence))]
        assert len(found) == 1, f"what is to be done with this block is not said: {sentence}"
        step, match = found[0]
        yield step, match.groupdict().get("path"), match.groupdict().get("line"), block["code"]


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and its cards, which the recipes change."""

    def without(folder, _):  # a link to the cards, where there is one
        return {"cards"} if Path(folder).name == "extractors" else set()

    shutil.copytree(ROOT / "finc_eval", tmp_path / "finc_eval", ignore=without)
    shutil.copytree(ROOT / "extractors", tmp_path / "extractors")
    (tmp_path / "finc_eval" / "extractors" / "cards").symlink_to(tmp_path / "extractors")
    program = tmp_path / "bin" / "finc-eval"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom finc_eval.cli import main\n\nmain()\n")
    program.chmod(0o755)
    return tmp_path


def change(file, step, line, code):
    """Insert code after the only line of this text, or put it in its place."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    found = [number for number, one in enumerate(lines) if one.strip() == line]
    assert len(found) == 1, f"{file.name} has {len(found)} lines {line!r}"
    lines[found[0] + (step == "insert") : found[0] + 1] = [code]
    file.write_text("".join(lines), encoding="utf-8")


def execute(command, folder):
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "FINC_EVAL_CACHE": str(folder / "cache"),
        "COLUMNS": "200",
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("executes", [False, pytest.param(True, marks=pytest.mark.long)], ids=["changes", "all"])
def test_the_recipes_do_what_they_say(copy, executes):
    runs, checks = [], {}
    for name, recipe in RECIPES.items():
        done = []
        for step, path, line, code in steps(recipe):
            done.append(step)
            if step == "run":
                runs.append(code)
            elif step == "check":
                checks[name] = code
            elif step == "create":
                assert not (copy / path).exists()
                (copy / path).write_text(code, encoding="utf-8")
            elif step == "append":
                with (copy / path).open("a", encoding="utf-8") as file:
                    file.write(code)
            else:
                change(copy / path, step, line, code)
        assert "check" in done and len(done) == recipe.count("```") // 2
    for name, code in checks.items():
        compile(code, name, "exec")
        (copy / f"{name}.py").write_text(code, encoding="utf-8")
    if not executes:
        return
    execute(
        [sys.executable, "-c", "import runpy, sys; [*map(runpy.run_path, sys.argv[1:])]"]
        + [f"{name}.py" for name in checks],
        copy,
    )
    for code in runs:
        execute(["bash", "-ec", code], copy)


def test_there_are_the_six_recipes():
    assert list(RECIPES) == [
        "Add an extractor",
        "Add a column",
        "Add a metric",
        "Add a baseline",
        "Add an option",
        "Add a type of result",
    ]


def test_every_setting_is_a_typed_keyword():
    keywords = get_type_hints(settings.Options)
    assert {field.name for field in fields(settings.Settings)} == set(keywords)


def test_every_setting_has_a_help_text():
    hints = get_type_hints(settings.Settings, include_extras=True)
    for field in fields(settings.Settings):
        assert any(getattr(part, "description", None) for part in getattr(hints[field.name], "__metadata__", ())), field
