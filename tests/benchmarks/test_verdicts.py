"""The judge of headlines: right, partly right, a consequence, false or silent."""

import itertools

import pytest
from _planted_faults import FAULTS, Fault, Part, nothing
from said_first import judge

BLUR = Fault("blur", "texture", nothing, (Part("blur|soft", 20),), follows="pale", false="JPEG")
ALL = Fault("blur of all", "texture", nothing, (Part("blur|soft"),))
LOST = Fault("lost", "sets", nothing, (Part("koala", 0, 4.3),), named="bear")
PAIR = Fault("pair", "pairs", nothing, (*BLUR.parts, *LOST.parts), named="bear")
EQUAL = Fault("nothing", "nothing", nothing)

CASES = {
    "with its share": (BLUR, "18 % of the generated set is blurred (reference 1 %).", "right"),
    "at least some of it": (BLUR, "At least 9 % of the generated set is blurred (reference 1 %).", "right"),
    "with its share in brackets": (BLUR, "A fifth is blurred (19.2 %, reference 1.2 %).", "right"),
    "half of it": (BLUR, "9 % of the generated set is blurred (reference 1 %).", "partly"),
    "of the set on average": (BLUR, "The generated set is on average blurrier.", "partly"),
    "nearly all": (BLUR, "Nearly all of the generated set is blurred.", "false"),
    "the share of another look": (BLUR, "9 % of the generated set is blurred, 20 % pale.", "partly"),
    "the share in the reference": (BLUR, "2 % of the generated set is blurred (reference 20 %).", "partly"),
    "a consequence": (BLUR, "18 % of the generated set is pale (reference 1 %).", "consequence"),
    "another look": (BLUR, "18 % of the generated set is noisy (reference 1 %).", "false"),
    "another look besides": (BLUR, "18 % is blurred (reference 1 %). 3 % is noisy (reference 0 %).", "false"),
    "another class": (BLUR, "18 % is blurred (reference 1 %). The “barn spider” is 9 % (reference 0.0 %).", "false"),
    "nothing": (BLUR, "The sets do not differ significantly; kinds below 4.5 % may be missed.", "silent"),
    "all": (ALL, "The generated set is on average blurrier.", "right"),
    "the share of the reference": (LOST, "The “koala” is 0.0 % of the generated set (reference 4.3 %).", "right"),
    "one of two": (PAIR, "The “koala” is 0.0 % of the generated set (reference 4.3 %).", "partly"),
    "both": (PAIR, "20 % of the generated set is blurred. The “koala” is 0.0 % (reference 4.3 %).", "right"),
    "nothing of equal sets": (EQUAL, "The sets do not differ significantly.", "right"),
    "something of equal sets": (EQUAL, "5 % of the generated set is pale (reference 1 %).", "false"),
}
LOOKS = ("blurred", "noisy", "pale", "blurrier")


@pytest.mark.parametrize("case", CASES)
def test_a_headline_is_judged(case):
    fault, headline, verdict = CASES[case]
    findings = [("look", name) for name in LOOKS if name in headline]
    assert judge(fault, headline, findings).verdict == verdict


def test_halves_of_the_faults_alternate_within_kinds():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for kind in {fault.kind for fault in FAULTS}:
        halves = [fault.half for fault in FAULTS if fault.kind == kind]
        assert all(half != after for half, after in itertools.pairwise(halves))
