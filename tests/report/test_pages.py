"""The pages of sweeps, models and changes: their numbers are those of the result, and they load nothing."""

import re
from dataclasses import replace

import numpy as np
import pytest
from _pages import BREAKOUT, HOSTILE, Page, a_comparison, a_mode, a_tail, made_by, noise, pixels

import finc_eval as fe
from finc_eval.comparison.changes import Change, Changes
from finc_eval.comparison.models import ModelComparison, ModeShare, SharedMode
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.sweep import Point, Sweep
from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.thumbnails import thumbnail
from finc_eval.naming.evidence import Evidence
from finc_eval.report import changes, comparison, models
from finc_eval.report import sweep as sweeps
from finc_eval.report.drawings.plots import Mark, sweep_svg


def sweep_page(sweep):
    return sweeps.page(sweep, {})


def models_page(result, samples=None):
    return models.page(result, samples or {})


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


def a_share(share, ids=("7", "3")):
    return ModeShare(share, (share - 0.01, share + 0.02), share / 2, ids, ids[-1:])


EVIDENCE = (Evidence("label", "3", 0.94, 0.1, 1e-9),)


def model_comparison(labels=("alpha", "beta"), **changes):
    """A mode of the first model, one of the second that is not significant, and one of the reference."""
    first, second = labels
    shares = {first: a_share(0.08), second: a_share(0.03), "ref": a_share(0.02)}
    modes = (
        SharedMode(
            f"{first}-1",
            "mostly 3 (94 %)",
            EVIDENCE,
            first,
            0.055,
            (0.04, 0.07),
            1e-9,
            0.91,
            shares,
        ),
        SharedMode(f"{second}-2", None, (), second, 0.004, (-0.01, 0.02), 0.3, 0.4, shares),
        SharedMode("ref-3", None, (), "ref", 0.011, (0.001, 0.02), 0.02, 0.66, shares),
    )
    sets = {label: SetInfo(label, None, 1000 + i, f"d{i}", False) for i, label in enumerate((first, second, "ref"))}
    settings = Settings(sigma=2.5, features=4, seed=7)
    signature = Signature("models", ())
    made = ModelComparison(modes, sets, settings, "given", signature, 39, ("of models",), provenance=made_by("9.8.7"))
    return replace(made, **changes)


def rows(page):
    return [page.texts("td", inside=row) for row in page.find("tr", "mode", page.find("table", "modes")[0])]


# --- both -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: sweep_page(a_sweep()),
        lambda: models_page(model_comparison()),
        lambda: changes.page(some_changes("new", "gone"), {}),
        lambda: comparison.page(a_comparison([a_mode("over-1")]), {}),
    ],
)
def test_a_page_refers_to_nothing_outside_itself_and_is_the_same_each_time(make):
    text = make()
    assert make() == text
    page = Page(text)
    policy = next(
        page.attributes(n)["content"]
        for n in page.find("meta")
        if page.attributes(n).get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert not re.search(r"https?://|@import|url\((?!#)|style=", text)
    ids = [page.attributes(n)["id"] for n, _ in enumerate(page.elements) if "id" in page.attributes(n)]
    assert len(ids) == len(set(ids))
    named = [
        page.attributes(n)["aria-labelledby"] for n in page.find("section") if "aria-label" not in page.attributes(n)
    ]
    assert named and set(named) <= set(ids)
    for n in page.find("a") + page.find("use"):
        target = page.attributes(n).get("href") or page.attributes(n)["xlink:href"]
        assert target[0] == "#" and target[1:] in ids


def hostile_sweep():
    names = {
        name: SetInfo(f"{BREAKOUT}{name}", None, 100, BREAKOUT, True) for name in ("gen", "ref")
    }  # fmt: skip
    comparison = a_comparison(
        [a_mode(BREAKOUT)],
        warnings=(HOSTILE, BREAKOUT),
        space=BREAKOUT,
        signature=Signature(HOSTILE, (("n", BREAKOUT),)),
        provenance=made_by(BREAKOUT),
        settings=Settings(sigma=1.0, features=500),
        sigma_rule=HOSTILE,
        **names,
    )
    own = replace(comparison, warnings=(HOSTILE,))
    points = Point(1.0, comparison, (0.5,)), Point(2.0, own, (0.5,))
    return Sweep("sigma", points, 1.0, (), provenance=made_by(BREAKOUT))


def hostile_models():
    table = model_comparison((HOSTILE, BREAKOUT))
    modes = tuple(
        replace(mode, shares={k: replace(h, top_ids=(HOSTILE, BREAKOUT)) for k, h in mode.shares.items()})
        for mode in table.modes
    )
    sets = {label: replace(info, source=f"no{HOSTILE}", digest=BREAKOUT) for label, info in table.sets.items()}
    return replace(table, modes=modes, sets=sets, sigma_rule=BREAKOUT)


@pytest.mark.parametrize("make", [lambda: sweep_page(hostile_sweep()), lambda: models_page(hostile_models())])
def test_hostile_names_stay_text(make):
    page = Page(make())
    for tag, attributes, _ in page.elements:
        assert tag not in {"iframe", "object", "embed", "link", "base", "foreignobject"}
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
        assert re.fullmatch(r"[\w.:~-]*", attributes.get("id", ""))
    assert BREAKOUT in page.visible and HOSTILE in page.visible
    assert [page.text(n).startswith('"use strict";') for n in page.find("script")] == [True]


# --- sweeps ---------------------------------------------------------------------------------------------------


def test_a_row_of_a_sweep_is_about_its_significant_modes():
    page = Page(sweep_page(a_sweep()))
    assert page.texts("th", "id") == ["2 the papers' rule", "4 compare's default", "8"]
    assert rows(page) == [
        ["0", "0", "–", "–", "–", SMALL],
        ["2", "1", "7.0 %", "70 %", "0.50", ""],
        ["1", "0", "3.0 %", "80 %", "0.90", ""],
    ]
    assert [page.texts("th", "id", n) for n in page.find("tr", "muted")] == [["2 the papers' rule"]]


def test_warnings_that_hold_everywhere_are_said_once():
    page = Page(sweep_page(a_sweep()))
    assert page.texts("li", inside=page.find("section", "warnings")[0]) == ["of the sweep", COMMON]
    assert page.visible.count(COMMON) == 1 and page.visible.count(SMALL) == 1
    quiet = Page(sweep_page(replace(a_sweep(), points=a_sweep().points[1:])))
    assert quiet.texts("th", inside=quiet.find("thead")[0])[-1] == "Spreadness"


def test_the_summary_of_a_sweep_names_default_and_the_papers_choice():
    text = Page(sweep_page(a_sweep())).texts("p", "summary")[0]
    assert text.startswith("3 values of σ were tried, from 2 to 8. Most modes differ at σ = 4: the generated set has")
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
    assert "8.25" in page.texts("dl", "settings")[1]  # the bandwidth is a setting here


def test_the_figure_has_a_mark_for_every_mode_in_both_panels():
    page = Page(sweep_page(a_sweep()))
    (drawing,) = page.find("svg", inside=page.find("figure", "plot")[0])
    assert page.attributes(drawing)["role"] == "img"
    assert page.texts("desc", inside=drawing) == ["number of modes: 0 at 2, 3 at 4, 1 at 8"]
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


# --- models ---------------------------------------------------------------------------------------------------


def cards_of(page):
    """The title and the tag of each card, by the id of its mode."""
    found = page.find("article", "card")
    return {
        page.texts("code", inside=n)[0]: (page.texts("h3", inside=n)[0], page.texts("p", "tag", n)[0]) for n in found
    }


def test_the_page_of_models_shows_the_numbers_of_the_object():
    page = Page(models_page(model_comparison()))
    rows = [n for n in page.find("tbody", inside=page.by_id("forest")) if "data-mode" in page.attributes(n)]
    assert [page.texts("th", inside=n) + page.texts("td", inside=n)[1:] for n in rows] == [
        ["3", "more in alpha", "8.0 % [7.0, 10.0]", "2.0 % to 3.0 %", "1e-09"],
        ["ref-3", "more in ref", "2.0 % [1.0, 4.0]", "3.0 % to 8.0 %", "0.02"],
    ]
    drawn = page.texts("desc", inside=rows[0])
    assert drawn == ["alpha 8.0 % [7.0, 10.0]; beta 3.0 % [2.0, 5.0]; ref 2.0 % [1.0, 4.0]"]
    assert [page.find("g", ink, rows[0]) != [] for ink in ("gen", "other", "ref")] == [True] * 3


def test_the_modes_of_models_are_cards_with_names_and_their_evidence():
    page = Page(models_page(model_comparison()))
    assert cards_of(page) == {
        "alpha-1": ("mostly 3 (94 %)", "more in alpha"),
        "ref-3": ("ref-3", "more in ref"),
        "beta-2": ("beta-2", "not significant"),
    }
    first = page.find("article", "card")[0]
    assert page.texts("p", "says", first) == [
        "8.0 % of the samples of alpha are of this kind, and 3.0 % of beta and 2.0 % of ref."
    ]
    assert page.texts("p", "legend", first)[0].startswith("Why this name: label 3, 94 % of the members")
    assert page.texts("option", inside=page.find("form", "tools")[0])[:4] == [
        "all",
        "more in alpha",
        "more in beta",
        "more in ref",
    ]


def test_the_page_of_models_has_their_warnings(capsys):
    page = Page(models_page(model_comparison()))
    assert page.texts("li", inside=page.find("section", "warnings")[0]) == ["of models"]
    models.show(model_comparison())
    assert "of models" in capsys.readouterr().out


def test_every_mode_shows_the_share_and_mass_of_each_set():
    page = Page(models_page(model_comparison()))
    first = page.find("table", "holdings")[0]
    assert [page.texts("th", inside=row) + page.texts("td", inside=row) for row in page.find("tr", inside=first)] == [
        ["Set", "Share", "Mass"],
        ["alpha", "8.0 % [7.0, 10.0]", "0.0400"],
        ["beta", "3.0 % [2.0, 5.0]", "0.0150"],
        ["ref", "2.0 % [1.0, 4.0]", "0.0100"],
    ]


def test_the_pictures_of_a_mode_are_of_the_set_with_most_and_of_the_reference():
    images = {"alpha": noise(1), "ref": noise(2)}
    page = Page(models_page(model_comparison(), images))
    for card, labels in zip(page.find("article", "card"), (["alpha", "ref"], ["ref", "alpha"], ["ref"]), strict=True):
        views = page.find("figure", inside=card)
        assert [page.texts("b", inside=n)[0] for n in views] == labels
        for view, label in zip(views, labels, strict=True):
            shown = [page.attributes(n) for n in page.find("img", inside=view)]
            assert [picture["alt"] for picture in shown] == ["7", "3", "3"]  # the typical ones, and a draw
            for picture in shown:
                np.testing.assert_array_equal(pixels(picture["src"]), images[label][int(picture["alt"])])
    assert page.texts("p", "note") == [
        "The samples of beta are not shown, because only their ids are at hand: "
        "pass samples={'beta': …} or --samples beta=…, the folder, zip, npz or array that holds them."
    ]


@pytest.mark.parametrize(
    ("modes", "start"),
    [
        (
            slice(0, 3),
            "Against the mean of all other sets, alpha has more of 1 kind of samples: “3” (8 % of alpha) (adj",
        ),
        (
            slice(2, 3),
            "The models make too little of 1 kind of samples that the reference has (adjusted p ≤ 0.05). 3 sets",
        ),
        (slice(1, 2), "No kind of samples is significantly more frequent in one set than in the others"),
        (slice(0, 0), "No kind of samples is significantly more frequent in one set than in the others"),
    ],
)
def test_the_summary_of_models_says_what_is_significant(modes, start):
    page = Page(models_page(model_comparison(modes=model_comparison().modes[modes])))
    assert page.texts("p", "summary")[0].startswith(start)
    assert len(page.find("article", "card")) == len(model_comparison().modes[modes])


def test_the_summary_of_models_gives_examples_that_read_differently_and_ids_where_names_are_shared(capsys):
    first, _, third = model_comparison().modes
    dim = (Evidence("trait", "darker", 0.9, 0.1, 1e-9), Evidence("trait", "with less contrast", 0.9, 0.1, 1e-9))
    texts = ("darker, with less contrast", "with less contrast, darker")
    dark = [replace(first, id=f"alpha-{i}", name=text, evidence=dim) for i, text in enumerate(texts, 5)]
    lacked = replace(third, name=texts[1], evidence=dim)
    result = model_comparison(modes=(*dark, first, lacked, third))
    told = models.summary(result)
    assert (
        "alpha has more of 3 kinds of samples, such as samples that are “darker, with less contrast”, alpha-5 (8 % of "
        "alpha) and “3” (8 % of alpha) (adjusted"
    ) in told
    assert "The models make too little of 2 kinds of samples that the reference has (adjusted" in told
    page = Page(models_page(result))
    rows = [page.texts("th", inside=n)[0] for n in page.find("tbody") if "data-mode" in page.attributes(n)]
    assert rows == [f"{texts[0]} alpha-5", f"{texts[1]} alpha-6", "3", f"{texts[1]} ref-3", "ref-3"]
    models.show(result)
    shown = capsys.readouterr().out
    assert all(f"│ {text}, alpha-{i} " in shown for i, text in enumerate(texts, 5))


def test_without_a_reference_there_is_one_group():
    table = model_comparison()
    mode = table.modes[0]
    shares = {label: mode.shares[label] for label in ("alpha", "beta")}
    sets = {label: table.sets[label] for label in ("alpha", "beta")}
    lone = replace(table, modes=(replace(mode, shares=shares),), sets=sets, settings=Settings(kernel="cosine"))
    page = Page(models_page(lone))
    assert "reference" not in page.visible
    assert "two refits" in page.texts("section", "how")[0] and "frequencies" not in page.visible
    assert page.texts("title")[0] == "alpha, beta – finc-eval"


def test_a_comparison_of_models_writes_its_page_and_refuses_samples_it_cannot_open(tmp_path):
    table = model_comparison()
    path = table.to_html(tmp_path / "models.html", samples={"alpha": noise(1)})
    assert path.read_text(encoding="utf-8") == models_page(table, {"alpha": noise(1)})
    with pytest.raises(FincEvalError, match="no set 'gamma': it has alpha, beta, ref"):
        table.to_html(tmp_path / "no.html", samples={"gamma": noise(1)})
    with pytest.raises(FincEvalError, match="does not exist"):
        table.to_html(tmp_path / "no.html", samples={"alpha": tmp_path / "gone"})
    assert not (tmp_path / "no.html").exists()


def test_the_notebook_view_of_models_has_the_significant_modes():
    page = Page(model_comparison()._repr_html_())
    assert page.texts("th", inside=page.find("tbody")[0]) == ["mostly 3 (94 %), alpha-1", "ref-3"]
    assert page.texts("td")[:5] == ["alpha", "1e-09", "8.0 [7.0, 10.0]", "3.0 [2.0, 5.0]", "2.0 [1.0, 4.0]"]


# --- changes --------------------------------------------------------------------------------------------------


def some_changes(*statuses, lost=()):
    modes = {
        "new": (None, "over-1"),
        "gone": ("over-2", None),
        "unchanged": ("over-3", "over-4"),
        "undecided": ("over-5", "over-6"),
    }
    made = tuple(
        Change(status, "over", *(name and a_mode(name) for name in modes[status]), 0.9, -0.02, (-0.03, -0.01))
        for status in statuses
    )
    old, new = (Signature("finc", (("n", size),)) for size in "12")
    sets = {label: SetInfo(label, None, 100, "aa", False) for label in ("old", "new", "ref")}
    return Changes(made, 0.05, old, new, sets, tuple(map(a_mode, lost)), (), provenance=made_by("9.8.7"))


def test_the_page_of_changes_has_a_row_a_mode():
    page = Page(changes.page(some_changes("new", "gone", "unchanged"), {}))
    assert page.texts("th", "id") == ["over-1", "over-2", "over-3"]
    assert rows(page) == [
        ["new", "over", "–", "13.1 %", "−2.0", "[−3.0, −1.0]"],
        ["gone", "over", "13.1 %", "–", "−2.0", "[−3.0, −1.0]"],
        ["unchanged", "over", "13.1 %", "13.1 %", "−2.0", "[−3.0, −1.0]"],
    ]
    assert page.texts("p", "summary") == ["3 modes were followed: 1 new, 1 gone, 1 unchanged."]
    assert page.texts("p", "signature") == ["finc|n:1", "finc|n:2"]
    assert len(page.find("tr", "muted")) == 1 and len(page.find("g", inside=page.find("table", "modes")[0])) == 3


def test_the_modes_of_changes_are_cards_with_the_shares_of_both_releases_and_the_reference():
    images = {"new": noise(1), "ref": noise(2)}
    page = Page(changes.page(some_changes("new", "gone", "unchanged"), images))
    assert [tag for _, tag in cards_of(page).values()] == ["new", "gone", "unchanged"]
    new, gone, unchanged = page.find("article", "card")
    assert page.folded(unchanged) and not page.folded(gone)
    drawn = [page.texts("desc", inside=n)[0] for n in (new, unchanged)]
    assert drawn[0] == "the new release 13.1 % [10.2, 16.3]; the reference 4.0 % [2.1, 6.4]"
    assert drawn[1].startswith("the old release 13.1 % [10.2, 16.3]; the new release")
    for card, labels in ((new, ["the new release", "the reference"]), (gone, ["the reference"])):
        views = page.find("figure", inside=card)
        assert [page.texts("b", inside=n)[0] for n in views] == labels
    (view, _) = page.find("figure", inside=new)
    first = page.attributes(page.find("img", inside=view)[0])
    np.testing.assert_array_equal(pixels(first["src"]), images["new"][0])
    assert page.texts("p", "says", new) == [
        "Too many, new: 13.1 % of the new release and 4.0 % of the reference are of this kind. What it has more than "
        "the reference changed by −2.0 points (interval [−3.0, −1.0])."
    ]


def test_changes_keep_the_pictures_of_both_comparisons(tmp_path):
    edge, other = thumbnail(noise(1, 1)[0]), thumbnail(noise(2, 1)[0])
    mode = a_mode("over-1", tails=(a_tail(("a",), ("r",)), a_tail((), (), 0.0)))
    old, new = (a_comparison([mode], kept={"gen": {"a": one}, "ref": {"r": edge}}) for one in (edge, other))
    made = replace(some_changes("unchanged"), changes=(Change("grown", "over", mode, mode, 1.0, 0.1, (0.05, 0.15)),))
    made = replace(made, compared=(old, new))
    made.save(tmp_path / "changes.h5")
    loaded = fe.load(tmp_path / "changes.h5")
    assert loaded.gallery.pictures == {"old": {"a": edge}, "new": {"a": other}, "ref": {"r": edge}}
    assert changes.page(loaded, {}) == changes.page(made, {})
    assert "<img" not in changes.page(fe.load(tmp_path / "changes.json"), {})


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ((), "Nothing changed: no mode is significant in either comparison (adjusted p ≤ 0.05)."),
        (("unchanged",), "Nothing changed: the interval of every change holds zero."),
        (("new",), "1 mode was followed: 1 new."),
        (("undecided", "unchanged"), "2 modes were followed: 1 undecided, 1 unchanged."),
    ],
)
def test_the_summary_of_changes_says_what_changed(statuses, text, capsys):
    found = some_changes(*statuses)
    assert Page(changes.page(found, {})).texts("p", "summary") == [text]
    changes.show(found)
    assert capsys.readouterr().out.endswith(text + "\n")
    assert Page(found._repr_html_()).texts("caption") == [text]


@pytest.mark.parametrize(
    ("statuses", "lost", "text"),
    [
        ((), ["over-9"], "No mode could be followed. 1 mode of the old release is significant and could not"),
        (("unchanged",), ["over-8", "over-9"], "1 mode was followed: 1 unchanged. 2 modes of the old release are"),
    ],
)
def test_modes_that_could_not_be_followed_are_named(statuses, lost, text, capsys):
    found = some_changes(*statuses, lost=lost)
    changes.show(found)
    told = capsys.readouterr().out
    assert text in told and all(name in told for name in lost) and "Nothing changed" not in told
    assert text in Page(changes.page(found, {})).texts("p", "summary")[0]


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
    twin = page.find("table", "twin")[0]
    assert [page.texts("td", inside=n) for n in page.find("tr", inside=twin)[1:]] == [
        ["over-2", "generated set", "+3.0", "0.40"],
        ["over-3", "generated set", "+1.0", "–"],
        ["under-1", "reference set", "−7.0", "0.60"],
        ["over-2", "generated set", "+3.0", "0.90"],
    ]
    made.save(tmp_path / "sweep.h5")
    assert sweep_page(fe.load(tmp_path / "sweep.h5")) == sweep_page(made)
    assert not Page(sweep_page(made.showing(0))).find("img")


def test_models_keep_their_pictures(tmp_path):
    kept = {label: {name: thumbnail(noise(1, 1)[0]) for name in "73"} for label in ("alpha", "beta", "ref")}
    made = replace(model_comparison(), kept=kept)
    made.save(tmp_path / "models.h5")
    assert models_page(fe.load(tmp_path / "models.h5")) == models_page(made)
    assert Page(models_page(made)).find("img")
