"""A model's numbers come from itself and the reference alone: whoever joins a board changes none of them."""

from itertools import combinations

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.leaderboards.board_table import REAL_DATA
from finc_eval.leaderboards.own_shares import own_shares
from finc_eval.leaderboards.yardsticks import SPLITS, Yardsticks
from finc_eval.measures.vendi import FLOOR_SUBSETS, gaussian_vendi
from finc_eval.numerics.inference import ALPHA

CENTERS = np.random.default_rng(0).normal(0, 4, (10, 8))


def draw(n, seed, kinds=10):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.choice(kinds, n)] + rng.normal(size=(n, 8))).astype(np.float32)


REF = draw(300, 0)
MODELS = {"gaps": draw(300, 1, 9), "clean": draw(250, 2)}
JOINING = {
    "small": draw(60, 3),
    "smaller than a board's kinds": draw(24, 4),
    "collapsed": np.tile(draw(1, 5), (200, 1)) + np.random.default_rng(5).normal(0, 1e-3, (200, 8)).astype(np.float32),
    "clean and large": draw(400, 6),
    "of other kinds": draw(200, 7) + 20,
}


def numbers(board, names=MODELS):
    """All that a board says of each model by each number, but its ranks."""
    found = {}
    for name in names:
        for key, one in board[name].scores.items():
            found[name, key] = (one.value, one.interval, one.sampling_error, one.training_error, one.floor)
    return found


@pytest.fixture(scope="module")
def alone():
    return fe.leaderboard(MODELS, REF, metrics=["fd", "kid"])


@pytest.fixture(scope="module")
def joined():
    some = {name: JOINING[name] for name in ("small", "collapsed", "of other kinds")}
    return fe.leaderboard({**some, **MODELS}, REF, metrics=["fd", "kid"])


def test_all_who_join_at_once_change_no_number_of_the_others(alone, joined):
    assert numbers(joined) == numbers(alone)
    assert all(value is not None for value, *_ in numbers(alone).values())


@pytest.mark.parametrize("name", JOINING)
@pytest.mark.long
@pytest.mark.by_turns(2)
def test_whoever_joins_changes_no_number_of_the_others(alone, name):
    joined = fe.leaderboard({**MODELS, name: JOINING[name]}, REF, metrics=["fd", "kid"])
    assert numbers(joined) == numbers(alone)


def test_a_kept_board_has_the_numbers_of_a_board_of_all_at_once(alone, joined, tmp_path):
    joining = {name: JOINING[name] for name in ("small", "collapsed")}
    board = fe.Board(tmp_path / "board")
    board.add(MODELS, REF, metrics=["fd", "kid"])
    board.add(joining, REF)
    every = {**MODELS, **joining}
    added = board.leaderboard()
    assert numbers(added) == numbers(alone)
    assert numbers(added, every) == numbers(joined, every)


@pytest.mark.long
@pytest.mark.by_turns(3)
def test_a_board_and_a_comparison_give_the_same_number(alone):
    for name, one in MODELS.items():
        comparison = fe.compare(one, REF, features=20, modes=1)
        assert alone[name].scores["unmatched"].value == comparison.difference
        assert alone[name].scores["unmatched"].interval == comparison.difference_interval


def test_a_smaller_model_adds_a_metric_and_takes_none_away():
    """Without names of metrics, fd is of models with samples enough for its error, and kid of the others."""
    rng = np.random.default_rng(0)
    wide = {"a": rng.normal(size=(210, 8)), "b": rng.normal(size=(210, 8))}
    ref, small = rng.normal(size=(220, 8)), rng.normal(size=(60, 8))
    alone, joined = fe.leaderboard(wide, ref), fe.leaderboard({**wide, "small": small}, ref)
    assert [one.key for one in alone.criteria][3:] == ["fd"]
    assert [one.key for one in joined.criteria][3:] == ["fd", "kid"]
    mine, theirs = numbers(alone, wide), numbers(joined, wide)
    assert mine.items() <= theirs.items()
    assert joined["small"].scores["kid"].rank_set is not None


def test_rows_are_in_the_order_of_their_numbers(joined):
    for one in joined.criteria:
        values = [joined[name].scores[one.key].value for name in one.names]
        assert values == sorted(values)
        assert not any(one.better(*pair[::-1], joined.alpha) for pair in combinations(one.names, 2))
    main = [row.scores["unmatched"].value for row in joined.rows]
    assert main == sorted(main)


@pytest.mark.long
@pytest.mark.by_turns(2)
@pytest.mark.parametrize(("n", "lost"), [(400, 0), (160, 0), (400, 1), (1000, 2)])
def test_intervals_of_own_shares_hold_what_is_missing(n, lost):
    """Of 20 separate kinds with one share each, some are lost; 60 draws."""
    centers = np.random.default_rng(1).normal(0, 4, (20, 16))
    shares = np.full(20, 1 / 20)
    left = np.where(np.arange(20) < lost, 0, 1) / (20 - lost)
    truth = {"unmatched": np.abs(left - shares).sum() / 2, "missing": shares[:lost].sum(), "novel": 0.0}
    held = dict.fromkeys(truth, 0)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        model, ref = (
            as_embeddings((centers[rng.choice(20, size, p=p)] + rng.normal(size=(size, 16))).astype(np.float32), name)
            for name, size, p in (("a", n, left), ("ref", max(n, 400), shares))
        )
        for key, one in own_shares("a", model, ref, 0, Run()).items():
            low, high = np.clip(one.interval, 0, 1)
            held[key] += low - 1e-9 <= truth[key] <= high + 1e-9
    assert min(held.values()) >= 60 * (1 - ALPHA) - 5, held


# Yardsticks


def test_a_yardstick_is_what_real_samples_get_on_average(alone):
    """The mean of some splits, at the n of the model, lies near the mean of fresh samples of the same law."""
    ref = as_embeddings(REF, "ref")
    found = Yardsticks(ref, 0, Run()).shares(300)["unmatched"]
    fresh = [own_shares("a", as_embeddings(draw(300, 50 + i), "a"), ref, 0, Run())["unmatched"].value for i in range(8)]
    assert 0 < found < 0.08 and abs(found - np.mean(fresh)) < 0.03
    assert alone["gaps"].scores["unmatched"].value > found


@pytest.mark.long
def test_a_yardstick_is_at_the_numbers_of_a_larger_model_and_of_all_of_the_reference():
    """Of rare kinds, by 40 references of 400 samples: not what halves of these get, which is 2 points more."""
    centers, shares = np.random.default_rng(0).normal(0, 4, (60, 8)), 1 / np.arange(1, 61)
    fresh, found = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ref, model = (
            as_embeddings(
                (centers[rng.choice(60, n, p=shares / shares.sum())] + rng.normal(size=(n, 8))).astype(np.float32), name
            )
            for name, n in (("ref", 400), ("a", 1600))
        )
        found.append(Yardsticks(ref, 0, Run()).shares(1600)["unmatched"])
        fresh.append(own_shares("a", model, ref, 0, Run())["unmatched"].value)
    assert abs(np.mean(found) - np.mean(fresh)) < 0.012


def test_the_row_of_real_data_says_what_it_is_and_is_not_ranked(alone):
    text = " ".join(alone.to_markdown().split())
    assert (
        f"Shares are means over {SPLITS} such parts, at the model's number of samples. The row is not ranked." in text
    )
    assert REAL_DATA not in [name for one in alone.criteria for name in one.names]


def test_the_floor_of_a_number_that_grows_is_the_mean_of_several_subsets():
    rng = np.random.default_rng(0)
    ref, gen = rng.normal(size=(1500, 32)).astype(np.float32), rng.normal(size=(150, 32)).astype(np.float32)
    score = fe.metrics(gen, ref, "rke")["rke"]
    sigma = float(dict(score.signature.fields)["sigma"])
    fresh = [gaussian_vendi(rng.normal(size=(150, 32)).astype(np.float32), sigma, order=2) for _ in range(30)]
    error = np.std(fresh) * (1 / FLOOR_SUBSETS + 1 / 30) ** 0.5
    assert abs(score.floor - np.mean(fresh)) < 3 * error < 2 * np.std(fresh)
    assert f"the mean over {FLOOR_SUBSETS} subsets of 150 of its 1,500 samples" in score.notes[0]
