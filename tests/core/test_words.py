"""Numbers as texts and tables write them."""

import pytest

from finc_eval.core.words import figure, in_percent, points, quote


@pytest.mark.parametrize(
    "value, form, text",
    [
        (-0.012345, ".4g", "−0.01235"),
        (-1e-7, ".2g", "−1e−07"),
        (12.5, ".4g", "12.5"),
        (-3.21, "+.1f", "−3.2"),
        (None, ".4g", "–"),
    ],
)
def test_a_number_has_a_minus_and_none_has_a_dash(value, form, text):
    assert figure(value, form) == text


@pytest.mark.parametrize(
    "value, digits, text",
    [
        (0.9996, 3, "100 %"),
        (1.0, 2, "100 %"),
        (-34.301, 3, "−3,430 %"),
        (-0.0, 3, "0 %"),
        (-1e-7, 3, "0 %"),
        (0.00123, 3, "0.123 %"),
        (0.0523, 2, "5.2 %"),
        (0.5, 2, "50 %"),
        (float("inf"), 3, "inf %"),
    ],
)
def test_a_part_in_percent_has_neither_an_exponent_nor_a_negative_zero(value, digits, text):
    assert in_percent(value, digits) == text


def test_points_have_a_sign_unless_they_round_to_nothing():
    assert [points(value) for value in (0.096, -0.096, 0.0004)] == ["+9.6", "−9.6", "0.0"]


def test_quotation_marks_inside_quotation_marks_are_single():
    assert quote("prompt with “black”") == "“prompt with ‘black’”"
