"""Judges on tiny tables: what decides an order, which votes stand twice, and which rows and numbers are meant."""

from dataclasses import replace
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.judges import bradley_terry as bt
from finc_eval.judges import parts as judged
from finc_eval.judges import strengths as of_strengths
from finc_eval.judges.choosing import LEAST_ROWS, _is_counter
from finc_eval.judges.covariates import _effect
from finc_eval.judges.dividing import Dividing, _have_looks, rows_by_prompt
from finc_eval.judges.doubts import failed, say_doubts, say_stated
from finc_eval.judges.judged_samples import rows_in, say_missing
from finc_eval.judges.paired import least_variance
from finc_eval.judges.parts import Division, Gains, JudgedPart, find_parts
from finc_eval.judges.power import plan
from finc_eval.judges.repeated import CHANCE, LEAST_RUN, _least_run, _without_excess, _without_multiples, _without_runs
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.strengths import Strengths
from finc_eval.judges.tables import number_of
from finc_eval.judges.votes import read_votes
from finc_eval.naming.traits import TRAITS


def voted(seed, n=45, models="abc", chances=(0.5, 0.3, 0.2)):
    rng, rows = np.random.default_rng(seed), []
    for number in range(n):
        left, right = rng.choice([*models], 2, replace=False).tolist()
        rows.append({"prompt": f"p{number}", "left": left, "right": right})
        rows[-1]["winner"] = str(rng.choice([*sorted([left, right]), "tie"], p=chances))
    return read_votes(rows, [*models])


# ── strengths ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", [1, 2])
def test_an_upset_is_the_fewest_of_the_most_influential_votes_without_which_another_is_first(seed):
    one = Strengths.of(voted(seed))
    first, influences, found = int(one.fit.strengths.argmax()), one.fit.influences, {}
    for other in {0, 1, 2} - {first}:
        order = (influences[:, first] - influences[:, other]).argsort()[::-1]
        left_out = next((k for k in range(1, one.votes.n) if one._is_above(order[k:], first, other)), None)
        for start in (0, 1, 4, left_out, left_out + 4):  # where the search begins decides nothing
            assert one._fewest(order, first, other, start, one.votes.n - 1) == left_out
            assert one._fewest(order, first, other, start, left_out) == left_out
            assert one._fewest(order, first, other, start, left_out - 1) is None
        found[one.votes.models[other]] = left_out
    upset = one.upset()
    assert upset.votes == min(found.values()) == found[upset.then]
    assert (upset.of, upset.first) == (45, one.votes.models[first])


def test_gains_of_votes_are_what_the_fit_does_not_expect(monkeypatch):
    one, seen = Strengths.of(voted(3)), []
    monkeypatch.setattr(of_strengths, "find_parts", lambda judge, gains, *_: seen.extend(gains) or ())
    one.parts({"a": {"label": Division.of_texts([f"t{number % 3}" for number in range(45)])}}, 0)
    assert [gains.model for gains in seen] == [*"abc"]
    for number, gains in enumerate(seen):
        assert gains.values.sum() == pytest.approx(0, abs=1e-6)  # as the likelihood is largest
        rows, points = one.votes.points(number)
        a, b = one.fit.strengths[number], one.fit.strengths[one.votes.left[rows] + one.votes.right[rows] - number]
        tied = np.exp(one.fit.log_tie + (a + b) / 2)
        wanted = (np.exp(a) + tied / 2) / (np.exp(a) + np.exp(b) + tied)
        assert points - gains.values == pytest.approx(wanted)
    far = Strengths(one.votes, replace(one.fit, parameters=5000 * one.fit.parameters), one.spread)
    assert np.isfinite(far.expected()).all()


def test_votes_that_are_all_ties_have_the_errors_of_as_many_votes_half_won():
    left, right = np.array([0, 1, 2] * 4), np.array([1, 2, 0] * 4)
    ties = bt.fit_strengths(left, right, np.full(12, bt.TIE), 3)
    halves = bt.fit_strengths(left, right, np.repeat([bt.LEFT, bt.RIGHT], 6), 3)
    assert ties.strengths == pytest.approx(np.zeros(3)) and halves.strengths == pytest.approx(np.zeros(3))
    assert bt.spread_of(ties).covariance == pytest.approx(bt.spread_of(halves).covariance)


def test_batches_of_clusters_and_votes_change_nothing(monkeypatch):
    votes = voted(4)
    whole = Strengths.of(votes)
    cluster = np.arange(45) % 11
    moved = whole.fit.without(cluster)
    monkeypatch.setattr(bt, "BATCH", 4)
    again = Strengths.of(votes)
    assert again.fit.scores == pytest.approx(whole.fit.scores)
    assert again.fit.without(cluster) == pytest.approx(moved)


def test_neighbors_by_value_are_planned_with_the_difference_of_their_values():
    first, second = plan("votes", ("a", "b", "c"), np.array([1.0, 4.0, 3.5]), np.eye(3) / 8, "votes", 100)
    assert (first.first, first.second, first.margin) == ("b", "c", 0.5)
    assert (second.first, second.second, second.margin) == ("c", "a", 2.5)
    assert first.needed == pytest.approx(100 * (first.detectable / 0.5) ** 2, abs=1)


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def part(value, elsewhere, p_value=0.01, name="a"):
    return JudgedPart("judge", name, "label", "dark", value, (value - 0.1, value + 0.1), elsewhere, 9, p_value)


def test_of_two_parts_with_one_p_value_the_larger_difference_comes_first():
    parts = [part(3.0, 2.5), part(0.1, -0.6), part(0.5, 0.5), part(9.0, 9.1, 0.001)]
    assert sorted(parts, key=judged._by_certainty) == [parts[3], parts[1], parts[0], parts[2]]


@pytest.mark.parametrize(("elsewhere", "follows"), [(1.0, True), (0.5, True), (0.4, False)])
def test_the_mean_of_all_models_follows_from_a_model_that_differs_as_much(elsewhere, follows):
    clearest, of_all = part(3.0, 2.0), part(1.5, elsewhere, name="")
    assert judged._follows(of_all, [clearest, of_all], 3) == follows


def test_the_error_of_words_is_shared_by_the_models_that_are_asked(monkeypatch):
    levels = []
    monkeypatch.setattr(judged, "_words", lambda judge, one, prompts, seed, level: levels.append(level) or ())
    gains = [Gains(name, np.zeros(3), np.arange(3), {}, name != "d") for name in ("a", "b", "", "c", "d")]
    find_parts("judge", gains, ["p", "q", "r"])
    assert levels == [0.5 / 3] * 3


def test_equal_answers_have_the_variance_of_two_more_at_each_end_of_all_gains():
    values, inside = np.r_[np.ones(9), -1.0, 0.5, 2.0, 0.0], np.arange(13) < 9
    mean, (low, high) = judged._mean(values, np.arange(13), inside)
    variance = np.r_[np.ones(9), -1, 2, -1, 2].var() / 13
    half = stats.t.ppf(0.975, 8) * np.sqrt(variance)
    assert mean == 1 and (low, high) == pytest.approx((1 - half, 1 + half))


@pytest.mark.parametrize(("values", "is_some"), [([1, 1, 2, 3], True), ([1, 1, 2, 3, 4], False), ([1, 1, 1, 2], True)])
def test_scores_of_which_half_are_one_number_have_a_least_variance(values, is_some):
    found = least_variance(np.array(values, float), (0.0, 5.0))
    more = np.r_[values, 0, 0, 5, 5]
    assert found == pytest.approx(more.var() / len(more) if is_some else 0)


# ── rows, numbers, tables ────────────────────────────────────────────────────────────────────────────────────────────


def scores_of(ids, prompts=None, values=None, has_ids=True):
    values = np.ones(len(ids)) if values is None else np.array(values, float)
    return SampleScores(
        "t", {"judge": values}, tuple(ids), tuple(prompts or ids), has_ids, prompts is not None, has_names=has_ids
    )


def test_scores_find_their_samples_by_id_or_prompt_or_number():
    rows, prompts = np.zeros((4, 2), np.float32), ["p", "q", "r", "s"]
    samples = as_embeddings(
        fe.EmbeddingSet(rows, ids=["a.png", "b.png", "c.png", "d.png"], metadata={"prompt": prompts})
    )
    assert rows_in("m", scores_of(["c", "a", "x"]), samples).tolist() == [2, 0, -1]
    assert rows_in("m", scores_of(["x", "a"]), samples).tolist() == [-1, 0]
    assert rows_in("m", scores_of(["x", "y"], ["s", "q"]), samples).tolist() == [3, 1]
    assert rows_in("m", scores_of(["x", "y"], ["z", "p"]), samples).tolist() == [-1, 0]
    assert rows_in("m", scores_of(["0", "1", "2", "3", "4"], has_ids=False), samples).tolist() == [0, 1, 2, 3, -1]
    with pytest.raises(fe.DataError, match="no id of t is a sample of m"):
        rows_in("m", scores_of(["x", "y"]), samples)


def test_samples_without_a_score_are_counted():
    samples = as_embeddings(np.zeros((5, 2), np.float32))
    scores, rows = scores_of([*"abcd"], values=[1, np.nan, 3, 4]), np.array([0, 1, -1, 3])
    assert [*say_missing("m", scores, rows, samples)] == ["3 samples of 5 of m have no score by judge"]
    whole = scores_of([*"abcde"])
    assert not [*say_missing("m", whole, np.arange(5), samples)]
    assert "names no sample" in next(say_missing("m", whole, np.full(5, -1), samples))
    # Two files as one, of which the second names its samples otherwise: its scores count all the same.
    two = replace(whole, judges={"judge": np.array([1, 2, 3, 4, np.nan]), "hps": np.array([np.nan] * 4 + [5.0])})
    rows = np.array([0, 1, 2, 3, -1])
    assert [*say_missing("m", two, rows, samples)] == [
        "scores of m by hps name no sample of it: they are ranked, and nothing is said of them by kind",
        "1 sample of 5 of m has no score by judge",
    ]
    assert "names no" not in next(say_missing("m", whole, np.array([-1, -1, -1, -1, 0]), samples))


TREE = SimpleNamespace(nodes=5, members=np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], bool))


def test_samples_are_divided_by_all_kinds_but_the_whole_and_by_labels_that_are_known():
    leaves = np.array([2, 0, 1], np.int64)
    kinds = SimpleNamespace(tree=TREE, assign=lambda rows, _: (leaves,))
    samples = as_embeddings(fe.EmbeddingSet(np.zeros((3, 2), np.float32), metadata={"label": ["x", "", "y"]}))
    dividing = Dividing(kinds, {"m": samples}, None, Run())
    found = dividing.kinds("m", np.array([1, -1, 0]))
    assert found.cell.tolist() == [0, -1, 2] and len(found.names) == 4
    assert [found.inside(one).tolist() for one in (0, 3)] == [[True, False, False]] * 2
    labels = dividing._divide({"m": np.array([2, 0, 1, -1])}, {})["m"]["label"]
    assert labels.names == ("x", "y") and labels.cell.tolist() == [1, 0, -1, -1]


def test_a_fifth_of_all_samples_has_a_look_on_either_side_and_a_value_decides_where_there_is_one():
    by_name = {one.name: one for one in TRAITS}
    values = np.stack([np.arange(21.0), np.r_[np.full(4, 0.5), np.full(10, 0.4), np.full(7, 0.9)]], 1)
    names, has = _have_looks([by_name["brightness"], by_name["gray"]], values)
    assert names == ("dark", "bright", "in color", "gray, without color")
    assert has.sum(0).tolist() == [4, 4, 10, 11]
    assert np.flatnonzero(has[:, 0]).tolist() == [0, 1, 2, 3] and np.flatnonzero(has[:, 1]).tolist() == [17, 18, 19, 20]


def test_a_copied_run_is_found_by_the_longest_of_the_runs_before():
    run = [*range(LEAST_RUN + 8)]
    codes = np.array([*run, 0, 1, 99, *run, 98, 0, 1])
    assert _without_runs(codes, LEAST_RUN + 5).tolist() == [
        *range(len(run) + 3),
        *range(2 * len(run) + 3, 2 * len(run) + 6),
    ]
    assert len(_without_runs(codes, LEAST_RUN + 8)) == len(run) + 6
    assert len(_without_runs(codes, LEAST_RUN + 9)) == len(codes)


@pytest.mark.parametrize(("times", "kept"), [((2, 4, 2, 6), 7), ((2, 4, 2, 5), 13), ((3, 3, 6, 3), 5)])
def test_what_stands_so_often_by_a_whole_number_of_copies_counts_once_for_each(times, kept):
    unlike = np.arange(4 * 30) // 30  # thirty unlike rows for each number of times
    codes = np.repeat(np.arange(120), np.array(times)[unlike])
    assert len(_without_multiples(codes)) == 30 * kept


@pytest.mark.parametrize(("equal", "is_once"), [(5, False), (6, True)])
def test_votes_equal_more_often_than_chance_explains_count_once(equal, is_once):
    """All winners are one, and each vote has a prompt and a voter of its own: by chance, hardly one is equal."""
    unlike = 30 - equal
    names = [f"n{one}" for one in (*range(unlike), *range(equal))]
    texts = {"prompt": names, "voter": names, "winner": ["left"] * 30}
    found = _without_excess(texts, np.array([*range(unlike), *range(equal)]))
    assert found.tolist() == [*range(unlike if is_once else 30)]


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (np.arange(40) * 3, True),
        (np.arange(40)[::-1], True),
        (np.random.default_rng(0).permutation(40), True),
        (np.arange(40)[::-1] * 2, False),
        (np.r_[np.arange(39), 38], False),
        (np.r_[np.random.default_rng(0).permutation(39), 45], False),
        (np.arange(LEAST_ROWS), True),
        (np.arange(LEAST_ROWS - 1), False),
    ],
)
def test_numbers_of_rows_are_no_scores(values, counts):
    assert _is_counter(values.astype(float)) == counts


@pytest.mark.parametrize(("zeros", "marks"), [(1, []), (2, [0.0])])
def test_two_zeros_beside_a_narrow_score_are_failed_calls(zeros, marks):
    values = np.r_[np.zeros(zeros), np.linspace(0.2, 0.31, 50)]
    assert failed(values) == marks


@pytest.mark.parametrize(
    ("stated", "is_turned"), [({"a": 3, "b": 9}, False), ({"a": 9, "b": 3}, True), ({"a": 7}, False)]
)
def test_a_file_that_orders_models_otherwise_is_told(stated, is_turned):
    (said,) = say_stated("judge", {"a": 1.0, "b": 2.0}, stated, {})
    assert ("orders models otherwise" in said) == is_turned
    assert not say_stated("judge", {"a": 1.0, "b": 2.0}, {"a": 1.004, "b": 2.0}, {})


def test_whole_numbers_beyond_all_floats_are_infinite_on_their_side():
    assert [number_of(one) for one in (10**400, -(10**400))] == [inf, -inf]


@pytest.mark.parametrize(("count", "ends"), [(11, "c10$"), (12, "c9, 2 more columns$"), (1, "got c0$")])
def test_columns_that_are_no_votes_are_named_up_to_eleven(count, ends):
    with pytest.raises(fe.DataError, match=ends):
        read_votes([{f"c{number}": "x" for number in range(count)}], ["a", "b"])


@pytest.mark.parametrize("winners", [["a", "b"] * 30, ["a", "b", "b", "c"] * 10, ["a"] * 12])
def test_a_copied_run_is_so_long_that_two_tables_hardly_share_one_by_chance(winners):
    n, agree = len(winners), min(np.square(np.unique(winners, return_counts=True)[1] / len(winners)).sum(), 0.9)
    least = _least_run(winners)
    assert n**2 * agree**least <= CHANCE < n**2 * agree ** (least - 1)


def test_the_effect_of_a_covariate_has_students_interval_and_test():
    fit = SimpleNamespace(effects=np.array([9.0, -0.5]), scores=np.zeros((40, 3)))
    found = _effect(SimpleNamespace(name="x", unit=2.0), fit, 1, bt.Spread(np.array([[0.04]]), 7.0))
    assert found.interval == pytest.approx(stats.t.interval(0.95, 7, -0.5, 0.2))
    assert found.p_value == pytest.approx(2 * stats.t.sf(2.5, 7)) and found.effect == -0.5


def test_prompts_of_votes_find_the_samples_that_have_them_as_prompts_or_ids():
    votes = SimpleNamespace(prompts=("b", "x", "a"))
    by_id = as_embeddings(fe.EmbeddingSet(np.zeros((2, 2), np.float32), ids=["a", "b"]))
    by_prompt = as_embeddings(fe.EmbeddingSet(np.zeros((3, 2), np.float32), metadata={"prompt": ["a", " b ", "a"]}))
    for one, rows in ((by_id, [[1], [], [0]]), (by_prompt, [[1], [], [0, 2]])):
        assert [own.tolist() for own in rows_by_prompt(votes, one)] == rows


def doubted(**columns):
    return " ".join(say_doubts({name: scores_of([*map(str, own)], values=own) for name, own in columns.items()}))


@pytest.mark.parametrize(
    ("middle", "factor", "is_said"), [(0.8, 3.1, True), (0.8, 2.9, False), (3.0, 10.2, True), (3.0, 9.8, False)]
)
def test_scores_are_of_two_scales_from_the_ratio_of_typical_ones(middle, factor, is_said):
    """Three times for parts of 1, which end at 1; else ten times. Ranges do not meet."""
    one = middle * np.linspace(0.95, 1.05, 21)
    assert ("may have two scales" in doubted(a=one, b=one * factor)) == is_said
    assert ("may have two scales" in doubted(b=one * factor, a=one)) == is_said
    assert "two scales" not in doubted(a=one / 1e4, b=one * factor / 1e4)  # all below 1
    meets = np.append(one * factor, one[:3])
    assert "two scales: a has" not in doubted(a=one, b=meets)


@pytest.mark.parametrize(
    ("small", "large", "ratio", "is_said"),
    [
        (10, 10, 10.1, True),
        (10, 10, 9.9, False),
        (2, 18, 50, True),
        (1, 18, 50, False),
        (18, 2, 50, True),
        (5, 4, 50, False),
    ],
)
def test_scores_of_one_model_are_of_two_scales_if_a_tenth_is_ten_times_as_large(small, large, ratio, is_said):
    low, high = np.linspace(0.5, 0.8, small), 0.8 * ratio * np.linspace(1, 1.2, large)
    assert ("of a may have two scales" in doubted(a=np.r_[high, low])) == is_said
