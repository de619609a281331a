"""The pages of sweeps and changes: their numbers are those of the result."""

from dataclasses import replace

import numpy as np
import pytest
from _pages import Page, a_comparison, a_kind, a_mode, made_by, noise, pixels

import finc_eval as fe
from finc_eval import report
from finc_eval.comparison.changes import Change, Changes
from finc_eval.comparison.pages import changes
from finc_eval.comparison.pages import sweep as sweeps
from finc_eval.comparison.pages.figures import Mark, sweep_svg
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.core.signature import Signature
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.thumbnails import thumbnail


def sweep_page(sweep):
    return sweeps.page(sweep, {})


COMMON = "gen has only 100 samples"
SMALL = "sigma 2 is too small: every sample is alone"


def a_sweep(**changes):
    """Three bandwidths: no significant mode, then two over and one under, then one over."""
    weak = a_mode("over-1", p_value=0.2, share_difference=0.9)
    strong = a_mode("over-2", share_difference=0.03, stability=0.8)
    other = a_mode("over-3", share_difference=0.01, stability=0.6)
    under = a_mode("under-1", "under", share_difference=-0.07, stability=0.1)
    points = (
        Point(2.0, a_comparison([weak], warnings=(COMMON, SMALL)), (0.5,)),
        Point(4.0, a_comparison([strong, weak, other], [under], warnings=(COMMON,)), (0.4, 5.0, None, 0.6)),
        Point(8.0, a_comparison([strong], warnings=(COMMON,)), (0.9,)),
    )
    return replace(Sweep("sigma", points, 4.0, ("of the sweep",), 2.0, provenance=made_by("9.8.7")), **changes)


def rows(page):
    return [page.texts("td", inside=row) for row in page.find("tr", "mode", page.find("table", "modes")[0])]


# --- sweeps ---------------------------------------------------------------------------------------------------


def test_a_row_of_a_sweep_is_about_its_significant_modes():
    page = Page(sweep_page(a_sweep()))
    values = page.elements[page.by_id("values")][2][-1]
    assert page.texts("th", "id", values) == ["2", "4", "8"]
    assert [page.texts("td", inside=row) for row in page.find("tr", "mode", values)] == [
        ["0", "0", "–", "–", "–", f"the papers' rule; {SMALL}"],
        ["2", "1", "7.0 %", "70 %", "0.50", "compare's default"],
        ["1", "0", "3.0 %", "80 %", "0.90", ""],
    ]
    assert [page.texts("th", "id", n) for n in page.find("tr", "muted")] == [["2"]]


def test_warnings_that_hold_everywhere_are_said_once():
    page = Page(sweep_page(a_sweep()))
    assert page.texts("li", inside=page.find("section", "warnings")[0]) == ["of the sweep", COMMON]
    assert page.visible.count(COMMON) == 1 and page.visible.count(SMALL) == 1


def test_the_summary_of_a_sweep_names_default_and_the_papers_choice():
    text = Page(sweep_page(a_sweep())).texts("p", "summary")[0]
    assert text.startswith(
        "3 values of σ were tried, from 2 to 8. Most directions differ at σ = 4: the generated set has"
    )
    assert "more of 2 kinds of samples than the reference set, and less of 1 (adjusted p ≤ 0.05)" in text
    assert text.endswith("compare takes σ = 4. The rule of the KEN and FINC papers picks σ = 2.")
    none = Page(sweep_page(a_sweep(papers_rule=None))).texts("p", "summary")[0]
    assert none.endswith("The rule of the KEN and FINC papers accepts none of these.")
    nothing = replace(a_sweep(), points=a_sweep().points[:1])
    assert "No kind of samples differs significantly" in Page(sweep_page(nothing)).texts("p", "summary")[0]


def test_a_sweep_of_rho_speaks_of_no_bandwidth_rule():
    page = Page(sweep_page(a_sweep(parameter="rho", default=1.0, papers_rule=None)))
    assert "values of ρ were tried" in page.visible and "compare takes ρ = 1." in page.visible
    assert "papers" not in page.visible
    assert "8.25" in page.texts("dl", "settings")[-1]  # the bandwidth is a setting here


def test_the_figure_has_a_mark_for_every_mode_in_both_panels():
    page = Page(sweep_page(a_sweep()))
    (drawing,) = page.find("svg", inside=page.find("figure", "plot")[0])
    assert page.attributes(drawing)["role"] == "img"
    assert page.texts("desc", inside=drawing) == ["number of directions: 0 at 2, 3 at 4, 1 at 8"]
    for ink, modes, unknown in (("gen", 3, 1), ("ref", 1, 0)):
        marks = page.find("g", ink, drawing)
        assert len(marks) == 2 * modes - unknown + 1  # one in the legend; where no spreadness is known, only one above
        assert all(page.texts("title", inside=one) for one in marks)
    assert "over-2, more in the generated set, σ = 4: 3.0 points" in page.texts("title", inside=drawing)
    assert {"compare's default", "the papers' rule", "2", "4", "8", "σ"} <= set(page.texts("text"))


def test_the_figure_stands_marks_where_their_values_are():
    def places(values):
        marks = [Mark(value, 0.1, 0.5, "a") for value in values]
        page = Page(sweep_svg("σ", [1.0, 2.0, 4.0], {"over": marks, "under": []}, {"here": 2.0}))
        dots = [page.find("circle", inside=n) for n in page.find("g", "gen")]
        return [float(page.attributes(one)["cx"]) for (one,) in dots][: 2 * len(values) : 2]

    first, second, third = places([1.0, 2.0, 4.0])
    assert third - second == pytest.approx(second - first, abs=0.11)  # a logarithmic axis
    assert places([4.0, 1.0]) == pytest.approx([third, first], abs=0.11)


def test_default_and_papers_choice_at_one_value_share_a_line():
    texts = Page(sweep_page(a_sweep(papers_rule=4.0))).texts("text")
    assert "compare's default and the papers' rule" in texts and "the papers' rule" not in texts


def test_a_sweep_writes_its_page_and_says_what_it_is(tmp_path):
    sweep = a_sweep()
    path = sweep.to_html(tmp_path / "deep" / "sweep.html")
    assert path.read_text(encoding="utf-8") == sweep_page(sweep)
    assert repr(sweep) == "Sweep(sigma; directions with p ≤ 0.05 by value: 2: 0, 4: 3, 8: 1)"


# --- changes --------------------------------------------------------------------------------------------------


def some_changes(*statuses):
    """A kind of each status: 8 % of the new release and 2 % of the old one, and of the reference as the status says."""

    def change(place, status):
        p_value = 1.0 if status in ("unchanged", "undecided") else 1e-9
        kind = a_kind(f"k{place}", p_value=p_value)
        shares = {"new": kind.shares["gen"], "old": kind.shares["ref"]}
        kind = replace(kind, set_with_most="new", shares=shares, difference=0.06, interval=(0.03, 0.1))
        return Change(status, "over", kind, 0.02)

    old, new = (Signature("finc", (("n", size),)) for size in "12")
    sets = {label: SetInfo(label, None, 100, "aa", False) for label in ("old", "new", "ref")}
    made = tuple(change(place, status) for place, status in enumerate(statuses, 1))
    return Changes(made, 0.05, old, new, sets, provenance=made_by("9.8.7"))


def cards_of(page):
    """The title and the tag of each card, by the id of its kind."""
    found = page.find("article", "card")
    return {
        page.texts("code", inside=n)[0]: (page.texts("h3", inside=n)[0], page.texts("p", "tag", n)[0]) for n in found
    }


def test_the_page_of_changes_has_a_row_a_kind_by_its_status():
    page = Page(changes.page(some_changes("new", "gone", "unchanged"), {}))
    assert {one: tag for one, (_, tag) in cards_of(page).items()} == {
        "k1": "new, more than the reference",
        "k2": "gone, more than the reference",
        "k3": "not significant",
    }
    assert page.texts("p", "summary") == ["3 kinds were followed: 1 new, 1 gone, 1 unchanged."]
    assert page.texts("p", "signature") == ["finc|n:1", "finc|n:2"]
    assert page.texts("dd", inside=page.by_id("reference")) or "Shares of the reference" in page.visible


def test_the_cards_of_changes_show_samples_of_both_releases():
    images = {"new": noise(1), "old": noise(2)}
    page = Page(changes.page(some_changes("new", "unchanged"), images))
    new, unchanged = page.find("article", "card")
    assert page.folded(unchanged) and not page.folded(new)
    views = page.find("figure", inside=new)
    assert page.texts("b", inside=views[0]) == ["the new release"]
    first = page.attributes(page.find("img", inside=views[0])[0])
    np.testing.assert_array_equal(pixels(first["src"]), images["new"][int(first["alt"].split(",")[0])])


def test_changes_keep_the_pictures_of_both_comparisons(tmp_path):
    edge, other = thumbnail(noise(1, 1)[0]), thumbnail(noise(2, 1)[0])
    made = some_changes("new")
    (name, *_) = made.changes[0].kind.shares["new"].top_ids
    old, new = (a_comparison([], [], [a_kind("k1")], kept={"gen": {name: one}, "ref": {}}) for one in (edge, other))
    made = replace(made, compared=(old, new))
    made.save(tmp_path / "changes.h5")
    loaded = fe.load(tmp_path / "changes.h5")
    assert loaded.gallery.pictures["new"] == {name: other}
    assert changes.page(loaded, {}) == changes.page(made, {})
    assert "<img" not in changes.page(fe.load(tmp_path / "changes.json"), {})


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ((), "Nothing changed: no kind differs in either comparison (adjusted p ≤ 0.05)."),
        (("unchanged",), "Nothing changed: no share of a kind is significantly larger or smaller than it was."),
        (("new",), "1 kind was followed: 1 new."),
        (("undecided", "unchanged"), "2 kinds were followed: 1 undecided, 1 unchanged."),
    ],
)
def test_the_summary_of_changes_says_what_changed(statuses, text, capsys):
    found = some_changes(*statuses)
    assert Page(changes.page(found, {})).texts("p", "summary") == [text]
    report.show(found)
    assert text in capsys.readouterr().out.splitlines()
    assert text in Page(found._repr_html_()).texts("caption")[0]


def test_a_sweep_shows_the_typical_samples_of_the_modes_at_each_value_and_keeps_them(tmp_path):
    kept = {label: {str(i): thumbnail(noise(i, 1)[0]) for i in range(20)} for label in ("gen", "ref")}
    made = replace(a_sweep(), kept=kept)
    page = Page(sweep_page(made))
    section = page.elements[page.by_id("modes")][2][-1]
    values = [n for n in page.find("details", inside=section) if page.find("article", inside=n)]
    assert ["open" in page.attributes(n) for n in values] == [True, False]  # compare's default
    assert [len(page.find("article", inside=n)) for n in values] == [3, 1]
    first = page.find("article", inside=values[0])[0]
    assert [page.attributes(n)["alt"].split(",")[0] for n in page.find("img", inside=first)] == [
        *map(str, range(8))
    ] * 2
    twin = page.find("table")[0]
    assert [page.texts("th", inside=n) + page.texts("td", inside=n) for n in page.find("tr", inside=twin)[1:]] == [
        ["over-2", "4", "generated set", "+3.0", "0.40"],
        ["over-3", "4", "generated set", "+1.0", "–"],
        ["under-1", "4", "reference set", "−7.0", "0.60"],
        ["over-2", "8", "generated set", "+3.0", "0.90"],
    ]
    made.save(tmp_path / "sweep.h5")
    assert sweep_page(fe.load(tmp_path / "sweep.h5")) == sweep_page(made)
    assert not Page(sweep_page(made.showing(0))).find("img")
