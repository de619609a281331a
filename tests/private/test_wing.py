"""The wing of privacy: no room imports it, and a copy of the package without it compares, ranks, gates and audits."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _trees import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "finc_eval"
WING = PACKAGE / "private"

JOINS = {"evaluations/evaluation.py", "evaluations/page.py", "cli/verbs/private.py"}
"""Modules that import the wing: the evaluation of a generator, which joins all parts, and the verb of the wing."""

WITHOUT = """
import importlib.util, sys
sys.meta_path[:] = [one for one in sys.meta_path if "ditable" not in repr(one)]  # it would find the wing elsewhere
import finc_eval as fe
from finc_eval.demo import example_sets

assert importlib.util.find_spec("finc_eval.private") is None
gen, ref = (rows[:, ::4] for rows in example_sets(300))
results = [
    fe.compare(gen[:100], ref[:100], features=50),
    fe.leaderboard([gen[:100], gen[100:]], ref[:100]),
    fe.gate(gen[:100], ref[:100], ref[100:200], {"kinds": {"lose": 0.5, "min_share": 0.1}}),
    fe.audit(gen[:200], ref[:150], ref[150:]),
]
for one in results:
    one.to_json(f"{one.type_name}.json")
    assert fe.load(f"{one.type_name}.json").to_html("page.html").exists()
audit = results[-1]
assert [one.name for one in audit.attacks] == ["nearest", "ball"] and audit.membership is None
assert "not computed without" in audit.to_markdown()
"""


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def test_no_room_imports_the_wing():
    found = set()
    for path in sorted(set(PACKAGE.rglob("*.py")) - set(WING.rglob("*.py"))):
        if "finc_eval.private" not in path.read_text(encoding="utf-8"):  # most have no such name, and are not parsed
            continue
        types = {part for node in nodes_of(path) if is_for_types(node) for part in ast.walk(node)}
        for node in nodes_of(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if node not in types and any(name.startswith("finc_eval.private") for name in names):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == JOINS


@pytest.mark.long
def test_a_copy_without_the_wing_compares_ranks_gates_and_audits(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "finc_eval", ignore=shutil.ignore_patterns("private", "cards"))
    (tmp_path / "finc_eval" / "extractors" / "cards").symlink_to(ROOT / "extractors")
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "FINC_EVAL_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
