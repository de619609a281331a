"""The recipes of docs/gate_pipelines.md, run as their services run them, with the command on small sets."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from _releases import release

from finc_eval.gates.policy import Policy

DOCS = Path(__file__).parents[2] / "docs"

OUTPUTS = {"comment.md", "verdict.html", "verdict.json", "verdict.md", "verdict.xml"}

GH = """case "$*" in
  *--jq*) test -f comments.txt && echo 17 ;;
  *) echo "$*" >> comments.txt ;;
esac
exit 0"""
"""A program that keeps what it is asked of GitHub, and finds a comment once one was made."""


def blocks(language, page="gate_pipelines.md"):
    """The blocks of a language on a page of the docs."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [part.partition("```")[0] for part in text.split(f"```{language}\n")[1:]]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of small sets and a policy, in which the recipes run."""
    monkeypatch.chdir(tmp_path)
    for name, rows in {"new": release(600, 2), "old": release(600, 1), "ref": release(600, 3)}.items():
        np.save(f"{name}.npy", rows[:, :4])
    (tmp_path / "gate.toml").write_text("kinds.new = 0.2\nbasics.samples = 500\n")
    return tmp_path


def make(place, verdict):
    """Change the inputs so that this is the verdict."""
    if verdict == "undecided":
        (place / "gate.toml").write_text("kinds.moved = 0.001\n")
    else:
        np.save("new.npy", np.load("new.npy")[:400])


@pytest.fixture
def shell(place):
    """Return a function that runs a script as a service does, with finc-eval and pip on the path."""
    programs = place / "programs"
    programs.mkdir()
    for name, command in {"finc-eval": f'exec "{sys.executable}" -m finc_eval "$@"', "pip": "exit 0", "gh": GH}.items():
        (programs / name).write_text(f"#!/bin/sh\n{command}\n")
        (programs / name).chmod(0o755)
    unlike = {"GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"}
    given = {name: value for name, value in os.environ.items() if name not in unlike}
    given["PATH"] = f"{programs}{os.pathsep}{given['PATH']}"
    given["PYTHONPATH"] = os.pathsep.join([str(DOCS.parent), given.get("PYTHONPATH", "")])

    def run(script, program=("sh", "-e"), **environment):
        return subprocess.run([*program, "-c", script], env=given | environment, capture_output=True, text=True)

    return run


def run_workflow(shell, place):
    """Run the steps of the workflow as GitHub does, and return their outputs, by place, and whether it is green."""
    (job,) = yaml.safe_load(blocks("yaml")[0])["jobs"].values()
    told, green, verdict = {}, True, ""
    for number, step in enumerate(job["steps"]):
        condition = step.get("if", "success()")
        if "with" in step and condition == "always()":
            assert {path.name for path in (place / step["with"]["path"]).iterdir()} == OUTPUTS
        always = condition.startswith("always()")
        if "run" not in step or not (green or always):
            continue
        if not always and condition != "success()":
            name, _, value = condition.partition(" == ")
            assert name == "steps.gate.outputs.verdict"
            if verdict != value.strip("'"):
                continue
        files = {name: str(place / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        given = {"GITHUB_REPOSITORY": "our/model", "PULL": "5"} if "env" in step else {}
        done = shell(step["run"], ("bash", "-e"), GITHUB_ACTIONS="true", **files, **given)
        green, told[number] = green and done.returncode == 0, done.stdout
        if step.get("id") == "gate":
            name, _, verdict = (place / "GITHUB_OUTPUT").read_text().strip().partition("=")
            assert name == "verdict"
            _, *summary = (place / "GITHUB_STEP_SUMMARY").read_text().splitlines()
            _, *written = (place / "gate" / "verdict.md").read_text().splitlines()
            assert summary == written
    return told, green, verdict


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("verdict, is_green", [("undecided", True), ("regression", False)])
def test_the_workflow_for_github_is_red_for_a_regression_and_tells_what_is_undecided(place, shell, verdict, is_green):
    make(place, verdict)
    told, green, found = run_workflow(shell, place)
    assert (found, green) == (verdict, is_green)
    assert ("draw more samples\n" in told.values()) == (verdict == "undecided")
    assert "::error" in told[2]
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        (place / name).unlink()
    run_workflow(shell, place)  # a second push replaces the comment of the first
    asked = (place / "comments.txt").read_text().splitlines()
    assert asked == [
        "api repos/our/model/issues/5/comments -F body=@gate/comment.md",
        "api -X PATCH repos/our/model/issues/comments/17 -F body=@gate/comment.md",
    ]


@pytest.mark.long
def test_the_job_for_gitlab_may_be_undecided_and_keeps_its_outputs(place, shell):
    make(place, "undecided")
    (job,) = yaml.safe_load(blocks("yaml")[1]).values()
    done, artifacts = shell(job["script"], ("bash", "-e")), job["artifacts"]
    assert done.returncode == job["allow_failure"]["exit_codes"] == 2, done.stderr
    assert artifacts["when"] == "always"
    assert {path.name for path in (place / artifacts["paths"][0]).iterdir()} == OUTPUTS
    assert ElementTree.parse(place / artifacts["reports"]["junit"]).getroot().tag == "testsuites"


@pytest.mark.parametrize("code, ends, told", [(0, 0, "release"), (1, 1, ""), (2, 0, "draw more samples"), (3, 3, "")])
def test_the_recipe_for_shells_tells_the_verdicts_apart(place, shell, code, ends, told):
    (place / "programs" / "finc-eval").write_text(f"#!/bin/sh\nexit {code}\n")
    done = shell(blocks("sh")[-1])
    assert (done.returncode, done.stdout.strip()) == (ends, told)


def test_the_recipe_for_pytest_works(place):
    recipe = {}
    exec(blocks("python")[-1], recipe)
    recipe["test_release"]()
    make(place, "regression")
    with pytest.raises(AssertionError, match="FAIL: "):
        recipe["test_release"]()


def test_the_policy_of_the_docs_is_read(place):
    (place / "docs.toml").write_text(blocks("toml", "gate.md")[-1])
    assert Policy.of(place / "docs.toml").metrics["fd"].difference == "noise"
