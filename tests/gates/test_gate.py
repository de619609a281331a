"""`fe.gate`: a release without a change passes, a planted change is a regression, and nothing missing passes."""

import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from _releases import release

import finc_eval as fe
from finc_eval.gates.divisions import CountedSets, scattered_share
from finc_eval.gates.first_policy import first_policy
from finc_eval.gates.retraining import SAMPLING_ONLY
from finc_eval.partitions.counts import Counted, Counts


def by_name(verdict, rule):
    return [limit for limit in verdict.limits if limit.rule == rule]


def test_a_release_without_a_change_passes(passed):
    assert passed.overall == "pass"
    assert passed.exit_code == 0
    assert {limit.verdict for limit in passed.limits} <= {"held", "improved"}
    assert len(by_name(passed, "kinds.lose")) >= 15
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
    from finc_eval.gates.outputs.junit import junit_xml

    page = passed.to_html(tmp_path / "verdict.html").read_text()
    report.show(passed)
    outputs = [page, junit_xml(passed), passed.to_markdown(), passed.to_json(), capsys.readouterr().out]
    assert all(SAMPLING_ONLY in output for output in outputs)


def test_replicates_of_the_baseline_cover_training(sets, policy):
    replicates = [sets["old"], release(2000, 5), release(2000, 6)]
    verdict = fe.gate(sets["same"], replicates, sets["ref"], policy)
    assert verdict.overall == "pass"
    assert "3 replicates" in verdict.noise
    assert set(verdict.sets) == {"gen", "baseline-1", "baseline-2", "baseline-3", "ref"}


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

    old, ref = labelled(sets["old"], 1), labelled(sets["ref"], 2)
    policy = {"kinds": {"lose": 0.5, "column": "label", "only": ["owl"]}}
    (kept,) = fe.gate(labelled(sets["same"], 3), old, ref, policy).limits
    assert (kept.name, kept.verdict) == ("kinds.lose label=owl", "held")
    (gone,) = fe.gate(labelled(sets["same"], 3, lose=True), old, ref, policy).limits
    assert (gone.verdict, gone.value) == ("regressed", 1.0)
    policy["kinds"]["only"] = ["yak"]
    verdict = fe.gate(labelled(sets["same"], 3), old, ref, policy)
    assert (verdict.overall, verdict.limits[0].note) == ("error", "no set has label=yak")


def test_groups_of_samples_are_the_unit(sets):
    """Copies of each sample tell nothing new: intervals are as wide as without them."""
    few = release(600, 7)
    grouped = fe.EmbeddingSet(
        np.repeat(few, 4, 0) + np.random.default_rng(0).normal(0, 1e-3, (2400, 16)).astype(np.float32),
        metadata={"prompt": [str(i // 4) for i in range(2400)]},
    )

    def alone(rows):
        return fe.EmbeddingSet(rows, metadata={"prompt": [str(i) for i in range(len(rows))]})

    old, ref = alone(sets["old"]), alone(sets["ref"])
    limits = {"kinds": {"lose": 0.8, "level": 5, "min_share": 0.3}}
    clustered = fe.gate(grouped, old, ref, {**limits, "groups": "prompt"}).limits
    naive = fe.gate(grouped, old, ref, limits).limits

    def width(found):
        return np.mean([one.interval[1] - one.interval[0] for one in found])

    assert width(clustered) > 1.25 * width(naive)


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
    found = fe.gate(release(2000, 8, lost=4), release(2000, 9, lost=4), sets["ref"], {"metrics": {"fd": limit}})
    assert [one.verdict for one in found.limits] == [verdict]


@pytest.mark.parametrize("limit", [{"difference": 0.08}, {"most": 0.08}])
def test_samples_that_a_metric_lacks_are_not_promised_where_the_reference_is_what_lacks(limit):
    new, old = release(600, 8), release(600, 9)
    (large,) = fe.gate(new, old, release(6000, 3), {"metrics": {"fd": limit}}).limits
    (small,) = fe.gate(new, old, release(210, 3), {"metrics": {"fd": limit}}).limits
    assert (large.verdict, small.verdict) == ("undecided", "undecided")
    assert large.needed > 600
    assert small.needed is None


def test_a_metric_that_got_worse_is_a_regression(sets):
    found = fe.gate(
        release(2000, 8, lost=8), release(2000, 9, lost=4), sets["ref"], {"metrics": {"fd": {"worse": 0.2}}}
    )
    assert found.overall == "regression"
    back = fe.gate(release(2000, 9, lost=4), release(2000, 8, lost=8), sets["ref"], {"metrics": {"fd": {"worse": 0.2}}})
    assert [one.verdict for one in back.limits] == ["improved"]


def test_notes_have_a_minus_as_tables_do():
    draws = [np.random.default_rng(seed).normal(size=(400, 6)).astype(np.float32) for seed in (0, 1, 2)]
    limits = fe.gate(*draws, {"metrics": {"mmd": {"worse": 0.3}, "kid": {"difference": 0.1}}}).limits
    told = " ".join(one.note for one in limits)
    assert "is not told from 0" in told and "−0.0" in told
    assert "-0" not in told


MISSING = {
    "a metric of another extractor": {"metrics": {"fid": {"most": 5.0}}},
    "a metric without an interval": {"metrics": {"prd_recall": {"least": 0.1}}},
    "a metric that is not told from 0": {"metrics": {"fd": {"worse": 0.1}}},
    "a metric without a better direction": {"metrics": {"vendi": {"worse": 0.1}}},
    "facts about files of an array": {"basics": {"unreadable": 0.0}},
    "encodings of an array": {"basics": {"encodings": True}},
    "copying without the training set": {"copying": {"near": 0.01, "exact": 0}},
    "kinds that the reference does not have": {"kinds": {"lose": 0.5, "min_share": 0.9, "level": 20}},
}


@pytest.mark.parametrize("case", MISSING)
def test_nothing_missing_passes(sets, case):
    verdict = fe.gate(sets["same"], sets["old"], sets["ref"], MISSING[case])
    assert verdict.overall == "error"
    assert verdict.exit_code == 3
    assert all(limit.verdict == "missing" and limit.value is None and limit.note for limit in verdict.limits)


def test_few_samples_are_undecided_and_say_how_many_decide(sets):
    verdict = fe.gate(
        release(100, 10), sets["old"], sets["ref"], {"kinds": {"lose": 0.5, "level": 20, "min_share": 0.2}}
    )
    assert verdict.overall == "undecided"
    assert verdict.exit_code == 2
    assert any(limit.needed for limit in verdict.of("undecided"))


@pytest.mark.parametrize("lost", [0, 2])
def test_few_samples_never_pass_a_lost_class_without_a_word(lost):
    """Of 250 samples there are too few kinds to show a class of a tenth: undecided, whether it was lost or not."""
    old, ref = release(250, 10), release(500, 11)
    text = first_policy([old], ref)
    assert "# 250 samples cannot show that no class of 15 % was lost" in text
    verdict = fe.gate(release(250, 12, lost=lost), old, ref, {"kinds": {"lose": 0.5}})
    (unseen,) = [limit for limit in verdict.limits if limit.name == "kinds.lose"]
    assert (verdict.overall, unseen.verdict) == ("undecided", "undecided")
    assert "could be lost within them" in unseen.note
    assert 1000 <= unseen.needed <= 4000
    assert any("can be lost unseen" in warning for warning in verdict.warnings)


def test_no_share_is_named_of_classes_that_two_unlike_clusters_can_hide():
    rng = np.random.default_rng(0)
    new, old, ref = (rng.normal(0, 1, (100, 4)) + 20.0 * (rng.random((100, 1)) < 0.2) for _ in range(3))
    verdict = fe.gate(new, old, ref, {"kinds": {"lose": 0.5}})
    (unseen,) = [limit for limit in verdict.limits if limit.name == "kinds.lose"]
    assert "with so few kinds, any class could be lost within them" in unseen.note
    assert "2 kinds: any class can be lost unseen" in verdict.warnings[0]


def test_what_has_moved_is_told_of_the_finest_kinds_unless_it_is_limited():
    old, ref, new = release(300, 10), release(500, 11), release(300, 12, lost=5)

    def distance(**kinds):
        (found,) = fe.gate(new, old, ref, {"kinds": {"lose": 0.5, "new": 0.03, **kinds}}).distances
        return found

    fine, limited = distance(), distance(moved=0.5)
    assert fine.kinds == 50 and limited.kinds == 2  # two kinds, as limits on losses have them here, hide a lost class
    assert 0.15 < fine.moved < 0.35
    assert fine.interval[0] > 0.05
    assert "have moved between the 50 kinds since the baseline" in fine.sentence


def test_the_first_policy_shows_the_loss_of_every_class_that_it_names():
    old, ref = release(1000, 1), release(2000, 3)
    text = first_policy([old], ref)
    assert "in over 2 kinds, can be lost unseen" in text
    table = tomllib.loads(text)
    assert table["kinds"]["min_share"] <= 0.15
    lost = -(-table["kinds"]["min_share"] // 0.05)  # kinds of 5 % each
    verdicts = [fe.gate(release(1000, seed, lost=int(lost)), old, ref, table).overall for seed in range(20, 24)]
    assert "pass" not in verdicts


def test_a_class_that_is_scattered_over_half_of_the_kinds_is_not_lost_unseen_from_the_share_that_is_told():
    old, ref = release(1000, 1), release(2000, 3)
    table = tomllib.loads(first_policy([old], ref))
    told = scattered_share(table["kinds"]["moved"])
    assert 0.15 < told < 0.25
    # A class of a quarter of the samples, half of each of ten kinds: no kind has lost enough to be lost.
    verdicts = [fe.gate(release(1000, seed, lost=10, part=0.5), old, ref, table) for seed in range(20, 23)]
    assert "pass" not in [verdict.overall for verdict in verdicts]
    assert f"more than 2 of them and is less than {100 * told:.2g} %" in verdicts[0].warnings[0]
    without = {"kinds": {"lose": 0.8, "min_share": 0.2}}
    (warning, *_) = fe.gate(release(1000, 20), old, ref, without).warnings
    assert "in more than 2 of them, can be lost unseen" in warning


def test_a_part_of_a_larger_cluster_has_a_closer_limit(sets):
    limits = {"kinds": {"lose": 0.8, "level": 5, "min_share": 0.05}}
    found = by_name(fe.gate(sets["same"], sets["old"], sets["ref"], limits), "kinds.lose")
    assert min(limit.margin for limit in found) < 0.3 and all(limit.margin < 0.8 for limit in found)
    share = found[0].shares["ref"]
    assert found[0].margin == pytest.approx(0.025 * (1 - share) / (share * 0.975))


def test_values_of_a_column_hide_nothing(sets):
    labelled = fe.EmbeddingSet(sets["old"][:150], metadata={"label": ["one"] * 150})
    by_column = fe.gate(labelled, labelled, labelled, {"kinds": {"lose": 0.5, "column": "label"}})
    assert by_column.overall == "pass"
    assert not any("unseen" in warning for warning in by_column.warnings)


def test_values_that_are_too_rare_to_be_limited_are_told(sets):
    labelled = fe.EmbeddingSet(sets["old"], metadata={"label": ["one"] * 1990 + ["rare"] * 10})
    limits = {"lose": 0.9, "column": "label"}
    verdict = fe.gate(labelled, labelled, labelled, {"kinds": limits})
    assert [limit.name for limit in verdict.limits] == ["kinds.lose label=one"]
    (told,) = [warning for warning in verdict.warnings if "unseen" in warning]
    assert "1 kind of less than 1 % of the reference, such as label=rare" in told
    verdict = fe.gate(labelled, labelled, labelled, {"kinds": {**limits, "min_share": 0.005}})
    assert len(verdict.limits) == 2
    assert not any("unseen" in warning for warning in verdict.warnings)


def test_a_new_kind_that_so_few_samples_would_hide_is_undecided():
    """A twelfth of 150 samples is new, and one of two clusters has it, with half of what the reference has."""
    new, old, ref = release(150, 10, new=0.08), release(150, 11), release(500, 12)
    policy = {"kinds": {"new": 0.02}}
    (one,) = fe.gate(new, old, ref, policy).limits
    assert (one.name, one.verdict, one.interval) == ("kinds.new", "undecided", (0.0, 1.0))
    enough = [release(n, seed) for n, seed in ((one.needed, 10), (one.needed, 11), (500, 12))]
    assert {limit.name.split("-")[0] for limit in fe.gate(*enough, policy).limits} == {"kinds.new k50"}


def test_a_new_kind_of_clusters_is_detectable_from_more_than_its_cluster_needs(sets, monkeypatch):
    """Other clusters take a part of it: here a fifth, and then nothing."""

    def detectable():
        limits = fe.gate(sets["same"], sets["old"], sets["ref"], {"kinds": {"new": 0.05}}).limits
        return max(limit.detectable for limit in limits if limit.detectable)

    found = detectable()
    monkeypatch.setattr("finc_eval.gates.kinds.IN_ONE", 1.0)
    assert found == pytest.approx(detectable() / 0.8)


def test_a_large_new_kind_is_one_kind_and_is_seen_next_to_a_large_reference():
    """Many samples of the reference do not hide what few of the release show."""
    new, old, ref = release(500, 10, new=0.3), release(500, 11), release(6000, 12)
    found = fe.gate(new, old, ref, {"kinds": {"new": 0.02}})
    (one,) = [limit for limit in found.limits if limit.verdict == "regressed"]
    assert one.value == pytest.approx(0.3, abs=0.05)


def test_neighboring_clusters_that_the_reference_lacks_are_one_kind():
    def counted(*kinds):
        counts = Counts.of((4,), np.array(kinds, np.int32)[:, None])
        return Counted(counts, np.zeros((4, 0), np.int64), np.zeros((4, 0), np.int64))

    found = CountedSets(
        names=[["k4-0", "k4-1", "k4-2", "k4-3"]],
        counted={"gen": counted(0, 0, 1, 2), "ref": counted(2, 3, 3, 3)},
        digest="",
        clusters=True,
        place=0,
        enough=1.0,
        more=1.0,
        cells={"gen": np.array([[0], [0], [1], [2]], np.int32)},
        nearest=(np.array([1, 2, 0, 2]),),
    )
    together = found.joined(0.1)
    assert together.names == [["k4-0+1", "", "k4-2", "k4-3"]]
    assert together.counted["gen"].counts.members(0).tolist() == [3, 0, 1, 0]
    assert together.cells["gen"].ravel().tolist() == [0, 0, 0, 2]
    assert found.joined(0.0).names == found.names


def test_lost_kinds_are_those_of_the_level_that_was_asked_for(sets):
    limits = {"kinds": {"lose": 0.5, "new": 0.05, "level": 40}}
    verdict = fe.gate(sets["same"], sets["old"], sets["ref"], limits)
    assert {limit.name.split("-")[0] for limit in by_name(verdict, "kinds.lose")} == {"kinds.lose k40"}


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
    verdict = fe.gate(*(sets[name].copy() for name in given), {"kinds": {"new": 0.1, "level": 4}})
    assert verdict.warnings[0].startswith(f"{told} are the same samples")


def test_facts_count_duplicates_and_samples(sets):
    twice = np.concatenate([sets["same"], sets["same"][:200]])
    limits = {"basics": {"duplicates": 0.01, "samples": 3000}}
    found = {limit.name: limit for limit in fe.gate(twice, sets["old"], sets["ref"], limits).limits}
    assert found["basics.duplicates"].verdict == "regressed"
    assert found["basics.duplicates"].value == pytest.approx(200 / 2200)
    assert found["basics.samples"].verdict == "regressed"


def test_copies_of_training_samples_are_a_regression(sets):
    train = release(500, 11)
    copied = np.concatenate([release(450, 12), train[:50]])
    limits = {"copying": {"near": 0.01, "exact": 10}}
    assert fe.gate(copied, sets["old"], sets["ref"], limits, train=train).overall == "regression"
    fresh = fe.gate(release(500, 13), sets["old"], sets["ref"], {"copying": {"exact": 0}}, train=train)
    assert fresh.overall == "pass"


def test_copies_are_those_of_an_audit(sets):
    train = release(500, 11)
    copied = np.concatenate([release(450, 12), train[:50]])
    limits = fe.gate(copied, sets["old"], sets["ref"], {"copying": {"near": 0.01, "exact": 10}}, train=train).limits
    found = {limit.name: limit.value for limit in limits}
    whole = fe.audit(copied, train, sets["ref"], suspects=0).copying
    near = whole.measure("calibrated")
    assert found == {"copying.near": near.value - near.control, "copying.exact": whole.copies.same_embedding}


def test_the_first_policy_has_few_lines_and_passes_a_release_without_a_change(sets, tmp_path):
    text = first_policy([sets["old"]], sets["ref"])
    assert len([line for line in text.splitlines() if not line.startswith("#")]) <= 7
    assert "floor" in text and SAMPLING_ONLY in text
    (tmp_path / "gate.toml").write_text(text)
    assert fe.gate(sets["same"], sets["old"], sets["ref"], tmp_path / "gate.toml").overall == "pass"


@pytest.mark.parametrize(
    "table, error, message",
    [
        ({}, fe.UsageError, "limits nothing"),
        ({"kinds": {}}, fe.UsageError, "limits nothing"),
        ({"metrics": {"fd": {}}}, fe.UsageError, "limits nothing"),
        ({"copying": {}}, fe.UsageError, "limits nothing"),
        ({"basics": {}}, fe.UsageError, "limits nothing"),
        ({"kind": {"lose": 0.5}}, fe.DataError, 'unknown key "kind".*did you mean "kinds"'),
        ({"kinds": {"loose": 0.5}}, fe.DataError, 'unknown key "kinds.loose".*did you mean "lose"'),
        ({"metrics": {"fd": {"wors": 0.5}}}, fe.DataError, 'did you mean "worse"'),
        ({"metrics": {"fdd": {"worse": 0.5}}}, fe.UsageError, 'did you mean "fd"'),
        ({"kinds": {"lose": 1.5}}, fe.UsageError, "lose must lie between 0 and 1"),
        ({"kinds": {"lose": 0.5}, "alpha": 2.0}, fe.UsageError, "alpha must lie between 0 and 1"),
        ({"kinds": {"lose": 0.5}, "looks": 0}, fe.UsageError, "looks must be a whole number"),
        ({"kinds": {"lose": 0.5, "only": ["7"]}}, fe.UsageError, "only names values of a column"),
    ],
)
def test_a_wrong_policy_is_refused_in_one_sentence(table, error, message):
    with pytest.raises(error, match=message):
        fe.Policy.of(table)


def test_a_policy_is_read_from_toml(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text('kinds.lose = 0.5\nmetrics.fd.worse = "noise"\nundecided = "warn"\n')
    policy = fe.Policy.of(path)
    assert (policy.kinds.lose, policy.metrics["fd"].worse, policy.undecided) == (0.5, "noise", "warn")
    path.write_text("kinds.lose = ")
    with pytest.raises(fe.DataError, match="cannot be read as a policy in TOML"):
        fe.Policy.of(path)
    with pytest.raises(fe.DataError, match="does not exist"):
        fe.Policy.of(Path("missing.toml"))


def test_slow_drift_is_seen_against_the_anchor_and_not_against_the_last_release(sets):
    """Each release loses a quarter of a kind's share, at a limit of one half."""
    told = {"kinds": {"lose": 0.5, "level": 20}, "metrics": {"fd": {"difference": 5.0}}}
    releases = [release(6000, 20 + step, lost=1, part=1 - 0.75**step) for step in range(5)]
    verdicts = [fe.gate(new, old, sets["ref"], told, anchor=releases[0]) for old, new in pairwise(releases)]
    first = next(step for step, one in enumerate(verdicts, 1) if one.overall == "regression")
    assert first <= 4
    assert {limit.rule for limit in verdicts[first - 1].of("regressed")} == {"kinds.lose-anchor"}
    assert {"metrics.fd", "metrics.fd-anchor"} <= {limit.rule for limit in verdicts[0].limits}
    assert verdicts[0].sets.keys() == {"gen", "baseline", "anchor", "ref"}


def test_a_policy_in_python_may_have_the_dotted_keys_of_toml(tmp_path):
    (tmp_path / "gate.toml").write_text("kinds.lose = 0.5\nkinds.level = 10\nmetrics.fd.difference = 1.0\n")
    dotted = {"kinds.lose": 0.5, "kinds": {"level": 10}, "metrics.fd.difference": 1.0}
    assert fe.Policy.of(dotted) == fe.Policy.of(tmp_path / "gate.toml")
    assert dotted["kinds"] == {"level": 10}
