"""The pages that show kinds of samples: those of kinds, of leaderboards, and of the gate."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from _pages import HOSTILE, Page, a_kind, named, noise

import finc_eval as fe
from finc_eval import report
from finc_eval.core.words import percent
from finc_eval.gallery.counts import LEAD_SAMPLES, SHOWN_SAMPLES
from finc_eval.naming.evidence import Evidence
from finc_eval.report.cards import anchor

CENTERS = np.random.default_rng(0).normal(0, 3, (6, 16))


def a_set(kinds, n=300, seed=1):
    """A set of the first kinds, with pictures and hostile ids."""
    rng = np.random.default_rng(seed)
    rows = CENTERS[rng.integers(0, kinds, n)] + rng.normal(size=(n, 16))
    return fe.EmbeddingSet(rows, ids=[f"{i}{HOSTILE}" for i in range(n)], images=noise(seed, n))


@pytest.fixture(scope="module")
def found() -> fe.Kinds:
    return fe.kinds({"gen": a_set(5), "ref": a_set(6, seed=2)})


def cards(page):
    """The cards of a page below its first screen and, of each, whether it is folded away."""
    below = set(page.find("article", "card")) - set(page.find("article", "look"))
    return {page.attributes(n)["id"]: page.folded(n) for n in sorted(below)}


def expected_cards(found):
    """The same as it should be: folded are kinds that do not differ, and kinds under a heading, in its card."""
    below = {one for heading in found.headings for one in heading.children}
    every = (*found.headings, *found.kinds)
    return {anchor(kind.id): kind.p_value > 0.05 or kind.id in below for kind in every}


def test_every_kind_is_a_card_with_pictures_of_both_sets_and_only_significant_ones_are_in_sight(found):
    page = Page(report.page(found, {}))
    assert cards(page) == expected_cards(found)
    (first, *_) = found.significant()
    card = page.section(first)
    shown = [page.attributes(n)["alt"] for n in page.shown(card)]
    parts = [first.shares[label] for label in ("ref", "gen")]
    assert shown == [one for part in parts for ids in (part.top_ids, part.drawn_ids) for one in ids[:SHOWN_SAMPLES]]
    assert f"{100 * abs(first.difference):.1f} points less (interval" in page.texts("p", "says", card)[0]
    rows = [page.attributes(n)["data-mode"] for n in page.find("tbody") if "data-mode" in page.attributes(n)]
    assert {*rows} == {anchor(kind.id) for kind in (*found.headings, *found.kinds)}


def some_kinds(found, *kinds, headings=()):
    """The result with these kinds of its two sets."""
    return replace(found, kinds=kinds, headings=headings)


def test_kinds_of_one_name_below_a_heading_have_their_ids(found):
    alike = [named(a_kind(f"k{i}", 0.0, 0.1), "mostly 3 (94 %)", ("label", "3")) for i in (1, 2)]
    heading = a_kind("k9", 0.0, 0.2, children=("k1", "k2"))
    page = Page(report.page(some_kinds(found, *alike, headings=(heading,)), {}))
    assert "2 kinds: 3 k1 and 3 k2" in page.texts("summary")


def test_rows_are_by_role_with_headings_and_what_does_not_differ_folded_and_add_up(found):
    heading = a_kind("k9", 0.0, 0.2, children=("k1", "k2"))
    kinds = a_kind("k1", 0.0, 0.12), a_kind("k2", 0.0, 0.08), a_kind("k3", 1.0, 0.8, p_value=1.0)
    page = Page(report.page(some_kinds(found, *kinds, headings=(heading,)), {}))
    table = page.by_id("forest")
    shown = [n for n in page.find("th", "name", table) if not page.folded(n)]
    assert [page.text(n) for n in shown] == [
        "Kind",
        "More in ref: 2 kinds",
        "unnamed kind k9",
        "1 kind that does not differ",
    ]
    first, last = page.find("details", inside=table)
    assert page.texts("summary", inside=first) == ["2 kinds: unnamed kind k1 and unnamed kind k2"]
    assert page.texts("th", "name", last) == ["Kind", "unnamed kind k3 not significant"]
    sums = [page.texts("td", "n", page.elements[n][2][-1]) for n in shown[1:]]
    assert [row[:2] for row in sums] == [
        ["0.0 %", "20.0 %"],
        ["0.0 % [0.0, 3.0]", "20.0 % [17.0, 23.0]"],
        ["100.0 %", "80.0 %"],
    ]


def test_the_file_keeps_the_pictures_of_the_page(found, tmp_path):
    assert not Page(report.page(found.showing(1), {})).find("span", "missing")
    found.showing(2).save(tmp_path / "kinds.h5")
    back = fe.load(tmp_path / "kinds.h5")
    assert back.gallery.pictures == found.showing(2).gallery.pictures
    assert report.page(back, {}) == report.page(found.showing(2), {})
    assert fe.load(tmp_path / "kinds.json").kinds == found.kinds


@pytest.mark.long
def test_of_more_sets_a_card_shows_the_one_with_most_and_the_reference():
    sets = {"a": a_set(5, 900), "b": a_set(5, 900, seed=2), "ref": a_set(6, 900, seed=3)}
    made = fe.kinds(sets)
    page = Page(report.page(made, {}))
    for kind in made.kinds:
        most = kind.set_with_most
        second = max("ab", key=lambda label: kind.shares[label].share) if most == "ref" else "ref"
        assert page.texts("b", inside=page.find("div", "pair", page.section(kind))[0]) == [most, second]
    assert "ref" in {kind.set_with_most for kind in made.significant()}


def test_the_table_fits_and_the_sentences_give_the_difference(found, capsys):
    report.show(found)
    printed = capsys.readouterr().out
    assert "ref has significantly more of" in printed
    assert "gen and ref differ in" in printed
    assert max(len(line.rstrip()) for line in printed.splitlines() if "|" in line) <= 80
    assert found.significant()[0].id in report.fragment(found)


def test_looks_are_said_to_be_left_out_only_where_no_kind_differs(found):
    alike = fe.kinds({"gen": a_set(6), "ref": a_set(6, seed=2)})
    assert not alike.significant() and "looks" in alike._drawn.says(alike)
    assert found.significant() and "looks" not in found._drawn.says(found)


def test_the_difference_of_the_sets_is_told_with_its_test(found):
    assert re.search(r"gen and ref differ in 1\d\.\d % \(95 % interval .*\) of their samples \(p ", found.headline)
    chance = {label: replace(one, p_value=0.6) for label, one in found.differences.items()}
    told = replace(found, differences=chance).headline
    assert "Over all kinds together, the difference is within chance (p = 0.6): an estimated 1" in told


def test_of_several_sets_the_one_that_was_tested_is_told_with_its_share():
    result = fe.kinds({"a": a_set(6), "b": a_set(5, 300, 2), "c": a_set(6, 300, 3)})
    page, kind = Page(report.page(result, {})), result.significant()[0]
    (row,) = [n for n in page.find("tbody") if page.attributes(n).get("data-mode") == anchor(kind.id)]
    assert kind.set_with_least == "b"
    cells = [cell.partition(" [")[0] for cell in page.texts("td", "n", row)]
    assert cells[:4] == ["least in b", *(percent(kind.shares[label].share, 1) for label in "abc")]


@pytest.mark.long
def test_of_many_sets_the_share_of_the_one_apart_and_the_range_of_the_others_are_told():
    sets = {label: a_set(6 - (label == "b"), 300, place) for place, label in enumerate("abcdef")}
    result = fe.kinds(sets)
    page, kind = Page(report.page(result, {})), result.significant()[0]
    (row,) = [n for n in page.find("tbody") if page.attributes(n).get("data-mode") == anchor(kind.id)]
    cells = [cell.partition(" [")[0] for cell in page.texts("td", "n", row)]
    others = sorted(part.share for label, part in kind.shares.items() if label != "b")
    ends = dict.fromkeys(percent(one, 1) for one in (others[0], others[-1]))
    assert cells[:3] == ["least in b", percent(kind.shares["b"].share, 1), " to ".join(ends)]


def alike(modes):
    """These kinds with one name in two orders, as traits come in either."""
    texts = ("darker, with less contrast", "with less contrast, darker")
    dim = tuple(Evidence("trait", text, 0.9, 0.1, 0.0) for text in ("darker", "with less contrast"))
    return tuple(replace(kind, name=texts[i % 2], evidence=dim) for i, kind in enumerate(modes))


def test_what_one_set_has_more_of_does_not_read_like_what_it_has_less_of(found, capsys):
    first, second, third, fourth = (replace(found.kinds[0], id=f"k20-{i}", name=None) for i in range(4))
    more, less = alike((first, replace(second, set_with_least="ref")))
    five = named(replace(third, set_with_least="ref"), "mostly 5 (70 %)", ("label", "5"))
    result = some_kinds(found, more, less, five, fourth)
    assert result.headline.startswith(
        "ref has significantly more of 2 kinds of samples, such as samples that are “darker, with less contrast”, "
        "k20-0 (16 % of ref); ref has significantly less of 2 kinds of samples, such as “5” (16 % of ref). "
    )
    page = Page(report.page(result, {}))
    rows = [page.texts("th", inside=n)[0] for n in page.find("tbody") if "data-mode" in page.attributes(n)]
    assert rows == ["darker, with less contrast k20-0", "with less contrast, darker k20-1", "5", "k20-3"]
    report.show(result)
    shown = capsys.readouterr().out
    told = ("darker, with less contrast, k20-0", "with less contrast, darker, k20-1", "mostly 5 (70 %), k20-2", "k20-3")
    assert all(f"| {text} " in shown for text in told)


@pytest.fixture(scope="module")
def board():
    return fe.leaderboard({"few": a_set(4, 150), "all": a_set(6, 150, seed=2)}, a_set(6, 150, seed=3), metrics=["kid"])


def test_kinds_of_a_board_with_one_name_are_told_apart(board):
    lost = board.more_of("ref", "few")[0]
    board = replace(board, kinds=alike([replace(lost, id=f"k6-{i}") for i in range(3)]), headings=())
    page = Page(report.page(board, {}))
    rows = page.texts("th", "id", page.find("table", "heat")[0])
    links = [text for n in page.find("article", "profile") for text in page.texts("a", inside=n)]
    pairs = page.texts("small", inside=page.find("table", "pairs")[0])
    texts = ("darker, with less contrast", "with less contrast, darker", "darker, with less contrast")
    assert rows == [f"{text} k6-{i}" for i, text in enumerate(texts)]
    assert links == [f"{text}, k6-{i}" for i, text in enumerate(texts)] and {*pairs} == {links[0]}


def test_json_comes_back(found, tmp_path):
    found.to_json(tmp_path / "kinds.json")
    back = fe.load(tmp_path / "kinds.json")
    assert back.kinds == found.kinds
    assert json.loads(found.to_json())["differences"]["gen"]["value"] == found.difference


def test_every_kind_of_a_board_is_a_card_that_the_table_and_the_models_lead_to(board):
    page = Page(report.page(board, {}))
    differing = [kind for kind in board.kinds if kind.p_value <= 0.05]
    assert differing
    assert cards(page) == expected_cards(board)
    rows = [page.attributes(n)["data-mode"] for n in page.find("tr", "mode", page.find("table", "heat")[0])]
    assert rows == [anchor(kind.id) for kind in differing]
    lost = board.more_of("ref", "few")
    told = page.find("article", "profile")[[row.name for row in board.rows].index("few")]
    links = [page.attributes(n)["href"] for n in page.find("a", inside=told)]
    assert lost and links == [f"#{anchor(kind.id)}" for kind in lost]
    assert len(page.shown(page.section(board.kinds[0]))) == 4 * SHOWN_SAMPLES


@pytest.mark.long
def test_the_gate_shows_the_kinds_that_need_a_person_and_folds_those_that_held():
    policy = {"kinds": {"lose": 0.5, "min_share": 0.1}}
    verdict = fe.gate(a_set(5), a_set(6, seed=2), a_set(6, seed=3), policy)
    page = Page(report.page(verdict, {}))
    about = [limit for limit in verdict.limits if limit.shares]
    held, folded = {anchor(limit.name): limit.verdict in ("held", "improved") for limit in about}, cards(page)
    assert folded.keys() == held.keys() and {True, False} == set(held.values())
    said = {anchor(name) for finding in verdict.findings for name in finding.limits}
    assert all(is_folded == (held[name] or name in said) for name, is_folded in folded.items())
    lost = next(limit for limit in verdict.by_urgency if limit.shares)
    card = page.by_id(anchor(lost.name))
    assert page.texts("p", "tag", card) == [lost.verdict]
    ids = [name for label in lost.examples for name in lost.examples[label][:SHOWN_SAMPLES]]
    assert [page.attributes(n)["alt"] for n in page.shown(card)] == ids
    table, *_ = page.find("table", "modes")
    assert f"#{anchor(lost.name)}" in [page.attributes(n)["href"] for n in page.find("a", inside=table)]
    most = max(lost.examples, key=lambda label: lost.shares[label])
    shown = [page.attributes(n)["alt"] for n in page.find("img", inside=table)]
    assert shown[:LEAD_SAMPLES] == [*lost.examples[most][:LEAD_SAMPLES]]


def test_unlike_names_of_limits_have_unlike_anchors():
    limits = ["kinds.lose label=猫", "kinds.lose label=犬", "kinds.lose label:犬"]
    names = [*limits, "a\udcff", "a\ud800", "a-", "a ", "a:20"]
    assert len({anchor(name) for name in names}) == len(names)
