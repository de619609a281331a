"""The verdict: what differs, named, with both shares, in words that a newcomer understands."""

from dataclasses import replace

import pytest
from _pages import LESS, MORE, OVER, SAME, SEVENS, THREES, UNDER, Page, a_comparison, a_kind, a_mode, named

from finc_eval import report
from finc_eval.report.cards.modes import OPEN, sentence
from finc_eval.report.comparison import show
from finc_eval.report.verdict import lead, verdict

TITLES = ("fgan", "real")


def of_kinds(*kinds, **changes):
    return a_comparison(kinds=kinds, **changes)


def test_it_names_what_there_is_too_much_and_too_little_of_with_both_shares():
    assert verdict(of_kinds(THREES, SEVENS), TITLES) == (
        "fgan has too many “3” (13 % of its samples, 4 % of real), and too few “7 and 9” (2 % of its samples, 10 % of "
        "real)."
    )


def colored(count):
    """Kinds that only one set has, and their heading."""
    kinds = [
        named(a_kind(f"k{i}", 0.04 + i / 100, 0.0), f"mostly red {i} (94 %)", ("label", f"red {i}"))
        for i in range(count)
    ]
    return kinds, a_kind("k99", 0.5, 0.0, name="red", children=tuple(kind.id for kind in kinds[:2]))


def test_of_many_kinds_it_tells_their_sum_what_their_names_have_in_common_and_the_largest_two():
    kinds, _ = colored(4)
    assert verdict(of_kinds(*kinds, SEVENS), TITLES) == (
        "fgan has too many of 4 kinds, all “red” (together 22 % of its samples, 0 % of real), such as “red 3” (7 %, "
        "0 %) and “red 2” (6 %, 0 %), and too few “7 and 9” (2 % of its samples, 10 % of real)."
    )


def test_words_that_other_kinds_have_too_tell_nothing_apart():
    kinds, _ = colored(4)
    also = named(LESS, "mostly red 9 (70 %)", ("label", "red 9"))
    assert "4 kinds (together 22 %" in verdict(of_kinds(*kinds, also), TITLES)
    assert "4 kinds (together 22 %" in verdict(of_kinds(*kinds), TITLES)
    assert "4 kinds (together" in verdict(of_kinds(*kinds[:3], replace(kinds[3], name=None), SEVENS), TITLES)


def test_a_heading_is_told_in_place_of_its_kinds():
    kinds, heading = colored(2)
    assert verdict(of_kinds(*kinds, headings=[heading]), TITLES) == (
        "fgan has too many “red” (50 % of its samples, 0 % of real)."
    )


def test_two_kinds_of_one_name_never_read_the_same():
    """The largest that read differently are told, and each role is, though its kinds have names of the other role."""
    alike = [
        replace(a_kind(f"k1{i}", 0.13 - i / 100, 0.0), name=f"mostly 3 (9{i} %), brighter", evidence=THREES.evidence)
        for i in range(2)
    ]
    less = replace(LESS, name="mostly 3 (70 %), brighter", evidence=THREES.evidence)
    nine = named(a_kind("k9", 0.05, 0.01), "mostly 9 (80 %)", ("label", "9"))
    found = of_kinds(*alike, nine, less)
    told = verdict(found, TITLES)
    assert "such as “3”, k10 (13 %, 0 %) and “9” (5 %, 1 %), and too few “3”, k2 (2 % of its" in told
    page, view = Page(report.page(found, {})), Page(report.fragment(found))
    rows = [page.texts("th", inside=n)[0] for n in page.find("tbody") if "data-mode" in page.attributes(n)]
    assert rows == ["3 k10", "3 k11", "9", "3 k2"]
    shown = view.texts("th", inside=view.find("tbody")[0])
    assert shown[1:3] == ["mostly 3 (90 %), brighter, k10", "mostly 3 (91 %), brighter, k11"]


def test_with_a_rho_the_verdict_says_what_counts():
    found = of_kinds(THREES, SEVENS)
    found = replace(found, settings=replace(found.settings, rho=2.0))
    assert verdict(found, TITLES).endswith(" That is more than 2 times the share of the other set.")
    nothing = verdict(replace(found, kinds=(SAME,)), TITLES)
    assert nothing.endswith("with a share in one set significantly above 2 times the share in the other.")
    assert "times" not in verdict(of_kinds(THREES, SEVENS), TITLES)


def test_without_a_difference_it_says_so_and_what_may_be_missed():
    assert verdict(of_kinds(SAME), TITLES) == (
        "No kind of samples was found that fgan has significantly more or less often than real."
    )
    assert lead(of_kinds(SAME)).endswith("may have been missed.")


def test_what_follows_says_how_different_the_sets_are_and_how_much_of_it_the_kinds_explain():
    told = lead(of_kinds(MORE, LESS, SAME))
    assert told.startswith("About 12 % [9, 15] of the samples would have to change kind to make the sets alike.")
    assert "These kinds explain 9 of the 12 points." in told


def test_a_direction_that_no_kind_shows_is_told():
    """A slow change of brightness over all kinds is a finding, too."""
    drift = replace(OVER, name="brighter", kinds=("k1", "k3"))
    assert "A direction differs that no kind shows" in lead(a_comparison([drift], kinds=[MORE, SAME]))
    shown = replace(drift, shown_by_kinds=True)
    assert "direction" not in lead(a_comparison([shown], kinds=[MORE, SAME]))


def test_a_drift_is_the_verdict_where_no_kind_differs():
    drift = replace(OVER, name="brighter")
    found = a_comparison([drift], kinds=[SAME])
    assert verdict(found, TITLES).startswith("A direction differs that no kind shows")
    assert "direction" not in lead(found)


def test_shares_that_round_to_one_number_get_a_decimal():
    near = named(a_kind("k1", 0.134, 0.126), "mostly 3 (90 %)", ("label", "3"))
    assert "(13.4 % of its samples, 12.6 % of real)" in verdict(of_kinds(near), TITLES)


def test_without_kinds_it_tells_directions_and_says_nothing_of_kinds():
    other = named(UNDER, "mostly 7 (60 %)", ("label", "7"))
    found = a_comparison([OVER], [other])
    assert verdict(found, TITLES) == (
        "fgan has more samples along 1 direction: samples without a name, over-aaaaaa (13 % of its samples, 4 % of "
        "real), and fewer samples along 1 direction: “7” (2 % of its samples, 10 % of real)."
    )
    assert lead(found) == ""
    nothing = verdict(a_comparison([a_mode("over-1", p_value=0.4)]), TITLES)
    assert nothing == "No direction was found that fgan has significantly more or less often than real."
    page = Page(report.page(found, {})).visible
    assert "kind" not in page.lower() and "cluster" not in page.lower()


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
    page = Page(report.page(of_kinds(kind), {}))
    assert f"(interval {text})." in page.texts("p", "says", page.section(kind))[0]


def test_unstable_directions_are_not_told():
    assert "over-x" not in verdict(a_comparison([a_mode("over-x", stability=0.2)], [UNDER]), TITLES)
