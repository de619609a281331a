"""A slight change of every sample, which no kind and no look shows, is said by every verb that says how sets differ."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.findings.finding import Finding
from finc_eval.gates.causes import Suspect, find_findings
from finc_eval.gates.evidence import PlainFact
from finc_eval.gates.kind_shares import KindEvidence
from finc_eval.gates.limit import Limit

SLIGHT = "what differs has no name, such as many small changes"


def law(seed, scale=1.0, n=300):
    return (scale * np.random.default_rng(seed).standard_normal((n, 32))).astype(np.float32)


OLD, REF, SAME, MOVED = law(1), law(2), law(3), law(4, 1.18)
GEN = {"a wider law": MOVED, "the same law": SAME}


def of_kinds(gen):
    found = fe.kinds({"gen": gen, "ref": REF})
    assert set(found.sets_p_values.values()) == {found.sets_p_value}, "two sets are tested once"
    return found.sets_p_value, found.headline


def of_three(gen):
    found = fe.kinds({"old": OLD, "gen": gen, "ref": REF})
    assert found.sets_p_value == min(1, 3 * min(found.sets_p_values.values()))
    return found.sets_p_value, found.headline


def of_comparison(gen):
    found = fe.compare(gen, REF, features=50)
    return found.sets_p_value, found.headline


def of_changes(gen, folder):
    old = fe.compare(OLD, REF, features=50)
    new = fe.compare(gen, REF, features=50, kinds=old)
    found = fe.compare_releases(old, new)
    for name, one in {"old": old, "new": new}.items():
        one.save(folder / f"{name}.h5")
    assert fe.compare_releases(folder / "old.h5", folder / "new.h5").sets_p_value == found.sets_p_value
    return found.sets_p_value, found.headline


def of_board(gen):
    found = fe.leaderboard({"gen": gen, "old": OLD}, REF, metrics=["kid"])
    assert found["old"].fault == ""
    return None, found.headline


def of_gate(gen):
    return None, fe.gate(gen, OLD, REF, {"kinds": {"lose": 0.9}}).headline


VERBS = {
    "kinds": of_kinds,
    "kinds of three": of_three,
    "compare": of_comparison,
    "compare_releases": of_changes,
    "leaderboard": of_board,
    "gate": of_gate,
}


@pytest.mark.one_of_each("verb", "case")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("case", GEN)
def test_it_is_said_where_no_kind_differs(verb, case, tmp_path):
    p_value, said = VERBS[verb](GEN[case], *[tmp_path] * (verb == "compare_releases"))
    is_moved = case == "a wider law"
    assert (SLIGHT in said) == is_moved, said
    assert p_value is None or (p_value < 0.0125) == is_moved


def test_how_well_samples_are_told_apart_is_said_where_it_is_above_chance():
    found = Finding(SLIGHT, "sets", True, 0.64, 0.5, 0.002)
    assert found.say("before") == f"{SLIGHT} (p = 0.002; a classifier assigns 64 % of held-out samples to their set)"
    assert replace(found, share_gen=0.5).say("before") == f"{SLIGHT} (p = 0.002)"
    assert found.size == pytest.approx(0.14), "less than any look of a whole set"


def test_a_kind_that_differs_is_said_instead():
    gen = np.concatenate([MOVED[:240], law(5, n=60) + 3])
    board = fe.leaderboard({"gen": gen, "old": OLD}, REF, metrics=["kid"])
    assert board["gen"].fault and SLIGHT not in board.headline
    assert SLIGHT not in fe.gate(gen, OLD, REF, {"kinds": {"lose": 0.9}}).headline


ALL = {"gen": np.ones(9, bool), "ref": np.ones(9, bool)}


def test_that_many_things_changed_is_a_cause_where_no_other_is():
    whole = Suspect(Finding(SLIGHT, "sets", True, 0.6, 0.5, 0.001), ALL)
    other = Suspect(Finding("darker", "look", True, 0.6, 0.5, 0.001), ALL)
    sets = SimpleNamespace(baselines={"baseline": OLD})
    assert [one.text.partition(" (")[0] for one in find_findings([], [whole], sets)] == [SLIGHT]
    assert [one.text for one in find_findings([], [other, whole], sets)] == ["the set is on average darker"]


@pytest.mark.parametrize(("rule", "is_said"), [("metrics.fd worse", True), ("basics.duplicates", False)])
def test_that_many_things_changed_is_said_beside_a_metric_which_names_nothing(rule, is_said):
    whole = Suspect(Finding(SLIGHT, "sets", True, 0.6, 0.5, 0.001), ALL)
    limit = Limit(rule, "regressed", 0.5, (0.4, 0.6), 0.1, "high", 0.2, None, "", {}, {})
    part = KindEvidence(PlainFact(name=rule, value=0.5, margin=0.1))
    found = find_findings([(limit, part)], [whole], SimpleNamespace(baselines={"baseline": OLD}))
    assert [one.limit for one in found] == [rule] + [None] * is_said
    assert (SLIGHT in found[-1].text) == is_said
