"""Looks, kinds and causes of gates on tiny sets that are counted by hand."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.repeats import mean_group_size
from finc_eval.findings.finding import Finding
from finc_eval.gates import appearance, gate
from finc_eval.gates.appearance import look_evidence
from finc_eval.gates.by_id import ChangedPairs, SureCount
from finc_eval.gates.causes import Said, Suspect, _cause_among
from finc_eval.gates.divisions import CountedSets, Nouns, _cut_at, by_column, judge_kinds, sought_kinds
from finc_eval.gates.evidence import Missing
from finc_eval.gates.first_policy import CHANGED, _pair_lines
from finc_eval.gates.kind_shares import KindCounts, lost_evidence, new_evidence
from finc_eval.gates.kinds import _warn_of_unlabeled
from finc_eval.gates.limit import Limit
from finc_eval.gates.paired_shares import PairCounts
from finc_eval.gates.policy import AppearanceLimits, CopyingLimits, KindLimits
from finc_eval.gates.scores import _measure
from finc_eval.gates.sets import GateSets
from finc_eval.gates.shares import members_to_hold, members_to_lose
from finc_eval.measures.score import Score
from finc_eval.naming.measured import Measured
from finc_eval.naming.traits import TRAITS
from finc_eval.partitions.kind_tree import Tree

TRAIT = {one.name: one for one in TRAITS}


def sets_of(gen, ref, *baselines, pairs=None):
    labels = ["baseline"] if len(baselines) == 1 else [f"baseline-{one}" for one in range(1, len(baselines) + 1)]
    old = dict(zip(labels, baselines, strict=True))
    paired = {} if pairs is None else {labels[0]: np.asarray(pairs)}
    return GateSets(gen, old, None, ref, Sets({}), None, (), tuple(labels), pairs=paired)


def of_size(n, group=1):
    one = ArrayEmbeddings(np.zeros((n, 2), np.float32), "set")
    return one if group == 1 else one.with_groups(np.arange(n, dtype=np.uint64) // np.uint64(group), "video")


# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def looks_of(monkeypatch):
    """A function of values of one trait by set that returns the looks under a limit, by their word."""

    def looks(rule, trait, values, group=1):
        traits = (TRAIT[trait], TRAIT["warmth"])  # of the second, all are alike: it says nothing
        measured = {
            label: Measured(np.arange(len(one)), np.stack([one, np.zeros(len(one))], 1))
            for label, one in values.items()
        }
        monkeypatch.setattr(appearance, "measure_sets", lambda *_: (traits, measured))
        gen, ref, *old = (of_size(len(one), group) for one in values.values())
        limits = AppearanceLimits(**{rule: 0.1})
        (found,) = look_evidence(sets_of(gen, ref, *old), limits, {}, 0.04)
        assert {one.level_of_ref for one in found.looks} == {0.04 / len(found.looks)}
        return {one.note: one for one in found.looks}

    return looks


@pytest.mark.parametrize("group", [1, 4])
def test_a_part_that_looks_so_is_what_lies_beyond_the_tail_of_the_reference_on_either_side(looks_of, group):
    ref = np.arange(100.0)
    gen, old = np.r_[np.full(12, 99.0), np.full(20, 0.0), np.full(48, 50.0)], np.r_[np.full(8, 96.0), np.full(52, 4.9)]
    found = looks_of("part", "brightness", {"gen": gen, "ref": ref, "baseline": old}, group)
    assert [*found] == ["dark", "bright"]
    shares = {"bright": (12 / 80, 8 / 60, 0.05), "dark": (20 / 80, 52 / 60, 0.05)}
    for word, (new, before, of_ref) in shares.items():
        one = found[word]
        assert (one.old.value, one.ref.value) == pytest.approx((new - before, new - of_ref))
        assert one.value == pytest.approx(min(new - before, new - of_ref))
        counts = one.old.counts
        assert (counts.members, counts.size) == pytest.approx((new * 80 / group, 80 / group))
        assert (counts.old_members, counts.old_size) == pytest.approx((before * 60 / group, 60 / group))
        # One of the five is in a group with others, so that these groups are not all alike.
        assert one.ref.counts.old_share == pytest.approx(0.05)
        assert 100 / group <= one.ref.counts.old_size <= 100 / group * (1.2 if group > 1 else 1)


def test_groups_of_a_part_count_by_how_alike_they_are_in_this_look(looks_of):
    """Six groups of twenty: a look that each group has equally often is known as of single samples, nearly."""
    spread, together = np.tile([0.0] * 15 + [1.0] * 5, 6), np.repeat([0.0] * 5 + [1.0], 20)
    sizes = {}
    for name, values in (("spread", spread), ("together", together)):
        found = looks_of("part", "gray", {"gen": values, "ref": values, "baseline": values}, 20)
        sizes[name] = found["gray, without color"].old.counts.size
    assert sizes["together"] == pytest.approx(6, rel=0.01) and 30 < sizes["spread"] < 120


def test_a_look_that_a_value_decides_begins_at_that_value(looks_of):
    gen, ref = np.r_[np.full(3, 0.5), np.full(2, 0.4), np.full(5, 0.9)], np.r_[np.full(19, 0.1), 0.5]
    found = looks_of("part", "gray", {"gen": gen, "ref": ref, "baseline": ref})
    assert {word: (one.old.counts.members, one.ref.counts.old_members) for word, one in found.items()} == {
        "in color": (2, 19),
        "gray, without color": (8, 1),
    }


@pytest.mark.parametrize("group", [1, 2])
def test_a_whole_set_has_moved_by_its_mean_in_parts_of_the_spread_of_the_reference(looks_of, group):
    rng = np.random.default_rng(0)
    values = {"gen": rng.normal(1, 2, 40), "ref": rng.normal(0, 1, 60), "baseline": rng.normal(0.3, 1, 50)}
    values["gen"][0] = 1e6  # counts as four spreads
    found = looks_of("whole", "brightness", values, group)
    assert [*found] == ["darker", "brighter"]
    middle = np.median(values["ref"])
    spread = stats.median_abs_deviation(values["ref"], scale="normal")
    parts = {label: np.clip((one - middle) / spread, -4, 4) for label, one in values.items()}
    means = {label: one.mean() for label, one in parts.items()}
    # Groups of one size: the mean is that of the means of groups.
    sums = {label: one.reshape(-1, group).mean(1) for label, one in parts.items()}
    errors = {label: one.std(ddof=1) / sqrt(len(one)) for label, one in sums.items()}
    for word, sign in (("brighter", 1), ("darker", -1)):
        one = found[word]
        gains = [sign * (means["gen"] - means[label]) for label in ("baseline", "ref")]
        assert (one.old.value, one.ref.value) == pytest.approx(gains, rel=1e-4)
        assert one.value == min(one.old.value, one.ref.value)
        wanted = [sqrt(errors["gen"] ** 2 + errors[label] ** 2) for label in ("baseline", "ref")]
        assert (one.old.error, one.ref.error) == pytest.approx(wanted, rel=1e-4)
        free = [stats.ttest_ind(sums["gen"], sums[label], equal_var=False).df for label in ("baseline", "ref")]
        assert one.old.degrees == pytest.approx(free[0]) and one.ref.degrees == pytest.approx(min(free))
        assert one.old.fixed == 0


def test_replicates_of_a_baseline_that_differ_widen_a_look_and_give_its_degrees(looks_of):
    rng = np.random.default_rng(1)
    old = {f"baseline-{one}": rng.normal(shift, 1, 400) for one, shift in enumerate((-1.0, 0.0, 1.0), 1)}
    values = {"gen": rng.normal(0, 1, 400), "ref": rng.normal(0, 1, 400), **old}
    one = looks_of("whole", "brightness", values)["brighter"]
    assert one.old.degrees == one.ref.degrees == 2
    assert one.old.error == one.old.fixed == pytest.approx(sqrt(4 / 3), rel=0.2)


def test_pictures_all_of_one_brightness_have_a_spread_from_all_sets(looks_of):
    values = {"gen": np.ones(10), "ref": np.r_[np.zeros(9), 1.0], "baseline": np.zeros(10)}
    one = looks_of("whole", "brightness", values)["brighter"]
    spread = np.concatenate([*values.values()]).std()
    assert one.old.value == pytest.approx(1 / spread) and one.ref.value == pytest.approx(0.9 / spread)


# ── scores, copies, pairs ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("of_gen, of_ref", [(1, 1), (4, 1), (2, 5)])
@pytest.mark.parametrize("metric", ["fd", "kid"])
def test_the_error_of_a_score_is_that_of_its_interval_which_knows_groups(metric, of_gen, of_ref):
    """No metric is widened by the sizes of groups. The reference has a part of the error."""
    sets = sets_of(of_size(40, of_gen), of_size(120, of_ref), of_size(40))
    score = Score(metric, 3.0, Signature.of(metric, [40], "array-2"), interval=(2.0, 4.0), higher_is_better=False)
    found = _measure(score, sets, "gen")
    error = 1 / stats.norm.ppf(0.975)
    assert (found.value, found.standard_error) == (3.0, pytest.approx(error))
    assert sqrt(found.variance_of("ref")) == pytest.approx(error * sqrt(40 / 160))  # with endless generated samples


def test_copying_is_judged_by_what_fresh_samples_do_not_show(monkeypatch):
    near = SimpleNamespace(value=0.3, control=0.1)
    found = SimpleNamespace(near=near, same_law=0.5, fresh=40, exact=2)
    monkeypatch.setattr(gate, "NearTraining", SimpleNamespace(of=lambda *_, **__: found))
    gen = of_size(50)
    opened = Sets({label: OpenedSet(label, gen, given=gen) for label in ("gen", "ref")})
    sets = SimpleNamespace(gen=gen, opened=opened, extractor=None)
    share, exact = gate.copying_evidence(sets, CopyingLimits(near=0.02, exact=1), object(), Run())
    assert share.value == pytest.approx(0.2)
    counts = share.counts
    assert (counts.members, counts.size, counts.old_members, counts.old_size) == pytest.approx((15, 50, 4, 40))
    assert exact.value == 2
    for p_value, is_judged in ((gate.AUDIT_ALPHA, False), (gate.AUDIT_ALPHA * 1.01, True)):
        found.same_law = p_value
        first = next(gate.copying_evidence(sets, CopyingLimits(near=0.02), object(), Run()))
        assert isinstance(first, Missing) != is_judged


@pytest.mark.parametrize("clustered", [0, 1, 2], ids=["kept", "lost", "gained"])
def test_all_counts_of_pairs_take_the_effect_of_the_most_clustered(clustered):
    """Thirty groups of four pairs: in ten, all pairs have one count; in twenty, one pair has another count."""
    group, place = np.arange(120) // 4, np.arange(120) % 4
    cells = [(group // 10 == one) & (place == 0) for one in range(3)]
    cells[clustered] = group // 10 == clustered
    kept, lost, gained = cells
    found = PairCounts.of(kept | gained, kept | lost, group.astype(np.uint64))
    assert found.size == pytest.approx(30, rel=0.1)
    shares = np.array([found.kept, found.lost, found.gained]) / found.size
    assert shares == pytest.approx([cell.mean() for cell in cells])


def test_what_is_surely_broken_bounds_a_count_from_below_and_from_above_if_there_may_be_more():
    given = {"name": "", "value": 2.0, "margin": 3.0, "n": 50, "count": lambda level: round(100 * level)}
    closed, is_open = SureCount(**given), SureCount(**given, is_open=True)
    assert [closed.bound(side, 0.04) for side in ("low", "high")] == [4, 4]
    assert [is_open.bound(side, 0.04) for side in ("low", "high")] == [4, 50]
    few = SureCount(**given | {"n": 2}, is_open=True)  # it never holds
    assert few.bound("high", 0.01) == 4 and few.bound("high", 0.09) == 9
    measured = SimpleNamespace(changed=lambda level: (0.2, (0.2 - level, 0.2 + level)))
    changed = ChangedPairs(name="", value=0.2, margin=0.1, measured=measured)
    assert [changed.bound(side, 0.03) for side in ("low", "high")] == pytest.approx([0.14, 0.26])


def test_the_first_limit_on_changed_pairs_is_what_two_of_as_many_pairs_may_be():
    for runs in (30, 100):
        (line,) = (one for one in _pair_lines(True, runs) if getattr(one, "key", "") == "by_id.changed")
        least = stats.beta.isf(0.05 / 4, 3, runs - 2)
        assert least <= line.value <= least * 1.1
    assert _pair_lines(True, 10_000)[-1].value == CHANGED


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def labelled(**counts):
    values = [name for name, count in counts.items() for _ in range(count)]
    rows = np.arange(2 * len(values), dtype=np.float32).reshape(-1, 2)
    return as_embeddings(fe.EmbeddingSet(rows, metadata={"label": ["" if one == "none" else one for one in values]}))


def counted(gen, ref, *old, pairs=None):
    sets = sets_of(labelled(**gen), labelled(**ref), *(labelled(**one) for one in old), pairs=pairs)
    return sets, by_column(sets, "label")


LIMITS = KindLimits(column="label", lose=0.5, new=0.2)


def test_a_value_is_new_if_the_reference_has_less_than_a_quarter_of_the_limit():
    sets, found = counted({"a": 60, "b": 20, "c": 20}, {"a": 90, "b": 5, "c": 4, "d": 1}, {"a": 96, "b": 2, "c": 2})
    by_name = {one.evidence.name.split("=")[1]: one.evidence for one in new_evidence(sets, found, LIMITS, 0.2)}
    assert [*by_name] == ["c", "d"]
    assert by_name["c"].value == pytest.approx(0.18) and by_name["d"].value == 0
    assert (by_name["c"].counts.members, by_name["c"].counts.old_members) == (20, 2)
    (none,) = new_evidence(sets, found, LIMITS, 0.04)
    assert (none.evidence.value, none.evidence.counts.old_size) == (0, 100)


def test_pairs_give_the_gain_and_the_loss_of_a_value():
    gen, old = {"a": 6, "b": 4}, {"b": 2, "a": 8}
    sets, found = counted(gen, {"a": 10}, old, pairs=np.arange(10))  # b, b were a, a; a, a were b, b; two b more
    (new,) = (one.evidence for one in new_evidence(sets, found, LIMITS, 0.2))
    assert (new.counts.kept, new.counts.lost, new.counts.gained, new.counts.size) == (0, 2, 4, 10)
    assert new.value == pytest.approx(0.2)
    judged = judge_kinds(found, LIMITS, 0.5, 10)
    (lost,) = (one.evidence for one in lost_evidence(sets, found, judged, 0.5))
    assert (lost.counts.lost, lost.counts.gained) == (4, 2) and lost.value == pytest.approx(2 / 8)


def test_replicates_add_up_and_missing_values_count_beyond_the_baselines_share():
    sets, found = counted({"a": 50, "none": 50}, {"a": 90, "none": 10}, {"a": 80, "none": 20}, {"a": 60, "none": 40})
    counts = KindCounts.of(sets, found)
    kind = found.names.index("label=a")
    both = counts.of_kind(kind)
    assert (both.members, both.size, both.old_members, both.old_size) == (50, 100, 140, 200)
    assert counts.unlabeled == pytest.approx(50 - 60 / 200 * 100)
    fewer = counted({"a": 99, "none": 1}, {"a": 90, "none": 10}, {"a": 80, "none": 20})
    assert KindCounts.of(*fewer).unlabeled == 0


@pytest.mark.parametrize(("missing", "is_missing"), [(20, True), (19, False)])
def test_a_loss_that_missing_values_could_explain_is_not_judged(missing, is_missing):
    """The baseline has 40 of a; of the release 19 are of it, so that 21 are lost: with one of these, half is kept."""
    sets, found = counted({"a": 100 - 81, "b": 81 - missing, "none": missing}, {"a": 40, "b": 60}, {"a": 40, "b": 60})
    judged = judge_kinds(found, LIMITS, 0.5, 100)
    first = next(lost_evidence(sets, found, judged, 0.5)).evidence
    assert isinstance(first, Missing)
    few = counted({"a": 10, "b": 90 - missing, "none": missing}, {"a": 40, "b": 60}, {"a": 60, "b": 40})
    first = next(lost_evidence(*few, judge_kinds(few[1], LIMITS, 0.5, 100), 0.5)).evidence
    assert isinstance(first, Missing) == is_missing  # of 60 are 10 left: 20 more make a half


def test_values_missing_unevenly_by_more_than_a_hundredth_are_told():
    for missing, is_told in ((1, False), (2, True)):
        sets, _ = counted({"a": 100 - missing, "none": missing}, {"a": 100}, {"a": 100})
        assert (_warn_of_unlabeled(sets, "label") is not None) == is_told


def test_values_are_limited_from_the_share_that_is_asked_for():
    _, found = counted({"a": 5}, {"a": 90, "b": 9, "c": 1}, {"a": 5})
    names = lambda judged: [found.names[kind] for kind in judged.limited]  # noqa: E731
    asked = judge_kinds(found, KindLimits(column="label", lose=0.5, min_share=0.09), 0.5, 100)
    assert names(asked) == ["label=a", "label=b"] and asked.smallest == asked.least == 0.09


# Leaves 0 to 3; 4 joins 0 and 1, 5 joins 2 and 3, 6 is everything.
TREE = Tree(np.array([[0, 1], [2, 3], [4, 5]]), np.ones(3))


def of_tree(members, n=100):
    every = np.array([*members, members[0] + members[1], members[2] + members[3], sum(members)])
    tally = SimpleNamespace(members=every, n=n)
    return CountedSets([f"k{one}" for one in range(7)], TREE, {}, {"ref": tally}, {}, "", None)


def test_a_tree_is_cut_where_both_children_are_still_large():
    found = of_tree([30, 20, 45, 5])
    shares = found.shares("ref")
    assert shares.tolist() == pytest.approx([0.3, 0.2, 0.45, 0.05, 0.5, 0.5, 1])
    assert _cut_at(TREE, shares, 0.2) == (0, 1, 2, 5) and _cut_at(TREE, shares, 0.21) == (0, 2, 4, 5)
    assert _cut_at(TREE, shares, 0.5) == (4, 5) and _cut_at(TREE, shares, 0.51) == ()
    assert found.above(0) == [4, 6] and found.above(3) == [5, 6] and found.above(4) == [6] and found.above(6) == []


def test_so_few_samples_judge_no_kind_and_say_how_many_would():
    few, many = (judge_kinds(of_tree([30, 20, 45, 5]), KindLimits(lose=0.5), 0.5, n) for n in (3, 100_000))
    assert few.limited == () and few.smallest == few.least == 1.0 and few.enough > 1
    assert many.limited == (0, 1, 2, 3) and many.enough is None and many.smallest < 0.05
    assert few.enough == pytest.approx(members_to_hold(0.5, 1) / 3 / 0.15)  # kinds of 15 % would be judged
    named = [judge_kinds(of_tree([30, 20, 45, 5]), KindLimits(lose=0.5, only=("k0", "k3")), 0.5, n) for n in (19, 20)]
    assert [one.limited for one in named] == [(0,), (0, 3)]


def test_kinds_are_sought_from_the_members_that_could_be_seen_to_be_lost():
    found = of_tree([30, 20, 45, 5])
    needed = members_to_lose(0.0, 0.05 / 7)
    for n, kinds in ((needed / 0.05, (0, 1, 2, 3, 4, 5)), (needed / 0.0501, (0, 1, 2, 4, 5)), (1.0, ())):
        judged = sought_kinds(found, KindLimits(lose=0.5), n)
        assert judged.limited == kinds and judged.least == pytest.approx(needed / n)
    assert sought_kinds(found, KindLimits(lose=0.5, min_share=0.3), 1e6, (5,)).limited == (0, 2, 4)


def test_a_noun_is_under_those_that_have_all_its_samples_and_more():
    members = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]], bool)
    found = CountedSets(["seen-cat", "seen-pet", "seen-animal", "seen-pet 2"], Nouns(members), {}, {}, {}, "", None)
    assert [found.above(kind) for kind in range(4)] == [[1, 2, 3], [2], [], [2]]


# ── causes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def limit(name, value=0.3, margin=0.1, **shares):
    return Limit(name, "regressed", value, None, margin, "high", None, None, "", shares, {})


def test_the_size_of_a_limit_is_the_change_of_a_share():
    assert limit("kinds.lose a", gen=0.1, **{"baseline-1": 0.3, "baseline-2": 0.5}).size == pytest.approx(0.3)
    assert limit("kinds.new a", gen=0.4, ref=0.9).size == 0.4
    assert limit("basics.duplicates").size == 0.3 and limit("metrics.fd worse", gen=0.5).size == 0


def suspect(gen, ref, share=0.4, before=0.1, what="kind", whole=False):
    members = {"gen": np.isin(np.arange(20), gen), "ref": np.isin(np.arange(20), ref)}
    return Suspect(Finding("x", what, whole, share, before, 0.01), members, asked=members if what == "kind" else None)


def test_findings_are_the_same_if_half_of_the_smaller_is_of_both():
    one = suspect(range(8), range(2))
    assert one.is_same(suspect(range(6, 10), [])) and suspect(range(6, 10), []).is_same(one)
    assert not one.is_same(suspect(range(7, 11), []))
    assert not one.is_same(suspect(range(8), [], share=0.1, before=0.4))
    lost = suspect([], range(8), 0.1, 0.4)
    assert lost.is_same(suspect(range(20), range(6, 10), 0.1, 0.4))
    # Of a repeated picture, half of the larger: a picture that is repeated is a fault of its own in a larger kind.
    repeat = suspect(range(4), [], what="repeat")
    assert not one.is_same(suspect(range(3), [], what="repeat")) and one.is_same(repeat) and repeat.is_same(one)
    assert one.holds(suspect(range(6, 10), [])) and not suspect(range(6, 10), []).holds(one)


def test_of_a_look_and_a_kind_with_the_same_samples_that_is_named_which_explains_more_of_the_other():
    """All of the kind are lost; of ten samples with the look most are of the kind, and others have it now as well."""
    kind = suspect([], range(8), 0.0, 0.4)
    look = suspect([8, 9, 10, 11], range(2, 12), 0.2, 0.5, what="look")
    assert _cause_among([look, kind]) is kind and _cause_among([kind, look]) is kind
    wide = suspect([], range(16), 0.0, 0.8, what="look")  # most of all, of which the kind is a part
    assert _cause_among([kind, wide]) is wide
    again = suspect([], range(6), 0.0, 0.3, what="repeat")
    assert _cause_among([kind, look, again]) is again


def test_a_cause_says_what_is_allowed_of_a_share():
    lost = Said(suspect([], [], 0.1, 0.4), 0.3, [limit("kinds.lose x", 0.75, 0.5)]).finding("baseline")
    assert lost.allowed == pytest.approx(0.2) and "75 % of it lost" in lost.text
    more = Said(suspect([], []), 0.3, [limit("kinds.new x")]).finding("baseline")
    assert more.allowed == pytest.approx(0.2) and "30 % more" in more.text


def test_sets_of_one_sample_a_group_have_no_effect():
    assert mean_group_size(of_size(10)) == 1 and mean_group_size(of_size(12, 4)) == 4
