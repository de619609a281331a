"""The first sentence: all outputs of a result begin with the same one."""

from dataclasses import replace

import pytest
from _forged import outputs
from _pages import LESS, UNDER, Page, a_comparison

from finc_eval import report
from finc_eval.comparison.pages.comparison import show
from finc_eval.comparison.pages.directions import OPEN, sentence
from finc_eval.comparison.pages.looks import seen_first
from finc_eval.core.words import one_line
from finc_eval.naming.looks import Look
from finc_eval.report import outline
from finc_eval.report.terminal import PLAIN
from finc_eval.results import RESULTS

TITLES = ("fgan", "real")


def plain(text):
    """Return a text without what outputs add to it: lines, signs of Markdown, and other signs of a log."""
    return " ".join(one_line(text).replace("\\", "").translate(PLAIN).split())


@pytest.mark.parametrize("name", RESULTS)
def test_all_outputs_begin_with_one_sentence(name, documents):
    result = documents[name]
    first, made = plain(outline(result).headline), outputs(result)
    assert first
    assert [plain(text) for text in Page(made["page"]).texts("p", "summary")] == [first]
    paragraphs = [plain(one) for one in made["md"].split("\n\n") if not one.startswith(("#", "<!--"))]
    assert paragraphs[0] == first
    lines = [plain(line) for line in made["terminal"].splitlines()]
    assert any(first.startswith(line) for line in (lines[0], lines[-1]) if line), lines
    caption = plain(Page(result._repr_html_()).texts("caption")[0])
    assert caption.removeprefix(plain(outline(result).title)).lstrip(" :").startswith(first)
    stored = [*result.to_dict()]
    assert stored[stored.index("layout") + 1] == "headline"
    assert result.to_dict()["headline"] == result.headline
    assert result.headline and first.startswith(plain(result.headline))
    assert plain(" ".join(result.says.values())) == first


def test_the_cards_of_looks_come_in_the_order_of_the_headline():
    def look(name, gen, whole=False):
        return Look(name, whole, "gen", gen, 0.0, 0.001, name, 1.0, 0.0, {"gen": ("0",), "ref": ("1",)})

    found = a_comparison(
        kinds=[LESS], looks=(look("blurred", 0.05), look("gray", 0.3), look("darker", 0.8, whole=True))
    )
    words = ("darker", "gray", "blurred")
    seen = seen_first(found, TITLES)  # k2 differs by 8 points: more than the blurred 5 %
    assert [one.heading for one in seen.first] == ["on average darker", "gray"]
    assert [one.heading for one in seen.later] == ["blurred"]
    assert [view.grids[0].heading for view in seen.later[0].views] == ["5.0 % clearest", "0.0 % typical"]
    assert sorted(words, key=found.headline.index) == [*words]


def test_a_direction_says_both_shares_and_their_interval():
    assert sentence(UNDER, TITLES) == (
        "2.0 % of the samples of fgan are members, and 10.0 % of the samples of real: 8.0 points fewer (interval "
        "−11.2 to −5.0)."
    )


def test_a_significant_direction_whose_interval_holds_zero_says_what_else_was_tested(capsys):
    open_share = replace(UNDER, share_difference_interval=(-0.1, 0.01))
    for mode, told in ((UNDER, 0), (open_share, 1), (replace(open_share, p_value=0.2), 0)):
        assert sentence(mode, TITLES).count(OPEN) == told
        show(a_comparison([mode]))
        assert " ".join(capsys.readouterr().out.split()).count(f"{mode.id}:{OPEN}") == told


@pytest.mark.parametrize(("end", "text"), [(-1e-9, "−5.0 to < 0"), (-0.02, "−5.0 to −2.0")])
def test_an_interval_that_just_leaves_out_zero_does_not_read_as_if_it_held_it(end, text):
    kind = replace(LESS, difference=0.03, interval=(-end, 0.05))
    page = Page(report.page(a_comparison(kinds=[kind]), {}))
    assert f"(interval {text})." in page.texts("p", "says", page.section(kind))[0]
