"""Limits on looks: of a part of a release, and of the whole of it, away from the baseline and from the reference."""

import re

import numpy as np
import pytest
from _limits import by_name
from _pictures import blur, both, darken, release

import finc_eval as fe
from finc_eval.gates.appearance import Beyond
from finc_eval.gates.evidence import Normal
from finc_eval.gates.first_policy import first_policy
from finc_eval.gates.policy import Policy

LOOKS = {"appearance": {"part": 0.02, "whole": 0.05}}


def as_it_is(images, labels):
    return images, labels


CASES = {  # changes of release, baseline and reference; the limits that are broken; what the headline says first
    "nothing changed": (as_it_is, as_it_is, as_it_is, [], ["held"], ""),
    "a quarter is blurred": (blur, as_it_is, as_it_is, ["part", "whole"], ["failed 1"], r"quarter .*blurred \(\d"),
    "everything is darker": (darken, as_it_is, as_it_is, ["whole"], ["failed 1"], "darker"),
    "the baseline was darker already": (darken, darken, as_it_is, [], ["held"], ""),
    "the release comes to look like the reference": (darken, as_it_is, darken, [], ["held", "likely 1"], "darker"),
    "the baseline was blurred and the release is not": (as_it_is, blur, as_it_is, [], ["held", "likely 1"], "blurred"),
}  # fmt: skip


@pytest.mark.one_of_each(by=lambda case: (bool(CASES[case][3]), CASES[case][2] is as_it_is))
@pytest.mark.parametrize("case", CASES)
def test_a_look_away_from_baseline_and_reference_is_a_regression_and_no_other_look(case, judged):
    gen, old, ref, broken, keys, words = CASES[case]
    if (old, ref) == (as_it_is, as_it_is):
        verdict = judged(gen, LOOKS)
    else:
        verdict = fe.gate(release(3, gen), release(1, old), release(2, ref), LOOKS)
    assert [one.name for one in verdict.of("regressed")] == [f"appearance.{one}" for one in broken]
    assert len(verdict.limits) == 2 and verdict.overall == ("regression" if broken else "pass")
    assert [*verdict.headline_parts] == keys and re.search(words, verdict.headline_parts[keys[-1]]), verdict.headline
    assert "and 0.05 more in each limit on looks" in verdict.family
    assert verdict.headline.count("blurred") <= 1  # one cause, though both limits are broken


GAINS = {  # gains on the baseline and on the reference, in standard errors; whether that is a regression of 25 looks
    "of both": (5, 5, True),
    "surely of the baseline, and beyond the reference by all looks alone": (4.2, 3.1, True),
    "not surely of the baseline": (3.1, 5, False),
    "surely of the baseline, and hardly of the reference": (6, 1, False),
    "the reference is on the other side": (6, -3, False),
}


@pytest.mark.parametrize("case", GAINS)
def test_other_limits_ask_more_of_the_gain_on_the_baseline_alone(case):
    *gains, expected = GAINS[case]
    old, ref = (Normal(name="appearance.whole", value=one, margin=0.0, error=1.0) for one in gains)
    look = Beyond(
        name="appearance.whole", value=min(gains), margin=0.0, trait="light", old=old, ref=ref, level_of_ref=0.05 / 25
    )
    assert (look.bound("low", 0.05 / 25 / 16) > 0) == expected


def test_a_lost_kind_is_told_beside_a_look_of_the_whole_release():
    policy = LOOKS | {"kinds": {"lose": 0.5, "column": "label"}}
    parts = fe.gate(release(3, both), release(1), release(2), policy).headline_parts
    assert any("darker" in one for one in parts.values()) and any("color-0" in one for one in parts.values()), parts


def test_a_small_look_holds_as_far_as_the_limit_allows_it():
    loose = {"appearance": {"part": 0.4, "whole": 3.0}}
    verdict = fe.gate(release(3, blur), release(1), release(2), loose)
    assert verdict.overall == "pass" and "blurred" in verdict.headline_parts["likely 1"]


def test_looks_that_are_not_known_are_missing_and_do_not_pass():
    rows = np.random.default_rng(0).normal(size=(3, 200, 4)).astype(np.float32)
    verdict = fe.gate(*rows, LOOKS)
    assert verdict.overall == "error" and "pictures" in verdict.headline_parts["missing"]


@pytest.mark.long
def test_a_first_policy_limits_looks_where_pictures_are_at_hand_and_says_what_is_seen(tmp_path):
    text = first_policy([release(1)], release(2))
    assert re.search(r"^appearance.part = 0.02  # .*; seen from \d+ % at this n$", text, re.M)
    (tmp_path / "gate.toml").write_text(text)
    policy = Policy.of(tmp_path / "gate.toml")
    assert policy.appearance.part == 0.02 and policy.appearance.whole == 0.05
    rows = np.random.default_rng(0).normal(size=(2, 200, 4)).astype(np.float32)
    assert "appearance" not in first_policy([rows[0]], rows[1])


@pytest.mark.long
def test_replicates_that_look_unlike_allow_what_training_moves():
    shades = [release(number, darken if number % 2 else as_it_is) for number in (11, 12, 13, 14)]
    (limit,) = by_name(fe.gate(release(3, darken), shades, release(2), LOOKS), "appearance.whole")
    assert limit.verdict == "held"


def test_an_anchor_has_limits_on_looks_of_its_own():
    verdict = fe.gate(release(3, darken), release(1, darken), release(2), LOOKS, anchor=release(4))
    assert [limit.name for limit in verdict.of("regressed")] == ["appearance.whole-anchor"]
    assert len(verdict.limits) == 4
