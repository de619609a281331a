"""Checks of arguments: what passes, and the one sentence for what does not."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.errors import check_choice, check_count, check_fraction, check_positive


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (check_positive, [1, 0.5, 1e100, np.float32(2), np.int64(3), Fraction(1, 3)]),
        (check_count, [1, 7.0, np.int64(3)]),
        (check_fraction, [0.5, 1e-9, np.float32(0.25), Fraction(1, 3)]),
    ],
)
def test_numbers_in_range_pass(check, values):
    for value in values:
        checked = check("rho", value)
        assert checked == pytest.approx(float(value)) and type(checked) in (int, float)


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (check_positive, 0, "rho must be a positive number, got 0"),
        (check_positive, float("nan"), "rho must be a positive number, got nan"),
        (check_positive, float("inf"), "rho must be a positive number, got inf"),
        (check_positive, "2", "rho must be a positive number, got '2'"),
        (check_positive, True, "rho must be a positive number, got True"),
        (check_positive, None, "rho must be a positive number, got None"),
        (check_positive, Decimal("NaN"), "rho must be a positive number, got NaN"),
        (check_count, 0, "rho must be a whole number of at least 1, got 0"),
        (check_count, 2.5, "rho must be a whole number of at least 1, got 2.5"),
        (check_count, float("nan"), "rho must be a whole number of at least 1, got nan"),
        (check_count, float("inf"), "rho must be a whole number of at least 1, got inf"),
        (check_count, "3", "rho must be a whole number of at least 1, got '3'"),
        (check_fraction, 1, "rho must lie between 0 and 1, got 1"),
        (check_fraction, -0.1, "rho must lie between 0 and 1, got -0.1"),
        (check_fraction, float("nan"), "rho must lie between 0 and 1, got nan"),
    ],
)
def test_numbers_out_of_range_are_one_sentence(check, value, message):
    with pytest.raises(fe.UsageError, match=f"^{message}$"):
        check("rho", value)


def test_limits_are_named():
    with pytest.raises(fe.UsageError, match="rho must be at most 10, got 11"):
        check_positive("rho", 11, most=10)
    with pytest.raises(fe.UsageError, match="neighbors must be a whole number of at least 2, got 1"):
        check_count("neighbors", 1, least=2)
    check_fraction("share", 1, one=True)


def test_a_choice_names_the_nearest():
    check_choice("kernel", "cosine", ("gaussian", "cosine"))
    with pytest.raises(fe.UsageError, match=r"kernel must be one of gaussian, cosine, got \'cosin\' \(did you mean"):
        check_choice("kernel", "cosin", ("gaussian", "cosine"))
    with pytest.raises(fe.UsageError, match="kernel must be one of gaussian, cosine, got 3"):
        check_choice("kernel", 3, ("gaussian", "cosine"))
