"""Changes of kinds and classes: what so many samples show, what they would hide, and what is told of it."""

import tomllib

import numpy as np
import pytest
from _limits import by_name
from _releases import release

import finc_eval as fe
from finc_eval.gates.divisions import CountedSets, scattered_share
from finc_eval.gates.first_policy import first_policy
from finc_eval.partitions.counts import Counted, Counts


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


def test_more_kinds_than_the_samples_are_enough_for_are_told(sets):
    verdict = fe.gate(sets["same"], sets["old"], sets["ref"], {"kinds": {"lose": 0.5, "level": 5000}})
    (told,) = [one for one in verdict.warnings if "asks for 5000 kinds" in one]
    made = {limit.name.split("-")[0] for limit in by_name(verdict, "kinds.lose")}
    assert made == {f"kinds.lose k{told.rsplit(' ', 1)[1]}"}


def test_samples_that_move_towards_the_reference_are_told_so():
    ref = release(1500, 1)
    for new, old, towards in (
        (release(1500, 2), release(1500, 3, lost=5), True),
        (release(1500, 3, lost=5), ref, False),
    ):
        verdict = fe.gate(new, old, ref, {"kinds": {"moved": 0.05, "level": 20}})
        (limit,) = by_name(verdict, "kinds.moved")
        assert limit.value > 0.05 and limit.note.startswith("towards the reference, from") == towards
