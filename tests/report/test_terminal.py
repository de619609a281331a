"""Tables on a terminal of 80 columns and in a log: no number is cut, no line is too long, and a log gets ASCII."""

import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from _pages import (
    LESS,
    OVER,
    SAME,
    UNDER,
    a_comparison,
    a_kind,
    a_mode,
    check_fits_a_terminal,
    made_by,
    named,
    on_a_terminal,
    table_rows,
)
from test_pages import a_sweep, some_changes

import finc_eval as fe
from finc_eval import report
from finc_eval.comparison.methods import DirectionGroup, MethodComparison
from finc_eval.comparison.pages.changes import MEANING
from finc_eval.comparison.pages.methods import LEGEND
from finc_eval.comparison.settings import Finc
from finc_eval.core.signature import Signature
from finc_eval.measures.score import Score, Scores
from finc_eval.report.terminal import print_table

WIDEST = (-0.999, -0.901)
"""An interval with as many digits as one can have."""


def wide_comparison(**changes):
    widest = a_mode(
        "over-cccccc",
        name="mostly golden retriever (94 %), brighter and sharper",
        share_gen=0.0004,
        share_ref=1.0,
        share_difference=-0.9996,
        share_difference_interval=WIDEST,
        p_value=0.00031,
    )
    kinds = [
        a_kind(
            "k101", 0.0004, 1.0, name="mostly golden retriever (94 %), brighter and sharper", interval=(0.901, 0.999)
        ),
        a_kind("k102", 0.9996, 0.0),
        replace(SAME, id="k103"),
    ]
    heading = a_kind("k104", 0.9996, 0.0, name="golden retriever and tabby (51 %, 48 %)", children=("k102",))
    return a_comparison([OVER, widest], [UNDER], kinds, [heading], **changes)


def kinds_of_nine():
    kind = a_kind("k123", 0.123, 0.234)
    shares = {f"model-{i}": replace(kind.shares["gen"], share=0.123 + i / 100) for i in range(9)}
    found = some_kinds()
    sets = dict.fromkeys(shares, found.sets["ref"])
    differences = dict.fromkeys(shares, found.differences["ref"])
    kinds = tuple(
        replace(kind, id=f"k{i}", shares=shares, set_with_most=f"model-{i}", set_with_least=None) for i in range(9)
    )
    return replace(found, kinds=kinds, headings=(), sets=sets, differences=differences)


def methods(names=("finc", "ken", "rarity", "fld")):
    modes = (OVER.id, "over-cccccc")
    groups = (
        DirectionGroup("A", "over", dict.fromkeys(names, modes)),
        DirectionGroup("B", "under", dict.fromkeys(names, (UNDER.id,))),
    )
    found = dict.fromkeys(names, wide_comparison())
    if "finc" in found:
        settings = replace(found["finc"].settings, method=Finc(clusters=False))
        found["finc"] = replace(found["finc"], settings=settings)
    return MethodComparison(found, groups, provenance=made_by("9"))


def scores():
    made = [
        Score(f"{key}-{name}", -1.23456e-05, Signature(key, ()), interval=(-1.23457e-05, 123457.0), floor=-1.11111e-05)
        for key in ("fd_infinity", "precision_recall")
        for name in ("precision", "recall")
    ]
    return Scores("gen", "ref", tuple(made), {}, provenance=made_by("9"))


@cache
def some_kinds():
    rows = np.random.default_rng(0).normal(size=(300, 8))
    found = fe.kinds({"half_trained_generator": rows[:150] + 9, "ref": rows[150:]})
    return replace(found, kinds=tuple(replace(kind, name=LONG) for kind in found.kinds))


@cache
def a_verdict():
    rows = np.random.default_rng(0).normal(size=(600, 8))
    policy = {"kinds": {"lose": 0.5, "min_share": 0.04, "new": 0.1}, "metrics": {"fd": {"worse": 0.5}}}
    return fe.gate(rows[:200], rows[200:400], rows[400:], policy)


LONG = "mostly golden retriever (94 %), brighter, with more contrast"


MADE = {
    "comparison": wide_comparison,
    "kinds of nine sets": kinds_of_nine,
    "methods": methods,
    "sweep": a_sweep,
    "changes": lambda: some_changes("new", "gone", "unchanged"),
    "scores": scores,
    "kinds": some_kinds,
    "verdict": a_verdict,
}


@pytest.mark.parametrize("name", MADE)
def test_tables_fit_a_terminal_without_cutting_a_number(name, monkeypatch, capsys):
    check_fits_a_terminal(MADE[name](), monkeypatch, capsys)


@pytest.mark.parametrize(
    ("width", "dumb", "ascii"), [(99, False, True), (100, False, False), (160, False, False), (160, True, True)]
)
def test_a_narrow_or_dumb_terminal_gets_ascii(width, dumb, ascii, monkeypatch, capsys):
    if dumb:
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setenv("TERM", "xterm")
    rows = [["≤ 0.5 – 1 × “a”…", "−1"]]
    text, _ = on_a_terminal(lambda: print_table("A – b", ["Limit ≤", "n"], rows), monkeypatch, capsys, width)
    assert text.isascii() is ascii
    assert not ascii or '| <= 0.5 - 1 x "a"... | -1 |' in text


@pytest.mark.parametrize(("stated", "most"), [(None, 100), ("60", 60), ("250", 100)], ids=["none", "narrow", "wide"])
@pytest.mark.parametrize("is_terminal", [False, True], ids=["log", "dumb terminal"])
def test_a_width_that_the_environment_states_is_kept_where_it_is_narrower(
    is_terminal, stated, most, monkeypatch, capsys
):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("COLUMNS", raising=False)
    if stated:
        monkeypatch.setenv("COLUMNS", stated)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_table("A title", [*"abcdefgh"], [["0.123 [0.1, 0.2]" for _ in "abcdefgh"]])
    widths = [len(line) for line in capsys.readouterr().out.splitlines()]
    assert most - 20 < max(widths) <= most


@pytest.mark.parametrize("name", ["short", "a name of many words " * 8, "x" * 250], ids=["short", "words", "one word"])
@pytest.mark.parametrize("numbers", [1, 6, 40])
def test_a_log_gets_ascii_of_at_most_100_columns_without_cutting_a_number(name, numbers, capsys):
    columns = ["Mode", *(f"column {place}" for place in range(numbers)), "Note"]
    row = [name, *(f"0.12{place:02} [0.1, 0.2]" for place in range(numbers)), name]
    print_table("A title", columns, [row], names=["Mode"], prose=["Note"])
    lines = capsys.readouterr().out.splitlines()
    assert "\n".join(lines).isascii() and max(map(len, lines)) <= 100
    shown = [cell.strip() for line in lines for cell in line.split("|")]
    assert all(cell in shown for cell in row[1:-1])


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("looks like nematode (9 %), over-abcdef", 40, ["looks like nematode (9 %), over-abcdef"]),
        ("looks like nematode (9 %), over-abcdef", 20, ["looks like nematode", "(9 %), over-abcdef"]),
        ("looks like nematode (9 %), over-abcdef", 12, ["looks like", "nematode (9…", "over-abcdef"]),
        (f"{LONG}, over-abcdef", 22, ["mostly golden", "retriever (94 %), bri…", "contrast, over-abcdef"]),
        ("partly 3 (36 %), with borders, half-abcdef", 16, ["partly 3 (36 %),", "with borders,", "half-abcdef"]),
        ("kinds.lose k140-23", 12, ["kinds.lose", "k140-23"]),
        ("mostly 3 (9 %), half_trained_gan-abcdef", 23, ["mostly 3 (9 %),", "half_trained_gan-abcdef"]),
        ("x" * 70, 32, ["x" * 32, "x" * 32, "x" * 6]),
    ],
)
def test_a_name_that_does_not_fit_is_wrapped_and_one_of_many_lines_keeps_its_beginning_and_its_id(
    name, width, shown, monkeypatch, capsys
):
    rows = [[name, "x" * (100 - width - 7)]]
    text, _ = on_a_terminal(lambda: print_table("", ["Mode", "n"], rows, names=["Mode"]), monkeypatch, capsys, 100)
    lines = [line.split("│")[1].strip() for line in text.splitlines() if line[:1] == "│"]
    assert lines == shown


def test_a_limit_of_the_gate_has_its_whole_name_beside_its_verdict(monkeypatch, capsys):
    result = a_verdict()
    text, _ = on_a_terminal(lambda: report.show(result), monkeypatch, capsys)
    urgent = [limit for limit in result.limits if limit not in result.settled]
    assert urgent
    for limit in urgent:
        rule, kind = (re.escape(part) for part in limit.name.partition(" ")[::2])
        one_line = rf"\| {rule} {kind} +\| {limit.verdict} "
        two_lines = rf"\| {rule} +\| {limit.verdict} .*\n\| {kind} +\|"
        assert re.search(f"{one_line}|{two_lines}", text), limit.name


def test_columns_that_do_not_fit_follow_beside_the_first(monkeypatch, capsys):
    columns, rows = ["Mode", *"abcdefgh"], [["over-abcdef", *("0.123 [0.1, 0.2]" for _ in "abcdefgh")]]
    text, _ = on_a_terminal(lambda: print_table("title", columns, rows), monkeypatch, capsys)
    assert text.count("over-abcdef") == 3 and text.count("0.123 [0.1, 0.2]") == 8 and text.count("title") == 1


def test_prose_is_wrapped_between_words_only(monkeypatch, capsys):
    row = ["over-abcdef", "1.5", "sigma 0.000123456789 is too small: every sample is alone, and more of that" * 2]
    text, _ = on_a_terminal(
        lambda: print_table("", ["Mode", "n", "Notes"], [row], prose=["Notes"]), monkeypatch, capsys
    )
    assert " ".join(cells[2] for cells in table_rows(text)).split() == row[2].split()


def test_kinds_are_told_by_role_under_their_headings_and_all_shares_add_up(capsys):
    heading = a_kind("k9", 0.181, 0.04, children=("k1", "k4"))
    kinds = [
        a_kind("k1"),
        a_kind("k4", 0.05, 0.0),
        LESS,
        replace(SAME, id="k5", shares=a_kind("k5", 0.799, 0.86).shares),
    ]
    report.show(a_comparison([replace(OVER, kinds=("k1", "k4"), shown_by_kinds=True)], kinds=kinds, headings=[heading]))
    assert table_rows(capsys.readouterr().out) == [
        ["Too many: 2 kinds", "18.1", "4.0", "+14.1", "-"],
        ["k9", "18.1", "4.0", "+14.1 [+11.1, +17.1]", "3.2e-09"],
        ["* k1", "13.1", "4.0", "+9.1 [+6.1, +12.1]", "3.2e-09"],
        ["* k4", "5.0", "0.0", "+5.0 [+2.0, +8.0]", "3.2e-09"],
        ["k2", "2.0", "10.0", "-8.0 [-11.0, -5.0]", "3.2e-09"],
        ["1 kind that does not differ", "79.9", "86.0", "-6.1", "-"],
        ["1", "over-aaaaaa", "13.1", "4.0", "+9.1 [+6.2, +12.0]", "3.2e-09", "k1 k4"],
    ]


def test_directions_that_do_not_count_are_folded_or_marked(capsys):
    weak, loose = a_mode("over-1", p_value=0.2), a_mode("over-2", stability=0.3)
    report.show(a_comparison([OVER, loose, weak]))
    text = capsys.readouterr().out
    assert "over-1" not in text and "1 direction is not significant: see the page or the JSON file" in text
    assert "| - | over-2 " in text and "– refits find less than half of it again: not counted" in text
    assert f"The direction {OVER.id} holds" in text and "over-2 holds" not in text
    report.show(a_comparison([OVER]))
    text = capsys.readouterr().out
    assert "refits" not in text and "not significant" not in text


def test_methods_say_what_letters_ranks_and_parentheses_mean_and_name_their_groups(capsys):
    result = methods(("finc", "ken"))
    weak = replace(UNDER, p_value=0.2)
    ken = replace(wide_comparison(), over=(named(OVER, "mostly 3 (94 %)", ("label", "3")), wide_comparison().over[1]))
    result = replace(result, comparisons={"finc": ken, "ken": replace(ken, under=(weak,))})
    report.show(result)
    shown = capsys.readouterr().out
    assert "| A. mostly 3 (94 %) |" in shown and "| B. under-bbbbbb | 1. -8.0 | (1. -8.0) |" in shown
    assert shown.count(LEGEND) == 1
    assert "in parentheses are directions that are not significant (adjusted p > 0.05)" in shown
    assert LEGEND in " ".join(result.to_markdown().replace("\\", "").split())
    report.show(replace(result, comparisons={"finc": a_comparison()}, groups=()))
    assert LEGEND not in capsys.readouterr().out


def test_changes_say_what_a_change_is_wherever_the_page_does_not(capsys):
    changes = some_changes("new", "gone")
    report.show(changes)
    assert capsys.readouterr().out.count(MEANING) == 1
    assert "moved away from the reference's share, or towards it." in changes.to_markdown()
    report.show(some_changes())
    assert MEANING not in capsys.readouterr().out
