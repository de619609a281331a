"""Order of alarms: a cause with a name comes first, and a look that another look brings has no alarm."""

import pytest

from finc_eval.monitoring.followed import Alarm, names_nothing, not_told

STEPS = [0.0, 10.0, 20.0, 30.0, 40.0]


def alarm(name, after=2.0, since=20.0):
    return Alarm(40.0, name, f"{name} has changed", since, 1.0, after)


def told(new, before=(), overlap=lambda one, other: False):
    return [one.name for one in not_told(new, before, STEPS, overlap)]


def test_what_names_a_cause_comes_before_distances_and_looks_without_a_word():
    less_noisy = alarm("noise", after=0.5)
    assert [names_nothing(one) for one in (less_noisy, alarm("noise"), alarm("distance"), alarm("repeats"))] == [
        True,
        False,
        True,
        False,
    ]
    assert told([alarm("distance"), alarm("kind k3"), alarm("repeats")]) == ["kind k3", "repeats", "distance"]


def test_what_a_look_brings_has_no_alarm_of_its_own():
    blurred = [alarm("specks", 0.5), alarm("sharpness", 0.5), alarm("noise", 0.5), alarm("diversity", 0.5)]
    assert told([*blurred, alarm("distance")]) == ["sharpness", "diversity"]  # a collapse changes looks, too
    assert told([alarm("saturation", 0.1)], [alarm("gray")]) == []
    assert told([alarm("warmth")], [alarm("sharpness", 0.5)]) == ["warmth"]  # blur brings no tint


@pytest.mark.parametrize(("since", "names"), [(10.0, []), (30.0, []), (0.0, ["saturation"]), (40.0, ["saturation"])])
def test_what_changed_at_another_look_has_an_alarm_of_its_own(since, names):
    assert told([alarm("saturation", 0.1, since)], [alarm("gray")]) == names


def test_a_look_that_comes_first_in_the_order_of_names_is_never_brought():
    assert told([alarm("pattern")], [alarm("brightness")]) == ["pattern"]
    assert told([alarm("brightness")], [alarm("pattern")]) == []


def test_a_thing_and_kinds_that_overlap_have_one_alarm():
    assert told([alarm("repeats")], [alarm("repeats", since=0.0)]) == []
    together = lambda one, other: {one, other} == {"kind k1", "kind k2"}  # noqa: E731
    assert told([alarm("kind k1"), alarm("kind k2"), alarm("kind k3")], overlap=together) == ["kind k1", "kind k3"]
