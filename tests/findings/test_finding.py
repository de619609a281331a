"""One finding in words, and which looks follow from which."""

import pytest

from finc_eval.core.record import plain, structure
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
    ("kind", "name", "text", "is_told"),
    [
        ("words", "all prompts", "In ref, images of the same prompt are more alike.", True),  # no word to name
        ("words", "seven", "Images of prompts with “seven” differ.", True),
        ("look", "blurred", "A fifth is blurred.", True),
        ("look", "blurred", "A fifth is soft.", False),
    ],
)
def test_a_text_is_told_if_it_says_the_name_or_is_of_prompts(kind, name, text, is_told):
    assert (Finding(name, kind, False, None, None, 0.001, text=text).sentence == text) == is_told


@pytest.mark.parametrize(
    ("whole", "share", "interval", "has_shares", "words"),
    [
        (False, 0.3, None, True, "a third is darker"),
        (False, 0.3, (0.15, 0.6), True, "at least 15 % is darker"),
        (True, 0.7, (0.6, 0.8), False, "the set is on average darker"),
        (True, 0.95, (0.89, 0.97), False, "the set is on average darker"),
        (True, 0.99, (0.95, 0.999), True, "nearly all of the set is darker"),
    ],
)
def test_a_look_that_has_moved_on_average_has_no_share(whole, share, interval, has_shares, words):
    shown = {"gen": ("a",), "ref": ("b",)}
    look = Look("darker", whole, "gen", share, 0.1, 0.001, "brightness", 0.3, 0.5, shown, interval=interval)
    found = look_finding(look)
    assert (found.share_gen, found.share_ref) == ((share, 0.1) if has_shares else (None, None))
    least = 0.2 if interval is None else interval[0] - 0.1
    assert (found.words, found.size, found.ids) == (words, 1.0 if whole else pytest.approx(least), ("a",))


SAID = {  # shares, interval of the larger share, words with both shares, change
    "narrow": (0.25, 0.01, (0.2, 0.3), "a quarter is dark (25.0 %, before 1.0 %)", "more: dark 1.0 → 25.0 %"),
    "wide": (0.25, 0.01, (0.126, 0.6), "at least 12.6 % is dark (before 1.0 %)", "more: dark 1.0 → at least 12.6 %"),
    "from nothing on": (0.25, 0.01, (0.0, 0.6), "some is dark (before 1.0 %)", "more: dark 1.0 % → some"),
    "nearly all": (0.97, 0.2, (0.93, 0.99), "nearly all is dark (before 20 %)", "more: dark 20 % → nearly all"),
    "more than nine tenths": (0.93, 0.2, (0.89, 0.96), "93 % is dark (before 20 %)", "more: dark 20 → 93 %"),
    "all": (1.0, 0.2, (0.98, 1.0), "all is dark (before 20 %)", "more: dark 20 % → all"),
    "counted": (1.0, 0.2, None, "all is dark (100 %, before 20 %)", "more: dark 20 → 100 %"),
    "less of it": (0.02, 0.2, (0.08, 0.5), "only 2.0 % is dark (before at least 8.0 %)",
                   "lost: dark at least 8.0 → 2.0 %"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_shares_are_said_as_far_as_their_interval_allows(case):
    own, other, interval, words, change = SAID[case]
    found = Finding("dark", "look", False, own, other, 0.001, share_interval=interval)
    assert (found.say("before"), found.change()) == (words, change)
    assert structure(Finding, plain(found), "finding") == found


def test_a_finding_of_an_earlier_version_has_no_interval_of_its_share():
    kept = plain(Finding("dark", "look", False, 0.3, 0.1, 0.001))
    del kept["share_interval"]
    assert structure(Finding, kept, "finding").say("before") == "a third is dark (30 %, before 10 %)"
    with pytest.raises(ValueError, match="has no shares of a part"):
        Finding("darker", "look", True, None, None, 0.001).say_shares()


@pytest.mark.parametrize(
    "kind, shares, sets",
    [
        ("look", (0.2, 0.0), ["gen"]),
        ("look", (0.0, 0.2), ["ref"]),
        ("part", (0.1, None), ["gen"]),
        ("drift", (0.3, 0.1), ["gen"]),
        ("kind", (0.2, 0.1), ["gen", "ref", "old"]),
        ("copy", (0.2, 0.0), ["gen", "ref", "old"]),  # the originals of copies are of it
    ],
)
def test_samples_of_the_other_set_are_of_a_kind_and_beside_a_look(kind, shares, sets):
    finding = Finding("it", kind, False, *shares, 0.01)
    assert [*finding.sets_with_it(["gen", "ref", "old"])] == sets
