"""The verdict: what differs, named, with both shares, in words that a newcomer understands."""

from dataclasses import replace

import pytest
from _pages import OVER, UNDER, a_comparison, a_mode

from finc_eval.naming.evidence import Evidence
from finc_eval.report.comparison import show
from finc_eval.report.verdict import WHY_OPEN, kind, lead, sentence, short, verdict

TITLES = ("fgan", "real")


def named(mode, text, *evidence):
    return replace(
        mode, name=text, evidence=tuple(Evidence(source, value, 0.9, 0.1, 0.0) for source, value in evidence)
    )


THREES = named(OVER, "mostly 3 (94 %), brighter", ("label", "3"), ("trait", "brighter"))
SEVENS = named(UNDER, "7 and 9 (50 %, 41 %)", ("label", "7"), ("label", "9"))


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


def test_without_a_difference_it_says_so_and_what_may_be_missed():
    assert verdict(a_comparison(), TITLES) == (
        "No kind of sample was found that fgan has significantly more or less often than real."
    )
    assert lead(a_comparison()).endswith("may have been missed.")


@pytest.mark.parametrize(
    ("mode", "words", "few"),
    [
        (THREES, "“3”", "3"),
        (SEVENS, "“7 and 9”", "7 and 9"),
        (OVER, "samples without a name, over-aaaaaa", "over-aaaaaa"),
        (
            named(OVER, "brighter, bluer", ("trait", "brighter"), ("trait", "bluer")),
            "samples that are “brighter, bluer”",
            "brighter, bluer",
        ),
        (named(OVER, "looks like tabby (60 %)", ("classifier", "tabby")), "samples that look like “tabby”", "tabby"),
        (
            named(OVER, "prompt with “a dog” (70 %)", ("prompt", "a dog")),
            "“prompt with “a dog””",
            "prompt with “a dog”",
        ),
    ],
)
def test_kinds_are_named_in_few_words(mode, words, few):
    assert kind(mode) == words
    assert short(mode) == few


def test_modes_of_one_short_name_are_told_apart_by_their_traits():
    traits = (("trait", "darker"), ("trait", "sharper"))
    dark, sharp = (named(OVER, f"mostly 1 (90 %), {value}", ("label", "1"), (one, value)) for one, value in traits)
    sharp = replace(sharp, id="over-sharp")
    assert (short(dark), short(dark, [dark]), short(dark, [dark, sharp])) == ("1", "1", "1, darker")
    told = verdict(a_comparison([dark, sharp]), TITLES)
    assert "“1, darker” (" in told and "“1, sharper” (" in told


def test_a_name_of_traits_keeps_them_whatever_else_is_known():
    mode = named(OVER, "greener, sharper", ("classifier", "monarch"), ("trait", "greener"), ("trait", "sharper"))
    assert kind(mode) == "samples that are “greener, sharper”" and short(mode) == "greener, sharper"


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
