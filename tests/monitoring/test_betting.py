"""Bets are fair, however long one looks, and e-values of a family are combined as closed testing combines them."""

import numpy as np
import pytest
from scipy import integrate, stats

from finc_eval.monitoring.betting import DRIFT, JUMP, weigh


def test_a_bet_is_the_mixture_that_it_says():
    """By quadrature over μ: bets on a jump and a drift that begin at the first, second or third look, and later."""
    z = np.array([0.3, -1.2, 2.5])

    def bet(shape, spread, start):
        def ratio(mean):
            g = shape(np.arange(1, len(z) - start + 1))
            return np.prod(stats.norm.pdf(z[start:], mean * g) / stats.norm.pdf(z[start:])) * stats.norm.pdf(
                mean, scale=spread
            )

        return integrate.quad(ratio, -8 * spread, 8 * spread)[0]

    wanted = 1 / 4
    for start in range(3):
        both = bet(np.ones_like, JUMP, start) + bet(lambda j: j, DRIFT, start)
        wanted += both / 2 / ((start + 1) * (start + 2))
    assert abs(np.exp(weigh(z[:, None]).log_e[0]) - wanted) < 1e-6


def test_an_unchanged_thing_reaches_an_alarm_as_seldom_as_promised():
    """Ville: of 2 000 courses of 60 looks, at most α ever reach 1/α."""
    z = np.random.default_rng(0).normal(size=(60, 2000))
    highest = np.max([weigh(z[:count]).log_e for count in range(1, 61)], axis=0)
    for alpha in (0.05, 0.2):
        reached = int((highest >= -np.log(alpha)).sum())
        assert stats.binomtest(reached, 2000, alpha, alternative="greater").pvalue > 0.001


def test_evidence_grows_from_the_look_at_which_it_begins():
    z = np.random.default_rng(1).normal(size=(40, 1))
    z[25:] += 2
    found = weigh(z)
    assert found.log_e[0] > 10 and abs(found.start[0] - 25) <= 3


def test_looks_that_say_nothing_change_nothing():
    z = np.random.default_rng(2).normal(1, size=(10, 1))
    gaps = np.insert(z, [0, 4], np.nan, axis=0)
    assert weigh(np.full((5, 1), np.nan)).log_e[0] <= 1e-9
    assert weigh(gaps).log_e[0] > 0.5 * weigh(z).log_e[0]


@pytest.mark.parametrize("shape", ["jump", "drift"])
def test_the_start_is_the_most_likely_look_and_not_an_earlier_one(shape):
    """Starts of 200 courses of 40 looks that change from look 20 on."""
    rng = np.random.default_rng(0)
    change = np.maximum(np.arange(40) - 19, 0) if shape == "drift" else np.arange(40) >= 20
    scores = rng.normal(size=(40, 200)) + (0.4 if shape == "drift" else 2.0) * change[:, None]
    start = weigh(scores).start
    assert abs(float(np.median(start)) - 20) <= 1
    assert float(np.mean(np.abs(start - 20) <= 5)) > 0.9


@pytest.mark.parametrize("size", [1.5, 2.5, 3.3])
def test_a_jump_is_seldom_dated_before_it_began(size):
    """Of 400 courses of ten looks that jump at the fourth, the start of the largest bet is early in 27 to 40 %."""
    scores = np.random.default_rng(3).normal(size=(10, 400)) + size * (np.arange(10) >= 3)[:, None]
    start, likely = weigh(scores).start, weigh(scores).likely
    assert float(np.mean(start < 3)) < 0.08
    assert float(np.mean(start > 4)) < (0.6 if size < 2 else 0.2)
    assert float(np.mean(likely > 4)) < (0.2 if size < 2 else 0.05) and float(np.mean(likely > start)) < 0.02
    assert float(np.median(likely)) == 3


def test_an_evaluation_that_says_nothing_does_not_begin_a_change():
    scores = np.array([np.nan] * 3 + [4.0, 3.0, 3.0])[:, None]
    assert (weigh(scores).start[0], weigh(scores).likely[0]) == (3, 3)
