"""Several methods on the same two sets: groups, twin, page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from _pages import BREAKOUT, HOSTILE, Page, a_comparison, a_mode, made_by
from test_baseline_modes import clusters

import finc_eval as fe
from finc_eval import report
from finc_eval.comparison.methods import SAME_GROUP_CORRELATION, DirectionGroup, MethodComparison, _letters
from finc_eval.comparison.result import Spectrum
from finc_eval.core.errors import FincEvalError
from finc_eval.embeddings.set_info import SetInfo


@pytest.fixture(scope="module")
def planted():
    """Kinds 0 and 1 are in gen alone, kind 4 in ref alone."""
    return *clusters((60, 60, 130, 130, 0), 1), *clusters((0, 0, 130, 130, 120), 2)


@pytest.fixture(scope="module")
def table(planted):
    gen, _, ref, _ = planted
    return fe.compare_methods(gen, ref, ("finc", "rarity", "fld"), features=60, modes=3)


def test_each_column_is_what_compare_finds_alone(table, planted):
    gen, _, ref, _ = planted
    for method, one in table.comparisons.items():
        # Kinds have no direction: FINC is alone.
        alone = fe.compare(
            gen, ref, method=fe.Finc(clusters=False) if method == "finc" else method, features=60, modes=3
        )
        assert one.signature == alone.signature
        assert [mode.id for mode in one.directions] == [mode.id for mode in alone.directions]
        assert [mode.excess for mode in one.directions] == [mode.excess for mode in alone.directions]


def test_nothing_is_divided_into_kinds(planted, monkeypatch):
    gen, _, ref, _ = planted
    monkeypatch.setattr("finc_eval.comparison.compare.divide", lambda *_, **__: pytest.fail("samples were divided"))
    found = fe.compare_methods(gen, ref, (fe.Finc(), "fld"), features=50, modes=2)
    assert found.comparisons["finc"].settings.method == fe.Finc(clusters=False)
    assert all(one.kinds == () for one in found.comparisons.values())


def test_what_several_methods_find_is_one_kind_and_two_planted_kinds_are_two(table, planted):
    _, gen_kinds, _, _ = planted
    by_planted = {0: set(), 1: set()}
    for method, one in table.comparisons.items():
        for mode in one.over[:2]:
            (kind,) = np.unique(gen_kinds[mode.top_gen[:30]])
            by_planted[int(kind)].add(table.group_of(method, mode).name)
    assert [len(names) for names in by_planted.values()] == [1, 1]
    assert by_planted[0] != by_planted[1]


def test_every_mode_is_in_one_group_of_its_role(table):
    for method, one in table.comparisons.items():
        for mode in one.directions:
            (group,) = [group for group in table.groups if mode.id in group.modes.get(method, ())]
            assert group.role == mode.role and group == table.group_of(method, mode)
    assert [group.name for group in table.groups] == [_letters(number) for number in range(len(table.groups))]


def test_groups_follow_from_what_samples_add_to_the_first_tail(table, planted):
    gen, _, ref, _ = planted
    rows = np.concatenate([gen, ref])
    first = table.comparisons["finc"]

    def masses(mode):
        return np.maximum(first.score(rows, [mode])[:, 0], 0).astype(np.float64) ** 2

    modes = {(method, mode.id): mode for method, one in table.comparisons.items() for mode in one.over}
    for group in table.groups:
        if group.role == "over":
            members = [(method, name) for method, names in group.modes.items() for name in names]
            founder = masses(modes[members[0]])
            for member in members[1:]:
                assert np.corrcoef(founder, masses(modes[member]))[0, 1] >= SAME_GROUP_CORRELATION - 1e-3


def test_letters_go_on_after_z():
    numbers = {"A": 0, "Z": 25, "AA": 26, "AB": 27, "AZ": 51, "BA": 52, "AAA": 26 + 26**2}
    assert {_letters(number): number for number in numbers.values()} == numbers


def test_a_table_of_methods_has_a_json_twin(table, tmp_path):
    twin = json.loads(table.to_json(tmp_path / "t.json"))
    assert (tmp_path / "t.json").read_text().strip() == table.to_json()
    assert twin["type"] == "methods" and list(twin["comparisons"]) == ["finc", "rarity", "fld"]
    of_fld = json.loads(table.comparisons["fld"].to_json())
    assert of_fld == of_fld | twin["comparisons"]["fld"]
    modes = {method: list(ids) for method, ids in table.groups[0].modes.items()}
    assert twin["groups"][0] == {"name": "A", "role": "over", "modes": modes}
    assert repr(table).startswith("MethodComparison(directions with p ≤ 0.05: finc ")


def test_methods_have_to_be_named_and_named_once(planted):
    gen, _, ref, _ = planted
    with pytest.raises(FincEvalError, match="no method was named: name some of finc, ken, rarity, fld"):
        fe.compare_methods(gen, ref, ())
    with pytest.raises(FincEvalError, match="'finc' is named twice"):
        fe.compare_methods(gen, ref, ("finc", "finc"))
    with pytest.raises(FincEvalError, match="clusters finds kinds, which have no direction: compare by finc, ken"):
        fe.compare_methods(gen, ref, ("finc", "clusters"))
    with pytest.raises(FincEvalError, match="neighbors is an option of Rarity"):
        fe.compare_methods(gen, ref, ("finc", "fld"), neighbors=4)


@pytest.mark.parametrize("method", ["ken", "rarity", "fld"])
def test_no_baseline_finds_a_mode_where_the_sets_are_the_same(planted, method):
    gen = planted[0][:200]
    assert not fe.compare(gen, gen, method=method, features=30, modes=3).directions


def test_sketches_do_for_finc_alone(planted):
    gen, _, ref, _ = planted
    phi = fe.Sketch.reference(ref, features=30).feature_map
    sketches = [fe.Sketch.of(one, phi) for one in (gen, ref)]
    assert list(fe.compare_methods(*sketches, ("finc",)).comparisons) == ["finc"]
    with pytest.raises(FincEvalError, match="gen is a sketch"):
        fe.compare_methods(*sketches, ("finc", "rarity"))


# --- the page -------------------------------------------------------------------------------------------------


def a_table(**changes):
    """FINC finds two over-represented kinds and Rarity one of them twice; one of FINC's is not significant."""
    comparisons = {
        "finc": a_comparison(
            [a_mode("over-1", share_difference=0.09), a_mode("over-2", share_difference=0.01, p_value=0.3)],
            [],
            **changes,
        ),
        "rarity": a_comparison(
            [a_mode("over-3", share_difference=0.07), a_mode("over-4", share_difference=0.05)],
            [a_mode("under-5", "under", share_difference=-0.02)],
            **{"spectrum": Spectrum((), ()), **changes, "warnings": (*changes.get("warnings", ()), "of rarity alone")},
        ),
    }
    groups = (
        DirectionGroup("A", "over", {"finc": ("over-1",), "rarity": ("over-3", "over-4")}),
        DirectionGroup("B", "over", {"finc": ("over-2",)}),
        DirectionGroup("C", "under", {"rarity": ("under-5",)}),
    )
    return MethodComparison(comparisons, groups, provenance=made_by("9.8.7"))


def test_the_page_has_a_row_for_each_group_and_a_column_for_each_method():
    page = Page(report.page(a_table(), {}))
    over, under = (n for n in page.find("table", "modes"))
    assert page.texts("th", inside=page.find("thead", inside=over)[0])[1:] == ["FINC", "Rarity"]
    rows = {page.texts("a", inside=n)[0]: page.texts("td", "words", n) for n in page.find("tr", "mode")}
    assert rows == {"A. over-1": ["1. +9.0", "1. +7.0; 2. +5.0"], "C. under-5": ["–", "1. −2.0"]}
    assert page.texts("th", "id", over) == ["A. over-1"] and page.texts("th", "id", under) == ["C. under-5"]


def test_a_group_is_a_card_with_the_shares_by_every_method():
    page = Page(report.page(a_table(), {}))
    assert [page.texts("h3", inside=n) for n in page.find("article", "card")] == [
        ["A. over-1"],
        ["C. under-5"],
        ["B. over-2"],
    ]
    (first, _, folded) = page.find("article", "card")
    assert page.texts("p", "says", first)[0].startswith("13.1 % of the samples of gen are members, ")
    table = page.find("table", inside=first)[0]
    assert page.texts("th", inside=page.find("tbody", inside=table)[0]) == ["FINC, 1.", "Rarity, 1.", "Rarity, 2."]
    assert [page.texts("td", inside=n)[2] for n in page.find("tr", inside=table)[1:]] == [
        "+9.0 [+6.2, +12.0]",
        "+7.0 [+6.2, +12.0]",
        "+5.0 [+6.2, +12.0]",
    ]
    assert page.texts("p", "tag", folded) == ["not significant"] and page.folded(folded) and not page.folded(first)
    links = {page.attributes(n)["href"][1:] for row in page.find("tr", "mode") for n in page.find("a", inside=row)}
    assert links == {page.attributes(n)["id"] for n in page.find("article", "card")} - {page.attributes(folded)["id"]}


def test_the_summary_counts_significant_modes_and_groups():
    text = Page(report.page(a_table(), {})).texts("p", "summary")[0]
    assert text == (
        "Directions along which the generated set has significantly more: FINC finds 1, Rarity finds 2. Directions "
        "along which the generated set has significantly less: FINC finds 0, Rarity finds 1. They show 2 groups of "
        "samples. All methods find 1 of them."
    )


def test_groups_that_no_method_shares_with_all_are_not_counted():
    table = a_table()
    apart = replace(
        table, groups=tuple(replace(group, modes=dict([*group.modes.items()][:1])) for group in table.groups)
    )
    assert apart.says["groups"] == "They show 2 groups of samples. No group is found by all methods."


def test_warnings_of_several_methods_are_said_once():
    page = Page(report.page(a_table(warnings=("of both",)), {}))
    assert page.texts("li", inside=page.find("section", "warnings")[0]) == ["of both", "of rarity alone"]


def test_the_page_loads_nothing_and_is_the_same_each_time():
    text = report.page(a_table(), {})
    assert report.page(a_table(), {}) == text
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    page = Page(text)
    ids = [page.attributes(n)["id"] for n, _ in enumerate(page.elements) if "id" in page.attributes(n)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("render", ["page", "fragment"])
def test_hostile_names_stay_text(render):
    gen, ref = (SetInfo(f"{BREAKOUT}{name}", None, 100, BREAKOUT, False) for name in ("gen", "ref"))
    table = a_table(gen=gen, ref=ref, space=BREAKOUT, provenance=made_by(BREAKOUT), warnings=(HOSTILE,))
    page = Page(f"<body>{report.fragment(table)}</body>" if render == "fragment" else report.page(table, {}))
    assert len(page.find("script")) == (1 if render == "page" else 0)
    for tag, attributes, _ in page.elements:
        assert tag not in {"iframe", "object", "embed", "link", "base", "foreignobject"}
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert attributes.get("src", "data:").startswith("data:")
    assert "alert(2)" in page.visible


def test_methods_that_find_nothing_say_so():
    empty = MethodComparison({"finc": a_comparison(), "ken": a_comparison()}, (), provenance=made_by("9.8.7"))
    page = Page(report.page(empty, {}))
    nothing = "FINC and KEN find no direction along which the generated set has significantly more or less."
    assert page.texts("p", "summary") == [nothing]
    assert "No method finds a kind of sample that is significantly more or less frequent" in page.visible
    assert not page.find("article")


@pytest.mark.long
def test_the_page_and_the_notebook_view_show_the_samples(planted, tmp_path):
    gen, _, ref, _ = planted
    found = fe.compare_methods(gen, ref, ("finc", "rarity"), features=50, modes=2)
    images = np.random.default_rng(0).integers(0, 256, (len(gen), 8, 8, 3), np.uint8)
    page = Page(found.to_html(tmp_path / "t.html", samples={"gen": images}).read_text())
    assert len(page.find("img")) > 20
    assert "pass samples={'ref': …}" in page.visible
    moved = fe.compare_methods(fe.EmbeddingSet(gen, images=images), ref, ("finc", "rarity"), features=50, modes=2)
    moved.save(tmp_path / "methods.h5")
    loaded = fe.load(tmp_path / "methods.h5")
    assert report.page(loaded, {}) == report.page(moved, {})
    assert loaded.gallery.pictures["gen"].keys() == set(loaded.shown_samples()["gen"])
    assert 'class="finc-eval"' in found._repr_html_()
    with pytest.raises(FincEvalError, match="no/such/folder"):
        found.to_html(tmp_path / "t.html", samples={"gen": "no/such/folder"})


def test_without_samples_to_correlate_every_mode_is_a_group(planted):
    gen, _, ref, _ = planted
    phi = fe.Sketch.reference(ref, features=30).feature_map
    bare = [fe.Sketch.of(one, phi, sample=0) for one in (gen, ref)]
    found = fe.compare_methods(*bare, (fe.Finc(rotation=None),), modes=3)
    assert len(found.groups) == len(found.comparisons["finc"].directions)


def test_groups_of_other_modes_are_damage(documents):
    table = documents["methods"].to_dict()
    table["groups"][0]["modes"] = {"finc": ["over-000000"]}
    with pytest.raises(fe.DataError, match="has groups that do not match its directions: make it again"):
        fe.MethodComparison.from_dict(table, "methods.json")


def test_the_looks_of_both_sets_are_measured_once_for_all_methods(planted, monkeypatch):
    asked = []
    monkeypatch.setattr("finc_eval.comparison.inputs.measure_sets", lambda sets, run: asked.append([*sets]) or ((), {}))
    gen, _, ref, _ = planted
    fe.compare_methods(gen, ref, ("finc", "rarity"), features=20, modes=2)
    assert asked == [["gen", "ref"]]
