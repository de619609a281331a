"""The report: what it says, that it says nothing else, and that it loads nothing."""

import base64
import hashlib
import html
import os
import re
import shlex
import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from _pages import (
    BREAKOUT,
    HOSTILE,
    LESS,
    MORE,
    OVER,
    SAME,
    UNDER,
    Page,
    a_comparison,
    a_kind,
    a_mode,
    a_tail,
    made_by,
    noise,
    pixels,
)
from PIL import Image, ImageDraw

from finc_eval.comparison.headline import details
from finc_eval.comparison.pages.comparison import page, titles
from finc_eval.comparison.pages.figures import spectrum_svg
from finc_eval.comparison.result import Copies, Spectrum
from finc_eval.comparison.settings import Ken, Settings
from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.core.signature import Signature
from finc_eval.core.words import percent, points
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.feature_maps.base import CosineFeatures
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.naming.evidence import Evidence
from finc_eval.report import fragment
from finc_eval.report import page as any_page
from finc_eval.report.drawings import forest_axis, forest_scale
from finc_eval.report.formats import optional_percent, p_value, ratio


def page_of(comparison, **samples):
    return page(comparison, samples)


# --- untrusted text -----------------------------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path):
    """A comparison in which every string that can come from outside is an attack; half of the samples exist."""
    for name in ("gen", "ref"):
        (tmp_path / name).mkdir()
        Image.fromarray(noise(1, 1)[0]).save(tmp_path / name / HOSTILE, "PNG")
    tail = a_tail((HOSTILE, BREAKOUT), (HOSTILE, BREAKOUT), 0.6)
    mode = a_mode(BREAKOUT, tails=(tail, replace(tail, share=0.4)))
    gen, ref = (
        SetInfo(
            BREAKOUT + name,
            str(tmp_path / name),
            100,
            BREAKOUT,
            False,
            1,
            ((HOSTILE, BREAKOUT),),
            samples=tmp_path / name,
        )
        for name in ("gen", "ref")
    )
    return a_comparison(
        [mode],
        [a_mode(HOSTILE, "under", (tail, tail))],
        gen=gen,
        ref=replace(ref, samples=tmp_path / f"no{HOSTILE}"),
        warnings=(HOSTILE, BREAKOUT),
        copies=Copies(2, ((HOSTILE, BREAKOUT), (BREAKOUT, HOSTILE))),
        space=BREAKOUT,
        signature=Signature(HOSTILE, (("n", BREAKOUT),)),
        provenance=replace(made_by(BREAKOUT), command=shlex.join(["finc-eval", "compare", "--gen", HOSTILE])),
        settings=Settings(sigma=1.0, features=500),
        sigma_rule=HOSTILE,
    )


@pytest.mark.parametrize("render", [page_of, fragment])
def test_hostile_names_stay_text(hostile, render):
    page = Page(render(hostile))
    scripts, forms = page.find("script"), page.find("form")
    assert len(scripts) == len(forms) == (render is not fragment)
    assert not any("alert" in page.text(n) for n in scripts)
    for tag, attributes, _ in page.elements:
        assert tag not in {"iframe", "object", "embed", "link", "base", "foreignobject"}
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
    labels = [page.attributes(n)["alt"] for n in page.find("img")]
    assert labels and all(label.startswith(HOSTILE) for label in labels)
    placeholders = [page.attributes(n)["aria-label"] for n in page.find("span", "missing")]
    assert any(label.startswith(BREAKOUT) for label in placeholders)
    assert BREAKOUT in page.text(0) if render is fragment else BREAKOUT in page.visible


def test_every_outside_text_of_the_report_is_shown_as_it_is(hostile):
    page = Page(page_of(hostile))
    assert page.texts("li", inside=page.find("section", "warnings")[0]) == [HOSTILE, BREAKOUT]
    assert page.texts("code", inside=page.find("p", "signature")[0]) == [f"{HOSTILE}|n:{BREAKOUT}"]
    assert page.texts("ul", "unreadable") == [f"{HOSTILE} {BREAKOUT}"] * 2
    assert page.texts("li", inside=page.find("ul", "copies")[0])[0] == f"{HOSTILE} = {BREAKOUT}"
    assert f"Made by finc-eval {BREAKOUT}." in page.text(page.find("footer")[0])
    assert f"no{HOSTILE}" in page.texts("p", "note")[1]
    command = shlex.join(["finc-eval", "compare", "--gen", HOSTILE])
    assert page.texts("code", inside=page.find("p", "command")[0]) == [command]


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
def test_undecodable_control_and_bidirectional_characters_are_spelled_out(tmp_path):
    broken = os.fsdecode(b"caf\xe9.png")
    Image.fromarray(noise(1, 1)[0]).save(tmp_path / broken, "PNG")
    ids = (broken, "a\u202egnp.exe", "line\nbreak\x00")
    mode = a_mode("over-1", tails=(a_tail(ids, ids), a_tail((), (), 0.0)))
    text = page_of(a_comparison([mode]), gen=tmp_path)
    text.encode("utf-8")
    labels = {Page(text).attributes(n)["alt"] for n in Page(text).find("img")}
    assert labels == {"caf\\udce9.png", "caf\\udce9.png, score 0.900"}
    assert "Most typical" in Page(text).visible
    assert "a\\u202egnp.exe" in text and "line\\nbreak\\u0000" in text and "\u202e" not in text


# --- one file, no network -----------------------------------------------------------------------------------


def test_the_policy_has_the_digests_of_style_and_script():
    text = page_of(a_comparison([OVER], [UNDER], [MORE, LESS, SAME]), gen=noise(1), ref=noise(2))
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    for tag in ("style", "script"):
        (whole,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in html.unescape(policy)
    assert len(whole.encode()) < 15_000


def test_the_same_comparison_gives_the_same_bytes():
    comparison = a_comparison([OVER], [UNDER], [MORE, LESS, SAME])
    first, second = (page_of(comparison, gen=noise(1), ref=noise(2)) for _ in range(2))
    assert first == second
    assert "metadata" not in first and "<dc:" not in first


def test_twenty_modes_of_digits_stay_small():
    images = []
    for i in range(100):
        image = Image.new("RGB", (14, 14))
        ImageDraw.Draw(image).text((4, 1), str(i % 10), fill=tuple(noise(i, 1, 1)[0, 0, 0]))
        images.append(np.asarray(image.resize((28, 28), Image.Resampling.BICUBIC)))
    modes = []
    for k in range(20):
        ids = tuple(str((k * 7 + i) % 100) for i in range(50))
        role = "over" if k < 10 else "under"
        modes.append(a_mode(f"{role}-{k}", role, (a_tail(ids, ids, 0.7), a_tail(ids, ids, 0.3))))
    text = page_of(a_comparison(modes[:10], modes[10:]), gen=np.stack(images), ref=np.stack(images))
    # Of each direction and set, eight typical samples, eight drawn ones and eight of the opposite tail; and three of
    # each tail in the table.
    assert len(Page(text).find("img")) == 20 * 2 * (8 + 8 + 8) + 20 * (3 + 3)
    assert len(text.encode()) < 1_200_000


# --- the samples --------------------------------------------------------------------------------------------


def test_thirty_kinds_of_digits_stay_small():
    ids = tuple(str(i) for i in range(16))
    kinds = [a_kind(f"k{k}", 0.03, 0.01 + k / 1000, ids=ids, p_value=0.001 if k < 15 else 1.0) for k in range(30)]
    text = page_of(a_comparison(kinds=kinds), gen=noise(1), ref=noise(2))
    # Of each kind and set, eight typical samples and eight drawn ones; and three of each in the first table. Kinds that
    # do not differ have four typical ones, and three in the table.
    assert len(Page(text).find("img")) == 15 * (2 * (8 + 8) + 3 + 3) + 15 * (2 * 4 + 3)
    assert len(text.encode()) < 3_000_000  # of noise, which no format makes smaller


@pytest.mark.parametrize(("shown", "fits"), [(8, True), (16, False)])
def test_a_page_shows_fewer_samples_of_each_kind_rather_than_be_large(shown, fits):
    ids = tuple(str(i) for i in range(16))
    kinds = [a_kind(f"k{k}", 0.03, 0.01 + k / 1000, ids=ids) for k in range(20)]
    found = a_comparison(kinds=kinds, shown=shown)
    text = any_page(found, {"gen": noise(1, size=90), "ref": noise(2, size=90)})
    assert (len(text.encode()) < 1_500_000) is fits  # more samples than usual were asked for: they are shown
    page = Page(text)
    assert all(page.find("img", inside=page.section(kind)) for kind in kinds)


def test_every_picture_is_the_sample_it_is_labeled_with():
    # The same row numbers mean other samples in the other set, and the two sets' best are other rows.
    gen, ref = noise(1, 60), noise(2, 60)
    gen_ids, ref_ids = (tuple(str(i) for i in range(start, start + 20)) for start in (0, 30))
    tails = a_tail(gen_ids, ref_ids), a_tail((), (), 0.0)
    drawn = {"drawn_gen": gen_ids[8:16], "drawn_ref": ref_ids[8:16]}
    over, under = replace(OVER, tails=tails, **drawn), replace(UNDER, tails=tails, **drawn)
    page = Page(page_of(a_comparison([over], [under]), gen=gen, ref=ref))
    for mode in (over, under):
        section = page.section(mode)
        for cls, images, start in (("gen", gen, 0), ("ref", ref, 30)):
            (figure,) = page.find("figure", cls, section)
            shown = [page.attributes(n) for n in page.find("img", inside=figure)]
            assert [int(image["alt"].split(",")[0]) for image in shown] == list(range(start, start + 16))
            assert ["score" in image["alt"] for image in shown] == [True] * 8 + [False] * 8
            assert page.texts("p", "draw", figure) == ["Most typical", "Members drawn at random"]
            for number, image in enumerate(shown, start):
                assert image["src"].startswith("data:image/png;base64,")
                np.testing.assert_array_equal(pixels(image["src"]), images[number])
                assert image["class"] == "small"
            assert shown[0]["alt"] == shown[0]["title"] == f"{start}, score 0.900"
    first = [
        [pixels(page.attributes(n)["src"]) for n in page.find("img", inside=row)]
        for row in page.find("tbody", inside=page.by_id("direction-table"))
    ]
    np.testing.assert_array_equal(first, [gen[:3], ref[30:33]])


def test_every_picture_of_a_kind_is_the_sample_it_is_labeled_with():
    gen, ref = noise(1, 60), noise(2, 60)
    page = Page(page_of(a_comparison(kinds=[MORE, LESS]), gen=gen, ref=ref))
    for kind, order in ((MORE, ("gen", "ref")), (LESS, ("ref", "gen"))):
        figures = page.find("figure", inside=page.section(kind))
        assert [page.attributes(n)["class"] for n in figures] == [*order]
        for figure, label in zip(figures, order, strict=True):
            shown = [pixels(page.attributes(n)["src"]) for n in page.find("img", inside=figure)]
            np.testing.assert_array_equal(shown, {"gen": gen, "ref": ref}[label][:16])
            assert page.texts("p", "draw", figure) == ["Most typical", "Members drawn at random"]
    rows = [n for n in page.find("tbody", inside=page.by_id("forest")) if "data-mode" in page.attributes(n)]
    for row, images in zip(rows, (gen, ref), strict=True):
        shown = [pixels(page.attributes(n)["src"]) for n in page.find("img", inside=row)]
        np.testing.assert_array_equal(shown, images[[0, 1, 2, 8, 9, 10]])


def test_the_set_that_has_more_of_the_mode_comes_first():
    page = Page(page_of(a_comparison([OVER], [UNDER]), gen=noise(1), ref=noise(2)))
    for mode, order in ((OVER, ["gen", "ref"]), (UNDER, ["ref", "gen"])):
        assert [text.split()[0] for text in page.texts("figcaption", inside=page.section(mode))] == order


def test_without_samples_a_sentence_says_so_once_and_there_are_no_boxes(tmp_path):
    page = Page(page_of(a_comparison([OVER], [UNDER])))
    assert page.find("img") == []
    assert not page.find("figure", inside=page.section(OVER)) + page.find("span", "missing") + page.find("ol", "tiles")
    assert "0 1 2 3 4 5 6 7" in page.text(page.section(OVER))
    (note,) = page.texts("p", "note")
    assert "generated set and the samples of the reference set are not shown" in note
    assert "pass samples={'gen': …, 'ref': …} or --samples gen=…" in note

    gone = SetInfo("gen", str(tmp_path / "gone"), 100, "aa", False, samples=tmp_path / "gone")
    (note, _) = Page(page_of(a_comparison([OVER], gen=gone))).texts("p", "note")
    assert "(gone does not exist" in note and "pass samples={'gen': …}" in note


def test_samples_that_vanished_are_counted():
    page = Page(page_of(a_comparison([OVER]), gen=noise(1, 6), ref=noise(2)))
    (note,) = page.texts("p", "note")
    assert note.startswith("10 of the 16 samples of the generated set")
    (figure,) = page.find("figure", "gen", page.section(OVER))
    assert len(page.find("img", inside=figure)) == 6 and not page.find("span", "missing")


def test_samples_passed_take_the_place_of_the_source(tmp_path):
    for name, seed in (("old", 1), ("new", 2)):
        (tmp_path / name).mkdir()
        Image.fromarray(noise(seed, 1)[0]).save(tmp_path / name / "a.png")
    mode = a_mode("over-1", tails=(a_tail(("a.png",), ()), a_tail((), (), 0.0)))
    comparison = a_comparison([mode], gen=SetInfo("gen", None, 100, "aa", False, samples=tmp_path / "old"))
    for given, seed in (({}, 1), ({"gen": tmp_path / "new"}, 2)):
        page = Page(page_of(comparison, **given))
        np.testing.assert_array_equal(pixels(page.attributes(page.find("img")[0])["src"]), noise(seed, 1)[0])


def test_the_opposite_tail_is_folded_away_and_shown_only_when_it_matters():
    here, there = tuple("abc"), tuple(f"opposite{i}" for i in range(20))

    def details(share):
        mode = a_mode("over-1", tails=(a_tail(here, here, 1 - share), a_tail(there, there, share)))
        kept = {label: {id: thumbnail(noise(1, 1)[0]) for id in here + there} for label in ("gen", "ref")}
        page = Page(page_of(a_comparison([mode], kept=kept)))
        (folded,) = page.find("details", inside=page.section(mode))
        return page, folded

    page, folded = details(0.31)
    assert "open" not in page.attributes(folded)
    assert "carries 31 % of the excess" in page.text(folded)
    assert [page.attributes(n)["alt"] for n in page.find("img", inside=folded)][:2] == [
        f"opposite{i}, score {0.9 - 0.4 * i / 19:.3f}" for i in range(2)
    ]
    assert len(page.find("img", inside=folded)) == 16
    page, folded = details(0.1)
    assert page.find("img", inside=folded) == []


# --- the numbers --------------------------------------------------------------------------------------------


def cells(page, table="direction-table"):
    """The name and the numbers of each row that is not folded."""
    rows = [n for n in page.find("tr", inside=page.by_id(table)) if not page.folded(n)]
    drawn = [n for n in rows if page.find("td", inside=n) and page.attributes(n).get("class") != "below"]
    return [[*page.texts("th", inside=row), *page.texts("td", "n", row)] for row in drawn]


def test_the_first_table_has_all_kinds_by_role_with_sums_and_their_shares_add_up():
    kinds = [
        MORE,
        a_kind("k4", 0.05, 0.0),
        LESS,
        a_kind("k5", 0.019, 0.03, p_value=1.0),
        a_kind("k6", 0.78, 0.83, p_value=1.0),
    ]
    page = Page(page_of(a_comparison(kinds=kinds)))
    assert cells(page, "forest") == [
        ["Too many: 2 kinds", "18.1 %", "4.0 %", "+14.1"],
        ["unnamed kind k1", "13.1 % [10.1, 16.1]", "4.0 % [1.0, 7.0]", "+9.1 [+6.1, +12.1]"],
        ["unnamed kind k4", "5.0 % [2.0, 8.0]", "0.0 % [0.0, 3.0]", "+5.0 [+2.0, +8.0]"],
        ["unnamed kind k2", "2.0 % [0.0, 5.0]", "10.0 % [7.0, 13.0]", "−8.0 [−11.0, −5.0]"],
        ["2 kinds that do not differ", "79.9 %", "86.0 %", "−6.1"],
    ]
    (folded,) = page.find("details", inside=page.by_id("forest"))
    assert page.texts("th", "name", page.find("tbody", inside=folded)[0]) == ["unnamed kind k5 not significant"]
    shares = [float(row[place].split()[0]) for place in (1, 2) for row in cells(page, "forest")[1:5]]
    assert sum(shares[:4]) == pytest.approx(100) and sum(shares[4:]) == pytest.approx(100)


def test_what_the_kinds_explain_is_said_once():
    page = Page(page_of(a_comparison(kinds=[MORE, SAME])))
    assert page.texts("p", "lede")[0].count("The kinds that differ explain 9 of these 12 points.") == 1
    assert "explain" not in Page(page_of(a_comparison(kinds=[SAME]))).texts("p", "lede")[0]


def test_a_heading_stands_above_its_kinds_which_are_folded_below_it():
    other = a_kind("k4", 0.05, 0.0)
    heading = a_kind("k9", 0.181, 0.04, children=("k1", "k4"))
    page = Page(page_of(a_comparison(kinds=[MORE, other, SAME], headings=[heading])))
    assert [row[0] for row in cells(page, "forest")][:3] == [
        "Too many: 2 kinds",
        "unnamed kind k9",
        "1 kind that does not differ",
    ]
    first, _ = page.find("details", inside=page.by_id("forest"))
    assert page.texts("summary", inside=first) == ["2 kinds: unnamed kind k1 and unnamed kind k4"]
    below = page.find("tbody", inside=first)
    assert [page.attributes(n)["data-mode"] for n in below] == ["mode-k1", "mode-k4"]
    assert [*tags(page)] == ["k9", "k1", "k4", "k3"]
    assert page.texts("p", "legend", page.section(heading))[0] == "The kinds under this heading: k1, k4."


def test_directions_are_those_of_the_method_that_found_them():
    found = a_comparison([OVER])
    other = replace(found, settings=replace(found.settings, method=Ken()))
    for given, name in ((found, "FINC"), (other, "KEN")):
        text = page_of(given)
        assert f"Directions of {name}" in Page(text).texts("h2") and f"Directions of {name}" in given.to_markdown()
        assert f"found by {name}" in how(Page(text)) and f"Directions of {name}" in fragment(given)


def test_a_direction_points_to_the_kinds_that_its_best_samples_lie_in_and_says_where_none_shows_it():
    shown = replace(OVER, kinds=("k1", "k3"), shown_by_kinds=True)
    drift = replace(UNDER, kinds=("k3",))
    page = Page(page_of(a_comparison([shown], [drift], [MORE, SAME])))
    rows = page.find("tbody", inside=page.by_id("direction-table"))
    links = [
        [page.attributes(n)["href"] for n in page.find("a", inside=page.find("td", "links", row)[0])] for row in rows
    ]
    assert links == [["#mode-k1", "#mode-k3"], ["#mode-k3"]]
    assert page.texts("th", inside=rows[0]) == ["over-aaaaaa"]
    assert page.texts("th", inside=rows[1]) == ["under-bbbbbb no kind shows it"]
    assert (
        page.texts("p", "legend", page.section(shown))[0]
        == "Its best samples lie in: unnamed kind k1, unnamed kind k3."
    )
    assert page.texts("p", "legend", page.section(drift))[0] == (
        "No kind shows this direction. Its best samples lie in: unnamed kind k3."
    )


def test_a_direction_that_no_kind_shows_is_on_the_first_screen_with_its_two_tails():
    tails = a_tail(tuple("abc"), tuple("ABC"), 0.6), a_tail(tuple("xyz"), tuple("XYZ"), 0.4)
    drift = replace(OVER, tails=tails, kinds=("k3",))
    kept = {"gen": dict.fromkeys("abcxyz", thumbnail(noise(1, 1)[0])), "ref": {}}
    page = Page(page_of(a_comparison([drift], kinds=[MORE, SAME], kept=kept)))
    (row,) = [
        n
        for n in page.find("tbody", inside=page.by_id("forest"))
        if page.attributes(n).get("data-mode") == "mode-over-aaaaaa"
    ]
    assert page.texts("th", inside=row) == ["over-aaaaaa a direction: no kind shows it"]
    assert [page.attributes(n)["alt"] for n in page.find("img", inside=row)] == [*"abcxyz"]


def test_the_table_shows_the_numbers_of_the_comparison():
    page = Page(page_of(a_comparison([OVER], [UNDER])))
    assert cells(page) == [
        ["over-aaaaaa", "13.1 % [10.2, 16.3]", "4.0 % [2.1, 6.4]", "+9.1 [+6.2, +12.0]"],
        ["under-bbbbbb", "2.0 % [0.8, 4.0]", "10.0 % [7.2, 13.1]", "−8.0 [−11.2, −5.0]"],
    ]
    assert [page.texts("p", "says", page.section(mode)) for mode in (OVER, UNDER)] == [
        [
            "13.1 % of the samples of gen are members, and 4.0 % of the samples of ref: 9.1 points more (interval "
            "+6.2 to +12.0)."
        ],
        [
            "2.0 % of the samples of gen are members, and 10.0 % of the samples of ref: 8.0 points fewer (interval "
            "−11.2 to −5.0)."
        ],
    ]
    drawn = page.texts("desc", inside=page.by_id("direction-table"))
    assert drawn[0] == "gen 13.1 % [10.2, 16.3]; ref 4.0 % [2.1, 6.4]"
    assert [page.texts("dd", inside=page.section(mode)) for mode in (OVER, UNDER)] == [
        [
            *("13.1 % [10.2, 16.3]", "4.0 % [2.1, 6.4]", "+9.1 [+6.2, +12.0]", "3.2e-09", "–", "97 %"),
            *("0.0912", "0.0037", "× 24.6", "0.0875 [0.0721, 0.1029]"),
        ],
        [
            *("2.0 % [0.8, 4.0]", "10.0 % [7.2, 13.1]", "−8.0 [−11.2, −5.0]", "0.004", "–", "97 %"),
            *("0.0200", "0.0700", "× 0.29", "0.0500 [0.0310, 0.0690]"),
        ],
    ]


def test_the_card_of_a_kind_has_its_numbers():
    page = Page(page_of(a_comparison(kinds=[MORE, LESS, SAME])))
    assert [page.texts("p", "says", page.section(kind))[0] for kind in (MORE, LESS)] == [
        "13.1 % of the samples of gen belong to this kind, and 4.0 % of the samples of ref: 9.1 points more (interval "
        "+6.1 to +12.1).",
        "2.0 % of the samples of gen belong to this kind, and 10.0 % of the samples of ref: 8.0 points less (interval "
        "−11.0 to −5.0).",
    ]
    assert page.texts("dd", inside=page.section(LESS)) == ["3.2e-09", "−8.0 [−11.0, −5.0]"]
    (table,) = page.find("table", "holdings", page.section(LESS))
    rows = [page.texts("th", inside=n) + page.texts("td", inside=n) for n in page.find("tr", inside=table)]
    assert rows[1:] == [["gen", "2.0 % [0.0, 5.0]", "20"], ["ref", "10.0 % [7.0, 13.0]", "100"]]
    assert tags(page) == {"k1": "too many", "k2": "too few", "k3": "not significant"}


def test_settings_and_counts_are_those_of_the_comparison():
    page = Page(page_of(a_comparison(copies=Copies(0, ()))))
    (sets,) = page.find("table", "sets")
    rows = page.find("tr", inside=sets)[1:]
    assert {page.texts("th", inside=row)[0]: tuple(page.texts("td", inside=row)) for row in rows} == {
        "Name": ("gen", "ref"),
        "Samples": ("1,200", "3,400"),
        "Unreadable": ("0", "0"),
        "Source": ("embeddings alone", "embeddings alone"),
        "Compared as": ("embeddings", "embeddings"),
        "Digest": ("aa11", "bb22"),
    }
    assert page.texts("dd", inside=page.find("dl", "settings")[0]) == [
        "pixels@1234",
        "1",
        "gaussian",
        "8.25 (0.5 x median distance)",
        "500, seed 7",
        "0.031 rms, 0.16 at most, over 499,500 pairs",
        "FINC",
        "varimax",
        "10 at most; 26 directions tested",
        "from the embeddings of both sets",
    ]
    assert page.texts("p", "signature") == ["finc|n:1200/3400|r:500"]
    assert "Made by a call from Python." in page.texts("footer")[0]
    assert "finc-eval 9.8.7" in page.texts("footer")[0]


def test_an_infinite_ratio_is_a_sign_not_a_number():
    mode = a_mode("over-1", mass_ref=0.0)
    page = Page(page_of(a_comparison([mode])))
    assert page.texts("dd", inside=page.section(mode))[6:9] == ["0.0912", "0.0000", "× ∞"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (inf, "∞"),
        (123456, "> 10,000"),
        (250.4, "250"),
        (24.64, "24.6"),
        (3.146, "3.15"),
        (0.126, "0.13"),
        (0.0123, "0.012"),
        (0.0001, "< 0.001"),
        (0, "0"),
    ],
)
def test_ratios_have_sensible_digits(value, text):
    assert ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "< 1e-16"), (9e-17, "< 1e-16"), (2e-16, "2e-16"), (0.049, "0.049"), (1, "1")]
)
def test_p_values_have_two_digits_and_an_end(value, text):
    assert p_value(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1, "100 %"), (0.974, "97 %"), (0.006, "1 %"), (0.004, "< 1 %"), (0, "0 %")]
)
def test_shares_are_whole_percents_and_never_round_to_nothing(value, text):
    assert percent(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0492, "4.9 %"), (0.0004, "< 0.1 %"), (0.0, "0.0 %"), (1, "100.0 %")])
def test_shares_of_modes_have_one_decimal(value, text):
    assert percent(value, 1) == text


@pytest.mark.parametrize(("value", "text"), [(0.0956, "+9.6"), (-0.05, "−5.0"), (0.0004, "0.0"), (-0.0004, "0.0")])
def test_differences_of_shares_are_points_with_a_sign(value, text):
    assert points(value) == text


def test_a_direction_of_which_the_stability_is_not_known_counts():
    assert optional_percent(None) == "–"
    mode = a_mode("over-1", stability=None)
    page = Page(page_of(a_comparison([mode])))
    assert page.texts("dd", inside=page.section(mode))[5] == "–"
    assert not page.find("tr", "muted") and not page.find("article", "muted")


def how(page):
    return page.text(page.find("section", "how")[0])


def test_how_to_read_explains_shares_draws_and_stability():
    text = how(Page(page_of(a_comparison([OVER], kinds=[MORE, SAME]))))
    assert "its share of a set is the fraction of samples that are members" in text and "never add their shares" in text
    assert "every sample belongs to exactly one kind, so the shares of a set add up to 100 %" in text
    assert "adjusted for 371 kinds and 26 directions tested" in text and "members drawn at random" in text
    assert "four refits, to each half of the samples and with each half of the random frequencies" in text
    assert "below 50 % do not give it a name" in text
    cosine = a_comparison([OVER], settings=Settings(kernel="cosine", features=8), feature_map=CosineFeatures(8))
    text = how(Page(page_of(cosine)))
    assert "two refits, to each half of the samples;" in text and "frequencies" not in text


def tags(page):
    return {page.texts("h3", inside=n)[0]: page.texts("p", "tag", n)[0] for n in page.find("article", "card")}


def test_modes_that_are_not_significant_are_folded_and_say_so():
    modes = [a_mode("over-1", p_value=0.05), a_mode("over-2", p_value=0.0501), a_mode("over-3", p_value=1.0)]
    page = Page(page_of(a_comparison(modes)))
    assert tags(page) == {"over-1": "too many", "over-2": "not significant", "over-3": "not significant"}
    assert [row[0] for row in cells(page)] == ["over-1"]
    muted = page.find("article", "muted")
    assert [page.attributes(n)["id"] for n in muted] == ["mode-over-2", "mode-over-3"]
    assert all(page.folded(n) for n in muted)
    assert "2 more directions are not significant" in page.texts("summary")
    assert "1 more direction is not significant" in Page(page_of(a_comparison(modes[:2]))).texts("summary")
    assert not Page(page_of(a_comparison(modes[:1]))).find("details", "folded")


def test_modes_that_refits_do_not_find_again_are_muted_come_last_and_are_not_told():
    modes = [a_mode("over-2", stability=0.49), a_mode("over-1", stability=0.5)]
    page = Page(page_of(a_comparison(modes)))
    assert list(tags(page).items()) == [("over-1", "too many"), ("over-2", "unstable, not counted")]
    assert [row[0] for row in cells(page)] == ["over-1", "over-2 unstable, not counted"]
    assert "over-2" not in page.texts("p", "summary")[0]


def test_a_named_mode_shows_what_supports_the_name_and_what_looks_different():
    evidence = (
        Evidence("label", HOSTILE, 0.94, 0.113, 1e-20, in_name=True),
        Evidence("trait", "brighter", 0.7, 0.2, 0.003, in_name=True),
        Evidence("trait", "bluer", 0.6, 0.2, 0.03),
    )
    over = replace(OVER, name=f"mostly {HOSTILE} (94 %), brighter", evidence=evidence, looks_different=UNDER.id)
    page = Page(page_of(a_comparison([over], [replace(UNDER, looks_different="gone")])))
    assert tags(page) == {f"mostly {HOSTILE} (94 %), brighter": "too many", "under-bbbbbb": "too few"}
    assert page.texts("p", "legend", page.section(over))[:3] == [
        "The other set has this instead, which looks different: under-bbbbbb.",
        f"Why this name: label {HOSTILE}, 94 % of the members and 11 % of other samples (p < 1e-16); trait brighter, "
        "70 % of the members and 20 % of other samples (p 0.003).",
        "More evidence: trait bluer, 60 % of the members and 20 % of other samples (p 0.03).",
    ]
    assert not any("instead" in text for text in page.texts("p", "legend", page.section(UNDER)))


def test_the_shares_of_all_modes_are_drawn_on_one_scale():
    modes = [
        a_mode("over-1", share_gen=0.2, share_gen_interval=(0.1, 0.3), share_ref=0.0, share_ref_interval=(0.0, 0.1)),
        a_mode("over-2", share_gen=0.1, share_gen_interval=(0.05, 0.15), share_ref=0.05, share_ref_interval=(0.0, 0.1)),
    ]
    page = Page(page_of(a_comparison(modes)))
    drawn = []
    for row in (n for n in page.find("svg", "drawn") if page.by_id("direction-table") in page.elements[n][2]):
        assert (
            page.attributes(row)["role"] == "img" and page.texts("title", inside=row) and page.texts("desc", inside=row)
        )
        (mark,) = page.find("g", "gen", row)
        assert page.texts("title", inside=mark)[0].startswith("gen ")
        (line,), (dot,) = page.find("path", inside=mark), page.find("circle", inside=mark)
        low, high = re.match(r"M([\d.]+) 9.0H([\d.]+)", page.attributes(line)["d"]).groups()
        drawn.append([float(low), float(page.attributes(dot)["cx"]), float(high)])
    values = np.array([(0.1, 0.2, 0.3), (0.05, 0.1, 0.15)])
    np.testing.assert_allclose(drawn, 8 + 284 * values / 0.3, atol=0.06)
    assert page.texts("text", inside=page.find("svg", "forest-axis")[0]) == ["0 %", "10", "20", "30"]


def test_the_numbers_of_the_scale_stay_in_the_drawing():
    axis = Page(forest_axis(forest_scale([1.0])))
    anchors = [axis.attributes(n)["text-anchor"] for n in axis.find("text")]
    assert axis.texts("text") == ["0 %", "20", "40", "60", "80", "100"]
    assert anchors == ["start", "middle", "middle", "middle", "middle", "end"]


# --- unusual comparisons ------------------------------------------------------------------------------------


@pytest.mark.parametrize("render", [page_of, fragment])
@pytest.mark.parametrize(("over", "under"), [((), ()), ((OVER,), ()), ((), (UNDER,))])
def test_a_comparison_may_lack_modes(render, over, under):
    page = Page(render(a_comparison(over, under)))
    rows = page.find("tr", "mode") if render is fragment else page.find("article", "card")
    assert len(rows) == len(over) + len(under)
    assert ("No direction" in page.text(0)) is (not over + under)


@pytest.mark.parametrize("render", [page_of, fragment])
def test_a_comparison_may_lack_kinds_that_differ(render):
    page = Page(render(a_comparison(kinds=[SAME])))
    assert "No kind" in page.text(0)


def test_a_tail_without_samples_says_so():
    mode = a_mode("over-1", tails=(a_tail(("a",), ()), a_tail((), (), 0.0)))
    page = Page(page_of(a_comparison([mode], spectrum=Spectrum((), ()))))
    assert page.texts("p", "legend", page.section(mode)) == [
        "Most typical of the generated set: a",
        "Most typical of the reference set: none",
    ]


def test_a_damaged_source_does_not_stop_the_report(tmp_path):
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 and no more")
    damaged = SetInfo("gen", None, 100, "aa", False, samples=tmp_path / "cut.zip")
    gen_note, _ = Page(page_of(a_comparison([OVER], gen=damaged))).texts("p", "note")
    assert "cut.zip cannot be read" in gen_note


def test_samples_that_a_caller_passes_must_be_there(tmp_path):
    comparison = a_comparison([OVER])
    with pytest.raises(FincEvalError, match="does not exist"):
        comparison.to_html(tmp_path / "no.html", samples={"gen": tmp_path / "gone"})
    with pytest.raises(UsageError, match="no set 'test': it has gen, ref"):
        comparison.to_html(tmp_path / "no.html", samples={"test": noise(1)})
    assert not (tmp_path / "no.html").exists()


# --- words --------------------------------------------------------------------------------------------------


def test_page_and_notebook_begin_with_the_headline():
    comparison = a_comparison([OVER], [UNDER], [MORE, LESS, SAME])
    page = Page(page_of(comparison))
    assert page.texts("p", "summary") == [comparison.headline]
    assert page.texts("p", "lede")[0] == " ".join(details(comparison).values())
    assert comparison.headline in Page(fragment(comparison)).texts("caption")[0]


def test_how_to_read_names_the_ratio_that_counts():
    comparison = a_comparison([OVER])
    doubled = replace(comparison, settings=replace(comparison.settings, rho=2.0))
    for given, named in ((comparison, False), (doubled, True)):
        assert ("more than 2 times the share of the other" in how(Page(page_of(given)))) is named


def test_copies_and_unreadable_samples_are_named():
    comparison = a_comparison(
        gen=SetInfo("gen", None, 100, "aa", False, 3, (("bad.png", "truncated"),)),
        copies=Copies(12, tuple((f"g{i}", f"r{i}") for i in range(20))),
    )
    page = Page(page_of(comparison))
    assert "12 of the generated samples have exactly the pixels of a reference sample, for example:" in page.visible
    assert page.texts("li", inside=page.find("ul", "copies")[0]) == [f"g{i} = r{i}" for i in range(6)]
    assert "3 of the generated set, the first of them:" in page.visible
    assert page.texts("ul", "unreadable") == ["bad.png truncated"]
    assert "Not checked" in Page(page_of(a_comparison())).visible


def test_titles_are_as_long_as_needed_to_tell_the_sets_apart():
    def named(gen, ref, source=None):
        sets = {k: SetInfo(v, source, 100, "", False) for k, v in (("gen", gen), ("ref", ref))}
        return titles(a_comparison(**sets))

    assert named("gen", "ref") == ("gen", "ref")
    assert named("/data/a/fakes.h5", "/data/a/reals.h5") == ("fakes.h5", "reals.h5")
    assert named("/data/v1/samples", "/data/v2/samples") == ("v1/samples", "v2/samples")
    assert named("/data/a", "/data/a") == ("/data/a", "/data/a")
    assert named("x.h5", "y.h5", "/data/faces") == ("x.h5", "y.h5")


# --- figures and the notebook -------------------------------------------------------------------------------


def test_the_spectrum_is_a_drawing_with_words_and_a_table():
    spectrum = Spectrum((0.5, 0.2, 0.1), (0.4, 0.3))
    page = Page(page_of(a_comparison([OVER], spectrum=spectrum)))
    (figure,) = page.find("figure", "plot")
    (drawing,) = page.find("svg", inside=figure)
    assert page.attributes(drawing)["role"] == "img"
    assert page.texts("title", inside=drawing)[0] == "Leading eigenvalues of both roles against their rank"
    assert page.texts("desc", inside=drawing) == [
        "more in the generated set: from 0.5 to 0.1; more in the reference set: from 0.4 to 0.3"
    ]
    for ink, name, values in (("gen", "generated", spectrum.over), ("ref", "reference", spectrum.under)):
        meaning = f"more in the {name} set"
        marks = [page.texts("title", inside=n)[0] for n in page.find("g", ink, drawing)]
        assert marks == [*(f"rank {rank}, {meaning}: {value}" for rank, value in enumerate(values, 1)), meaning]
    section = page.elements[figure][2][-1]
    rows = [page.texts("td", inside=row) for row in page.find("tr", inside=page.find("table", inside=section)[0])]
    assert rows[1:] == [["0.5000", "0.4000"], ["0.2000", "0.3000"], ["0.1000", "–"]]


def test_the_spectrum_stands_where_its_values_are():
    def heights(values):
        page = Page(spectrum_svg(values, ()))
        marks = [page.find("circle", inside=n) for n in page.find("g", "gen")]
        return [float(page.attributes(one)["cy"]) for (one,) in marks[:-1]]

    first, second, third = heights((0.4, 0.2, 0.0))
    assert third - second == pytest.approx(second - first, abs=0.11) and third > first
    assert spectrum_svg((0.5,), ()) != spectrum_svg((0.6,), ())
    assert spectrum_svg((), ()).startswith("<svg")


def test_the_fragment_is_compact_and_styles_only_itself():
    comparison = a_comparison([OVER], [UNDER], [MORE, SAME], [a_kind("k9", 0.2, 0.05, children=("k1",))])
    text = fragment(comparison)
    page = Page(text)
    assert page.elements[0][:2] == ("div", {"class": "finc-eval"}) and not page.find("script")
    for rule in re.findall(r"([^{}]+)\{", text[text.index("<style>") + 7 : text.index("</style>")]):
        assert all(part.strip().startswith(".finc-eval ") for part in rule.split(","))
    rows = page.find("tr", "mode")
    assert [page.texts("th", inside=row) for row in rows] == [
        ["k9"],
        ["· k1"],
        ["1 kind that does not differ"],
        ["over-aaaaaa"],
        ["under-bbbbbb"],
    ]
    assert page.find("span", "missing") == []
    ends = "13.1 [10.1, 16.1]", "4.0 [1.0, 7.0]"
    assert page.texts("td", inside=rows[1]) == [*ends, "+9.1 [+6.1, +12.1]", "3.2e-09"]
    assert page.texts("td", inside=rows[3])[1:4] == ["13.1", "4.0", "+9.1 [+6.2, +12.0]"]
    assert comparison._repr_html_() == text


def test_the_fragment_shows_the_samples_of_both_sources(tmp_path):
    sets = {}
    for name, seed in (("gen", 1), ("ref", 2)):
        np.savez(tmp_path / f"{name}.npz", images=noise(seed))
        sets[name] = SetInfo(name, None, 20, "", False, samples=tmp_path / f"{name}.npz")
    page = Page(fragment(a_comparison([OVER], **sets)))
    shown = [pixels(page.attributes(n)["src"]) for n in page.find("img")]
    np.testing.assert_array_equal(shown, [*noise(1)[:6], *noise(2)[:6]])


def test_a_comparison_writes_its_report(tmp_path):
    path = a_comparison([OVER]).to_html(tmp_path / "report.html", samples={"gen": noise(1)})
    written = path.read_text(encoding="utf-8")
    expected = page_of(a_comparison([OVER]), gen=noise(1))
    assert hashlib.sha256(written.encode()).digest() == hashlib.sha256(expected.encode()).digest()


def test_a_page_does_not_say_where_on_the_machine_a_set_lies(tmp_path):
    outside = SetInfo("gen", str(tmp_path / "private" / "gen.zip"), 100, "aa", False)
    below = SetInfo("ref", "data/ref.zip", 100, "bb", False)
    page = page_of(a_comparison([OVER], gen=outside, ref=below))
    assert (outside.place, below.place) == ("gen.zip", "data/ref.zip")
    row = page.split("Source</th>")[1].split("</tr>")[0]
    assert "gen.zip" in row and str(tmp_path) not in row


def test_samples_that_are_no_members_are_not_called_typical():
    tails = a_tail(tuple("abcdefgh"), tuple("ABCDEFGH")), a_tail((), (), 0.0)
    few = replace(tails[0], ref_scores=tails[0].ref_scores / 2)
    page = Page(page_of(a_comparison([a_mode("over-1", tails=(few, tails[1]))], kept=tiles("abcdefgh", "ABCDEFGH"))))
    assert page.texts("p", "draw") == ["Most typical", "Most alike, members or not"]


def tiles(gen, ref):
    return {label: dict.fromkeys(ids, thumbnail(noise(1, 1)[0])) for label, ids in (("gen", gen), ("ref", ref))}
