"""The smallest number that holds, and the least score of a member of a kind."""

import numpy as np
import pytest
import torch

from finc_eval.numerics.thresholds import BINS, smallest, smallest_between, thresholds_of


@pytest.mark.parametrize("limit", [1.0, 3.7, 600.0])
def test_the_smallest_number_that_holds_is_found(limit):
    assert smallest(lambda number: number >= limit, 1024.0) == pytest.approx(limit)
    assert smallest_between(lambda number: number >= limit, 0.0, 1000.0) == pytest.approx(limit)


def test_what_does_not_hold_up_to_the_most_is_not_found():
    assert smallest(lambda number: number >= 5.0, 4.0) is None
    assert smallest(lambda _: False, 1e7) is None


def test_few_halvings_end_on_a_number_that_holds():
    assert 3.7 <= smallest(lambda number: number >= 3.7, 1000.0, halvings=3) < 4.0


def histograms(*scores):
    """Parts of one fold in each bin of the scores on each direction, from the center of a bin and its part."""
    table = torch.zeros(len(scores), BINS, dtype=torch.double)
    for row, parts in enumerate(scores):
        for score, part in parts.items():
            table[row, round((score + 1) * BINS / 2 - 0.5)] += part
    return lambda fold: table


def center(score):
    """Center of the bin of a score."""
    return (np.floor((score + 1) * BINS / 2) + 0.5) * 2 / BINS - 1


def thresholds(own, other):
    """Thresholds of several directions; both folds are alike."""
    found = thresholds_of(histograms(*own), histograms(*other), slice(0, len(own)))
    np.testing.assert_array_equal(found[0], found[1])
    return found[0].numpy()


def test_a_threshold_stands_clear_of_the_background_and_within_parts_of_the_score_of_a_member():
    score, background = center(0.8), [center(part) for part in (0.05, 0.16, 0.3, 0.45)]
    # 0.4 and 0.65 of the score of a member, and 2.25 root mean squares of the background below half of it.
    expected = [0.4 * score, 2.25 * background[1], 0.65 * score, 0.4 * score]
    own, other = ([{place: 0.9, score: part} for place in background] for part in (0.1, 0.0))
    mirrored = [[{-place: part for place, part in row.items()} for row in rows] for rows in (own, other)]
    assert thresholds(*mirrored) == pytest.approx([-one for one in expected])


@pytest.mark.parametrize("low", [0.2, 0.3, 0.45])
def test_the_score_of_a_typical_member_weighs_high_scores_by_how_many_more_have_them(low):
    low, high = center(low), center(0.7)
    own, other = {low: 0.5, high: 0.25}, {low: 0.25, high: 0.125}
    typical = np.sqrt((0.25 * low**4 + 0.125 * high**4) / (0.25 * low**2 + 0.125 * high**2))
    # Only what lies below half of it is background.
    clear = 2.25 * low if low < typical / 2 else 0
    assert thresholds([own], [other]) == pytest.approx([np.clip(clear, 0.4 * typical, 0.65 * typical)])


def test_a_threshold_is_on_the_side_on_which_one_set_has_more():
    left, right = center(-0.6), center(0.5)
    assert thresholds([{left: 0.2, right: 0.2}], [{left: 0.2}]) == pytest.approx([0.4 * right])
    assert thresholds([{left: 0.2, right: 0.2}], [{right: 0.2}]) == pytest.approx([0.4 * left])


def test_without_more_in_the_first_set_its_own_scores_tell_and_without_any_the_largest_possible():
    score = center(0.6)
    assert thresholds([{score: 0.1, -score: 0.1}], [{score: 0.2, -score: 0.3}]) == pytest.approx([0.4 * score])
    assert abs(thresholds([{}], [{}])) == pytest.approx([0.4])


def test_each_fold_is_judged_by_the_scores_of_the_other():
    """The first row is for fold 0, seen in fold 1, to which its directions were fitted."""
    tables = [histograms({center(0.4 + 0.2 * fold): 1.0})(0) for fold in (0, 1)]
    nothing = histograms({})
    found = thresholds_of(lambda fold: tables[fold], nothing, slice(0, 1))
    assert found.ravel().tolist() == pytest.approx([0.4 * center(0.6), 0.4 * center(0.4)])
