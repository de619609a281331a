"""The verdict: what differs, named, with both shares, in words that a newcomer understands."""

from dataclasses import replace

import pytest
from _pages import OVER, SEVENS, THREES, UNDER, Page, a_comparison, a_mode, named

from finc_eval import report
from finc_eval.report.comparison import show
from finc_eval.report.verdict import WHY_OPEN, lead, sentence, verdict

TITLES = ("fgan", "real")


def test_it_names_what_there_is_too_much_and_too_little_of_with_both_shares():
    assert verdict(a_comparison([THREES], [SEVENS]), TITLES) == (
        "fgan has too many “3” (13 % of its samples, 4 % of real), and too few “7 and 9” (2 % of its samples, 10 % of "
        "real)."
    )


def test_two_of_each_role_are_told_the_largest_first():
    modes = [
        replace(THREES, id=f"over-{i}", name=f"mostly {i} (94 %)", share_difference=0.05 + i / 100) for i in range(4)
    ]
    told = verdict(a_comparison(modes), TITLES)
    assert told == "fgan has too many “3” (13 % of its samples, 4 % of real) and “2” (13 %, 4 %)."
    assert " 4 kinds differ: 4 too many." in lead(a_comparison(modes))


def test_where_as_many_were_found_as_were_asked_for_there_may_be_more():
    found = a_comparison([THREES, replace(THREES, id="over-2")], [SEVENS])
    full = replace(found, settings=replace(found.settings, modes=2))
    assert "At least 3 kinds differ: at least 2 too many and 1 too few." in lead(full)


def test_modes_that_show_one_kind_look_different():
    over, under = replace(THREES, looks_different=SEVENS.id), replace(SEVENS, looks_different=THREES.id)
    found = a_comparison([over], [under])
    assert verdict(found, TITLES) == "fgan has “3” (brighter) that look different from those of real."
    assert "1 kind differs: 1 that looks different." in lead(found)


def test_two_kinds_of_one_name_never_read_the_same():
    """The largest that read differently are told, and each role is, though its kinds have names of the other role."""
    alike = [
        replace(THREES, id=f"over-{i}", name=f"mostly 3 (9{i} %), brighter", share_difference=0.1 - i / 100)
        for i in range(3)
    ]
    nines = named(replace(OVER, id="over-9", share_difference=0.01), "mostly 9 (80 %)", ("label", "9"))
    less = replace(UNDER, name="mostly 3 (70 %), brighter", evidence=THREES.evidence)
    found = a_comparison([*alike, nines], [less])
    assert verdict(found, TITLES) == (
        "fgan has too many “3”, over-0 (13 % of its samples, 4 % of real) and “9” (13 %, 4 %), and too few “3”, "
        "under-bbbbbb (2 % of its samples, 10 % of real)."
    )
    page, view = Page(report.page(found, {})), Page(report.fragment(found))
    rows = [page.texts("th", inside=n)[0] for n in page.find("tr") if "data-mode" in page.attributes(n)]
    assert rows == ["3 over-0", "3 over-1", "3 over-2", "3 under-bbbbbb", "9"]
    told = [page.texts("a", inside=n)[0] for n in page.find("div", "one")]
    assert told == [f"“3”, {one}" for one in ("over-0", "over-1", "over-2", "under-bbbbbb")]
    shown = view.texts("th", inside=view.find("tbody")[0])
    assert shown[:2] == ["mostly 3 (90 %), brighter, over-0", "mostly 3 (91 %), brighter, over-1"]


def test_with_a_rho_the_verdict_says_what_too_many_is():
    found = a_comparison([THREES], [SEVENS])
    found = replace(found, settings=replace(found.settings, rho=2.0))
    assert "Too many: fgan has more than 2 times the share of real; too few: real has more than" in verdict(
        found, TITLES
    )
    nothing = verdict(replace(found, over=(), under=()), TITLES)
    assert nothing.endswith("of which one set has significantly more than 2 times the share of the other.")
    assert "times" not in verdict(a_comparison([THREES], [SEVENS]), TITLES)


def test_a_kind_that_looks_different_is_not_mistaken_for_its_counterpart_or_another_kind():
    over, under = (replace(THREES, looks_different=UNDER.id), named(UNDER, "mostly 3 (80 %)", ("label", "3")))
    under = replace(under, looks_different=over.id)
    more = replace(THREES, id="over-3", share_difference=0.3)
    page = Page(report.page(a_comparison([over], [under]), {}))
    assert page.texts("p", "legend", page.section(over))[0] == (
        "The other set has mostly 3 (80 %) instead: these look different."
    )
    assert verdict(a_comparison([more, over], [under]), TITLES) == (
        "fgan has too many “3”, over-3 (13 % of its samples, 4 % of real). fgan also has “3”, over-aaaaaa (brighter) "
        "that look different from those of real."
    )
    same = replace(under, name=over.name, evidence=over.evidence)
    page = Page(report.page(a_comparison([over], [same]), {}))
    assert "has mostly 3 (94 %), brighter, under-bbbbbb instead" in page.texts("p", "legend", page.section(over))[0]


def test_without_a_difference_it_says_so_and_what_may_be_missed():
    assert verdict(a_comparison(), TITLES) == (
        "No kind of sample was found that fgan has significantly more or less often than real."
    )
    assert lead(a_comparison()).endswith("may have been missed.")


def test_shares_that_round_to_one_number_get_a_decimal():
    near = replace(THREES, share_gen=0.134, share_ref=0.126)
    assert "(13.4 % of its samples, 12.6 % of real)" in verdict(a_comparison([near]), TITLES)


def test_a_mode_says_both_shares_and_their_interval():
    assert sentence(UNDER, TITLES) == (
        "2.0 % of the samples of fgan are of this kind, and 10.0 % of those of real: 8.0 points fewer (interval −11.2 "
        "to −5.0)."
    )


@pytest.mark.parametrize("found_by", WHY_OPEN)
def test_a_significant_mode_whose_interval_holds_zero_says_what_else_was_tested(found_by, capsys):
    open_share = replace(UNDER, share_difference_interval=(-0.1, 0.01), found_by=found_by)
    for mode, told in ((UNDER, 0), (open_share, 1), (replace(open_share, p_value=0.2), 0)):
        assert sentence(mode, TITLES).count(WHY_OPEN[found_by]) == told
        show(a_comparison([mode]))
        assert capsys.readouterr().out.count(f"The interval of {mode.id} holds 0, though p is at most 0.05: ") == told


def test_modes_whose_intervals_hold_zero_are_told_by_what_found_them(capsys):
    modes = [
        replace(UNDER, id=f"under-{found_by}", share_difference_interval=(-0.1, 0.01), found_by=found_by)
        for found_by in ("directions", "clusters", "both")
    ]
    show(a_comparison(modes))
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "The interval of under-directions and under-both holds 0, though p is at most 0.05: p tests the excess" in told
    )
    assert "The interval of under-clusters holds 0, though p is at most 0.05: p tests the samples of a cluster" in told


def test_unstable_modes_are_not_told():
    assert "over-x" not in verdict(a_comparison([a_mode("over-x", stability=0.2)], [SEVENS]), TITLES)
