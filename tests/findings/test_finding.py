"""One finding in words, and which looks follow from which."""

import pytest

from finc_eval.findings.finding import Finding
from finc_eval.findings.found import look_finding
from finc_eval.naming.looks import Look
from finc_eval.naming.traits import TRAITS

BY_NAME = {trait.name: trait for trait in TRAITS}


@pytest.mark.parametrize(
    ("cause", "more", "other", "other_more", "follows"),
    [
        ("sharpness", False, "noise", False, True),  # blur takes noise away
        ("sharpness", False, "warmth", True, False),
        ("gray", True, "saturation", False, True),
        ("gray", False, "saturation", True, False),  # pictures in color are no consequence of fewer gray ones
        ("frame", True, "noise", True, True),
        ("frame", False, "noise", True, False),
        ("noise", True, "frame", False, True),  # noise ends a frame of one color
        ("noise", True, "frame", True, False),
        ("brightness", False, "frame", False, False),  # dark pictures keep their frames
        ("brightness", False, "gray", False, False),  # "in color" is a word
        ("noise", True, "noise", True, False),
    ],
)
def test_a_look_leads_to_what_it_brings_and_to_the_loss_of_what_it_ends(cause, more, other, other_more, follows):
    assert BY_NAME[cause].leads_to(BY_NAME[other], is_more=more, other_is_more=other_more) == follows


def test_a_finding_without_shares_is_as_large_as_a_whole_set():
    words = Finding("prompt with seven", "words", False, None, None, 0.001)
    assert (words.size, words.is_more, words.words, words.say("before")) == (1.0, True, words.name, words.name)
    assert Finding("seven", "kind", False, 0.0, 0.2, 0.001).is_lost


@pytest.mark.parametrize(
    ("whole", "share", "has_shares", "words"),
    [
        (False, 0.3, True, "a third is darker"),
        (True, 0.7, False, "the set is on average darker"),
        (True, 0.99, True, "nearly all of the set is darker"),
    ],
)
def test_a_look_that_has_moved_on_average_has_no_share(whole, share, has_shares, words):
    look = Look("darker", whole, "gen", share, 0.1, 0.001, "brightness", 0.3, 0.5, {"gen": ("a",), "ref": ("b",)})
    found = look_finding(look)
    assert (found.share_gen, found.share_ref) == ((share, 0.1) if has_shares else (None, None))
    assert (found.words, found.size, found.ids) == (words, 1.0 if whole else pytest.approx(0.2), ("a",))
