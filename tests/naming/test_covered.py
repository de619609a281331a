"""Kinds that looks explain: a kind is said once, by the look that makes it, unless it differs beyond the look."""

import numpy as np
import pytest

from finc_eval.naming.covered import kinds_of_looks

SETS = ("gen", "ref")


def has_first(count, n):
    """Mask of a look that the first samples of a set have."""
    return np.arange(n) < count


def sets_of(looked, members, n):
    """Return a look of the first samples, and the kinds of samples; members are in and outside of the look."""
    kinds = {}
    for label in SETS:
        inside, outside = members[label]
        names = np.full(n[label], "", object)
        names[:inside] = "k1"
        names[looked[label] : looked[label] + outside] = "k1"
        kinds[label] = names.tolist()
    return {label: has_first(looked[label], n[label]) for label in SETS}, kinds


CASES = {  # samples of gen and ref with the look; of the kind in gen, and ref, with and without it; is it explained?
    "all of the kind has the look": ((125, 0), (70, 0), (0, 0), True),
    "most of it has, but not with the few of the reference": ((120, 0), (13, 10), (0, 4), True),
    "a third of it has, as of the set": ((125, 0), (8, 22), (0, 4), False),
    "no member has the look, and the look takes no room": ((250, 0), (0, 235), (0, 470), True),
    "a small kind has half of the room": ((260, 0), (0, 15), (0, 30), True),
    "there is less room, and yet less of it": ((125, 0), (0, 33), (0, 65), True),
    "more than half of it is gone": ((260, 0), (0, 5), (0, 30), False),
    "all of it is gone": ((260, 0), (0, 0), (0, 15), False),
    "all of it is gone, which few samples cannot show": ((450, 0), (0, 0), (0, 6), False),
    "it has grown all the same": ((260, 0), (0, 60), (0, 30), False),
    "it is as large, though half of the set has the look": ((260, 0), (0, 30), (0, 30), False),
    "the reference has the look": ((0, 125), (0, 2), (60, 2), True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_look_explains_the_kinds_that_hardly_differ_without_it(case):
    looked, gen, ref, explained = CASES[case]
    has, kinds = sets_of(dict(zip(SETS, looked, strict=True)), {"gen": gen, "ref": ref}, {"gen": 500, "ref": 500})
    assert kinds_of_looks([has], kinds) == [("k1",) if explained else ()]


def test_a_kind_is_of_the_look_without_which_it_differs_least():
    n = {"gen": 500, "ref": 500}
    gray, kinds = sets_of({"gen": 100, "ref": 0}, {"gen": (30, 20), "ref": (0, 2)}, n)
    blurred = {label: np.zeros(500, bool) for label in SETS}
    blurred["gen"][100:118] = True  # 18 of the 20 members that are not gray
    assert kinds_of_looks([gray], kinds) == [("k1",)]
    assert kinds_of_looks([blurred], kinds) == [()]
    assert kinds_of_looks([blurred, gray], kinds) == [(), ("k1",)]
    halves = [{**gray, "gen": has_first(25, 500)}, blurred]  # none of them alone explains half of the kind
    assert [kinds_of_looks([one], kinds) for one in halves] == [[()], [()]]
    assert kinds_of_looks(halves, kinds) == [("k1",), ()]


def test_looks_explain_nothing_where_no_kind_differs_or_the_samples_are_others():
    has = {label: has_first(20, 50) for label in SETS}
    assert kinds_of_looks([has, has], dict.fromkeys(SETS, [""] * 50)) == [(), ()]
    assert kinds_of_looks([has], dict.fromkeys(SETS, ["k1"] * 40)) == [()]
