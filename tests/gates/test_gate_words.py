"""The gate explains itself: the first sentence says what failed, by how much, against which limit, in plain words."""

import re

import numpy as np
import pytest
from _releases import release
from _said import values

import finc_eval as fe
from finc_eval.gates.evidence import Normal
from finc_eval.gates.policy import NOISE
from finc_eval.gates.rule import judge, too_fine
from finc_eval.gates.shares import LostShare, TwoCounts
from finc_eval.gates.verdict import CALLED
from finc_eval.numerics.inference import upper_quantile

LABELS = ["cat", "dog", "owl", "yak"]
SHARES = [0.6, 0.2, 0.19, 0.01]


def labelled(seed, n=800, shares=SHARES, missing=(), part=0.0):
    """A release whose labels are missing for this part of these kinds."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(LABELS, n, p=shares).astype(object)
    hidden = np.isin(labels, list(missing)) & (rng.random(n) < part)
    labels[hidden] = None
    return fe.EmbeddingSet(release(n, seed), metadata={"label": list(labels)})


OLD, REF = labelled(1), labelled(2)


def judged(gen, **policy):
    return fe.gate(gen, OLD, REF, policy)


WITHOUT_OWLS = [0.79, 0.2, 0.0, 0.01]


@pytest.mark.parametrize(
    ("gen", "policy", "overall", "parts"),
    [
        (
            labelled(3, shares=WITHOUT_OWLS),
            {"kinds": {"lose": 0.5, "column": "label", "only": ["owl", "cat"]}},
            "regression",
            {"failed 1": r"lacks owl|0\.0 \d\d\.\d 100 [\d.]+"},  # now, before, lost, allowed
        ),
        pytest.param(
            labelled(3, shares=WITHOUT_OWLS),
            {"kinds": {"moved": 0.05, "column": "label"}},
            "regression",
            {"failed 1": r"moved|[12]\d\S* 5"},
            marks=pytest.mark.long,
        ),
        (labelled(3), {"metrics": {"fd": {"least": 10.0}}}, "regression", {"failed 1": r"^fd |\S+ 10"}),
        (labelled(3), {"basics": {"samples": 5000}}, "regression", {"failed 1": "samples|800 5,?000"}),
        (
            labelled(3),
            {"kinds": {"lose": 0.08, "column": "label", "only": ["owl"]}},
            "undecided",
            {"nothing": "", "needed": r"kinds\.lose$|[\d,]{5,}"},
        ),
        (labelled(3), {"copying": {"near": 0.01}}, "error", {"missing": r"copying\.near .* pass train,"}),
        (labelled(3), {"kinds": {"lose": 0.5, "column": "label", "only": ["cat"]}}, "pass", {"held": ""}),
    ],
    ids=["lost", "moved", "metric", "samples", "undecided", "missing", "pass"],
)
def test_the_first_sentence_says_what_failed_by_how_much_and_against_which_limit(gen, policy, overall, parts):
    verdict = judged(gen, **policy)
    assert verdict.overall == overall and [*verdict.headline_parts] == [*parts]
    for key, said in verdict.headline_parts.items():
        name, _, numbers = parts[key].partition("|")
        assert re.search(name, said) and (not numbers or re.fullmatch(numbers, values(said))), said
    assert verdict.headline.startswith(CALLED[overall]) and verdict.summary.startswith(verdict.headline)


def test_outputs_group_limits_and_say_in_one_line_what_held(capsys):
    verdict = judged(
        labelled(3, shares=WITHOUT_OWLS),
        kinds={"lose": 0.5, "column": "label", "min_share": 0.005},
        metrics={"fd": {"most": 10.0}},
    )
    assert {limit.verdict for limit in verdict.limits} == {"regressed", "undecided", "held"}
    markdown = verdict.to_markdown()
    titles = [line for line in markdown.splitlines() if line.startswith("### ")]
    assert titles[:2] == ["### What failed", "### What could not be judged"]
    assert re.fullmatch(
        r"Held: 3 limits \(2 × kinds\.lose, seen from [\d.]+ %; metrics\.fd, seen from [\d.]+\)\.", verdict.held
    )
    assert "Held: 3 limits (2 × kinds" in markdown and "label=cat" not in markdown
    from finc_eval import report

    assert "What held" in report.page(verdict, {}) and "label=cat" in report.page(verdict, {})
    report.show(verdict)
    shown = capsys.readouterr().out
    assert shown.startswith(verdict.headline[:40])
    assert max(map(len, re.findall(r"^[|+].*", shown, re.M))) <= 100


@pytest.mark.long
def test_one_number_has_one_interval():
    limits = {"kinds": {"moved": 0.5, "column": "label"}}
    verdict = judged(labelled(3), **limits)
    assert "moved" in verdict.to_markdown() and " % [" not in verdict.summary
    assert " % [" in judged(labelled(3), kinds={"new": 0.1, "column": "label"}).summary


@pytest.mark.parametrize(
    ("value", "verdict", "level"), [(0.0, "held", 0.05), (0.5, "undecided", 0.05 / 4), (2.0, "regressed", 0.05)]
)
def test_both_ends_of_an_interval_have_the_level_of_their_verdict(value, verdict, level):
    many = [Normal(name=f"limit {i}", value=value, margin=0.5, unchanged=0.0, error=0.1, n=100) for i in range(4)]
    one, *_ = judge(many)
    assert one.verdict == verdict
    half = upper_quantile(level) * 0.1
    assert one.interval == pytest.approx((value - half, value + half))


def lost(members, margin, n=1000):
    counts = TwoCounts(0.0, float(n), members, float(n))
    return LostShare(name="kinds.lose a", value=1.0, margin=margin, n=n, least=0.001, counts=counts)


def metric(margin, error, unchanged=0.0):
    return Normal(name="metrics.fd worse", value=5.0, margin=margin, unchanged=unchanged, error=error, n=1000)


@pytest.mark.parametrize(
    ("evidence", "is_fine"),
    [
        (lost(500, 0.5), False),
        (lost(10, 0.5), True),
        (lost(500, 0.02), True),
        (metric(0.1, 0.01), False),
        (metric(0.1, 0.1), True),
        (metric(0.1, 0.1, None), False),
    ],
    ids=["large kind", "small kind", "small limit", "sure metric", "unsure metric", "no baseline"],
)
def test_a_limit_finer_than_the_samples_can_show_is_told_with_what_would_do(evidence, is_fine):
    told = [*too_fine([evidence], 0.05, 1)]
    assert bool(told) is is_fine
    if is_fine:
        allowed, needed = (
            float(one.replace(",", "")) for one in re.findall(r"at least ([\d.]+) or draw ([\d,]+)", told[0])[0]
        )
        same = evidence.without_change()
        assert same.bound("high", 0.05) <= allowed
        assert (
            same.bound("high", 0.05, needed / 1000) <= evidence.margin < same.bound("high", 0.05, 0.9 * needed / 1000)
        )


@pytest.mark.long
def test_a_verdict_warns_of_a_limit_that_is_too_fine():
    verdict = judged(labelled(3), kinds={"lose": 0.05, "column": "label", "only": ["owl"]})
    assert any("kinds.lose is finer than 800 samples can show" in one for one in verdict.warnings)
    verdict = judged(
        labelled(3), kinds={"lose": 0.5, "column": "label", "only": ["owl"]}, metrics={"fd": {"worse": NOISE}}
    )
    assert not any("finer" in one for one in verdict.warnings)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("missing", "part"),
    [(LABELS, 0.5), (["owl"], 0.9), (["yak"], 0.9)],
    ids=["half of all", "nine tenths of a kind", "nine tenths of a rare kind"],
)
def test_missing_labels_are_not_called_a_lost_kind(missing, part):
    verdict = judged(
        labelled(3, missing=missing, part=part), kinds={"lose": 0.5, "column": "label", "min_share": 0.005}
    )
    assert not verdict.of("regressed") and verdict.of("missing")
    assert [*verdict.headline_parts] == ["missing"] and "label is missing" in verdict.headline_parts["missing"]


def test_a_kind_that_is_lost_is_called_lost_beside_few_missing_labels():
    gen = labelled(3, shares=WITHOUT_OWLS, missing=["yak"], part=0.5)
    verdict = judged(gen, kinds={"lose": 0.5, "column": "label", "only": ["owl"]})
    assert [limit.name for limit in verdict.of("regressed")] == ["kinds.lose label=owl"]


@pytest.mark.parametrize("is_same", [True, False], ids=["one law", "another law"])
def test_a_limit_on_copying_needs_a_reference_of_the_law_of_the_training_set(is_same):
    rng = np.random.default_rng(0)
    gen, train, old = (rng.normal(size=(300, 8)).astype(np.float32) for _ in range(3))
    ref = ((1 if is_same else 2) * rng.normal(size=(300, 8))).astype(np.float32)
    verdict = fe.gate(gen, old, ref, {"copying": {"near": 0.05, "exact": 0}}, train=train)
    found = {limit.name: limit for limit in verdict.limits}
    assert found["copying.exact"].verdict == "held"
    assert (found["copying.near"].verdict == "missing") is not is_same
    assert is_same or "not of one distribution (p = " in verdict.summary
