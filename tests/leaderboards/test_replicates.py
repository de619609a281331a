"""Training runs of one model: one row, with the noise of sampling and of training apart."""

from math import inf

import numpy as np
import pytest
from _pages import Page

import finc_eval as fe
from finc_eval import report
from finc_eval.core.errors import UsageError
from finc_eval.estimates.error_source import GEN, REF, TRAINING
from finc_eval.leaderboards.columns import over_runs, training_noise
from finc_eval.leaderboards.ranks import joint_covariance, model_estimate, rank


def test_training_noise_is_what_sampling_does_not_explain():
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        models = {name: [model_estimate(value, 0.04) for value in rng.normal(0, 0.5, 4)] for name in "ab"}
        found.append(training_noise(models))
    variances, degrees = np.array(found).T
    assert set(degrees) == {6.0}
    assert variances.mean() == pytest.approx(0.25 - 0.04, abs=0.02)


def test_a_board_without_replicates_has_no_training_noise():
    found = over_runs({"a": [model_estimate(1.0, 0.5, np.array([0.1]))], "b": [model_estimate(2.0, 0.5)]})
    assert (found["a"].source(TRAINING), found["a"].degrees) == (None, inf)
    assert found["a"].value == 1.0 and found["a"].variance_of(GEN) == pytest.approx(0.5)
    assert joint_covariance(list(found.values())).diagonal() == pytest.approx([0.51, 0.5])


def test_runs_of_a_model_are_averaged_and_share_the_reference():
    one, other = model_estimate(1.0, 0.2, np.array([1.0, 0.0])), model_estimate(3.0, 0.4, np.array([0.0, 1.0]))
    found = over_runs({"a": [one, other], "b": [model_estimate(5.0, 0.1, np.array([1.0, 1.0]))]})
    a, b = found["a"], found["b"]
    assert a.value == 2.0
    assert a.variance_of(GEN) == pytest.approx(0.6 / 4)
    assert a.source(REF).parts == pytest.approx([0.5, 0.5])
    assert a.variance_of(TRAINING) == pytest.approx((2 - 0.3) / 2)
    assert b.variance_of(TRAINING) == pytest.approx(2 - 0.3)
    assert a.source(TRAINING).degrees == b.source(GEN).degrees == 1
    assert a.interval[1] - a.value > 12 * a.standard_error  # Student's t with 1 degree


@pytest.mark.one_of_each
@pytest.mark.parametrize("runs", [(3, 3, 3, 3), (5, 1, 1, 1)])
def test_ranks_hold_under_training_noise_where_those_of_single_runs_do_not(runs):
    """Four equal models; the noise of training has three times the error of sampling."""
    rng, alarms, naive = np.random.default_rng(1), 0, 0
    for _ in range(200):
        models = {str(k): [model_estimate(rng.normal(0, 10**0.5), 1.0) for _ in range(n)] for k, n in enumerate(runs)}
        every = list(over_runs(models).values())
        alarms += rank(np.array([one.value for one in every]), joint_covariance(every)).separable_pairs > 0
        single = [own[0] for own in models.values()]
        naive += rank(np.array([one.value for one in single]), joint_covariance(single)).separable_pairs > 0
    assert alarms <= 18  # at 5 %, beyond 18 of 200 has probability below 0.5 %
    assert naive > 100


@pytest.fixture(scope="module")
def board():
    rng = np.random.default_rng(0)

    def run(shift):
        return (rng.normal(size=(220, 4)) + shift + rng.normal(0, 0.2, 4)).astype(np.float32)

    models = {"near": [run(0.0) for _ in range(3)], "far": [run(3.0), run(3.0)], "once": run(0.0)}
    return fe.leaderboard(models, rng.normal(size=(240, 4)).astype(np.float32), rank_by="fd")


def test_a_model_of_several_runs_is_one_row_with_both_kinds_of_noise(board):
    assert {row.name: row.runs for row in board.rows} == {"near": 3, "far": 2, "once": 1}
    near, once = board["near"].scores["fd"], board["once"].scores["fd"]
    assert near.training_error == pytest.approx(board.criterion("fd").training_error / 3**0.5)
    assert once.training_error == pytest.approx(board.criterion("fd").training_error)
    assert once.sampling_error < once.training_error
    assert list(board.sets) == ["near", "near, run 2", "near, run 3", "far", "far, run 2", "once", "ref"]
    assert board.covers == (
        "sampling noise, and training noise as 5 runs of near and far show it, taken to be alike for all models"
    )
    assert board.separable("near", "far", "fd")
    assert not board.separable("near", "once", "fd")


def test_the_page_says_how_many_runs_and_how_much_they_differ(board):
    page = Page(report.page(board, {}))
    text = " ".join(page.texts("main"))
    assert "3 training runs" in text
    assert "By fd, two training runs of one model differ by" in text
    assert "sampling noise only" not in text


def test_the_table_has_ranks_and_both_errors_as_columns(board):
    frame = board.to_frame()
    wanted = ["name", "runs", "by", "rank.low", "rank.high", "value", "interval.low", "interval.high", "group"]
    assert set(wanted) | {"sampling_error", "training_error", "reason", "floor", "fault"} == set(frame.columns)
    row = frame[(frame["name"] == "far") & (frame["by"] == "fd")].iloc[0]
    assert (row["rank.low"], row["rank.high"]) == board["far"].rank_set


def test_a_board_says_that_few_training_runs_make_ranks_wide(board):
    assert "the 5 training runs of near and far say little about the noise of training" in board.warnings[0]
    rng = np.random.default_rng(0)
    runs = [rng.normal(size=(60, 4)).astype(np.float32) for _ in range(7)]
    enough = fe.leaderboard({"a": runs[:3], "b": runs[3:6]}, runs[6], metrics=("kid",))
    assert not any("training runs" in warning for warning in enough.warnings)


def test_replicates_are_kept_on_a_stored_board(tmp_path):
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(220, 4)).astype(np.float32) for _ in range(4)]
    stored = fe.Board(tmp_path / "board")
    stored.add({"a": sets[:2], "b": sets[2]}, sets[3])
    assert {row.name: row.runs for row in stored.leaderboard().rows} == {"a": 2, "b": 1}
    assert stored.leaderboard().criterion("fd").training_error is not None


def test_a_model_without_a_run_and_clashing_labels_are_refused():
    rows = np.zeros((30, 2), np.float32)
    with pytest.raises(UsageError, match="a is an empty list"):
        fe.leaderboard({"a": [], "b": rows}, rows)
    with pytest.raises(UsageError, match="as the second run of another"):
        fe.leaderboard({"a": [rows, rows], "a, run 2": rows}, rows)
