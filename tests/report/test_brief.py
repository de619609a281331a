"""The short text of a result on a terminal: what was found first, in few lines, and no name is left out."""

import pytest
from _pages import a_comparison

from finc_eval.core.words import one_line, plural
from finc_eval.naming.looks import Look
from finc_eval.report import outline
from finc_eval.report.terminal import brief
from finc_eval.results import RESULTS

LINES = 11


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_takes_few_lines_and_says_first_what_was_found(name, width, documents):
    said = outline(documents[name])
    lines = brief(said, LINES, width)
    assert len(lines) <= LINES and max(map(len, lines)) <= width
    first = " ".join(one_line(said.headline).split())
    told = " ".join(" ".join(lines).split())
    assert told.startswith(first) or first.startswith(told.partition("…")[0].strip())


def test_what_is_left_out_is_counted(documents):
    said = outline(documents["comparison"])
    assert len(said.tables) == 2 and said.details
    (last,) = brief(said, 2, 400)[1:]
    assert last == f"2 tables and {plural(len({*said.warnings, *said.details}), 'note')}: --verbose"


def test_findings_that_the_headline_only_counts_are_named():
    names = [f"look{number} {'very ' * (number % 3)}odd" for number in range(24)]
    looks = [
        Look(name, False, "gen", (40 - place) / 100, 0.0, 0.001, name, 1.0, 0.0, {"gen": ("0",), "ref": ("1",)})
        for place, name in enumerate(names)
    ]
    found = a_comparison(looks=tuple(looks))
    assert "rest" in found.says, "the headline has words for some of them alone"
    lines = brief(outline(found), LINES)
    assert [name for name in names if name not in " ".join(lines)] == [] and len(lines) <= LINES
