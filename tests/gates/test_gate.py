"""`fe.gate`: a release without a change passes, a planted change is a regression, and nothing missing passes."""

import numpy as np
import pytest
from _limits import by_name
from _releases import release

import finc_eval as fe
from finc_eval.estimates.retraining import SAMPLING_ONLY


def test_a_release_without_a_change_passes(passed):
    assert passed.overall == "pass"
    assert passed.exit_code == 0
    assert {limit.verdict for limit in passed.limits} <= {"held", "improved"}
    assert len(by_name(passed, "kinds.lose")) >= 10
    assert all(limit.interval[0] <= limit.value <= limit.interval[1] for limit in passed.limits)


def test_a_lost_kind_and_a_new_kind_are_regressions(failed):
    assert failed.overall == "regression"
    assert failed.exit_code == 1
    (lost,) = [limit for limit in by_name(failed, "kinds.lose") if limit.verdict == "regressed"]
    assert lost.value > 0.95
    assert lost.shares["ref"] == pytest.approx(0.05, abs=0.02)
    (new, *_) = [limit for limit in by_name(failed, "kinds.new") if limit.verdict == "regressed"]
    assert new.value == pytest.approx(0.06, abs=0.02)
    assert len(new.examples["gen"]) == 16
    assert failed.by_urgency[0].verdict == "regressed"


@pytest.mark.long
def test_the_same_inputs_give_the_same_verdict(sets, policy, passed):
    again = fe.gate(sets["same"], sets["old"], sets["ref"], policy)
    assert again.to_json() == passed.to_json()


def test_a_verdict_comes_back_from_json(failed, tmp_path):
    failed.to_json(tmp_path / "verdict.json")
    again = fe.load(tmp_path / "verdict.json")
    assert again.to_dict() == failed.to_dict()
    assert again.limits == failed.limits


def test_with_one_baseline_every_output_says_that_training_is_not_covered(passed, tmp_path, capsys):
    from finc_eval import report
    from finc_eval.gates.pipelines import junit_xml

    page = passed.to_html(tmp_path / "verdict.html").read_text()
    report.show(passed)
    outputs = [page, junit_xml(passed), passed.to_markdown(), passed.to_json(), capsys.readouterr().out]
    assert all(SAMPLING_ONLY in output for output in outputs)


@pytest.mark.long
def test_replicates_of_the_baseline_cover_training(sets, policy):
    replicates = [sets["old"], release(2000, 5), release(2000, 6)]
    verdict = fe.gate(sets["same"], replicates, sets["ref"], policy)
    assert verdict.overall == "pass"
    assert "3 replicates" in verdict.noise
    assert set(verdict.sets) == {"gen", "baseline-1", "baseline-2", "baseline-3", "ref"}


@pytest.mark.long
def test_limits_against_an_anchor_have_the_noise_of_the_replicates(sets):
    """The anchor was trained once, so that a difference from it is less sure than one from three replicates."""

    def trained(seed, lost, share):
        labels = np.where(np.random.default_rng(seed).random(2000) < share, "cat", "dog")
        return fe.EmbeddingSet(release(2000, seed, lost=lost, part=0.4), metadata={"label": labels.tolist()})

    limits = {"kinds": {"lose": 0.8, "column": "label"}, "metrics": {"fd": {"difference": 0.5}}}
    new, ref, anchor = (trained(seed, 0, 0.5) for seed in (1, 2, 3))
    replicates = [trained(4, 0, 0.5), trained(5, 4, 0.6), trained(6, 10, 0.4)]

    def widths(*baselines):
        found = fe.gate(new, [*baselines], ref, limits, anchor=anchor).limits
        return {limit.name: limit.interval[1] - limit.interval[0] for limit in found}

    once, thrice = widths(replicates[0]), widths(*replicates)
    for rule, of in (("kinds.lose", "label=cat"), ("metrics.fd", "difference")):
        assert thrice[f"{rule}-anchor {of}"] > 1.5 * once[f"{rule}-anchor {of}"]
        assert thrice[f"{rule}-anchor {of}"] > 1.15 * thrice[f"{rule} {of}"]


def test_labelled_kinds_are_limited_by_name(sets):
    def labelled(rows, seed, lose=False):
        labels = np.random.default_rng(seed).choice(["cat", "dog", "owl"], len(rows), p=[0.5, 0.3, 0.2])
        keep = labels != "owl" if lose else np.ones(len(rows), bool)
        return fe.EmbeddingSet(rows[keep], metadata={"label": labels[keep].tolist()})

    old, ref, same = labelled(sets["old"][:400], 1), labelled(sets["ref"][:400], 2), sets["same"][:400]
    policy = {"kinds": {"lose": 0.5, "column": "label", "only": ["owl"]}}
    (kept,) = fe.gate(labelled(same, 3), old, ref, policy).limits
    assert (kept.name, kept.verdict) == ("kinds.lose label=owl", "held")
    (gone,) = fe.gate(labelled(same, 3, lose=True), old, ref, policy).limits
    assert (gone.verdict, gone.value) == ("regressed", 1.0)
    policy["kinds"]["only"] = ["yak"]
    verdict = fe.gate(labelled(same, 3), old, ref, policy)
    assert (verdict.overall, verdict.limits[0].note) == ("error", "no set has label=yak")


def test_groups_of_samples_are_the_unit(sets):
    """Copies of each sample tell nothing new: intervals are as wide as without them."""
    few = release(200, 7)
    grouped = fe.EmbeddingSet(
        np.repeat(few, 4, 0) + np.random.default_rng(0).normal(0, 1e-3, (800, 16)).astype(np.float32),
        metadata={"prompt": [str(i // 4) for i in range(800)]},
    )

    def alone(rows):
        return fe.EmbeddingSet(rows, metadata={"prompt": [str(i) for i in range(len(rows))]})

    old, ref = alone(sets["old"][:400]), alone(sets["ref"][:400])
    limits = {"kinds": {"lose": 0.8, "min_share": 0.1}}
    clustered = fe.gate(grouped, old, ref, {**limits, "groups": "prompt"}).limits
    naive = fe.gate(grouped, old, ref, limits).limits

    def width(found):
        return np.mean([one.interval[1] - one.interval[0] for one in found])

    assert width(clustered) > 1.25 * width(naive)


@pytest.mark.one_of_each("verdict")
@pytest.mark.parametrize(
    "limit, verdict",
    [
        ({"most": 10.0}, "held"),
        ({"most": 0.001}, "regressed"),
        ({"least": 0.001}, "held"),
        ({"difference": 0.5}, "held"),
        ({"difference": "noise"}, "held"),
    ],
)
def test_metrics_are_held_by_their_intervals(sets, limit, verdict):
    found = fe.gate(release(500, 8, lost=4), release(500, 9, lost=4), sets["ref"], {"metrics": {"fd": limit}})
    assert [one.verdict for one in found.limits] == [verdict]


@pytest.mark.parametrize("limit", [{"difference": 0.08}, {"most": 0.08}])
def test_samples_that_a_metric_lacks_are_not_promised_where_the_reference_is_what_lacks(limit):
    new, old = release(600, 8), release(600, 9)
    (large,) = fe.gate(new, old, release(4000, 3), {"metrics": {"fd": limit}}).limits
    (small,) = fe.gate(new, old, release(210, 3), {"metrics": {"fd": limit}}).limits
    assert (large.verdict, small.verdict) == ("undecided", "undecided")
    assert large.needed > 600
    assert small.needed is None


def test_a_metric_that_got_worse_is_a_regression(sets):
    found = fe.gate(release(600, 8, lost=8), release(600, 9, lost=4), sets["ref"], {"metrics": {"fd": {"worse": 0.2}}})
    assert found.overall == "regression"
    back = fe.gate(release(600, 9, lost=4), release(600, 8, lost=8), sets["ref"], {"metrics": {"fd": {"worse": 0.2}}})
    assert [one.verdict for one in back.limits] == ["improved"]


def test_notes_have_a_minus_as_tables_do():
    draws = [np.random.default_rng(seed).normal(size=(400, 6)).astype(np.float32) for seed in (0, 1, 2)]
    limits = fe.gate(*draws, {"metrics": {"mmd": {"worse": 0.3}, "kid": {"difference": 0.1}}}).limits
    told = " ".join(one.note for one in limits)
    assert "cannot be distinguished from 0" in told and "−0.0" in told
    assert "-0" not in told


MISSING = {
    "a metric of another extractor": {"metrics": {"fid": {"most": 5.0}}},
    "a metric without an interval": {"metrics": {"ndb": {"most": 5.0}}},
    "a metric that cannot be distinguished from 0": {"metrics": {"fd": {"worse": 0.1}}},
    "a metric without a better direction": {"metrics": {"vendi": {"worse": 0.1}}},
    "facts about files of an array": {"basics": {"unreadable": 0.0}},
    "encodings of an array": {"basics": {"encodings": True}},
    "copying without the training set": {"copying": {"near": 0.01, "exact": 0}},
    "kinds that the reference does not have": {"kinds": {"lose": 0.5, "min_share": 0.99}},
}


@pytest.mark.parametrize("case", MISSING)
def test_nothing_missing_passes(sets, case):
    verdict = fe.gate(*(sets[name][:400] for name in ("same", "old", "ref")), MISSING[case])
    assert verdict.overall == "error"
    assert verdict.exit_code == 3
    assert all(limit.verdict == "missing" and limit.value is None and limit.note for limit in verdict.limits)


def test_sets_that_cannot_be_judged_are_refused(sets, policy):
    same, old, ref = sets["same"], sets["old"], sets["ref"]
    broken = same.copy()
    broken[7, 3] = np.nan
    with pytest.raises(fe.DataError, match="row 7 is not finite"):
        fe.gate(broken, old, ref, policy)
    with pytest.raises(fe.IncompatibleError, match="entries"):
        fe.gate(same[:, :8], old, ref, policy)
    with pytest.raises(fe.DataError, match="at least 20"):
        fe.gate(same[:5], old, ref, policy)
    with pytest.raises(fe.UsageError, match="needs a baseline"):
        fe.gate(same, [], ref, policy)


@pytest.mark.parametrize(
    "given, told", [(("old", "old", "ref"), "gen and baseline"), (("same", "ref", "ref"), "baseline and ref")]
)
def test_two_sets_that_are_one_are_told(sets, given, told):
    verdict = fe.gate(*(sets[name][:400].copy() for name in given), {"kinds": {"new": 0.1}})
    assert verdict.warnings[0].startswith(f"{told} are the same samples")


def test_facts_count_duplicates_and_samples(sets):
    same, old, ref = (sets[name][:400] for name in ("same", "old", "ref"))
    twice = np.concatenate([same, same[:40]])
    limits = {"basics": {"duplicates": 0.01, "samples": 3000}}
    found = {limit.name: limit for limit in fe.gate(twice, old, ref, limits).limits}
    assert found["basics.duplicates"].verdict == "regressed"
    assert found["basics.duplicates"].value == pytest.approx(40 / 440)
    assert found["basics.samples"].verdict == "regressed"


@pytest.mark.long
def test_copies_of_training_samples_are_a_regression_and_those_of_an_audit(sets):
    train, ref = release(500, 11), sets["ref"][:500]
    copied = np.concatenate([release(450, 12), train[:50]])
    fresh = fe.gate(release(500, 13), sets["old"], ref, {"copying": {"exact": 0}}, train=train)
    assert fresh.overall == "pass"
    verdict = fe.gate(copied, sets["old"], ref, {"copying": {"near": 0.01, "exact": 10}}, train=train)
    assert verdict.overall == "regression"
    found = {limit.name: limit.value for limit in verdict.limits}
    whole = fe.audit(copied, train, ref).copying
    near = whole.measure("calibrated")
    assert found == {"copying.near": near.value - near.control, "copying.exact": whole.copies.same_embedding}


@pytest.mark.long  # a quicker one: test_baselines.py
def test_slow_drift_is_seen_against_the_anchor_and_not_against_the_last_release(sets):
    """Each of four releases loses a quarter of a kind's share, at a limit of one half."""
    told = {"kinds": {"lose": 0.5}, "metrics": {"fd": {"difference": 5.0}}}
    first, old, new = (release(6000, 20 + step, lost=1, part=1 - 0.75**step) for step in (0, 3, 4))
    verdict = fe.gate(new, old, sets["ref"], told, anchor=first)
    assert {limit.rule for limit in verdict.of("regressed")} == {"kinds.lose-anchor"}
    assert {"metrics.fd", "metrics.fd-anchor"} <= {limit.rule for limit in verdict.limits}
    assert verdict.sets.keys() == {"gen", "baseline", "anchor", "ref"}
