"""Changes of kinds and classes: what so many samples show, what they would hide, and what is told of it."""

import tomllib

import numpy as np
import pytest
from _limits import by_name
from _releases import release
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.demo.planted import shipped_digits
from finc_eval.embeddings.opened import Sets
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.gates.divisions import by_tree, judge_kinds, sought_kinds
from finc_eval.gates.evidence import PlainFact
from finc_eval.gates.first_policy import first_policy
from finc_eval.gates.gate import gather_evidence, shown_limits
from finc_eval.gates.kind_shares import KindEvidence
from finc_eval.gates.policy import KindLimits, Policy
from finc_eval.gates.rule import judge
from finc_eval.gates.sets import GateSets
from finc_eval.gates.shares import LostShare, TwoCounts, members_to_hold, members_to_lose
from finc_eval.partitions.kind_tree import KindTree


@pytest.fixture(scope="module")
def made():
    """The first policy for a baseline of so many samples, the baseline and the reference."""
    found = {}

    def of(n):
        if n not in found:
            old, ref = release(n, 1), release(2 * n, 3)
            found[n] = tomllib.loads(first_policy([old], ref)), old, ref
        return found[n]

    return of


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", [20, pytest.param(21, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "n, change, overall, rule",
    [
        (1000, {}, "pass", None),
        pytest.param(1000, {"lost": 2}, "regression", "kinds.lose", marks=pytest.mark.long),
        (1000, {"lost": 1}, "regression", "kinds.lose"),  # of a kind that is smaller than those which must hold
        (1000, {"new": 0.06}, "regression", "kinds.new"),
        (100, {"lost": 3}, "undecided", "kinds.lose"),
        (100, {}, "undecided", "kinds.lose"),
    ],
)
def test_the_first_policy_tells_a_change_from_another_draw(made, n, change, overall, rule, seed):
    policy, old, ref = made(n)
    verdict = fe.gate(release(n, seed, **change), old, ref, policy)
    assert verdict.overall == overall, verdict.by_urgency[0].sentence
    decisive = {limit.rule for limit in verdict.of("regressed" if overall == "regression" else "undecided")}
    assert rule is None or rule in decisive


def test_a_generator_that_repeats_itself_is_a_regression(made):
    policy, old, ref = made(100)
    few = release(17, 30)
    verdict = fe.gate(few[np.random.default_rng(0).integers(17, size=100)], old, ref, policy)
    assert {"basics.duplicates"} <= {limit.rule for limit in verdict.of("regressed")}
    assert any("repeats itself" in one for one in verdict.warnings)


def test_a_baseline_that_repeats_itself_may_go_on_to_do_so():
    few = release(40, 5)
    old, new = (few[np.random.default_rng(seed).integers(40, size=300)] for seed in (0, 1))
    policy = tomllib.loads(first_policy([old], release(300, 6)))
    assert policy["basics"]["duplicates"] == pytest.approx(1 - 20 / 300, abs=0.001)
    verdict = fe.gate(new, old, release(300, 6), policy)
    assert "basics.duplicates" not in {limit.rule for limit in verdict.of("regressed")}


@pytest.mark.parametrize("n, lose", [(100, 0.75), pytest.param(3000, 0.5, marks=pytest.mark.long)])
def test_the_first_policy_allows_half_of_a_share_to_be_lost_where_kinds_are_large_enough(made, n, lose):
    assert made(n)[0]["kinds"]["lose"] == lose


def test_few_samples_are_undecided_and_say_how_many_decide(sets):
    verdict = fe.gate(release(100, 10), sets["old"], sets["ref"], {"kinds": {"lose": 0.5, "min_share": 0.04}})
    assert verdict.exit_code == 2
    assert any(limit.needed for limit in verdict.of("undecided"))


def test_where_no_kind_can_be_judged_the_limit_is_undecided_and_says_how_many_samples_decide():
    new, old, ref = (release(60, seed) for seed in (1, 2, 3))
    (one,) = fe.gate(new, old, ref, {"kinds": {"lose": 0.5}}).limits
    assert (one.name, one.verdict) == ("kinds.lose", "undecided")
    assert "so few samples judge kinds of at least" in one.note
    assert one.needed > 60


@pytest.fixture(scope="module")
def judged():
    """The kinds that a limit of one half judges with so many samples, counted in a large reference."""
    rows = [as_embeddings(release(4000, seed), "set") for seed in (1, 2, 3)]
    sets = GateSets(rows[0], {"baseline": rows[1]}, None, rows[2], Sets({}), None, (), ("baseline",))
    found = by_tree(sets, KindTree.fit(rows[2].rows_at(np.arange(4000))), Run())
    return found, lambda n, **limits: judge_kinds(found, KindLimits(lose=0.5, **limits), 0.5, n)


@pytest.mark.parametrize("n", [500, 2000, 20_000])
def test_each_sample_is_of_a_limited_kind_that_is_as_small_as_can_be_judged(judged, n):
    found, of = judged
    one, members = of(n), found.tree.members
    assert all(one.shares[kind] * n >= members_to_hold(0.5, len(one.limited)) for kind in one.limited)
    for leaf in range(found.tree.leaves):
        around = np.flatnonzero(members[:-1, leaf] & (one.shares >= one.smallest)[:-1])
        assert not len(around) or around.min() in one.limited
    sought = sought_kinds(found, KindLimits(lose=0.5), n, one.limited)
    assert not set(one.limited) & set(sought.limited)
    assert min(one.shares[list(sought.limited)]) < one.smallest


def test_kinds_are_limited_from_the_share_that_is_asked_for(judged):
    found, of = judged
    one = of(2000, min_share=0.2)
    sought = sought_kinds(found, KindLimits(lose=0.5, min_share=0.2), 2000)
    assert min(one.shares[list(one.limited + sought.limited)]) >= 0.2
    (told,) = one.unseen("kinds.lose", found)
    assert "limits kinds of at least 20 % of the reference: smaller kinds can be lost unseen" in told


@pytest.mark.parametrize("kinds", [1, 10, 40])
def test_kinds_of_enough_members_all_hold_in_nineteen_of_twenty_draws(kinds):
    rng, mean = np.random.default_rng(0), members_to_hold(0.5, kinds)
    counts = rng.poisson(mean, (300, kinds, 2))

    def holds(new, old):
        both = TwoCounts(float(new), 1e9, float(old), 1e9)
        return LostShare(name="", value=0.0, margin=0.5, least=1e-12, counts=both).bound("high", 0.05) <= 0.5

    held = sum(all(holds(*pair) for pair in draw) for draw in counts.tolist())
    assert stats.binom.ppf(0.01, 300, 0.95) <= held


def test_a_kind_of_enough_members_is_seen_to_be_lost_whole_in_four_of_five_draws():
    level = 1e-4
    mean, rng = members_to_lose(0.5, level), np.random.default_rng(1)
    gone = [TwoCounts(0.0, 1e9, float(old), 1e9) for old in rng.poisson(mean, 400)]
    found = [
        LostShare(name="", value=1.0, margin=0.5, least=1e-12, counts=one).bound("low", level) > 0.5 for one in gone
    ]
    assert 0.75 < np.mean(found) < 0.9


@pytest.mark.one_of_each
@pytest.mark.parametrize("only", [("k3",), ("mostly b",)])
def test_a_policy_names_kinds_by_their_ids_or_names(only):
    def told(seed):
        rows = release(250, seed)
        return fe.EmbeddingSet(rows, metadata={"label": ["b" if row[0] > 0 else "a" for row in rows]})

    verdict = fe.gate(told(1), told(2), told(3), {"kinds": {"lose": 0.9, "only": only}})
    assert verdict.limits
    assert all(only[0] in (limit.name.split()[1], limit.note.partition(" (")[0]) for limit in verdict.limits)
    (none,) = fe.gate(told(1), told(2), told(3), {"kinds": {"lose": 0.9, "only": ["k999"]}}).limits
    assert (none.verdict, none.note) == ("missing", "no set has k999")


@pytest.mark.long
def test_what_has_moved_is_the_difference_of_a_comparison(sets):
    new, old = release(1500, 12, lost=3), sets["old"]
    (found,) = fe.gate(new, old, sets["ref"], {"kinds": {"moved": 0.5}}).distances
    compared = fe.compare(new, old, method="clusters")
    assert (found.moved, found.interval) == (compared.difference, compared.difference_interval)
    assert 0.05 < found.moved < 0.3 and "50 kinds since the baseline" in found.say(())


def test_values_of_a_column_hide_nothing(sets):
    labelled = fe.EmbeddingSet(sets["old"][:150], metadata={"label": ["one"] * 150})
    by_column = fe.gate(labelled, labelled, labelled, {"kinds": {"lose": 0.5, "column": "label"}})
    assert by_column.overall == "pass"
    assert not any("unseen" in warning for warning in by_column.warnings)


def test_values_that_are_too_rare_to_be_limited_are_told(sets):
    labelled = fe.EmbeddingSet(sets["old"][:640], metadata={"label": ["one"] * 636 + ["rare"] * 4})
    limits = {"lose": 0.9, "column": "label"}
    verdict = fe.gate(labelled, labelled, labelled, {"kinds": limits})
    assert [limit.name for limit in verdict.limits] == ["kinds.lose label=one"]
    (told,) = [warning for warning in verdict.warnings if "unseen" in warning]
    assert "1 kind of less than 1 % of the reference, such as label=rare" in told
    verdict = fe.gate(labelled, labelled, labelled, {"kinds": {**limits, "min_share": 0.005}})
    assert len(verdict.limits) == 2
    assert not any("unseen" in warning for warning in verdict.warnings)


def test_a_new_kind_is_detectable_from_more_than_its_node_needs(sets, monkeypatch):
    """Other nodes take a part of it: here a fifth, and then nothing."""

    def detectable():
        limits = fe.gate(*(sets[name][:300] for name in ("same", "old", "ref")), {"kinds": {"new": 0.05}}).limits
        return max(limit.detectable for limit in limits if limit.detectable)

    found = detectable()
    monkeypatch.setattr("finc_eval.gates.kind_shares.IN_ONE", 1.0)
    assert found == pytest.approx(detectable() / 0.8)


def test_a_large_new_kind_is_seen_next_to_a_large_reference():
    """Many samples of the reference do not hide what few of the release show."""
    new, old, ref = release(300, 10, new=0.3), release(300, 11), release(1800, 12)
    found = fe.gate(new, old, ref, {"kinds": {"new": 0.02}})
    assert max(limit.value for limit in found.of("regressed")) == pytest.approx(0.3, abs=0.05)
    assert all(limit.name.startswith("kinds.new all-k") for limit in found.limits)


def test_of_nested_kinds_that_are_lost_the_largest_is_shown():
    """What was sought beside the limits is shown where it regressed alone."""

    def one(name, value, above=None):
        return KindEvidence(PlainFact(name=name, value=value, margin=2.0), None if above is None else frozenset(above))

    every = [one("limit", 1.0), one("large", 3.0, []), one("inside", 3.0, ["large"]), one("calm", 1.0, [])]
    every.append(one("other", 3.0, ["calm"]))
    shown = shown_limits(judge([part.evidence for part in every]), every)
    assert [limit.name for limit, _ in shown] == ["limit", "large", "other"]


@pytest.mark.long
def test_what_is_sought_counts_in_the_family(sets):
    verdict = fe.gate(release(2000, 4, lost=4), sets["old"], sets["ref"], {"kinds": {"lose": 0.5}})
    assert verdict.overall == "regression"
    assert int(verdict.family.split("Family of ")[1].split()[0]) > 1.5 * len(by_name(verdict, "kinds.lose"))


@pytest.mark.long
def test_samples_that_move_towards_the_reference_are_told_so():
    ref = release(1500, 1)
    for new, old, towards in (
        (release(1500, 2), release(1500, 3, lost=5), True),
        (release(1500, 3, lost=5), ref, False),
    ):
        verdict = fe.gate(new, old, ref, {"kinds": {"moved": 0.05}})
        (limit,) = by_name(verdict, "kinds.moved")
        assert limit.value > 0.05 and limit.note.startswith("towards the reference, from") == towards


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_release_without_threes_is_a_regression_under_the_first_policy_and_an_unchanged_one_is_not(seed):
    images, labels = shipped_digits()
    order = np.random.default_rng(seed).permutation(len(images))
    rows = images[order].reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(len(images), -1).astype(np.float32)
    ref, old, rest, digits = rows[:1500], rows[1500:2500], rows[2500:], labels[order][2500:]
    policy = tomllib.loads(first_policy([old], ref))
    verdict = fe.gate(rest[digits != 3][:1000], old, ref, policy)
    assert any(limit.name.startswith("kinds.lose") for limit in verdict.of("regressed"))
    assert fe.gate(rest[:1000], old, ref, policy).overall in ("pass", "undecided")


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_lost_class_that_a_small_reference_divides_is_found_among_the_kinds_of_all_sets(seed):
    images, labels = shipped_digits()
    order = np.random.default_rng(seed).permutation(len(images))
    rows = images[order].reshape(len(images), -1).astype(np.float32)
    ref, old, rest, digits = rows[:1500], rows[1500:2500], rows[2500:], labels[order][2500:]
    policy = Policy.of({"kinds": {"lose": 0.5}})
    sets = GateSets.open(rest[digits != 3][:1000], [old], ref, None, Run())
    every = [one.evidence for one in gather_evidence(sets, policy, None, Run()).all]
    found = [one.evidence.name for one in judge(every) if one.verdict == "regressed"]
    assert any(name.startswith("kinds.lose all-k") for name in found)


def test_many_names_of_a_policy_are_looked_up_at_once(monkeypatch):
    from finc_eval.gates.divisions import CountedSets

    called, times = CountedSets.called, []
    monkeypatch.setattr(CountedSets, "called", lambda *given: times.append(1) or called(*given))
    rng = np.random.default_rng(0)
    new, old, ref = (rng.normal(size=(120, 4)) for _ in range(3))
    verdict = fe.gate(new, old, ref, {"kinds": {"lose": 0.9, "only": [f"none{number}" for number in range(50)]}})
    assert len(verdict.limits) == 50 and len(times) < 6
