"""Slices by metadata: limits on parts of the sets; a slice that matches nothing never passes."""

import numpy as np
import pytest
from _releases import release

import finc_eval as fe
from finc_eval.gates.pipelines import junit_xml

N = 500


def told(seed, lost=0, **others):
    """A release of two halves by day and by night, the second of which may have lost kinds."""
    day, night = release(N, seed), release(N, seed + 100, lost=lost)
    return fe.EmbeddingSet(np.concatenate([day, night]), metadata={"time": ["day"] * N + ["night"] * N, **others})


@pytest.fixture(scope="module")
def old_and_ref():
    return told(1), told(2)


def policy(**night):
    return {"slices": {"night": {"column": "time", "only": ["night"], **night}}}


LIMITS = {"kinds": {"lose": 0.8, "min_share": 0.04}, "metrics": {"fd": {"difference": 0.5}}}


def test_a_slice_is_judged_by_itself(old_and_ref):
    verdict = fe.gate(told(3), *old_and_ref, policy(**LIMITS))
    assert verdict.overall == "pass", verdict.by_urgency[0].sentence
    assert {limit.rule for limit in verdict.limits} == {"kinds.lose@night", "metrics.fd@night"}
    assert sum(limit.value is not None and limit.is_share for limit in verdict.limits) == len(verdict.limits) - 1
    assert "kinds.lose@night" in junit_xml(verdict)
    gone = fe.gate(told(3, lost=2), *old_and_ref, policy(**LIMITS))
    assert gone.overall == "regression"
    assert {limit.rule for limit in gone.of("regressed")} >= {"kinds.lose@night"}


@pytest.mark.long
def test_a_slice_can_be_held_against_the_anchor(old_and_ref):
    verdict = fe.gate(told(3), *old_and_ref, policy(**LIMITS), anchor=told(4))
    assert "kinds.lose-anchor@night" in {limit.rule for limit in verdict.limits}


@pytest.mark.one_of_each
@pytest.mark.parametrize("value", ["dawn", "rare"])
def test_a_slice_that_matches_nothing_never_passes(old_and_ref, value):
    """Nor does one that matches fewer samples than can be judged."""
    odd = {"column": "time", "only": [value], **LIMITS, "kinds": {**LIMITS["kinds"], "moved": 0.2}}
    limits = {"slices": {"odd": odd}, "kinds": LIMITS["kinds"]}
    gen = told(3)
    if value == "rare":
        gen = fe.EmbeddingSet(release(N, 3), metadata={"time": ["rare"] * 5 + ["day"] * (N - 5)})
    verdict = fe.gate(gen, *old_and_ref, limits)
    assert verdict.exit_code != 0
    missing = verdict.of("missing")
    assert {limit.rule for limit in missing} == {"kinds.lose@odd", "kinds.moved@odd", "metrics.fd@odd"}
    assert all(f"samples with time={value}" in limit.note for limit in missing)


@pytest.mark.parametrize(
    "table, message",
    [
        ({"column": "time", "only": [], "kinds": {"lose": 0.5}}, "has no values"),
        ({"column": "time", "only": ["night"]}, "a slice limits nothing"),
        ({"column": "time", "only": ["night"], "metrics": {"fdd": {"most": 1.0}}}, 'did you mean "fd"'),
    ],
)
def test_a_wrong_slice_is_refused(table, message):
    with pytest.raises(fe.UsageError, match=message):
        fe.Policy.of({"slices": {"night": table}})
    with pytest.raises(fe.UsageError, match="without spaces"):
        fe.Policy.of({"slices": {"at night": {"column": "time", "only": ["night"], **LIMITS}}})


def test_a_column_that_a_set_does_not_have_is_an_error(old_and_ref):
    with pytest.raises(fe.UsageError, match="has no column 'hour'"):
        fe.gate(told(3), *old_and_ref, {"slices": {"night": {"column": "hour", "only": ["1"], **LIMITS}}})
