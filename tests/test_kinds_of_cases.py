"""Cases that `make test` leaves to `make long`."""

from types import SimpleNamespace

import pytest
from _kinds_of_cases import more_of_a_kind


def left(mark, *cases, long=()):
    """The ids of the cases that are left to `make long`; a case is a table of its parameters.

    Cases with the numbers in `long` are left to it already.
    """
    items = [
        SimpleNamespace(
            nodeid=f"test.py::test[{number}]",
            callspec=SimpleNamespace(id="-".join(case.values()), params=case),
            get_closest_marker={"one_of_each": mark and mark.mark, "long": number in long or None}.get,
        )
        for number, case in enumerate(cases)
    ]
    return [item.callspec.id for item in more_of_a_kind(items)]


FOUR = [{"verb": verb, "form": form} for verb in ("compare", "kinds") for form in ("array", "folder")]


@pytest.mark.parametrize(
    "mark, expected",
    [
        (None, []),
        (pytest.mark.one_of_each(), ["compare-folder", "kinds-array", "kinds-folder"]),
        (pytest.mark.one_of_each("verb"), ["compare-folder", "kinds-folder"]),
        (pytest.mark.one_of_each("verb", "form"), ["kinds-folder"]),
        (pytest.mark.one_of_each(by=lambda case: case.split("-")[1]), ["kinds-array", "kinds-folder"]),
        (pytest.mark.one_of_each(by=lambda case: case), []),
    ],
)
def test_every_kind_keeps_its_first_case(mark, expected):
    assert left(mark, *FOUR) == expected


def test_a_case_that_is_long_anyway_stands_for_no_kind():
    assert left(pytest.mark.one_of_each(), *FOUR, long=[0]) == ["kinds-array", "kinds-folder"]
    assert left(pytest.mark.one_of_each("verb"), *FOUR, long=[0, 3]) == []
