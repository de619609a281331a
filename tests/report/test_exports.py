"""Markdown and CSV of results: the numbers of the page, bounded, and nothing in a name does more than be read."""

import csv
import io
import random
import re
from dataclasses import replace
from itertools import count

import pytest
from _pages import LESS, MORE, OVER, SAME, UNDER, a_comparison, a_kind, a_mode, made_by
from test_hostile_pages import PIECES, made_of

import finc_eval as fe
from finc_eval import report
from finc_eval.core.files.csv_text import csv_text
from finc_eval.core.marks import mark_of
from finc_eval.core.provenance import GitState
from finc_eval.report.exports.markdown import MAX_MARKDOWN, escape, paragraph
from finc_eval.report.exports.outline import call, how_made, shareable

FORMULAS = ("=cmd|'/c calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "＝1")
LINKS = ("https://evil.example/x", "www.evil.example", "[a](javascript:x)", "![x](http://y/z)", "<b>", "&lt;", "~~x~~")
LAYOUT = ("|", "||", "\n\n# title\n", "\n- a", "```", "`", "* ", "1. a", "===", "\r\n", "  \n", "$x$", "a|b\\")


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith("| ")]


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]


def test_markdown_has_the_verdict_the_modes_and_how_they_were_made():
    found = a_comparison([OVER], [UNDER], warnings=("gen is small",))
    text = found.to_markdown()
    assert text.startswith(f"<!-- finc-eval: {found.mark} -->\n\n## gen against ref\n")
    assert f"\n\n{escape(report.outline(found).headline)}\n" in text
    assert "**Before you trust the numbers**\n\n- gen is small\n" in text
    over, under = (cells_of(row) for row in rows_of(text) if "aaaaaa" in row or "bbbbbb" in row)
    assert over == ["1", "over-aaaaaa", "13.1", "4.0", r"\+9.1 \[+6.2, +12.0\]".replace(r"\+", "+"), "3.2e-09"]
    assert under[1:4] == ["under-bbbbbb", "2.0", "10.0"]
    assert "```\nfe.compare(gen, ref, sigma=8.25, features=500, seed=7)\n```" in text
    assert f"```\n{found.signature}\n```" in text and text.endswith("Failures: none.\n")
    assert found.to_markdown() == text


def test_markdown_has_the_kinds_with_intervals_under_their_headings():
    heading = a_kind("k9", 0.181, 0.04, children=("k1", "k4"))
    kinds = [MORE, a_kind("k4", 0.05, 0.0), LESS, replace(SAME, id="k5")]
    text = a_comparison([OVER], kinds=kinds, headings=[heading]).to_markdown()
    rows = [[cell.replace("\\", "") for cell in cells_of(row)] for row in rows_of(text.split("### Directions")[0])]
    assert rows == [
        ["Kind", "Gen, %", "Ref, %", "Difference, points", "Adj. p"],
        ["Too many: 2 kinds", "18.1", "4.0", "+14.1", "–"],
        ["k9", "18.1 [15.1, 21.1]", "4.0 [1.0, 7.0]", "+14.1 [+11.1, +17.1]", "3.2e-09"],
        ["· k1", "13.1 [10.1, 16.1]", "4.0 [1.0, 7.0]", "+9.1 [+6.1, +12.1]", "3.2e-09"],
        ["· k4", "5.0 [2.0, 8.0]", "0.0 [0.0, 3.0]", "+5.0 [+2.0, +8.0]", "3.2e-09"],
        ["k2", "2.0 [0.0, 5.0]", "10.0 [7.0, 13.0]", "−8.0 [−11.0, −5.0]", "3.2e-09"],
        ["1 kind that does not differ", "84.9", "86.0", "−1.1", "–"],
    ]


def test_rows_that_do_not_fit_are_left_out_and_counted():
    many = tuple(a_mode(f"over-{i:06d}", name="w" * 3000) for i in range(500))
    text = a_comparison(many).to_markdown()
    assert 0.9 * MAX_MARKDOWN < len(text.encode()) <= MAX_MARKDOWN
    shown = sum("over-" in row for row in rows_of(text))
    assert f"{500 - shown} rows are left out, see the page or the JSON file." in text
    assert text.rstrip().endswith("Failures: none.")


def test_long_texts_in_every_place_stay_within_the_size():
    word = "漢" * (MAX_MARKDOWN // 30)
    text = made_of(lambda: word).to_markdown()
    assert len(text.encode()) <= MAX_MARKDOWN


@pytest.mark.parametrize("seed", range(20))
def test_hostile_text_in_markdown_is_one_cell_and_stays_text(seed):
    rng = random.Random(seed)
    pieces = (*PIECES, *FORMULAS, *LINKS, *LAYOUT)
    text = made_of(lambda: "x" + "".join(rng.choices(pieces, k=rng.choice((1, 3, 9))))).to_markdown()
    numbers = count()  # all names differ, as hostile ones do
    harmless = made_of(lambda: f"x{next(numbers)}").to_markdown()
    text.encode("utf-8")
    assert not re.search("[\u202a-\u202e\u200e\u200f\u2066-\u2069\0\x1b\u2028]", text)
    fenced = re.split(r"(?m)^(`{3,})\n.*?\n\1$", text, flags=re.DOTALL)
    outside = "".join(fenced[::2])
    assert outside.count("\n\n") == "".join(re.split(r"(?m)^```\n.*?\n```$", harmless, flags=re.DOTALL)).count("\n\n")
    assert not re.search(r"(?<!\\)(?:\\\\)*[<`$~]", outside.split("-->", 1)[1])
    assert not re.search(r"(?<!\\)(?:\\\\)*\]\(", outside) and "http:/" not in outside and "www.evil" not in outside
    assert {len(cells_of(row)) for row in rows_of(outside)} == {5, 7}
    heads = [line for line in outside.splitlines() if line.startswith("#")]
    assert len(heads) == 4 and all(head.startswith(("## ", "### ")) for head in heads)


@pytest.mark.parametrize("text", [*FORMULAS, *LINKS, *LAYOUT, "@name", "#12", "-", "+ a", "12) b", "_a_", "*b*"])
def test_a_paragraph_begins_nothing(text):
    told = paragraph(text)
    assert "\n" not in told and not re.match(r"\s*(?:[-+=#>|]|\d+[.)]|```)", told)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`<>*_|@#$~]", told)


def test_code_with_fences_stays_in_its_fence():
    made = replace(made_by("1"), command="finc-eval compare --gen '```\n# x' --ref r")
    text = a_comparison([OVER], provenance=made).to_markdown()
    assert "````\nfinc-eval compare" in text


def test_csv_has_the_rows_and_columns_of_the_data_frame():
    pandas = pytest.importorskip("pandas")
    found = a_comparison([OVER], [UNDER], [MORE, LESS, SAME]).marked("0a1b")
    text = found.to_csv()
    table = pandas.read_csv(io.StringIO(text))
    assert [*table.columns] == ["result", *found.to_frame().columns]
    assert [*table["result"]] == ["comparison 0a1b"] * 3
    assert [*table["id"]] == [kind.id for kind in found.kinds]
    assert [*table["shares.gen.share"]] == [kind.share_gen for kind in found.kinds]
    assert [*table["interval.low"]] == [kind.seen_from("gen")[1][0] for kind in found.kinds]


@pytest.mark.parametrize("seed", range(20))
def test_hostile_text_in_csv_is_one_cell_no_formula_and_one_line(seed):
    rng = random.Random(seed)
    pieces = (*PIECES, *FORMULAS, *LINKS, *LAYOUT, '"', '",', "\r")
    found = made_of(lambda: rng.choice((*FORMULAS, "x")) + "".join(rng.choices(pieces, k=rng.choice((1, 3, 9)))))
    lines = [*csv.reader(io.StringIO(found.to_csv()))]
    assert len(found.to_csv().splitlines()) == len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    for name, cell in ((name, cell) for line in lines[1:] for name, cell in zip(lines[0], line, strict=True)):
        if name in ("name", "looks_different"):
            assert not cell.startswith(("=", "+", "-", "@", "\t", "＝"))
        assert not re.search("[\u202a-\u202e\u200f\0\r\n]", cell)


def test_a_formula_in_a_csv_begins_with_an_apostrophe_and_a_number_stays_one():
    rows = [{"=name": one, "n": -0.5, "none": None, "inf": float("inf")} for one in ("=1+1", "-x", "a")]
    lines = csv_text(rows).splitlines()
    assert lines == ["'=name,n,none,inf", "'=1+1,-0.5,,", "'-x,-0.5,,", "a,-0.5,,"]


def test_texts_are_written_and_bear_the_mark_of_their_result(tmp_path):
    found = a_comparison([OVER]).marked("0a1b")
    for suffix, write in ((".md", found.to_markdown), (".csv", found.to_csv), (".html", found.to_html)):
        write(tmp_path / f"c{suffix}")
        assert mark_of(tmp_path / f"c{suffix}") == "comparison 0a1b"
    assert (tmp_path / "c.md").read_text(encoding="utf-8") == found.to_markdown()
    (tmp_path / "c.csv").write_text("age,income\n41,12\n")
    (tmp_path / "c.md").write_text("# my notes\n")
    assert mark_of(tmp_path / "c.csv") is mark_of(tmp_path / "c.md") is None


def test_the_table_of_a_result_without_modes_bears_its_mark(tmp_path):
    found = a_comparison([]).marked("0a1b")
    assert found.to_csv(tmp_path / "c.csv") == "result\ncomparison 0a1b\n"
    assert mark_of(tmp_path / "c.csv") == "comparison 0a1b"
    (tmp_path / "c.csv").write_text("result\n12\n")
    assert mark_of(tmp_path / "c.csv") is None


def test_a_result_of_python_names_the_call_that_makes_it_again():
    settings = fe.Settings(method=fe.Finc(clusters=False), rho=2, features=500)
    assert call("compare", "gen", "'real/'", settings=settings) == (
        "fe.compare(gen, 'real/', features=500, method=fe.Finc(clusters=False), rho=2)"
    )
    assert call("compare", "gen", "ref", settings=fe.Settings()) == "fe.compare(gen, ref)"


def test_how_a_result_was_made_names_versions_device_git_and_the_file_of_defaults():
    made = replace(made_by("1.2"), git=GitState("0123456789abcdef"), config="/home/x/finc-eval.toml")
    assert how_made(made, "fe.f()").using == ("finc-eval 1.2; on cpu; git 0123456789ab; defaults from finc-eval.toml.")
    assert how_made(made, "fe.f()").command == "fe.f()"
    assert how_made(replace(made, command="finc-eval compare --gen /a/b/c"), "fe.f()").by_command
    assert shareable("finc-eval compare --gen /a/b/c") == "finc-eval compare --gen c"
    assert shareable("finc-eval kinds --gen m=/a/b --gen n=c/d=/e --ref=/a/r") == (
        "finc-eval kinds --gen m=b --gen n=c/d=/e --ref=r"
    )
