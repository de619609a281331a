"""Limits on parts of pictures that hardly any accepted picture has, by cells of baseline and reference."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from _celled import celled
from _limits import by_name

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.embeddings.stored.turned import TurnedRows
from finc_eval.gates import appearance
from finc_eval.gates.facts.parts import LOCAL, NewPart
from finc_eval.gates.first_policy import first_policy
from finc_eval.gates.policy import Policy
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.naming.measured import measure_pictures

POLICY = {"appearance": {"local": 0.02}}
PART = 20  # pictures, of 100, that have the part


def verdict_of(gen, old, ref, policy=POLICY, **given):
    verdict = fe.gate(gen, old, ref, policy, **given)
    return verdict, by_name(verdict, LOCAL)[0]


CASES = {  # pictures with the part in release, baseline and reference; the verdict
    "nothing is planted": (0, 0, 0, "held"),
    "a fifth has a part": (PART, 0, 0, "regressed"),
    "the baseline had it": (PART, PART, 0, "held"),
    "the reference has it": (PART, 0, PART, "held"),
    "the release has lost it": (0, PART, 0, "held"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_part_that_baseline_and_reference_lack_is_a_regression(case):
    *planted, expected = CASES[case]
    verdict, limit = verdict_of(*(celled(seed, planted=count) for seed, count in enumerate(planted, 1)))
    assert limit.verdict == expected and verdict.overall == ("regression" if expected == "regressed" else "pass")
    if expected == "regressed":
        (cause,) = verdict.findings
        assert (cause.kind, cause.limits) == ("part", (LOCAL,))
        assert {*cause.ids[:8]} <= {f"1-{number}" for number in range(PART)}
        assert 0.05 < limit.value <= 0.25 and 0.05 < cause.share_gen <= 0.2 and "at least" in cause.text


TURNED_CASES = {  # pictures upside down in release, baseline and reference; the verdict
    "none is turned": (0, 0, 0, "held"),
    "a fifth is turned": (PART, 0, 0, "regressed"),
    "the baseline's are, too": (PART, PART, 0, "held"),
    "the reference's are, too": (PART, 0, PART, "held"),
    "nobody turned the reference": (PART, 0, None, "missing"),
}


@pytest.mark.parametrize("case", TURNED_CASES)
def test_pictures_upside_down_are_a_regression_unless_older_sets_have_them(case, monkeypatch):
    *planted, expected = TURNED_CASES[case]
    images, up, looks, sets = [np.zeros((8, 8, 3), np.uint8)] * 100, torch.full((6,), 2.0), {}, []
    for label, seed, count in zip(("gen", "baseline", "ref"), (1, 2, 3), planted, strict=True):
        sets.append(celled(seed, images=images))
        flipped = sets[-1]._rows - up
        flipped[: count or 0] += up
        sets[-1]._rows[: count or 0] -= up
        turned = None if count is None else TurnedRows(np.arange(100), flipped.numpy())
        looks[label] = replace(measure_pictures(sets[-1]), turned=turned)
    monkeypatch.setattr(appearance, "pictures_of", lambda *_: looks)
    verdict, limit = verdict_of(*sets)
    overall = {"regressed": "regression", "missing": "error", "held": "pass"}[expected]
    assert (limit.verdict, verdict.overall) == (expected, overall)
    assert expected != "regressed" or (verdict.parts[0].name == "upside down" and LOCAL in verdict.findings[0].limits)


def test_a_page_shows_the_pictures_with_their_heat_maps(tmp_path):
    sets = [
        celled(seed, planted=count, images=[np.zeros((8, 8, 3), np.uint8)] * 100)
        for seed, count in ((1, PART), (2, 0), (3, 0))
    ]
    verdict, _ = verdict_of(*sets)
    page = verdict.to_html(tmp_path / "gate.html").read_text()
    assert re.search(r'class="heat"', page) and "A frame marks the window" in page
    assert fe.Verdict.from_dict(verdict.to_dict()).parts == verdict.parts and len(verdict.parts[0].heat) == 12
    assert "hardly any picture had before" in verdict.to_markdown()


PAIRED = {  # policy; whether pictures of one id are alike
    "by id": (POLICY | {"by_id": {"broken": 0}}, True),
    "pairs of ids": (POLICY | {"pairs": "id"}, True),
    "by prompt": (POLICY | {"pairs": "prompt"}, False),
    "in groups": (POLICY | {"groups": "prompt"}, False),
}


@pytest.mark.parametrize("how", PAIRED)
@pytest.mark.parametrize("planted", [0, PART])
def test_paired_and_grouped_releases_are_judged_alike(how, planted):
    policy, alike = PAIRED[how]
    prompts = {"prompt": [f"prompt {number // 2}" for number in range(100)]}
    gen, old = (
        celled(seed, planted=count, like=9 if alike else None, metadata=prompts)
        for seed, count in ((1, planted), (2, 0))
    )
    _, limit = verdict_of(gen, old, celled(3, metadata=prompts), policy)
    assert limit.verdict == ("regressed" if planted else "held")


def test_replicates_of_the_baseline_that_have_the_part_at_times_allow_it():
    again = [celled(number, planted=count) for number, count in ((5, 0), (6, 15), (7, 20))]
    assert verdict_of(celled(1, planted=PART), again, celled(3))[1].verdict == "held"
    clean = [celled(number) for number in (5, 6, 7)]
    assert verdict_of(celled(1, planted=50), clean, celled(3))[1].verdict == "regressed"


def test_an_anchor_has_a_limit_of_its_own():
    sets = celled(1, planted=PART), celled(2, planted=PART), celled(3)
    verdict, limit = verdict_of(*sets, anchor=celled(4))
    assert limit.verdict == "held"
    assert by_name(verdict, f"{LOCAL}-anchor")[0].verdict == "regressed"
    assert verdict.overall == "regression"


@pytest.mark.parametrize("label", ["gen", "baseline", "ref"])
def test_a_set_without_cells_is_missing_and_does_not_pass(label):
    sets = {"gen": celled(1), "baseline": celled(2), "ref": celled(3)}
    sets[label] = fe.EmbeddingSet(np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32))
    verdict, limit = verdict_of(*sets.values())
    assert (verdict.overall, limit.verdict) == ("error", "missing")
    assert limit.note.startswith(f"{label} has no cells: ")


def test_few_groups_are_undecided_and_say_how_many_samples_decide():
    groups = {"group": [f"{number // 10}" for number in range(100)]}
    sets = (celled(seed, planted=count, metadata=groups) for seed, count in ((1, PART), (2, 0), (3, 0)))
    verdict, limit = verdict_of(*sets, POLICY | {"groups": "group"})
    assert (verdict.overall, limit.verdict, limit.needed) == ("undecided", "undecided", 200)


def test_one_cause_is_one_finding():
    """The pictures with the part are a kind of their own in the embeddings, too."""
    gen = celled(1, planted=PART)
    gen._rows[:PART] += 8
    verdict, limit = verdict_of(gen, celled(2), celled(3), POLICY | {"kinds": {"new": 0.05}})
    assert limit.verdict == "regressed" and len(verdict.of("regressed")) >= 2
    assert len(verdict.findings) == 1 and LOCAL in verdict.findings[0].limits


def test_a_first_policy_limits_parts_where_cells_are_there(tmp_path):
    text = first_policy([celled(1)], celled(2))
    assert Policy.parse(text).appearance.local == 0.02
    rows = np.random.default_rng(0).normal(size=(2, 100, 6)).astype(np.float32)
    assert "local" not in first_policy([rows[0]], rows[1])


def test_a_limit_is_a_share():
    with pytest.raises(UsageError, match="local"):
        fe.Policy.of({"appearance": {"local": 2}})


BOUNDS = {  # p-value, gains on baseline and reference as counts of 100, level; whether it is surely there
    "surely unlike": (0.0005, 20, 0, 0, 0.001, True),
    "not surely unlike": (0.03, 20, 0, 0, 0.001, False),
    "at a level below the smallest p-value": (0.0005, 20, 0, 0, 1e-5, True),
    "the reference has it": (0.0005, 20, 0, 20, 0.001, False),
    "the baseline has it": (0.0005, 20, 20, 0, 0.001, False),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_a_part_counts_only_if_the_sets_are_unlike_and_neither_older_set_has_it(case):
    p_value, *members, level, expected = BOUNDS[case]
    new, *others = (float(count) for count in members)
    gains = [
        GainedShare(name=LOCAL, value=(new - old) / 100, margin=0.0, counts=TwoCounts(new, 100.0, old, 100.0))
        for old in others
    ]
    part = NewPart(name=LOCAL, value=0.1, margin=0.02, p_value=p_value, gains=tuple(gains), level_of_ref=0.05)
    assert (part.bound("low", level) > 0) == expected
    assert part.bound("high", level) >= part.bound("low", level)
