"""The headline: what a comparison found, in plain sentences."""

from dataclasses import replace

import pytest
from _pages import LESS, MORE, OVER, SAME, UNDER, a_comparison, a_kind, a_mode, named

from finc_eval.comparison.headline import drifts, top_level
from finc_eval.core.words import join_words, plural

BOTH = (MORE, LESS, SAME)


def many(count, **changes):
    return [a_kind(f"k{i}", 0.1 - i / 1000, 0.01, **changes) for i in range(1, count + 1)]


def test_samples_too_few_for_any_kind_are_not_given_a_share():
    told = a_comparison(kinds=[SAME], detectable=1.0).headline
    assert told.endswith(
        "The independent samples are too few to show a separate kind of one set alone, whatever its share."
    )


def test_it_says_how_different_in_what_what_is_explained_and_what_may_be_missed():
    threes = named(MORE, "mostly 3 (94 %)")
    assert a_comparison([], [], [threes, LESS, SAME]).headline == (
        "About 12 % [9, 15] of the samples would have to change kind to make the sets alike. "
        "The generated set has more of 1 kind and less of 1 kind. "
        "The largest differences: "
        "mostly 3 (94 %): 13.1 % of generated, 4.0 % of reference, difference +6.1 to +12.1 points; "
        "k2: 2.0 % of generated, 10.0 % of reference, difference −11.0 to −5.0 points. "
        "These kinds explain 9 of the 12 points. "
        "A separate kind that makes up less than 1.9 % of one set alone may have been missed."
    )


def test_two_samples_of_one_source_are_said_to_be_alike():
    chance = {"difference": 0.01, "difference_interval": (0.0, 0.04), "difference_p_value": 0.4, "detectable": None}
    assert a_comparison(kinds=[SAME], **chance).headline == (
        "As a whole, the sets are not more different than two samples of the same source usually are: an estimated 1 % "
        "[0, 4] of the samples would have to change kind to make them alike. "
        "No single kind of samples is significantly more or less frequent in the generated set."
    )


def test_a_difference_that_may_be_next_to_nothing_is_not_told_as_a_size():
    found = a_comparison(kinds=[SAME], difference=0.14, difference_interval=(0.0, 0.24), difference_p_value=0.0312)
    assert found.headline.startswith(
        "As a whole, the sets differ (p = 0.031), but by an uncertain amount: an estimated 14 % [0, 24] of the"
    )


def test_a_difference_within_chance_is_not_called_none_where_a_kind_differs():
    told = a_comparison(kinds=BOTH, difference_p_value=0.31).headline
    assert told.startswith("Over all kinds together, the difference is within chance (p = 0.31): an estimated 12 %")
    alike = a_comparison(kinds=[SAME], difference_p_value=0.31).headline
    assert alike.startswith("As a whole, the sets are not more different than")


def test_what_was_not_tested_as_a_whole_is_said():
    changes = {"difference": 0.2, "difference_interval": (0.0, 0.7), "difference_p_value": None, "detectable": None}
    found = a_comparison(kinds=[SAME], **changes)
    assert found.headline.startswith("A set has too few independent samples to test how different")
    assert "an estimated 20 % [0, 70] of the samples" in found.headline


def test_what_was_not_tested_is_not_said_to_be_alike():
    found = a_comparison(kinds=[SAME], difference_p_value=None, detectable=None, tested=0, kinds_tested=0)
    assert found.headline.endswith("No kind of samples was tested: a set has too few independent samples.")


def test_a_mild_and_a_noise_generator_read_differently():
    mild, noise = (
        a_comparison(kinds=many(10), difference=value, difference_interval=(value - 0.02, min(value + 0.02, 1)))
        for value in (0.05, 0.99)
    )
    assert mild.headline.startswith("About 5 % [3, 7]") and noise.headline.startswith("About 99 % [97, 100]")
    assert repr(mild) != repr(noise)


def test_only_significant_kinds_are_told_headings_in_place_of_theirs_and_the_largest_difference_first():
    small, large, weak = a_kind("k1", 0.1, 0.08), a_kind("k2", 0.1, 0.4), a_kind("k3", 0.7, 0.1, p_value=0.06)
    heading = replace(a_kind("k9", 0.3, 0.1), children=("k1", "k7"))
    assert [kind.id for kind in top_level([small, large, weak], [])] == ["k2", "k1"]
    assert [kind.id for kind in top_level([small, large, weak], [heading])] == ["k2", "k9"]
    told = a_comparison(kinds=[small, large, weak], headings=[heading]).headline
    assert "k9 (2 kinds): 30.0 % of generated" in told and "k3" not in told and "k1:" not in told


def test_no_more_than_three_are_told_one_by_one():
    text = a_comparison(kinds=many(5)).headline
    assert text.count("of generated") == 3 and "k3:" in text and "k4:" not in text
    assert "has more of 5 kinds." in text


def test_two_kinds_of_one_name_do_not_read_the_same():
    first, second = named(MORE, "mostly 3 (94 %)"), named(LESS, "mostly 3 (71 %)")
    told = a_comparison(kinds=[first, second]).headline
    assert "mostly 3 (94 %), k1: 13.1 %" in told and "mostly 3 (71 %), k2: 2.0 %" in told
    assert "mostly 3 (94 %): 13.1 %" in a_comparison(kinds=[first, LESS]).headline


@pytest.mark.parametrize(
    ("difference", "says"), [(0.2, "explain 9 of the 20 points"), (0.08, "explain 8 of the 8 points")]
)
def test_kinds_explain_no_more_than_there_is(difference, says):
    found = a_comparison(kinds=BOTH, difference=difference, difference_interval=(0.01, 0.3))
    assert says in found.headline and found.explained <= found.difference
    assert "explain" not in a_comparison(kinds=[SAME]).headline and a_comparison(kinds=[SAME]).explained == 0


@pytest.mark.parametrize(
    ("directions", "says"),
    [
        ([OVER], "A direction differs that no kind shows, such as a change of style or quality over many kinds: "
         "over-aaaaaa."),
        ([OVER, replace(UNDER, shown_by_kinds=True)], "over many kinds: over-aaaaaa."),
        ([OVER, UNDER], "2 directions differ that no kind shows, such as a change of style or quality over many kinds: "
         "over-aaaaaa and under-bbbbbb."),
        ([a_mode(f"over-{i}") for i in range(5)], "many kinds: over-0, over-1, over-2 and 2 more."),
    ],
)  # fmt: skip
def test_directions_that_no_kind_shows_are_told_as_drifts(directions, says):
    assert says in a_comparison(directions, [], BOTH).headline
    assert drifts(directions)[0].id == directions[0].id


def test_where_no_kind_differs_the_drift_comes_first_and_nobody_says_that_the_sets_are_alike():
    found = a_comparison([OVER], [], [SAME], difference_p_value=0.4)
    assert found.headline.startswith("A direction differs that no kind shows")
    assert "Over all kinds together, the difference is within chance" in found.headline
    assert "than two samples of the same source" not in found.headline


@pytest.mark.parametrize("changes", [{"p_value": 0.06}, {"stability": 0.4}, {"shown_by_kinds": True}])
def test_a_direction_that_is_unsure_or_that_kinds_show_is_no_drift(changes):
    one = replace(OVER, **changes)
    assert drifts([one]) == [] and "direction" not in a_comparison([one], [], BOTH).headline


@pytest.mark.parametrize(
    ("directions", "says"),
    [
        ([OVER, UNDER], "2 directions differ significantly."),
        ([OVER], "1 direction differs significantly."),
        ([replace(OVER, stability=0.3)], "0 directions differ significantly."),
    ],
)
def test_finc_alone_tells_of_directions_and_of_no_kinds(directions, says):
    found = a_comparison(directions)
    assert found.headline == says and found.explained is None


def test_a_collapse_stands_first():
    note = "gen repeats itself: 369 distinct samples among 10,000, which count as they come"
    told = a_comparison(kinds=BOTH, warnings=("another note", note)).headline
    assert told.startswith("gen repeats itself: 369 distinct samples among 10,000. About 12 %")


def test_a_ratio_other_than_one_is_said():
    found = a_comparison(kinds=BOTH)
    doubled = replace(found, settings=replace(found.settings, rho=2.0))
    assert "A kind counts if one set has more than 2 times the share of the other." in doubled.headline
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
