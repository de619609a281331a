"""The test of the share of samples that repeat another: its rate for two sets of one law, and what it finds."""

import numpy as np
import pytest
from scipy.stats import binom

import finc_eval as fe
from finc_eval.naming.looks import REPEAT, look_at
from finc_eval.naming.share_repeated import EXCHANGES_AT_ONCE, p_of_share_repeated
from finc_eval.numerics.inference import BESIDE_ALPHA


def drawn(rng, sizes, pictures, per_unit):
    """Numbers of repeats and of units of two sets: a unit shows one of some pictures in three of four samples."""
    units = tuple(np.arange(n) // per_unit for n in sizes)
    fresh = np.split(pictures + np.arange(sum(sizes)), [sizes[0]])
    of_units = [rng.integers(0, pictures, of_set[-1] + 1)[of_set] for of_set in units]
    shown = [np.where(rng.random(len(own)) < 0.25, own, same) for own, same in zip(fresh, of_units, strict=True)]
    counts = np.bincount(np.concatenate(shown))
    return tuple(np.where(counts[of_set] > 1, of_set, -1) for of_set in shown), units


DESIGNS = {
    "small": ((60, 60), 80, 1),
    "unlike sizes": ((40, 200), 150, 1),
    "units": ((90, 120), 60, 3),
    "rare": ((100, 100), 4000, 1),
}


def p_values(design, runs, exchanges=99):
    sizes, pictures, per_unit = DESIGNS[design]
    rng = np.random.default_rng(0)
    for seed in range(runs):
        yield p_of_share_repeated(*drawn(rng, sizes, pictures, per_unit), seed, exchanges, is_paired=False)


@pytest.mark.parametrize(("design", "runs"), [(name, 200) for name in DESIGNS])
def test_two_sets_of_one_law_rarely_have_a_small_p_value(design, runs):
    found = np.array([*p_values(design, runs)])
    for level in (0.01, 0.05, 0.2):
        assert (found <= level).sum() <= binom.ppf(0.9999, runs, level)


def test_many_pictures_that_come_twice_each_are_found_by_more_exchanges_than_are_counted_at_once():
    twice = np.r_[np.repeat(np.arange(15), 2), np.full(70, -1)]
    numbers, units = (twice, np.full(100, -1)), (np.arange(100), np.arange(100))
    exchanges = 3 * EXCHANGES_AT_ONCE
    assert p_of_share_repeated(numbers, units, 0, exchanges, is_paired=False) == 1 / (1 + exchanges)
    assert p_of_share_repeated(numbers[::-1], units, 0, exchanges, is_paired=False) == 1


def test_paired_sets_are_exchanged_within_blocks():
    shown = np.repeat(np.arange(10), 4)  # each prompt has one picture, four times
    blocks, alone = (shown, shown), np.full(40, -1)
    assert p_of_share_repeated((shown, alone), blocks, 0, 199, is_paired=True) <= 0.02
    assert p_of_share_repeated((shown, 10 + shown), blocks, 0, 199, is_paired=True) > 0.2


LAWS = {  # parts of the samples and the pictures that they are drawn from; else each picture is another
    "many pictures twice": [(1.0, 150)],
    "a part of a few pictures": [(0.3, 60)],
    "some pictures often and others twice": [(0.15, 3), (0.34, 100)],
}


def pictured(rng, n, law):
    """A set of n samples of a law: equal rows are of one picture."""
    picture = 10**6 + rng.permutation(10**6)[:n]
    part, of = rng.random(n), 0.0
    for number, (share, pictures) in enumerate(LAWS[law]):
        chosen = (part >= of) & (part < of + share)
        picture[chosen], of = 1000 * number + rng.integers(0, pictures, chosen.sum()), of + share
    return fe.EmbeddingSet(np.stack([np.random.default_rng(one).normal(size=8) for one in picture]).astype(np.float32))


@pytest.mark.long
@pytest.mark.parametrize(("law", "sizes"), [*zip(LAWS, [(100, 100), (60, 240), (150, 150)], strict=True)], ids=[*LAWS])
def test_sets_of_one_law_that_repeats_itself_rarely_have_a_repeat(law, sizes):
    """Both families of repeats share the level: with the whole level each, the last law had 29 of 1 500, and now 12."""
    rng, runs, found = np.random.default_rng(1), 400, 0
    for seed in range(runs):
        sets = {label: pictured(rng, n, law) for label, n in zip(("gen", "ref"), sizes, strict=True)}
        found += any(look.trait == REPEAT for look, _ in look_at(sets, seed, exchanges=399))
    assert found <= binom.ppf(0.9999, runs, BESIDE_ALPHA)
