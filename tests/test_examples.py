"""The examples in the docstrings of the public names: each has one, and each runs."""

import ast
import doctest
from pathlib import Path

import pytest
from _quick import quick_results  # noqa: F401

import finc_eval as fe

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PACKAGES = {"fe": fe, "fe.privacy": fe.privacy, "fe.kahm": fe.kahm, "fe.kahm.federated": fe.kahm.federated}
PUBLIC = {
    f"{package}.{name}": getattr(module, name)
    for package, module in PACKAGES.items()
    for name in getattr(module, "__all__", ())
    if callable(getattr(module, name))
}
STUB = ast.parse(Path(fe.__file__).with_suffix(".pyi").read_text())
BESIDE = {alias.asname for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names}
"""Names of `finc_eval/__init__.pyi`, which has what few people need besides what `__all__` lists."""

PUBLIC |= {f"fe.{name}": getattr(fe, name) for name in sorted(BESIDE) if callable(getattr(fe, name))}


LONG = [
    f"fe.{name}"
    for name in (
        "audit",
        "Comparison",
        "gate",
        "evaluate",
        "kinds",
        "leaderboard",
        "sweep",
        "compare",
        "compare_methods",
        "compare_releases",
        "Verdict",
        "Board",
        "Changes",
        "Direction",
        "Evaluation",
        "Finc",
        "Ken",
        "Leaderboard",
        "MethodComparison",
        "Spaces",
    )
]
"""Names whose example takes a second, or is that of a function in another form."""


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one in LONG)) for one in PUBLIC])
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [test for test in doctest.DocTestFinder(recurse=True).find(PUBLIC[name], name, globs={}) if test.examples]
    assert found, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in found:
        runner.run(test)
    assert runner.failures == 0
