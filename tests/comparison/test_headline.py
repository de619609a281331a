"""The headline: what a comparison found, in plain sentences."""

from dataclasses import replace

import pytest
from _pages import OVER, UNDER, a_comparison, a_mode

from finc_eval.comparison.headline import findings
from finc_eval.core.words import counted, listed


def kinds(count, role="over", **changes):
    return [a_mode(f"{role}-{i}", role, share_difference=0.1 - i / 1000, **changes) for i in range(count)]


def capped(over=(), under=(), cap=10, **changes):
    found = a_comparison(over, under, **changes)
    return replace(found, settings=replace(found.settings, modes=cap))


def test_samples_too_few_for_any_kind_are_not_given_a_share():
    told = a_comparison(detectable=1.0).headline
    assert told.endswith(
        "The independent samples are too few to show a separate kind of one set alone, whatever its share."
    )


def test_it_says_how_different_in_what_and_what_may_be_missed():
    named = replace(OVER, name="mostly 3 (94 %)")
    assert a_comparison([named], [UNDER]).headline == (
        "About 12 % [9, 15] of the samples would have to change kind (of 50) to make the sets alike. "
        "The generated set has more of 1 kind and less of 1 kind. "
        "The largest differences: "
        "mostly 3 (94 %): 13.1 % of generated, 4.0 % of reference, difference +6.2 to +12.0 points; "
        "under-bbbbbb: 2.0 % of generated, 10.0 % of reference, difference −11.2 to −5.0 points. "
        "A separate kind that makes up less than 1.9 % of one set alone may have been missed."
    )


def test_two_samples_of_one_source_are_said_to_be_alike():
    found = a_comparison(difference=0.01, difference_interval=(0.0, 0.04), difference_p_value=0.4, detectable=None)
    assert found.headline == (
        "As a whole, the sets are not more different than two samples of one source usually are: an estimated 1 % "
        "[0, 4] of the samples would have to change kind (of 50) to make them alike. "
        "No single kind of samples is significantly more or less frequent in the generated set."
    )


def test_a_difference_that_may_be_next_to_nothing_is_not_told_as_a_size():
    found = a_comparison(difference=0.14, difference_interval=(0.0, 0.24), difference_p_value=0.0312)
    assert found.headline.startswith(
        "As a whole, the sets differ (p = 0.031), but it cannot be told by how much: an estimated 14 % [0, 24] of the"
    )


def test_modes_that_refits_do_not_find_again_are_said_to_be_there():
    found = a_comparison(kinds(2, stability=0.3))
    assert "kind of samples can be told: 2 modes are significant, of which refits find less than half" in found.headline


def test_a_mild_and_a_noise_generator_read_differently():
    modes = kinds(10)
    mild, noise = (
        capped(modes, difference=value, difference_interval=(value - 0.02, min(value + 0.02, 1)))
        for value in (0.05, 0.99)
    )
    assert mild.headline.startswith("About 5 % [3, 7]") and noise.headline.startswith("About 99 % [97, 100]")
    assert repr(mild) != repr(noise)


@pytest.mark.parametrize(
    ("over", "cap", "says"),
    [
        (kinds(9), 10, "has more of 9 kinds."),
        (kinds(10), 10, "has more of at least 10 kinds, the most that were asked for."),
        (kinds(9) + kinds(1, p_value=0.2), 10, "has more of 9 kinds."),
        ([*kinds(9), a_mode("over-x", stability=0.2)], 10, "has more of at least 9 kinds."),
        (kinds(1), 1, "has more of at least 1 kind, the most that were asked for."),
    ],
)
def test_a_full_list_counts_as_at_least(over, cap, says):
    assert says in capped(over, cap=cap).headline


@pytest.mark.parametrize(
    ("over", "under", "says"),
    [
        (1, 1, "more of at least 2 kinds and less of at least 2 kinds, the most that were asked for."),
        (1, 0, "more of at least 2 kinds, the most that were asked for, and less of 1 kind."),
        (0, 1, "more of 1 kind and less of at least 2 kinds, the most that were asked for."),
    ],
)
def test_two_full_lists_are_told_in_one_readable_sentence(over, under, says):
    found = capped(kinds(1 + over), kinds(1 + under, "under"), cap=2)
    assert f" The generated set has {says} " in found.headline
    assert "asked for" not in repr(found)


def test_a_mode_is_of_its_own_where_its_counterpart_has_less_than_half_of_its_difference():
    over = replace(OVER, looks_different=UNDER.id)
    alike = replace(UNDER, share_difference=-0.6 * OVER.share_difference)
    small = replace(UNDER, share_difference=-0.4 * OVER.share_difference)
    assert "1 kind looks different in it." in a_comparison([over], [alike]).headline
    assert "has more of 1 kind and less of 1 kind." in a_comparison([over], [small]).headline


def test_a_difference_within_chance_is_not_called_none_where_a_kind_differs():
    told = a_comparison([OVER], difference_p_value=0.31).headline
    assert told.startswith("Over all kinds together, the difference is within chance (p = 0.31): an estimated 12 %")
    assert a_comparison(difference_p_value=0.31).headline.startswith("As a whole, the sets are not more different than")


def test_two_modes_of_one_name_do_not_read_the_same():
    over = replace(OVER, name="mostly 3 (94 %)", looks_different=UNDER.id)
    under = replace(UNDER, name="mostly 3 (71 %)", looks_different=OVER.id)
    told = a_comparison([over], [under]).headline
    assert "These look different: mostly 3 (94 %), over-aaaaaa: 13.1 % of" in told
    assert "and mostly 3 (71 %), under-bbbbbb: 2.0 % of" in told
    assert "mostly 3 (94 %): 13.1 %" in a_comparison([over], [UNDER]).headline


def test_only_significant_and_firm_modes_are_told_the_largest_difference_first():
    small, large = a_mode("small", share_difference=0.02), a_mode("large", share_difference=-0.3)
    loose, weak = (
        a_mode("loose", share_difference=0.5, stability=0.4),
        a_mode("weak", share_difference=0.6, p_value=0.06),
    )
    assert [[mode.id for mode in group] for group in findings([small, loose, large, weak])] == [["large"], ["small"]]


def test_no_more_than_three_are_told_one_by_one():
    text = a_comparison(kinds(5)).headline
    assert text.count("of generated") == 3 and "over-2" in text and "over-3" not in text


def test_modes_that_look_different_are_told_once_and_counted_as_neither_more_nor_less():
    over, under = replace(OVER, looks_different=UNDER.id), replace(UNDER, looks_different=OVER.id)
    for first, second in ((over, under), (over, UNDER), (OVER, under)):
        text = a_comparison([first], [second]).headline
        assert "1 kind looks different in it." in text and "more of" not in text
        assert text.count(OVER.id) == text.count(UNDER.id) == 1
        assert (
            "These look different: over-aaaaaa: 13.1 % of generated, 4.0 % of reference and "
            "under-bbbbbb: 2.0 % of generated, 10.0 % of reference." in text
        )


def test_a_ratio_other_than_one_is_said():
    found = a_comparison([OVER])
    doubled = replace(found, settings=replace(found.settings, rho=2.0))
    assert "A kind counts where one set has more than 2 times the share of the other." in doubled.headline
    assert "A kind counts" not in found.headline


def test_the_repr_is_short_and_json_has_the_headline():
    found = a_comparison([OVER], [UNDER])
    first, *modes = repr(found).split("\n")
    assert first == (
        "Comparison(1,200 generated, 3,400 reference, pixels@1234: 12 % [9, 15] different, more of 1 kind, "
        "less of 1 kind)"
    )
    assert [line.split(":")[0] for line in modes] == ["  over-aaaaaa", "  under-bbbbbb"]
    assert found.to_dict()["headline"] == found.headline


def test_words_have_the_right_plural():
    assert (counted(1, "sample"), counted(0, "sample"), counted(1200, "sample")) == (
        "1 sample", "0 samples", "1,200 samples",
    )  # fmt: skip
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


def test_what_was_not_tested_as_a_whole_is_said():
    found = a_comparison(difference=0.2, difference_interval=(0.0, 0.7), difference_p_value=None, detectable=None)
    assert found.headline.startswith("A set is worth too few independent samples to test how different")
    assert "an estimated 20 % [0, 70] of the samples" in found.headline


def test_few_kinds_are_said_to_be_few():
    assert a_comparison(difference_kinds=10).headline.startswith(
        "About 12 % [9, 15] of the samples would have to change kind (of only 10, as independent samples are few) to"
    )


def test_what_was_not_tested_is_not_said_to_be_alike():
    found = a_comparison(difference_p_value=None, detectable=None, tested=0, clusters_tested=0)
    assert found.headline.endswith("No kind of samples was tested: a set is worth too few independent samples.")
