"""What follows from what: of findings that share samples, the cause is the one that explains more of the other."""

from dataclasses import replace

import numpy as np
import pytest

from finc_eval.findings.causes import Held, causes_of
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import explained
from finc_eval.naming.traits import TRAITS

SETS = ("gen", "ref")


def mask(rows, n):
    return {label: np.isin(np.arange(n), [*own]) for label, own in zip(SETS, rows, strict=True)}


def held(kind, rows, n=500, asked=None, name="it"):
    """A finding of samples of both sets by their numbers, and of those that were asked for."""
    members = mask(rows, n)
    shares = [float(members[label].mean()) for label in SETS]
    of_kind = (name,) if kind == "kind" else ()
    found = Finding(name, kind, False, *shares, 0.001, of_kind)
    return Held(found, members, name, None, None if asked is None else mask(asked, n))


def look_and_kind(looked, gen, ref):
    """A look of the first samples of both sets, and a kind with members in and outside of the look."""
    ends = (
        [*range(gen[0]), *range(looked[0], looked[0] + gen[1])],
        [*range(ref[0]), *range(looked[1], looked[1] + ref[1])],
    )
    return [held("look", (range(looked[0]), range(looked[1]))), held("kind", ends)]


LOOKS = {  # samples of gen and ref with the look; of the kind in gen, and ref, with and without it; is it explained?
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


@pytest.mark.parametrize("case", LOOKS)
def test_a_look_explains_the_kinds_that_hardly_differ_without_it(case):
    *numbers, is_explained = LOOKS[case]
    assert causes_of(look_and_kind(*numbers)) == [None, 0 if is_explained else None]


def test_a_kind_is_of_the_look_without_which_it_differs_least_or_of_several_together():
    kind = held("kind", ([*range(30), *range(100, 120)], range(200, 202)))
    gray, blurred = held("look", (range(100), range(0))), held("look", (range(100, 118), range(0)))
    assert causes_of([gray, kind]) == [None, 0] and causes_of([blurred, kind]) == [None, None]
    assert causes_of([blurred, gray, kind]) == [None, None, 1]
    half = held("look", (range(25), range(0)))
    assert causes_of([half, kind]) == [None, None]
    assert causes_of([half, blurred, kind]) == [None, None, 0]


ONES = (range(0), range(100))  # a label that the reference alone has

SHARED = {  # findings as their kind, samples and what was asked; the place of the cause of each
    "strokes that only lost ones had": (
        [("look", (range(5), range(80))), ("kind", (range(3), range(90)), ONES)], [1, None],
    ),
    "ones of a part of what lost its color": (
        [("look", (range(0), range(300))), ("kind", (range(0), range(90)), ONES)], [None, 0],
    ),
    "a kind without a name of its own": ([("look", (range(5), range(95))), ("kind", (range(3), range(90)))], [None, 0]),
    "the very same samples": ([("look", ONES), ("kind", ONES)], [None, 0]),
    "the very same samples, of a label that is gone": ([("look", ONES), ("kind", ONES, ONES)], [1, None]),
    "strokes that mark lost ones better than their kind does": (
        [("look", (range(5), range(95))), ("kind", (range(3), range(90)), ONES)], [1, None],
    ),
    "a label in both sets, of which one is blurred": (
        [("look", (range(100), range(0))), ("kind", (range(0), range(100)), (range(100), range(100)))], [None, None],
    ),
    "what marks a word that its kind finds in part": (
        [
            ("look", (range(5), range(100))),
            ("kind", (range(5), [*range(70), *range(110, 120)]), (range(120), range(120))),
        ],
        [1, None],
    ),
    "what marks a word of which its kind finds a third": (
        [("look", (range(110), range(400, 404))), ("kind", (range(39), range(4)), (range(144), range(144)))],
        [None, 0],
    ),
    "lost half and new half of a prompt": (
        [("kind", (range(5), range(120)), (range(120), range(120))), ("kind", (range(5, 240), range(120, 240)))],
        [None, 0],
    ),
    "what the new half of a prompt looks like": (
        [
            ("kind", (range(5), range(120)), (range(120), range(120))), ("kind", (range(5, 240), range(120, 240))),
            ("look", (range(5, 85), range(120, 130))),
        ],
        [None, 0, 0],
    ),
    "a kind that grows as another is lost": (
        [("kind", (range(0), range(200))), ("kind", (range(200, 350), range(200, 290)))], [None, 0],
    ),
    "a kind that grows more than another is lost": (
        [("kind", (range(0), range(20))), ("kind", (range(200, 350), range(200, 290)))], [None, None],
    ),
    "repeats and the kind of the picture": (
        [("kind", (range(100), range(0)), ONES), ("repeat", (range(100), range(0)))], [1, None],
    ),
    "a copied picture that is repeated": (
        [("copy", (range(50), range(0))), ("repeat", (range(50), range(0)))], [1, None],
    ),
    "copies of some pictures": ([("copy", (range(50), range(0))), ("look", (range(100, 200), range(0)))], [None, None]),
    "a look of all, and a kind that cannot have it": (
        [("look", (range(500), range(0))), ("kind", (range(0), range(90)), ONES)], [None, 0],
    ),
    "a set of one kind, and the kinds that it lacks": (
        [
            ("kind", (range(500), range(250))), ("kind", (range(0), range(250, 370))),
            ("kind", (range(0), range(370, 500))),
        ],
        [None, 0, 0],
    ),
    "a word, and how its images look": (
        [("words", (range(100), range(100))), ("look", (range(90), range(5))), ("kind", (range(95), range(0)), ONES)],
        [None, 0, 0],
    ),
    "two looks, of which neither follows": (
        [("look", (range(90), range(0))), ("look", (range(80), range(0)))], [None, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHARED)
@pytest.mark.parametrize("is_turned", [False, True])
def test_of_findings_that_share_samples_one_is_the_cause_in_either_set_and_order(case, is_turned):
    parts, causes = SHARED[case]
    found = [held(kind, rows, asked=asked[0] if asked else None) for kind, rows, *asked in parts]
    if is_turned:  # what one set has lost the other has more of
        found = [turned(one) for one in found]
    assert causes_of(found) == causes
    back = [None if one is None else len(found) - 1 - one for one in causes[::-1]]
    assert causes_of(found[::-1]) == back


LOST = {  # name of a kind, trait of a look, and their causes
    "jellyfish are bluish": ("jellyfish", "warmth", [1, None]),
    "what is noisy looks like a spider": ("barn spider", "noise", [None, 0]),
    "a kind without a name": ("unnamed kind k1", "warmth", [None, 0]),
    "a kind that is named by its look": ("samples that are bluish", "warmth", [None, 0]),
}


@pytest.mark.parametrize("case", LOST)
@pytest.mark.parametrize("is_turned", [False, True])
def test_what_a_lost_thing_looks_like_follows_from_it(case, is_turned):
    name, trait, causes = LOST[case]
    look = replace(held("look", (range(5), range(95))), trait=next(known for known in TRAITS if known.name == trait))
    found = [look, held("kind", (range(3), range(90)), name=name)]
    assert causes_of([*map(turned, found)] if is_turned else found) == ([None, 0] if is_turned else causes)


def turned(one):
    """The same finding, with both sets in each other's place."""
    shares = {"share_gen": one.finding.share_ref, "share_ref": one.finding.share_gen}
    members, asked = ({"gen": each["ref"], "ref": each["gen"]} if each else None for each in (one.members, one.asked))
    return replace(one, finding=replace(one.finding, **shares), members=members, asked=asked)


def test_a_cause_says_what_follows_from_it_and_stands_alone():
    look = held("look", (range(5), range(80)), name="streaked")
    ones, rest = (
        held("kind", (range(3), range(90)), asked=ONES, name="k1"),
        held("kind", (range(200, 350), range(0)), name="k2"),
    )
    found = [one.finding for one in explained([look, ones, rest])]
    assert [(one.name, one.explains) for one in found] == [("k2", ()), ("k1", ("streaked",))]
    whole = replace(look, finding=replace(look.finding, whole=True))
    found = {one.finding.name: one.finding.explains for one in explained([whole, ones, rest])}
    assert found == {"streaked": ("k2",), "k1": ()}, "no look of all pictures loses a label"


def test_findings_that_follow_from_each_other_in_a_circle_have_the_largest_as_their_cause():
    from finc_eval.findings.causes import _break_circles

    three = [held("kind", (range(0), range(size))) for size in (10, 30, 20)]
    cause = [1, 2, 0]
    _break_circles(three, cause)
    assert cause == [1, None, 0]


def test_nothing_follows_without_members_or_others():
    assert causes_of([]) == [] and causes_of([held("look", ONES)]) == [None]
