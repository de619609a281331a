"""One finding in words, and which looks follow from which."""

import pytest

from finc_eval.findings.finding import Finding
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
