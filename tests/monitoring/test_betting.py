"""Bets are fair, however long one looks, and e-values of a family are combined as closed testing combines them."""

import numpy as np
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
    assert abs(np.exp(weigh(z[:, None])[0]) - wanted) < 1e-6


def test_an_unchanged_thing_reaches_an_alarm_as_seldom_as_promised():
    """Ville: of 2 000 courses of 60 looks, at most α ever reach 1/α."""
    z = np.random.default_rng(0).normal(size=(60, 2000))
    highest = np.max([weigh(z[:count]) for count in range(1, 61)], axis=0)
    for alpha in (0.05, 0.2):
        reached = int((highest >= -np.log(alpha)).sum())
        assert stats.binomtest(reached, 2000, alpha, alternative="greater").pvalue > 0.001


def test_evidence_grows_from_the_look_at_which_it_begins():
    z = np.random.default_rng(1).normal(size=(40, 1))
    z[25:] += 2
    found = weigh(z)
    assert found[0] > 10 and weigh(z[:25])[0] < 3


def test_looks_that_say_nothing_change_nothing():
    z = np.random.default_rng(2).normal(1, size=(10, 1))
    gaps = np.insert(z, [0, 4], np.nan, axis=0)
    assert weigh(np.full((5, 1), np.nan))[0] <= 1e-9
    assert weigh(gaps)[0] > 0.5 * weigh(z)[0]
