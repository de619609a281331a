"""What scores make doubtful: failed calls, two scales, and judges whose names say that lower is better."""

import numpy as np
import pytest

from finc_eval.judges.doubts import say_direction, say_doubts
from finc_eval.judges.scores import read_scores


def doubts(**columns):
    return " ".join(say_doubts(read_scores({name: {"vqa": own} for name, own in columns.items()}, [*columns])))


def uniform(low, high, n=60, seed=0):
    return np.random.default_rng(seed).uniform(low, high, n)


def with_failed(values, number, count=3):
    values = np.array(values, float)
    values[:count] = number
    return values


FAILED = {
    "-1 of parts of 1": with_failed(uniform(0.6, 0.9), -1),
    "one -1": with_failed(uniform(0, 1), -1, 1),
    "-1 of ten": with_failed(np.arange(60) % 11, -1),
    "-100": with_failed(uniform(0, 100), -100),
    "-999": with_failed(np.random.default_rng(0).normal(size=60), -999),
    "999": with_failed(uniform(0, 100), 999),
    "9999": with_failed(uniform(-3, 3), 9999),
    "99 of five": with_failed(np.arange(60) % 5 + 1, 99),
    "1e9": with_failed(uniform(0, 1), 1e9),
    "0 of a narrow score": with_failed(uniform(0.27, 0.31), 0),
    "-7 where nothing is negative": with_failed(uniform(0, 1), -7),
}

ORDINARY = {
    "normal": np.random.default_rng(0).normal(size=60),
    "log-normal": np.random.default_rng(0).lognormal(size=60),
    "stars": np.arange(60) % 5 + 1,
    "answers": np.arange(60) % 2,
    "few right answers": (np.arange(60) == 7).astype(float),
    "points": np.round(uniform(0, 100)),
    "shares": uniform(0, 1).round(1),
    "around 0": np.round(np.random.default_rng(0).normal(0, 3, 60)),
    "one probability near 1": with_failed(uniform(0, 0.01), 1, 1),
    "some probabilities near 1": with_failed(uniform(0, 0.01), 0.99, 5),
    "IQA": uniform(20, 90),
    "LPIPS": uniform(0.1, 0.7),
    "PickScore": uniform(20, 23),
    "probabilities near 0 and 1": np.where(np.arange(60) % 2, 0.999, 0.0001),
}


@pytest.mark.parametrize("name", FAILED)
def test_a_number_of_failed_calls_is_said(name):
    assert "if it stands for a failed call, leave the cell empty" in doubts(one=FAILED[name], two=uniform(0, 1))


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_scores_raise_no_doubt(name):
    values = ORDINARY[name]
    assert doubts(one=values, two=np.roll(values, 1)) == ""


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (uniform(0.25, 0.3), uniform(25, 30)),
        (uniform(0.7, 0.9), uniform(70, 90)),
        (uniform(0.5, 1), uniform(3, 5)),
        (uniform(0, 1), uniform(0, 100)),
        (np.arange(60) % 2, 100 * (np.arange(60) % 2)),
        (-uniform(0.1, 0.2), -uniform(10, 20)),
        (with_failed(uniform(0.25, 0.3), -1), uniform(25, 30)),
    ],
)
def test_two_scales_of_one_judge_are_said_whichever_model_has_the_larger(one, two):
    for first, second in ((one, two), (two, one)):
        said = doubts(one=first, two=second)
        assert "vqa may have two scales" in said and "times as much: bring them to one" in said


def test_two_scales_in_the_table_of_one_model_are_said():
    mixed = np.concatenate([uniform(0.2, 0.9, 30), uniform(20, 90, 30)])
    assert "vqa of one may have two scales: 0.2" in doubts(one=mixed, two=mixed)


def test_models_that_are_far_apart_on_one_scale_are_not_doubted():
    assert doubts(one=uniform(0.03, 0.15), two=uniform(0.36, 0.5)) == ""  # error rates of people, of real models
    assert doubts(one=uniform(1, 3), two=uniform(4, 9)) == ""


@pytest.mark.parametrize("name", ["niqe", "LPIPS", "val_loss", "err_rt", "BRISQUE_score", "meanSquaredError"])
def test_a_judge_whose_name_says_that_lower_is_better_is_named(name):
    found = say_direction(["clip", name], [])
    assert found[0].startswith(f"higher {name} counts as better, and by the name, lower is usually better")
    assert found[1] == "higher clip counts as better: name a score in lower (--lower) if it does not"
    assert say_direction([name], [name]) == []
