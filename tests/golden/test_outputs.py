"""Outputs of nights: the page, JSON, JUnit, comments, exit codes, and the workflow and the test of the docs."""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from _nights import noisy, scenes
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.golden.measured import NOT_NUMBERS, SOUND, TRANSPARENT, UNREADABLE
from finc_eval.golden.page import MARKER, MAX_COMMENT, comment
from finc_eval.golden.pipelines import annotation_lines, junit_xml
from finc_eval.golden.result import EXIT_CODES

ROOT = Path(__file__).parents[2]
DOCS = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("golden.md", "golden_nights.md"))


def write(folder, change=lambda one, _: one, count=3, seed=1):
    """Write pictures into a folder, and return its path as a text."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, pixels in scenes(count).items():
        Image.fromarray(np.ascontiguousarray(change(pixels, rng))).save(folder / f"{name}.png")
    return str(folder)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "golden")
    write(tmp_path / "tonight", noisy)
    return tmp_path


def gate(*more, gen="tonight"):
    return CliRunner().invoke(app, ["gate", "--golden", "floor.jsonl", "--gen", gen, "--ref", "golden", *more])


def long_history(path, nights):
    """Write a floor of nights that are alike: the first is measured, the others have other noise."""
    golden, rng = scenes(3), np.random.default_rng(0)
    fe.Golden(path).add({name: noisy(one, rng) for name, one in golden.items()}, golden)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [
        json.dumps(row | {"night": f"2026-10-{night + 1:02d}", "psnr": row["psnr"] + rng.normal() / 50, "p": 0.5})
        for night in range(nights)
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n")


def test_exit_codes_and_files_of_a_green_an_amber_and_a_red_night(desk):
    done = gate("--machine", "h200")
    assert done.exit_code == 0 and "Green: 3 pairs show the same" in done.output
    assert {one.name for one in (desk / "reports" / "floor").iterdir()} == {
        f"night{suffix}" for suffix in (".html", ".json", ".md", ".xml")
    }
    write(desk / "tonight", lambda one, _: one[::-1])
    done = gate("--machine", "h200")
    assert done.exit_code == 1 and "Red: all pictures are upside down." in done.output
    (desk / "tonight" / "p01.png").unlink()
    write(desk / "fewer", noisy, count=2)
    assert gate(gen="fewer").exit_code == 2
    data = json.loads((desk / "reports" / "floor" / "night.json").read_text())
    assert data["verdict"] == "amber" and "(p02.png) is without a picture of tonight" in data["sentence"]
    assert len((desk / "floor.jsonl").read_text().splitlines()) == 3 + 3 + 2


def test_a_slow_change_is_amber_then_red_and_accepted_by_the_command(desk):
    long_history(desk / "floor.jsonl", 22)
    write(desk / "tonight", lambda one, rng: noisy(one, rng, 7))
    first, second = gate("--json"), gate("--json")
    assert (first.exit_code, second.exit_code) == (2, 1)
    assert json.loads(first.stdout)["told"]["verdict"].startswith(
        "Amber: a new state or a change: all 3 pairs lie beyond"
    )
    sentence = json.loads(second.stdout)["sentence"]
    assert (
        sentence.startswith("Red: all 3 pairs lie beyond the 22 nights so far (PSNR ")
        and "two nights in a row" in sentence
    )
    night = json.loads(second.stdout)["night"]
    done = CliRunner().invoke(app, ["gate", "--golden", "floor.jsonl", "--accept", night[:10]])
    assert done.exit_code == 0 and done.output.startswith("Accepted: 2 nights, from ")
    assert gate().exit_code == 0


WRONG = {
    "no pictures": (["--golden", "f.jsonl"], "pass --gen and --ref"),
    "no golden ones": (["--golden", "f.jsonl", "--gen", "tonight"], "pass --gen and --ref"),
    "a release": (
        ["--golden", "f.jsonl", "--gen", "a", "--ref", "b", "--baseline", "c"],
        "--baseline is an option of rel",
    ),
    "a policy": (["--golden", "f.jsonl", "--policy", "gate.toml"], "--policy is an option of releases"),
    "a machine alone": (["--machine", "a", "--gen", "x", "--ref", "y"], "pass --golden FILE, too"),
    "accept alone": (["--accept", "2026"], "pass --golden FILE, too"),
    "accept and judge": (["--golden", "f.jsonl", "--accept", "2026", "--gen", "tonight"], "leave out --gen and --ref"),
    "no such night": (["--golden", "f.jsonl", "--accept", "2026"], "has no night '2026'"),
    "no baseline": (["--gen", "x", "--ref", "y"], "Missing option '--baseline'"),
    "no reference": (["--gen", "x", "--baseline", "y"], "Missing option '--ref'"),
    "a comment that is no Markdown": (
        ["--golden", "f.jsonl", "--gen", "tonight", "--ref", "golden", "--comment", "c.html"],
        "--comment must end in .md",
    ),
    "a floor that is a folder": (["--golden", "golden", "--gen", "tonight", "--ref", "golden"], "golden is a folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_are_told_in_one_sentence_and_nothing_is_written(desk, name):
    words, told = WRONG[name]
    done = CliRunner().invoke(app, ["gate", *words])
    assert done.exit_code == 3 and told in done.output and "Traceback" not in done.output, done.output
    assert not (desk / "f.jsonl").exists()


def test_a_comment_has_a_line_a_pair_and_pictures_beside_it_and_replaces_itself_alone(desk):
    write(desk / "tonight", lambda one, rng: one * 0 if one is scenes(3)["p01"] else noisy(one, rng))
    for _ in range(2):
        assert gate("--comment", "comment.md").exit_code == 1
    mark, marker, headline, *rest = (desk / "comment.md").read_text().splitlines()
    assert mark.startswith("<!-- finc-eval: night ") and marker == MARKER
    assert headline == "### Red: p01.png is black."
    rows = [line for line in rest if line.startswith("| p0")]
    assert rows[0].startswith("| p01.png | ![golden, tonight](comment-1.png) | red: is black | ")
    assert len(rows) == 3 and "data:" not in "".join(rest)
    for number in (1, 2, 3):
        with Image.open(desk / f"comment-{number}.png") as picture:
            assert picture.height == 64 and picture.width == 130
    (desk / "comment.md").write_text("my own words\n")
    refused = gate("--comment", "comment.md")
    assert refused.exit_code == 3 and (desk / "comment.md").read_text() == "my own words\n"


def test_a_page_has_the_pictures_a_curve_of_each_pair_and_nothing_that_it_loads(desk):
    long_history(desk / "floor.jsonl", 12)
    night = fe.Golden("floor.jsonl").add("tonight", "golden")
    page = night.to_html("night.html").read_text()
    assert page.count("<title>PSNR of p0") == 0 or page.count("<svg") >= 3
    golden = fe.Golden("floor.jsonl").add(scenes(3), scenes(3))
    page = golden.to_html("night.html").read_text()
    assert [f"PSNR of p0{number}" in page for number in range(3)] == [True] * 3
    assert page.count('<img src="data:image/') == 6 and "http" not in page.split("<main")[-1].replace("http-equiv", "")
    back = fe.load(str(desk / "saved.json")) if golden.to_json("saved.json") else None
    assert back.to_dict() == golden.to_dict() and back.sentence == golden.sentence
    assert "<svg" in back.to_html("again.html").read_text()
    assert [row["name"] for row in golden._frame_rows()] == ["p00", "p01", "p02"]


def test_junit_has_a_case_a_pair_and_fails_with_the_night(desk):
    made = {name: one[:, ::-1] if name == "p01" else one for name, one in scenes(3).items()}
    red = fe.Golden("floor.jsonl").add(made, scenes(3), machine="a&b")
    suite = ElementTree.fromstring(junit_xml(red)).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.text == "is mirrored"
    assert [one.get("value") for one in suite.iter("property") if one.get("name") == "machine"] == ["a&b"]
    assert next(iter(annotation_lines(red))) == "::error title=finc-eval gate::Red: p01 is mirrored."
    amber = fe.Golden("floor.jsonl").add({"p00": scenes(3)["p00"]}, scenes(3))
    suite = ElementTree.fromstring(junit_xml(amber)).find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    green = fe.Golden("floor.jsonl").add(scenes(3), scenes(3))
    assert not list(annotation_lines(green)) and 'failures="0" errors="0"' in junit_xml(green)


def test_a_comment_of_500_pairs_stays_within_its_size(tmp_path):
    pixels = {f"{number:04d} {'x' * 160}": np.full((8, 8, 3), number % 200, np.uint8) for number in range(500)}
    night = fe.Golden(tmp_path / "floor.jsonl").add(pixels, pixels)
    text, pictures = comment(night, "c")
    assert len(text.encode()) <= MAX_COMMENT and len(pictures) == 40
    assert len(night.to_html(tmp_path / "n.html").read_text()) < 2_000_000


FAKES = {
    "finc-eval": f'exec "{sys.executable}" -W ignore -m finc_eval "$@"',
    "pip": "exit 0",
    "git": 'case "$*" in *rev-parse*) echo 0123abcd ;; *) echo "$*" >> "$WORK/git.txt" ;; esac',
    "gh": 'echo "$*" >> "$WORK/gh.txt"; cp comment.md "$WORK/issue.md"',
}


def run_workflow(place, accept=""):
    """Run the steps of the workflow as GitHub does, and return the verdict and whether the job is green."""
    block = DOCS.split("```yaml\n")[1].partition("```")[0]
    (job,) = yaml.safe_load(block)["jobs"].values()
    verdict, green = "", True
    for step in job["steps"]:
        when = step.get("if", "success()")
        runs = {
            "success()": green,
            "inputs.accept": green and bool(accept),
            "always()": True,
            "always() && steps.golden.outputs.verdict != 'green'": verdict != "green",
        }[when]
        if "run" not in step or not runs:
            continue
        script = step["run"].replace("${{ steps.golden.outputs.verdict }}", verdict)
        assert "${{" not in script  # what a person writes never becomes a part of a script
        given = os.environ | {
            "PATH": f"{place / 'programs'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "WORK": str(place),
            "GITHUB_OUTPUT": str(place / "output"),
            "GITHUB_STEP_SUMMARY": str(place / "summary"),
            "GITHUB_REPOSITORY": "our/engine",
            "NIGHT": accept,
        }
        done = subprocess.run(["bash", "-e", "-c", script], env=given, cwd=place, capture_output=True, text=True)
        green = green and done.returncode == 0
        if step.get("id") == "golden":
            verdict = (place / "output").read_text().strip().splitlines()[-1].partition("=")[2]
    return verdict, green


@pytest.mark.long
def test_the_workflow_of_the_docs_keeps_the_nights_and_opens_an_issue_with_pictures(desk):
    (desk / "programs").mkdir()
    (desk / "nights").mkdir()
    for name, script in FAKES.items():
        (desk / "programs" / name).write_text(f"#!/bin/sh\n{script}\n")
        (desk / "programs" / name).chmod(0o755)
    (desk / "generate").write_text("#!/bin/sh\nexit 0\n")
    (desk / "generate").chmod(0o755)
    assert run_workflow(desk) == ("green", True)
    assert not (desk / "issue.md").exists() and "push" in (desk / "git.txt").read_text()
    write(desk / "tonight", lambda one, _: one[..., ::-1])
    assert run_workflow(desk) == ("red", False)
    assert "Golden pictures: red" in (desk / "gh.txt").read_text()
    assert "](https://github.com/our/engine/raw/0123abcd/comment-1.png)" in (desk / "issue.md").read_text()
    assert len((desk / "nights" / "floor.jsonl").read_text().splitlines()) == 6
    write(desk / "tonight", noisy, count=2)
    (desk / "tonight" / "p02.png").unlink()
    assert run_workflow(desk) == ("amber", True)


def test_the_test_of_the_docs_works(desk):
    recipe = {}
    exec(DOCS.split("```python\n")[2].partition("```")[0], recipe)
    recipe["test_golden_pictures"]()
    write(desk / "tonight", lambda one, _: one * 0)
    with pytest.raises(AssertionError, match="Red: all pairs: black"):
        recipe["test_golden_pictures"]()


def test_the_words_of_the_docs_are_those_of_the_code():
    words = [*SOUND, TRANSPARENT, NOT_NUMBERS, UNREADABLE, *EXIT_CODES]
    assert [word for word in words if f'`"{word}"`' not in DOCS] == []


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one in (fe.Golden, fe.Night):
        (found,) = doctest.DocTestFinder(recurse=False).find(one, one.__name__, globs={})
        assert found.examples and doctest.DocTestRunner().run(found).failed == 0
