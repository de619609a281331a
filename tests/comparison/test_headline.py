"""The headline: what a comparison found, in plain sentences of at most 45 words."""

import re
from dataclasses import replace

import pytest
from _pages import LESS, MORE, OVER, SAME, THREES, UNDER, a_comparison, a_kind, a_mode, named

from finc_eval.comparison.headline import MAX_SENTENCE, MAX_WORDS, details, drifts, overall, sets_differ, top_level
from finc_eval.core.words import join_words, percent_range, plural
from finc_eval.naming.evidence import LOOKS_LIKE
from finc_eval.naming.looks import Look
from finc_eval.numerics.inference import BESIDE_ALPHA
from finc_eval.partitions.pages.kinds import say_missed
from finc_eval.sketches.one_law import Separability

BOTH = (MORE, LESS, SAME)
NO_NAME = "The sets differ (p = 0.002), but no kind does: what differs has no name, such as many small changes."
MISSED = "Kinds below 1.9 % may be missed."
EQUAL = {"difference": 0.01, "difference_interval": (0.0, 0.04), "difference_p_value": 0.4, "sets_p_value": 0.4}
APART = Separability(0.77, (0.72, 0.81), {})


def many(count, **changes):
    return [a_kind(f"k{i}", 0.1 - i / 1000, 0.01, **changes) for i in range(1, count + 1)]


def a_look(name, gen, ref, whole=False, kinds=()):
    return Look(name, whole, "gen", gen, ref, 0.001, name, 1.0, 0.0, {"gen": (), "ref": ()}, kinds)


BLURRED, DARKER = a_look("blurred", 0.26, 0.01, kinds=("k1",)), a_look("darker", 0.8, 0.2, whole=True)
OF_LOOK = "26 % of the generated set is blurred (reference 1 %)."
OF_MORE = "The unnamed kind k1 is 13.1 % of the generated set (reference 4.0 %)."

CASES = {
    "nothing": ([SAME], EQUAL, "The sets do not differ significantly; kinds below 1.9 % may be missed."),
    "nothing, nothing known of what is missed": (
        [SAME], {**EQUAL, "detectable": None}, "The sets do not differ significantly."
    ),
    "nothing, in too few samples": (
        [SAME], {**EQUAL, "detectable": 1.0}, "The sets do not differ significantly; samples are too few for kinds."
    ),
    "no test of the sets": (
        [SAME], {**EQUAL, "sets_p_value": None, "difference_p_value": None},
        "No kind differs significantly; kinds below 1.9 % may be missed.",
    ),
    "sets just above their level": (
        [SAME], {**EQUAL, "sets_p_value": BESIDE_ALPHA * 1.01},
        "The sets do not differ significantly; kinds below 1.9 % may be missed.",
    ),
    "shares of kinds just significant, sets not": (
        [SAME], {**EQUAL, "difference_p_value": 0.001},
        "The sets do not differ significantly; kinds below 1.9 % may be missed.",
    ),
    "a slight change of all": (
        [SAME], {**EQUAL, "sets_p_value": 0.002, "separability": APART},
        f"{NO_NAME} A classifier assigns 77 % [72, 81] of held-out samples to their set; 50 % is chance. {MISSED}",
    ),
    "a change that a classifier may guess": (
        [SAME], {**EQUAL, "sets_p_value": 0.002, "separability": Separability(0.53, (0.48, 0.58), {})},
        f"{NO_NAME} {MISSED}",
    ),
    "sets without a test of their own": (
        [SAME], {"difference_p_value": 0.001}, f"The sets differ (p = 0.001), but no kind does. {MISSED}"
    ),
    "two kinds": ([*BOTH], {}, f"{OF_MORE} The unnamed kind k2 is 2.0 % (reference 10.0 %). {MISSED}"),
    "a kind by its label": (
        [named(MORE, "mostly 3 (94 %)")], {}, f"{OF_MORE.replace('unnamed kind k1', 'kind “3”')} {MISSED}"
    ),
    "a kind by what it looks like": (
        [named(MORE, f"{LOOKS_LIKE}jellyfish (80 %)")], {},
        f"{OF_MORE.replace('unnamed kind k1', 'kind like “jellyfish”')} {MISSED}",
    ),
    "a long name": (
        [named(MORE, "one two three four five six seven")], {},
        f"{OF_MORE.replace('unnamed kind k1', 'kind “one two three four five…”')} {MISSED}",
    ),
    "a look, and no kind": ([SAME], {**EQUAL, "looks": (BLURRED,)}, f"{OF_LOOK} {MISSED}"),
    "a look that explains the kind": ([MORE, SAME], {"looks": (BLURRED,)}, f"{OF_LOOK} {MISSED}"),
    "a look and another kind": (
        [*BOTH], {"looks": (BLURRED,)}, f"{OF_LOOK} The unnamed kind k2 is 2.0 % (reference 10.0 %). {MISSED}"
    ),
    "a large kind before a small look": (
        [MORE], {"looks": (a_look("gray", 0.06, 0.01),)},
        f"{OF_MORE} 6 % of the generated set is gray (reference 1 %). {MISSED}",
    ),
    "a look of all before a larger kind": (
        [*BOTH], {"looks": (BLURRED, DARKER)},
        f"The generated set is on average darker. {OF_LOOK} 2 more kinds differ. {MISSED}",
    ),
    "more kinds than three": (
        many(5), {},
        "The unnamed kind k1 is 9.9 % of the generated set (reference 1.0 %). "
        "The unnamed kind k2 is 9.8 % (reference 1.0 %). "
        f"The unnamed kind k3 is 9.7 % (reference 1.0 %). 2 more kinds differ. {MISSED}",
    ),
}  # fmt: skip

NO_KINDS = dict.fromkeys(("difference", "difference_interval", "difference_p_value", "detectable"))


@pytest.mark.parametrize(
    ("over", "under", "says"),
    [
        (
            [OVER],
            [named(UNDER, "mostly 7 (60 %)", ("label", "7"))],
            f"The direction {OVER.id} holds 13.1 % of the generated set (reference 4.0 %). The direction “7” holds "
            "2.0 % (reference 10.0 %).",
        ),
        ([a_mode("over-1", p_value=0.4)], [], "No direction differs significantly."),
        ([a_mode("over-x", stability=0.2)], [], "No direction differs significantly."),
    ],
    ids=["two", "not significant", "not stable"],
)
def test_without_kinds_the_headline_names_directions(over, under, says):
    assert a_comparison(over, under, **NO_KINDS).headline == says


UNDER_A_HEADING = [((), ["k9"]), (("k1",), ["k2"]), (("k2", "k1"), [])]  # kinds that a look explains, and the others


@pytest.mark.parametrize(("covered", "told"), UNDER_A_HEADING)
def test_of_a_heading_with_a_kind_that_a_look_explains_the_other_kinds_are_told(covered, told):
    kinds = [a_kind("k1", 0.13, 0.04), a_kind("k2", 0.12, 0.05), SAME]
    heading = a_kind("k9", 0.25, 0.09, children=("k1", "k2"))
    look = a_look("in color", 0.52, 0.0, kinds=covered)
    found = a_comparison(kinds=kinds, headings=[heading], looks=(look,)).headline
    assert re.findall(r"k\d", found) == told and "52 % of the generated set is in color" in found


def test_two_kinds_of_one_name_never_read_the_same():
    alike = [replace(THREES, id=f"k1{i}", difference=0.1 - i / 100) for i in range(2)]
    told = a_comparison(kinds=alike).headline
    assert "“3”, k10, is 13.1 %" in told and "“3”, k11, is" in told


@pytest.mark.parametrize("case", CASES)
def test_the_headline_says_what_was_found(case):
    kinds, changes, says = CASES[case]
    assert a_comparison(kinds=kinds, **changes).headline == says


def checked(headline):
    """Assert what holds for every headline: its words, its sentences, and what each is about."""
    assert len(headline.split()) <= MAX_WORDS
    for sentence in re.split(r"(?<=[.])\s+(?=[A-Z0-9])", headline):
        assert len(sentence.split()) <= MAX_SENTENCE, sentence
        assert re.search(r"\b(sets?|kinds?)\b", sentence.lower()), sentence


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_is_short_and_about_the_sets_or_about_kinds(case):
    kinds, changes, _ = CASES[case]
    checked(a_comparison(kinds=kinds, **changes).headline)


BLOCKS = a_look("in blocks of 8 × 8 pixels, as JPEG makes them", 0.3, 0.1)
LONG = [named(kind, f"{LOOKS_LIKE}a very long name, number {kind.id[1:]} (70 %)") for kind in many(9)]


@pytest.mark.parametrize("looks", [(), (BLURRED,), (DARKER, BLURRED, BLOCKS)])
@pytest.mark.parametrize("rho", [1.0, 2.0])
def test_what_does_not_fit_is_left_out_whole(looks, rho):
    found = a_comparison(kinds=LONG, looks=looks)
    told = replace(found, settings=replace(found.settings, rho=rho)).headline
    checked(told)
    assert "(reference" in told and "may be missed" in told


def test_nothing_found_takes_a_short_sentence():
    for case in CASES:
        told = a_comparison(kinds=CASES[case][0], **CASES[case][1]).headline
        assert "not differ" not in told or len(told.split()) <= 13


@pytest.mark.parametrize("p_value", [BESIDE_ALPHA * 0.99, BESIDE_ALPHA * 1.01])
def test_sets_are_called_alike_by_their_own_test_alone(p_value):
    for kinds in ([SAME], [*BOTH]):
        found = a_comparison(kinds=kinds, **{**EQUAL, "sets_p_value": p_value})
        assert sets_differ(found) == (p_value < BESIDE_ALPHA)
        assert ("sets do not differ" in found.headline) == (p_value > BESIDE_ALPHA and kinds == [SAME])


@pytest.mark.parametrize(
    ("ends", "null", "says"),
    [
        ((0.094, 0.151), 0.0, "9, 15"),
        ((0.0, 0.24), 0.0, "0, 24"),
        ((0.003, 0.24), 0.0, "0.3, 24"),
        ((1.19e-7, 0.24), 0.0, "0.00001, 24"),
        ((0.5003, 0.81), 0.5, "50.03, 81"),
        ((0.44, 0.4996), 0.5, "44, 49.96"),
    ],
)
def test_an_interval_does_not_print_a_value_that_it_leaves_out(ends, null, says):
    assert percent_range(ends, null) == says


def test_over_all_kinds_the_page_says_how_much_would_have_to_change():
    def first(**changes):
        return overall(a_comparison(kinds=[SAME], **changes))[0]

    assert first() == "About 12 % [9, 15] of the samples would have to change kind to make the sets alike."
    assert first(**EQUAL).startswith("Over all kinds together, the difference is within chance (p = 0.4): an estimated")
    unsure = {"difference": 0.14, "difference_interval": (0.0, 0.24), "difference_p_value": 0.0312}
    assert first(**unsure).startswith("Over all kinds together, the shares differ (p = 0.031), but by an uncertain")
    untested = {"difference": 0.2, "difference_interval": (0.0, 0.7), "difference_p_value": None}
    assert first(**untested).startswith("A set has too few independent samples to test how different")
    assert "an estimated 20 % [0, 70] of the samples" in first(**untested)


def test_kinds_of_sets_say_what_may_be_missed_in_full():
    assert say_missed(None) == {}
    few = "The independent samples are too few to show a separate kind of one set alone, whatever its share."
    assert say_missed(1.0) == {"missed": few}
    missed = "A separate kind that makes up less than 1.9 % of one set alone may have been missed."
    assert say_missed(0.019) == {"missed": missed}


def test_each_finding_of_a_headline_has_a_key():
    assert [*a_comparison(kinds=BOTH).says] == ["k1", "k2", "missed"]


def test_behind_the_headline_stands_how_much_of_the_difference_the_kinds_explain():
    told = " ".join(details(a_comparison(kinds=BOTH)))
    assert told.startswith("About 12 % [9, 15] of the samples would have to change kind to make the sets alike.")
    assert "Kinds that differ explain 9 of 12 points." in told


@pytest.mark.parametrize("kinds", [[MORE, SAME], [SAME]])
def test_a_direction_that_no_kind_shows_stands_behind_the_headline(kinds):
    """A slow change of brightness over all kinds is a finding, too."""
    drift = replace(OVER, name="brighter", kinds=("k1", "k3"))
    assert "A direction differs that no kind shows" in " ".join(details(a_comparison([drift], kinds=kinds)))
    shown = replace(drift, shown_by_kinds=True)
    assert "direction" not in " ".join(details(a_comparison([shown], kinds=kinds)))


def test_what_was_not_tested_is_not_said_to_be_alike():
    found = a_comparison(kinds=[SAME], difference_p_value=None, detectable=None, tested=0, kinds_tested=0)
    assert found.headline == "No kind of samples was tested: a set has too few independent samples."


def test_a_mild_and_a_noise_generator_read_differently():
    mild, noise = (
        a_comparison(kinds=many(10), difference=value, difference_interval=(value - 0.02, min(value + 0.02, 1)))
        for value in (0.05, 0.99)
    )
    assert repr(mild) != repr(noise)


def test_only_significant_kinds_are_told_headings_in_place_of_theirs_and_the_largest_difference_first():
    small, large, weak = a_kind("k1", 0.1, 0.08), a_kind("k2", 0.1, 0.4), a_kind("k3", 0.7, 0.1, p_value=0.06)
    heading = replace(a_kind("k9", 0.3, 0.1), children=("k1", "k7"))
    assert [kind.id for kind in top_level([small, large, weak], [])] == ["k2", "k1"]
    assert [kind.id for kind in top_level([small, large, weak], [heading])] == ["k2", "k9"]
    told = a_comparison(kinds=[small, large, weak], headings=[heading]).headline
    assert "The unnamed kind k9 is 30.0 %" in told.replace("30 %", "30.0 %") and "k3" not in told and "k1" not in told


def test_two_kinds_of_one_name_do_not_read_the_same():
    first, second = named(MORE, "mostly 3 (94 %)"), named(LESS, "mostly 3 (71 %)")
    told = a_comparison(kinds=[first, second]).headline
    assert "The kind “3”, k1, is 13.1 %" in told and "The kind “3”, k2, is 2.0 %" in told


@pytest.mark.parametrize(("difference", "says"), [(0.2, "explain 9 of 20 points"), (0.08, "explain 8 of 8 points")])
def test_kinds_explain_no_more_than_there_is(difference, says):
    found = a_comparison(kinds=BOTH, difference=difference, difference_interval=(0.01, 0.3))
    assert says in " ".join(details(found)) and found.explained <= found.difference
    alike = a_comparison(kinds=[SAME])
    assert "explain" not in " ".join(details(alike)) and alike.explained == 0


@pytest.mark.parametrize(
    ("directions", "says"),
    [
        ([OVER], "A direction differs that no kind shows, such as a change of style or quality over many kinds: "
         "over-aaaaaa."),
        ([OVER, replace(UNDER, shown_by_kinds=True)], "over many kinds: over-aaaaaa."),
        ([OVER, UNDER], "2 directions differ that no kind shows, such as a change of style or quality over many kinds: "
         "over-aaaaaa and under-bbbbbb."),
        ([replace(OVER, id=f"over-{i}") for i in range(5)], "many kinds: over-0, over-1, over-2 and 2 more."),
    ],
)  # fmt: skip
def test_directions_that_no_kind_shows_are_told_as_drifts(directions, says):
    assert says in " ".join(details(a_comparison(directions, [], BOTH)))
    assert drifts(a_comparison(directions))[0].id == directions[0].id


def test_a_direction_with_the_name_of_a_kind_that_differs_is_not_told_again():
    direction = named(OVER, "mostly 3 (60 %)", ("label", "3"))
    for kind, is_told in (
        (named(MORE, "mostly 3 (94 %)"), False),
        (named(MORE, "mostly 4 (94 %)"), True),
        (MORE, True),
    ):
        found = a_comparison([direction], kinds=[kind, SAME])
        assert bool(drifts(found)) == is_told == ("direction" in " ".join(details(found)))


@pytest.mark.parametrize("changes", [{"p_value": 0.06}, {"stability": 0.4}, {"shown_by_kinds": True}])
def test_a_direction_that_is_unsure_or_that_kinds_show_is_no_drift(changes):
    one = replace(OVER, **changes)
    assert drifts(a_comparison([one])) == [] and "direction" not in " ".join(details(a_comparison([one], [], BOTH)))


def test_a_ratio_other_than_one_is_said():
    found = a_comparison(kinds=BOTH)
    doubled = replace(found, settings=replace(found.settings, rho=2.0))
    assert "A kind counts above 2 times the other set's share." in doubled.headline
    assert "A kind counts" not in found.headline


def test_the_repr_is_short_and_json_has_the_headline():
    found = a_comparison([OVER], [UNDER], BOTH)
    first, *kinds = repr(found).split("\n")
    assert first == (
        "Comparison(1,200 generated, 3,400 reference, pixels@1234: 12 % [9, 15] different, more of 1 kind, "
        "less of 1 kind)"
    )
    assert [line.split(":")[0] for line in kinds] == ["  k1", "  k2"]
    assert found.to_dict()["headline"] == found.headline


def test_words_have_the_right_plural():
    assert (plural(1, "sample"), plural(0, "sample"), plural(1200, "sample")) == (
        "1 sample", "0 samples", "1,200 samples",
    )  # fmt: skip
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
