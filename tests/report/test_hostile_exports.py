"""Whatever names, labels and ids hold, LaTeX runs none of it, XML and SVG parse, and notebooks show no controls."""

import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from test_hostile_pages import changes_made_of, kinds_made_of, made_of, sweep_made_of, verdict_made_of

import finc_eval as fe
from finc_eval.core.storage import write_text
from finc_eval.gates.pipelines import annotation_lines, junit_xml

TEXTS = {
    "an input": r"\input{/etc/passwd}",
    "a program": r"\immediate\write18{id}",
    "a code of a character": "^^5cinput x",
    "the end of a line": "^^M^^M\\par",
    "a comment": "50% off \\",
    "a cell": "a & b \\\\ c",
    "mathematics": "$\\input x$",
    "parameters": "#1 ~ _ { }",
    "the end of a table": r"\end{tabular}\input x",
    "a line": "a\n\\input x",
    "a return": "a\r\\input x",
    "a next line": "a\x85\\input x",
    "a separator": "a\u2028\\input x",
    "other codes": "\\catcode`\\%=12 \\verb|x|",
    "an argument": "[1cm] *",
    "nothing": "a\0b",
    "controls": "\x1b[2J\x07\x0b\x0c",
    "a direction": "\u202etxt",
    "half a character": "a\ud800b\udcff",
    "codes that are not characters": "a\uffffb\ufffe",
    "fillers that show nothing": "\u3164\u115f\uffa0\u034f\U000e0041",
    "codes of private use": "\ue000\U0001fffe\U0010ffff",
    "an operating system command": "\x9b31m\x90\x9d8;;http://x\x9c",
    "a table of mathematics": "$$\\begin{array}{c}\\\\[1em]\\hline",
    "a definition of itself": r"\def\x{\x}\x",
    "letters by their codes": "^^5c^^69nput ^^^^005c",
    "commands of other CI jobs": "##vso[x]\n##teamcity[x]\nsection_start:1:x\r",
    "the end of a section": "]]>",
    "a section": "<![CDATA[x",
    "entities": "&x; &#0; &#xffff;",
    "a comment of XML": "--> <!--",
    "an instruction": "<?xml version='1.1'?>",
    "elements": "</testcase></text><script>alert(1)</script>",
    "commands of a CI job": "\n::add-mask::x\n::error::y",
}

QUICK = ("an input", "a code of a character", "a line", "nothing", "half a character", "codes that are not characters")
KINDS = {
    "comparison": made_of,
    "kinds": kinds_made_of,
    "verdict": verdict_made_of,
    "sweep": sweep_made_of,
    "changes": changes_made_of,
}
COMMANDS = re.compile(
    r"\\(begin|end)\{(table|tabular)\}|\\(centering|toprule|midrule|bottomrule|caption)\b|\\\\|\\[&%$#_{}]|"
    r"\\(textbackslash|textasciitilde|textasciicircum|dots)\{\}|\\(pm|times|cdot|leq|geq|infty|to|rho|sigma)\b|"
    r"\\(varepsilon|delta|alpha|varphi|lambda)\b"
)
"""Commands that the export writes itself."""

CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff\ufffe\uffff]")

texts = pytest.mark.parametrize(
    "text", [pytest.param(TEXTS[name], id=name, marks=[pytest.mark.long] * (name not in QUICK)) for name in TEXTS]
)


@pytest.mark.one_of_each("kind", "text")
@texts
@pytest.mark.parametrize("kind", KINDS)
def test_latex_has_no_command_comment_or_line_of_a_name(tmp_path, kind, text):
    result = KINDS[kind](lambda: text)
    result.to_latex(tmp_path / "x.tex")
    plain = KINDS[kind](lambda: "x").to_latex()
    lines = (tmp_path / "x.tex").read_text().split("\n")
    assert len(lines) == plain.count("\n") + 1
    assert lines[0].startswith("% ")
    for line in lines:
        rest = COMMANDS.sub("", line)
        assert "\\" not in rest and "^^" not in line and not CONTROLS.search(line), line
        assert "%" not in rest or line is lines[0], line


@texts
def test_junit_parses_and_has_the_elements_of_harmless_names(tmp_path, text):
    write_text(tmp_path / "x.xml", junit_xml(verdict_made_of(lambda: text)))
    found = [one.tag for one in ElementTree.parse(tmp_path / "x.xml").iter()]
    assert found == [one.tag for one in ElementTree.fromstring(junit_xml(verdict_made_of(lambda: "x"))).iter()]


@texts
def test_annotations_of_a_ci_job_are_one_line_each(text):
    lines = list(annotation_lines(verdict_made_of(lambda: text)))
    assert all(line.startswith("::") and "\n" not in line and "\r" not in line for line in lines)


@texts
def test_figures_are_svg_that_parses(tmp_path, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # signs that a font lacks
        kinds_made_of(lambda: text).figure(1 - 1e-9).savefig(tmp_path / "x.svg")
    found = ElementTree.parse(tmp_path / "x.svg")
    assert not [one for one in found.iter() if one.tag.endswith("script")]


@texts
def test_short_texts_and_notebooks_show_no_control_characters(text):
    rows = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
    made = fe.EmbeddingSet(rows, ids=[f"{text}{i}" for i in range(60)], metadata={"label": [text] * 60}, name=text)
    shown = [made, *(make(lambda: text) for make in KINDS.values()), fe.metrics(made, rows, "kid")]
    for one in shown:
        assert not CONTROLS.search(repr(one)) and repr(one).count("\n") < 10
        page = one._repr_html_()
        assert not CONTROLS.search(page) and "<script>alert" not in page
        page.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_short_text_is_short_whatever_a_name_holds(kind):
    assert len(repr(KINDS[kind](lambda: "\x1b" * 8000))) < 4000
