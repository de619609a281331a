"""Repeats of a judge: one sample scored several times, as rows, as files, by raters; and versions of a judge."""

import numpy as np
import pytest
from scipy import stats

from finc_eval.core.errors import DataError
from finc_eval.judges.asked_again import RepeatedScores, with_repeats
from finc_eval.judges.paired import mean_scores
from finc_eval.judges.scores import read_scores
from finc_eval.leaderboards.judged import Judgments

IDS = [f"s{n}" for n in range(12)]


def asked(seed, repeats=("1", "2", "3"), shifts=(0.0, 0.0, 0.0)):
    """Rows of samples that were scored several times, in some order."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=len(IDS))
    rows = [
        {"id": id, "repeat": repeat, "clip": value + shift + rng.normal(0, 0.1)}
        for id, value in zip(IDS, quality, strict=True)
        for repeat, shift in zip(repeats, shifts, strict=True)
    ]
    return [rows[place] for place in rng.permutation(len(rows))]


def means_of(rows):
    return {id: np.mean([row["clip"] for row in rows if row["id"] == id]) for id in IDS}


@pytest.mark.parametrize("column", ["repeat", "rater", "attempt"])
def test_the_score_of_a_sample_is_the_mean_of_its_repeats(column):
    rows = [{**row, column: row["repeat"]} for row in asked(1)]
    rows = [{key: value for key, value in row.items() if key == column or key != "repeat"} for row in rows]
    found = read_scores({"one": rows}, ["one"])["one"]
    assert [*found.judges] == ["clip"] and found.n == len(IDS) and found.repeat_names == ("1", "2", "3")
    assert dict(zip(found.ids, found.judges["clip"], strict=True)) == pytest.approx(means_of(rows))


def test_a_file_for_each_rater_gives_the_same():
    rows = asked(2)
    files = [[row for row in rows if row["repeat"] == repeat] for repeat in "123"]
    columns = [{key: [row[key] for row in own] for key in own[0]} for own in files]
    joined = read_scores({"one": columns}, ["one"])["one"]
    whole = read_scores({"one": rows}, ["one"])["one"]
    assert joined.repeat_names == ("1", "2", "3")
    both = (dict(zip(found.ids, found.judges["clip"], strict=True)) for found in (joined, whole))
    assert next(both) == pytest.approx(next(both))


def test_a_sample_twice_in_one_repeat_and_files_that_contradict_are_refused():
    rows = asked(3)
    with pytest.raises(DataError, match="2 times: keep one row a repeat"):
        read_scores({"one": [*rows, rows[0]]}, ["one"])
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    other = {**columns, "clip": [value + 1 for value in columns["clip"]]}
    with pytest.raises(DataError, match="other clip"):
        read_scores({"one": [columns, other]}, ["one"])
    with pytest.raises(DataError, match="column repeat"):
        read_scores({"one": [{"id": "x", "clip": 0.5}, {"id": "x", "clip": 0.7}]}, ["one"])


def scores_by(rng, b, k, of_prompts, of_repeats, noise):
    return rng.normal(0, of_prompts, b) + rng.normal(0, of_repeats, (k, 1)) + rng.normal(0, noise, (k, b))


def test_variance_of_repeats_is_that_of_two_way_analysis():
    """V_repeats − V_rest is (MS_repeats − MS_rest)/(b·k), wider for few repeats; prompts keep MS_prompts/(b·k)."""
    k, b = 4, 30
    scores = scores_by(np.random.default_rng(0), b, k, 1.0, 0.8, 0.5)
    prompts = tuple(map(str, range(b)))
    means = mean_scores({"one": scores.mean(0)}, {"one": prompts})
    found, share = with_repeats(means, {"one": RepeatedScores(tuple("abcd"), scores, prompts)})
    rows, columns, whole = scores.mean(1), scores.mean(0), scores.mean()
    ms_repeats = b * ((rows - whole) ** 2).sum() / (k - 1)
    ms_rest = ((scores - rows[:, None] - columns + whole) ** 2).sum() / (k - 1) / (b - 1)
    ms_prompts = k * ((columns - whole) ** 2).sum() / (b - 1)
    wider = (stats.t.isf(0.025, k - 1) / stats.t.isf(0.025, b - 1)) ** 2
    assert ms_repeats > ms_rest
    assert found.covariance[0, 0] == pytest.approx((ms_prompts + wider * (ms_repeats - ms_rest)) / (b * k))
    assert found.fixed[0, 0] == pytest.approx(wider * (ms_repeats - ms_rest) / (b * k))
    assert share == pytest.approx(ms_repeats / (ms_prompts + ms_repeats - ms_rest))


def test_a_repeat_without_a_name_of_a_sample_is_a_column_like_others():
    found = read_scores({"one": {"repeat": [1, 2, 1, 2], "clip": [0.5, 0.7, 0.1, 0.3]}}, ["one"])["one"]
    assert found.n == 4 and not found.repeats


def test_repeats_that_models_share_leave_their_difference():
    rng = np.random.default_rng(1)
    shift, prompts = rng.normal(0, 2, (5, 1)), tuple(map(str, range(40)))
    scores = {name: rng.normal(0, 1, 40) + shift + rng.normal(0, 0.1, (5, 40)) for name in ("one", "two")}
    means = mean_scores({name: own.mean(0) for name, own in scores.items()}, dict.fromkeys(scores, prompts))
    shared, _ = with_repeats(means, {n: RepeatedScores(tuple("abcde"), own, prompts) for n, own in scores.items()})
    apart, _ = with_repeats(
        means, {n: RepeatedScores(tuple(f"{n}{k}" for k in range(5)), own, prompts) for n, own in scores.items()}
    )

    def of_difference(found):
        one, two = found.influences
        return float(((one - two) ** 2).sum())

    assert of_difference(shared) < 1.2 * of_difference(means) < 0.2 * of_difference(apart)


def test_a_board_says_how_much_of_the_variance_is_the_judge_s():
    scores = {name: asked(seed, shifts=(0, 1.0, -1.0)) for seed, name in enumerate(("one", "two"))}
    results = Judgments.read(scores, None, [*scores], ()).results(0)
    assert any("3 scores a sample" in remark and "is the judge's" in remark for remark in results.remarks)
    once = {name: [row for row in rows if row["repeat"] == "1"] for name, rows in scores.items()}
    alone = Judgments.read(once, None, [*scores], ()).results(0)
    assert not any("scores a sample" in remark for remark in alone.remarks)


def versioned(version):
    return {"id": IDS, "clip": np.random.default_rng(0).normal(size=len(IDS)).tolist(), "judge_version": version}


def test_the_version_of_a_judge_is_in_its_signature():
    scores = {name: versioned(["gpt-4.1"] * len(IDS)) for name in ("one", "two")}
    (column,) = Judgments.read(scores, None, [*scores], ()).results(0).columns
    assert dict(column.signature.fields)["version"] == "gpt-4.1"


def test_unlike_versions_are_refused_by_name():
    scores = {"one": versioned(["4o"] * len(IDS)), "two": versioned(["4.1"] * len(IDS))}
    with pytest.raises(DataError, match=r"clip scored one by version 4o and two by version 4\.1"):
        Judgments.read(scores, None, [*scores], ())
    with pytest.raises(DataError, match=r"4o and 4\.1 in judge_version"):
        read_scores({"one": versioned(["4o", "4.1"] * (len(IDS) // 2))}, ["one"])
