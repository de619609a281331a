"""Files of a verdict for pipelines: JUnit XML, a summary of bounded size, and the outputs for GitHub Actions."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from _releases import release
from typer.testing import CliRunner

from finc_eval import report
from finc_eval.cli.app import app
from finc_eval.gates.pipelines import MAX_ANNOTATIONS, annotation_lines, junit_xml, tell_github
from finc_eval.gates.policy import Policy
from finc_eval.gates.verdict import ReleaseFinding
from finc_eval.report.exports.markdown import MAX_MARKDOWN

JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    **dict.fromkeys(("error", "failure", "skipped"), ({"type", "message"}, set())),
}
"""Attributes and elements that the JUnit schemas of Jenkins allow, by element."""


def check_junit(text):
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for parent in root.iter():
        attributes, children = JUNIT[parent.tag]
        assert set(parent.attrib) <= attributes
        assert {child.tag for child in parent} <= children
    (suite,) = root
    assert {"name", "tests", "failures", "errors"} <= set(suite.attrib)
    for tag, count in (("failure", "failures"), ("error", "errors"), ("testcase", "tests")):
        assert int(suite.attrib[count]) == len(list(suite.iter(tag)))
    return suite


def with_verdicts(verdict, *verdicts, long=""):
    """A verdict whose limits have these verdicts."""
    limits = tuple(
        replace(verdict.limits[0], name=f"kinds.lose <k&{i}|\x1b>{long}", verdict=one) for i, one in enumerate(verdicts)
    )
    return replace(verdict, limits=limits)


def test_junit_has_a_case_per_limit(passed, failed):
    suite = check_junit(junit_xml(passed))
    assert suite.attrib["failures"] == "0"
    assert [one.get("value") for one in suite.iter("property") if one.get("name") == "warning"] == [*passed.warnings]
    assert passed.warnings
    suite = check_junit(junit_xml(failed))
    assert int(suite.attrib["failures"]) == len(failed.of("regressed")) > 0


def test_what_is_undecided_is_an_error_as_what_is_missing(passed):
    suite = check_junit(junit_xml(with_verdicts(passed, "held", "undecided", "missing", "regressed")))
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("2", "1")


def test_a_verdict_without_limits_is_not_a_success(passed):
    assert check_junit(junit_xml(replace(passed, limits=(), overall="error"))).attrib["errors"] == "1"


@pytest.mark.long
def test_a_summary_stays_within_its_size_and_counts_what_it_leaves_out(passed):
    many = with_verdicts(passed, *["undecided"] * 2500, "regressed", long="x" * 400)
    text = many.to_markdown()
    assert 0.9 * MAX_MARKDOWN < len(text.encode()) <= MAX_MARKDOWN
    rows = [line for line in text.splitlines() if line.startswith("| kinds")]
    assert f"{2500 - len(rows):,} rows are left out, see the page or the JSON file." in text
    assert text.index("| regressed |") < text.index(rows[0])
    assert rows[0].count("|") - rows[0].count("\\|") == 8
    assert "\x1b" not in text


def test_what_failed_has_a_row_for_each_cause_with_further_limits_folded_below(passed):
    """A limit that broke for two causes measures the first; the row of the second has its numbers in its text."""
    broken = with_verdicts(passed, *["regressed"] * 5, "held")
    *names, alone = (limit.name for limit in broken.limits[:5])
    dark = ReleaseFinding("dark", "look", False, 0.2, 0.0, 0.01, text="20 % is dark (before 0 %)", limits=tuple(names))
    others = [
        replace(dark, name="gray", text="12 % is gray (before 1 %)", limits=tuple(names[:1])),
        replace(dark, name="noise", text="5 % has noise", limits=()),
    ]
    verdict = replace(broken, overall="regression", findings=(dark, *others))
    failed, same, differs = report.outline(verdict).tables
    values = {row["What"].text: row for row in (dict(zip(failed.columns, row, strict=True)) for row in failed.cells)}
    assert [*values] == ["20 % is dark", "12 % is gray (before 1 %)", verdict.limits[4].tell().partition(" (")[0]]
    assert [row["Limit"].text for row in values.values()] == [names[0], names[0], alone]
    assert [row["Limit"].small for row in values.values()] == ["and 3 more", "", ""]
    assert [row["Value"].text == "–" for row in values.values()] == [False, True, False]
    assert [row[0].text for row in same.cells] == names[1:]
    assert [row[0].text for row in differs.cells] == ["5 % has noise"]
    page = report.page(verdict, {})
    assert page.index('id="failed"') < page.index("<summary>More limits that failed") < page.index('id="differs"')


def test_a_summary_says_what_failed_before_how_it_was_tested(failed):
    text = failed.to_markdown()
    assert text.index("### What failed") < text.index("Family of") < text.index("### How this was made")


def test_github_gets_ten_annotations_at_most(passed):
    lines = list(annotation_lines(with_verdicts(passed, *["regressed"] * 40)))
    assert len(lines) == MAX_ANNOTATIONS
    assert "31 more limits did not hold" in lines[-1]
    assert not any("\n" in line for line in lines)
    assert list(annotation_lines(passed)) == []
    (error,) = annotation_lines(with_verdicts(passed, "undecided"))
    assert error.startswith("::error ")


def test_github_gets_the_verdict_where_it_asks_for_it(passed, tmp_path):
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    tell_github(passed, files)
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == "verdict=pass\n"
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == passed.to_markdown()
    tell_github(passed, {})
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture
def files(sets, tmp_path, monkeypatch):
    """A folder with the sets and a policy, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    for name, rows in {**sets, "bad": release(450, 4, lost=8)}.items():
        np.save(f"{name}.npy", rows[:450])
    (tmp_path / "gate.toml").write_text("kinds.lose = 0.8\nkinds.min_share = 0.04\n")
    return tmp_path


def gate(*arguments, **named):
    given = {"gen": "same.npy", "baseline": "old.npy", "ref": "ref.npy", "policy": "gate.toml", "out": "out"} | named
    options = [part for name, value in given.items() for part in (f"--{name}", value) if value is not None]
    return CliRunner().invoke(app, ["gate", *options, *arguments])


def test_the_exit_code_is_the_verdict(files):
    result = gate()
    assert result.exit_code == 0, result.output
    written = {"verdict.html", "verdict.json", "verdict.md", "verdict.xml"}
    assert {path.name for path in (files / "out").iterdir()} == written
    before = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    assert gate().exit_code == 0
    again = {path.name: path.read_bytes() for path in (files / "out").iterdir()}
    suite, other = (check_junit(each["verdict.xml"]) for each in (before, again))
    assert float(suite.attrib.pop("time")) > 0 and float(other.attrib.pop("time")) > 0  # of either run
    assert ElementTree.tostring(suite) == ElementTree.tostring(other)
    assert again | {"verdict.xml": b""} == before | {"verdict.xml": b""}
    assert gate(gen="bad.npy", out="bad").exit_code == 1
    (files / "gate.toml").write_text("kinds.lose = 0.05\n")
    result = gate(out="undecided")
    assert result.exit_code == 2, result.output
    (files / "gate.toml").write_text("metrics.fid.most = 5\n")
    result = gate("--json", out="missing")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["overall"] == "error"


@pytest.mark.long
def test_the_first_policy_is_written_again_unless_it_was_edited_or_is_of_other_sets(files):
    def init(**named):
        return gate("--init", gen=None, out=None, policy="first.toml", **named)

    result = init()
    assert result.exit_code == 0, result.output
    text = (files / "first.toml").read_text()
    assert "kinds.lose" in text and Policy.of(files / "first.toml").kinds is not None
    assert init().exit_code == 0 and (files / "first.toml").read_text() == text
    other = init(baseline="bad.npy")
    assert other.exit_code == 3 and "choose another --policy" in other.stderr
    (files / "first.toml").write_text(text + "# ours\n")
    assert init().exit_code == 3 and (files / "first.toml").read_text() == text + "# ours\n"
    assert gate("--init", "--force", gen=None, out=None, policy="first.toml").exit_code == 0
    assert "--policy must end in .toml" in gate("--init", gen=None, out=None, policy="first").stderr
