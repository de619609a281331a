"""Order of alarms: causes come first, and what follows from a cause, by its looks or its samples, has no alarm."""

from types import SimpleNamespace

import numpy as np
import pytest

from finc_eval.monitoring.causes import Causes, choose, count_shared
from finc_eval.monitoring.followed import Alarm, names_nothing

STEPS = [0.0, 10.0, 20.0, 30.0, 40.0]
KINDS = ("kind a", "kind b", "kind c", "kind d")
SCORED = ("distance", "diversity", "sharpness", "warmth", "contrast", "noise", "specks", "mosaic", "saturation")
NAMES = (*KINDS, "new kinds", "repeats", "parts", "gray", "frame", *SCORED)


def history(before=None, after=None):
    """A history whose samples have things, by name; nobody has what is not given."""

    def table(has):
        n = len(next(iter(has.values()))) if has else 0
        return count_shared(np.array([has.get(name, np.zeros(n, bool)) for name in NAMES], bool))

    tables = table(before or {}), table(after or {})
    return SimpleNamespace(
        steps=np.array(STEPS), spread_of=lambda thing: 1.0, shared_before_and_after=lambda before, since: tables
    )


def alarm(name, after=2.0, since=20.0, before=1.0, until=None):
    return Alarm(40.0, name, f"{name} has changed", since, before, after, (since, since if until is None else until))


def never(one, other):
    return False


def told(new, before=(), overlap=never, samples=None):
    causes = Causes(samples or history(), NAMES, overlap)
    return [one.name for one, cause in choose(new, before, causes.follows) if one is cause]


def test_what_names_a_cause_comes_before_distances_and_looks_without_a_word():
    nothing = [alarm("noise", 0.5), alarm("distance"), alarm("frame", 0.5), alarm("new kinds", 0.5)]
    assert all(map(names_nothing, nothing))
    assert not any(map(names_nothing, [alarm("noise"), alarm("repeats"), alarm("gray", 0.5), alarm("new kinds")]))
    assert told([alarm("diversity"), alarm("kind a"), alarm("repeats")]) == [
        "kind a",
        "repeats",
    ]  # equal samples are not diverse
    assert told([alarm("diversity"), alarm("kind a")]) == ["kind a", "diversity"]


def test_what_a_look_brings_has_no_alarm_of_its_own():
    blurred = [alarm("specks", 0.5), alarm("sharpness", 0.5), alarm("noise", 0.5), alarm("diversity", 0.5)]
    assert told([*blurred, alarm("distance")]) == ["sharpness"]
    assert told([*blurred[:3], alarm("diversity", -1)]) == ["sharpness", "diversity"]  # a collapse changes looks, too
    assert told([alarm("warmth", 0.1)], [alarm("gray")]) == []
    assert told([alarm("warmth")], [alarm("sharpness", 0.5)]) == ["warmth"]  # blur brings no tint


def test_a_frame_that_is_gone_follows_from_any_look_and_is_the_cause_of_none():
    assert told([alarm("frame", 0.1), alarm("noise")]) == ["noise"]
    assert told([alarm("noise")], [alarm("frame", 0.1)]) == ["noise"]


@pytest.mark.parametrize(("since", "names"), [(10.0, []), (30.0, []), (0.0, ["warmth"]), (40.0, ["warmth"])])
def test_what_changed_at_another_evaluation_has_an_alarm_of_its_own(since, names):
    assert told([alarm("warmth", 0.1, since)], [alarm("gray")]) == names


@pytest.mark.parametrize(("until", "names"), [(0.0, ["warmth"]), (10.0, []), (40.0, [])])
def test_a_change_whose_interval_reaches_that_of_its_cause_follows_from_it(until, names):
    assert told([alarm("warmth", 0.1, 0.0, until=until)], [alarm("gray")]) == names


@pytest.mark.parametrize(("flat", "is_cause"), [(0.4, True), (0.6, False)])
def test_a_look_takes_what_it_brings_although_that_had_an_alarm_first(flat, is_cause):
    pale, causes = alarm("saturation", 0.0), Causes(history(), NAMES, never)
    assert causes.precedes(alarm("contrast", flat), pale) == is_cause
    assert not causes.precedes(pale, alarm("contrast", flat))


def test_of_looks_that_bring_each_other_the_first_in_the_order_of_names_is_the_cause():
    assert told([alarm("sharpness", 0.5), alarm("mosaic")]) == ["mosaic"]
    assert told([alarm("sharpness", 0.5)], [alarm("mosaic")]) == []


def test_a_look_of_nearly_all_is_the_cause_of_what_has_moved_much_less():
    beyond = {"sharpness": np.zeros(100, bool), "warmth": np.arange(100) < 70}  # all are less sharp than the middle
    middle = {name: np.arange(100) % 2 == 0 for name in beyond}
    samples = history(middle, beyond)
    blurred, tinted = alarm("sharpness", -3.0), alarm("warmth", 1.5)
    assert told([tinted, blurred], samples=samples) == ["sharpness"]
    assert told([alarm("warmth", 3.5), blurred], samples=samples) == ["warmth", "sharpness"]
    few = history(middle, beyond | {"sharpness": np.arange(100) < 12})
    assert told([tinted, blurred], samples=few) == ["warmth", "sharpness"]
    assert Causes(samples, NAMES, never).precedes(blurred, tinted)
    assert not Causes(few, NAMES, never).precedes(blurred, tinted)


def of(n, **parts):
    """Which of n samples have each thing: the number of its last sample, or the numbers of its first and last."""
    rows = np.arange(n)
    spans = {name.replace("_", " "): part if isinstance(part, tuple) else (0, part) for name, part in parts.items()}
    return {name: (rows >= first) & (rows < last) for name, (first, last) in spans.items()}


CAUSES = {
    "a look of all, and kinds": (
        of(200, gray=4, kind_a=(0, 60), kind_b=(60, 100)),
        of(200, gray=200, kind_a=(0, 5), kind_b=(5, 90)),
        ["kind a", "kind b", "gray"],
        ["gray"],
    ),
    "a kind that is lost, kinds that grow, and a look of its samples": (
        of(200, kind_a=50, kind_b=(50, 110), kind_c=(110, 200), warmth=(0, 100)),
        of(200, kind_b=(0, 80), kind_c=(80, 200), warmth=(0, 66)),
        ["kind c", "warmth", "kind b", "kind a"],
        ["kind a"],
    ),
    "a picture that is repeated, and its kind": (
        of(200, kind_a=20, kind_b=(20, 200)),
        of(200, repeats=40, kind_a=56, kind_b=(56, 200)),
        ["kind a", "kind b", "repeats"],
        ["repeats"],
    ),
    "a new kind, and the kinds to which it is nearest": (
        of(200, kind_a=20, kind_b=(20, 200)),
        of(200, new_kinds=40, kind_a=56, kind_b=(56, 200)),
        ["kind a", "kind b", "new kinds"],
        ["new kinds"],
    ),
    "two kinds that are lost": (
        of(200, kind_a=40, kind_b=(40, 80), kind_c=(80, 200)),
        of(200, kind_c=(0, 200)),
        ["kind a", "kind b"],
        ["kind a", "kind b"],
    ),
    "a kind that is lost for another": (
        of(200, kind_a=50, kind_b=(50, 100), kind_c=(100, 200)),
        of(200, kind_b=(0, 100), kind_c=(100, 200)),
        ["kind b", "kind a"],
        ["kind b", "kind a"],
    ),
    "a look of a part, and a kind of other samples": (
        of(200, kind_a=40, gray=(190, 200)),
        of(200, kind_a=0, gray=(120, 200)),
        ["kind a", "gray"],
        ["kind a", "gray"],
    ),
    "a part of some pictures, which moves the mean of a look": (
        of(200, warmth=100),
        of(200, parts=30, warmth=(10, 124)),
        ["parts", "warmth"],
        ["parts", "warmth"],
    ),
    "a look of all, and parts of some that show it most": (
        of(200, gray=4),
        of(200, gray=200, parts=30),
        ["parts", "gray"],
        ["gray"],
    ),
}
"""Samples before and since, things whose evidence suffices, and those that have an alarm."""


@pytest.mark.parametrize("case", CAUSES)
def test_what_a_cause_explains_by_its_samples_has_no_alarm(case):
    before, after, reached, names = CAUSES[case]
    size = {name: [float(np.mean(has.get(name, 0))) for has in (before, after)] for name in reached}
    new = [alarm(name, own[1], before=own[0]) for name, own in size.items()]
    samples = history(before, after)
    assert sorted(told(new, samples=samples)) == sorted(names)
    assert sorted(told(new[::-1], samples=samples)) == sorted(names)
    causes = [one for one in new if one.name in names]
    assert told([one for one in new if one.name not in names], causes, samples=samples) == []


def test_a_cause_with_evidence_too_late_takes_what_had_an_alarm():
    before, after, *_ = CAUSES["a picture that is repeated, and its kind"]
    causes = Causes(history(before, after), NAMES, never)
    grown, repeats = alarm("kind a", 0.28, before=0.1), alarm("repeats", 0.2, before=0.0)
    assert causes.precedes(repeats, grown) and not causes.precedes(grown, repeats)


def test_a_cause_long_ago_takes_nothing_that_changes_now():
    before, after, *_ = CAUSES["a look of all, and kinds"]
    gray = alarm("gray", 1.0, 0.0, before=0.02)
    assert told([alarm("kind a", 0.02, 40.0, before=0.3)], [gray], samples=history(before, after)) == ["kind a"]


def test_a_thing_and_kinds_that_overlap_have_one_alarm():
    assert told([alarm("repeats")], [alarm("repeats", since=0.0)]) == []
    together = lambda one, other: {one, other} == {"kind a", "kind b"}  # noqa: E731
    assert told([alarm("kind a"), alarm("kind b"), alarm("kind c")], overlap=together) == ["kind a", "kind c"]


def test_an_alarm_is_left_out_only_where_another_stands():
    """So the probability of any alarm of an unchanged training is the same with causes as without them."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        new = [alarm(name, float(rng.normal()), float(rng.choice(STEPS)), 0.5) for name in rng.permutation(NAMES)[:5]]
        samples = [{name: rng.random(60) < rng.random() for name in NAMES} for _ in range(2)]
        assert told(new, samples=history(*samples))


def test_what_two_things_share_is_counted():
    found = count_shared(np.array([[1, 1, 0, 0], [0, 1, 1, 0]], bool))
    assert found.tolist() == [[4, 2, 2], [2, 2, 1], [2, 1, 2]]
