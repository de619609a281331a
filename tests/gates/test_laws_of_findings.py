"""Distances, pairs and what a gate says and proposes, on tiny numbers."""

import re
from dataclasses import replace
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.embeddings.opened import Sets
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.estimates.error_source import GEN, REF, ErrorSource, unit_influences
from finc_eval.estimates.estimate import Estimate
from finc_eval.estimates.retraining import between_scores
from finc_eval.findings.finding import Finding
from finc_eval.gates import first_policy, kinds
from finc_eval.gates.causes import _say_pairs
from finc_eval.gates.divisions import DIFFERENCES, by_column
from finc_eval.gates.evidence import Missing, Normal
from finc_eval.gates.gate import stages_of
from finc_eval.gates.kinds import _distance, _paired_distance
from finc_eval.gates.limit import Limit
from finc_eval.gates.pipelines import MAX_ANNOTATIONS, annotate
from finc_eval.gates.policy import MetricLimit, Policy
from finc_eval.gates.scores import ScoreChange, _relative
from finc_eval.gates.sets import GateSets, is_by_block, partners
from finc_eval.gates.shares import LostShare, TwoCounts


def labelled(**counts):
    values = [name for name, count in counts.items() for _ in range(count)]
    rows = np.arange(2 * len(values), dtype=np.float32).reshape(-1, 2)
    return as_embeddings(fe.EmbeddingSet(rows, metadata={"label": values}))


def moved(gen, old, ref, margin):
    sets = GateSets(labelled(**gen), {"baseline": labelled(**old)}, None, labelled(**ref), Sets({}), None, (), ())
    return _distance(sets, by_column(sets, "label"), margin, 0, Run(), SimpleNamespace(answer=None))


def test_samples_that_moved_are_told_to_have_come_to_the_reference_if_they_are_nearer():
    far, near = {"a": 300, "b": 100}, {"a": 100, "b": 300}
    distance, evidence = moved(near, far, near, 0.1)
    assert evidence.value == distance.moved == pytest.approx(0.5, abs=0.01)
    assert (distance.to, distance.kinds) == ("baseline", 2)
    assert evidence.note.startswith("towards the reference, from 50 % to ")
    assert moved(near, far, far, 0.1)[1].note == ""  # away from it
    assert moved(near, far, near, 0.9)[1].note == "" and moved(near, far, near, None)[1].margin == 0


def test_of_paired_sets_what_a_release_lacks_has_moved_besides_what_moved_within(monkeypatch):
    monkeypatch.setattr(kinds, "paired_variation", lambda _: [SimpleNamespace(value=0.3, interval=(0.1, 0.5))])
    info = SimpleNamespace(lacked=lambda *_: 0.2, missing=lambda: ["ten lack."])
    sets = SimpleNamespace(baselines={"baseline": 0}, rule=lambda name: name, gen=SimpleNamespace(n=50))
    within = SimpleNamespace(shares=np.zeros((2, 7)))
    distance, evidence = _paired_distance(sets, SimpleNamespace(info=info), within, "baseline", 0.4)
    assert evidence.value == distance.moved == pytest.approx(0.2 + 0.8 * 0.3)
    assert distance.interval == pytest.approx((0.28, 0.6)) and distance.kinds == 7


@pytest.mark.parametrize("in_parts", [True, False])
def test_pairs_have_the_error_of_the_difference_in_parts_of_the_baseline(in_parts):
    rng = np.random.default_rng(0)
    new, old, ref = rng.normal(6, 1, 30), rng.normal(3, 1, 30), rng.normal(0, 1, 20)
    estimates = [
        Estimate.of(one.mean() - ref.mean(), (unit_influences(one, None), -unit_influences(ref, None)))
        for one in (new, old)
    ]
    scores = [Estimate.of(one.value, [ErrorSource.of_variance(GEN, 81.0)]) for one in estimates]
    change = ScoreChange(*scores, between_scores(np.array([])), in_parts)
    growth, unit = (scores[0].value / scores[1].value, scores[1].value) if in_parts else (1, 1)
    found = change.in_pairs(*estimates)
    error, fixed, degrees = found.standard_error, sqrt(found.variance_of(REF)), found.degrees
    assert found.value == pytest.approx((scores[0].value - scores[1].value) / unit)
    of_gen, of_ref = stats.sem(new - growth * old), abs(1 - growth) * stats.sem(ref)
    assert (error, fixed) == pytest.approx((sqrt(of_gen**2 + of_ref**2) / unit, of_ref / unit), abs=1e-12)
    spread = of_gen**4 / 29 + of_ref**4 / 19
    assert degrees == pytest.approx((of_gen**2 + of_ref**2) ** 2 / spread)


def limit(name, verdict="regressed", **others):
    given = {"value": 0.3, "interval": None, "margin": 0.1, "harm": "high", "detectable": None, "needed": None}
    return Limit(name=name, verdict=verdict, note="", examples={}, **{"shares": {}} | given | others)


BLACK = Finding("black", "pair", False, 0.05, 0.0, None, is_worse=True)


def test_causes_by_pairs_have_the_share_of_pairs_that_they_are_about():
    worse = [SimpleNamespace(name="w", is_share=True, difference=one) for one in (0.2, 0.3, 0.1)]
    found = SimpleNamespace(
        n=60, broken=["a", "b", "c"], worse=worse, furthest=["d"], run="", reasons={"a": "black"}, verdict="broken",
        clauses={"broken": "3 broken", "worse": "w"}, of_pairs=None, findings=[BLACK, replace(BLACK, name="w")],
    )  # fmt: skip
    limits = [limit("by_id.broken"), limit("by_id.worse"), limit("by_id.changed"), limit("by_id.worse", "held")]
    said = _say_pairs(limits[:3], found, ["gen", "baseline"])
    assert [one.size for one in said] == pytest.approx([3 / 60, 0.3]) and all(one.is_beyond for one in said)
    worse.append(SimpleNamespace(name="look", is_share=False, difference=0.01))  # a look is about all
    other, one = _say_pairs(limits[1:3], found, ["gen", "baseline"])
    assert one.size == 1.0 and one.finding("baseline").allowed == 0.1 and other.limits == [] and not other.is_beyond


NAMES = {  # name of a finding by the kind that a limit is on, and what is said of the kind
    ("kinds.lose k17", "1"): "k17 (“1”)",
    ("kinds.lose k5", "unnamed kind k5"): "k5",
    ("kinds.new all-k5", "unnamed kind k5"): "all-k5",
    ("kinds.new all-k5", "jellyfish"): "all-k5 (“jellyfish”)",
    ("kinds.lose label=owl", "owl"): "label=owl",
    ("kinds.lose label=owl", "birds"): "label=owl (“birds”)",
    ("kinds.lose seen-domestic-cat", "domestic cat"): "seen-domestic-cat",
    ("kinds.lose k5", ""): "k5",
    ("kinds.lose@night k5", "owl"): "k5 (“owl”)",
}


@pytest.mark.parametrize(("name", "called"), NAMES)
def test_a_limit_on_a_kind_has_the_name_of_its_finding_unless_it_is_said_already(name, called):
    one = limit(name, shares={"gen": 0.1})
    assert one.tell(called).startswith(NAMES[name, called] + (" has lost" if "lose" in name else ", which"))
    assert "lose" not in name or replace(one, note=called).tell() == one.tell(called)
    assert one.plain[0] == "kind" and one.plain[1]


PLAIN = """metrics.fd worse, metrics.kid@night most, basics.samples, basics.copies, basics.duplicates,
basics.unreadable,
basics.encodings, copying.exact, copying.near, by_id.changed, kinds.moved, kinds.moved-anchor, appearance.whole,
appearance.part-anchor"""


@pytest.mark.parametrize("name", re.split(r",\s", PLAIN))
def test_a_limit_that_nothing_else_names_says_its_name(name):
    one = limit(name)
    kind, called = one.plain
    assert called in one.tell() and (kind == "metric") == name.startswith("metrics")


@pytest.mark.parametrize(("interval", "is_said"), [((0.3, 0.3), False), ((0.2, 0.4), True), (None, False)])
def test_an_interval_is_said_if_it_is_one(interval, is_said):
    assert ("between" in limit("basics.copies", interval=interval).words) == is_said


@pytest.mark.parametrize(("high", "words"), [(0.1, "is allowed"), (0.2, "not surely more than")])
def test_a_search_that_holds_may_reach_beyond_the_margin(high, words):
    assert words in limit("basics.copies", "held", value=0.05, interval=(0.01, high)).words


@pytest.mark.parametrize(("count", "lines"), [(MAX_ANNOTATIONS, 10), (MAX_ANNOTATIONS + 1, 10)])
def test_annotations_are_as_many_as_a_run_shows(count, lines):
    found = [*annotate([f"s{one}" for one in range(count)], "did not hold")]
    assert len(found) == lines == MAX_ANNOTATIONS
    rest = count - (lines - 1)
    assert found[-1].endswith("::s9" if count == lines else f"::{rest} more did not hold")


def test_what_differs_is_a_stage_where_a_baseline_is_not_divided_by_a_limit_on_kinds():
    plain, by_kinds = Policy.of({"basics": {"samples": 3}}), Policy.of({"kinds": {"lose": 0.5}})
    asked = [(plain, 1), (plain, 2), (by_kinds, 2)]
    assert [DIFFERENCES in stages_of(policy, generators) for policy, generators in asked] == [False, True, False]


@pytest.mark.parametrize("floor", [0.45, 0.62, 0.99, None])
def test_a_first_limit_on_losses_is_the_least_that_an_unchanged_release_keeps(monkeypatch, floor):
    loss = LostShare(name="", value=0.0, margin=0.5, counts=TwoCounts(9.0, 99.0, 9.0, 99.0), least=0.01)
    losses = [] if floor is None else [SimpleNamespace(evidence=loss)] * 2
    judged = SimpleNamespace(smallest=0.1, enough=None)
    for name, found in (("by_tree", None), ("tree_of_reference", None), ("judge_kinds", judged), ("fewest", 99)):
        monkeypatch.setattr(first_policy, name, lambda *_, found=found: found)
    monkeypatch.setattr(first_policy, "lost_evidence", lambda *_: iter(losses))
    monkeypatch.setattr(first_policy, "_floor", lambda one, family: floor if family == 2 else 1.0)
    *comments, line = first_policy._lose_lines(None, Run())
    chosen = next((one for one in first_policy.LOSE if floor is not None and floor <= one), first_policy.LOSE[-1])
    assert line.value == chosen and len(comments) == (2 if floor in (0.99, None) else 0)


def test_a_first_limit_on_a_metric_is_twice_students_half_width(monkeypatch):
    one = Normal(name="", value=0.0, margin=0.0, error=0.1, degrees=4.0)
    monkeypatch.setattr(first_policy, "score_evidence", lambda *_: ([one, replace(one, error=9.0)], {}))
    (line,) = first_policy._metric_line(None, Run())
    least = 2 * stats.t.isf(0.05, 4) * 0.1
    assert line.value == first_policy.round_up(least) and least <= line.value < 1.1 * least
    assert line.key.endswith(".worse")


def named(*ids):
    return as_embeddings(fe.EmbeddingSet(np.zeros((len(ids), 2), np.float32), ids=ids, metadata={"seed": [*ids]}))


def test_partners_are_found_whatever_the_order_and_all_must_be_there():
    assert partners(named("c", "a", "b"), named("a", "b", "c"), "id", "old").tolist() == [2, 0, 1]
    for gen, old, said in (
        (("a", "z"), ("a", "b"), "1 sample of gen have no partner in old by id, such as 'z'"),
        (("a",), ("a", "b", "c"), "2 samples of old have no partner in gen by id, such as 'b'"),
    ):
        with pytest.raises(DataError, match=said):
            partners(named(*gen), named(*old), "id", "old")


def test_sets_are_paired_by_blocks_if_samples_share_the_value_of_a_column():
    each, some = labelled(a=1, b=1), labelled(a=2, b=1)
    assert is_by_block([some, some], "label") and not is_by_block([some, each], "label")
    assert not is_by_block([some], "id") and not is_by_block([some], None) and not is_by_block([some], "seed")


@pytest.mark.parametrize(("rule", "unit"), [("worse", 4.0), ("difference", 1.0)])
@pytest.mark.parametrize("higher", [False, True])
def test_a_score_is_worse_on_the_side_that_is_worse_in_its_unit(rule, unit, higher):
    measured = {"gen": Estimate.of(6.0, [ErrorSource.of_variance(GEN, 0.25)])}
    measured |= {f"baseline-{one}": Estimate.of(3.0 + one, [ErrorSource.of_variance(GEN, 0.16)]) for one in (0, 1, 2)}
    sets = GateSets(
        labelled(a=40), {one: labelled(a=20) for one in [*measured][1:]}, None, labelled(a=40), Sets({}), None, (), ()
    )
    limit_on = MetricLimit(**{rule: 0.1})
    (one,) = _relative("x", limit_on, measured, higher, sets, 0.05, Run())
    assert one.value == pytest.approx((-1 if higher else 1) * 2.0 / unit) and one.margin == 0.1
    assert one.error == pytest.approx(sqrt(0.5**2 + (6 / 4 if unit == 4 else 1) ** 2 * 0.16 / 3) / unit)
    measured["baseline-1"] = "no interval"
    (one,) = _relative("x", limit_on, measured, higher, sets, 0.05, Run())
    assert isinstance(one, Missing) and one.note == "no interval"
