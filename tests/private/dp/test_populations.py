"""Populations in a ledger: which rows have one number, what a sketch keeps, and how sure it is of common records."""

import base64

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import binom

from finc_eval.private.dp.population import ENTRY, KEPT, TILTS, RowViews, Sketches, chance_of, sketch_of


def views_of(rows):
    found = RowViews()
    for part in np.array_split(np.array(rows, float, order="C"), 2):
        found.add(torch.from_numpy(part))
    return found.views()


def rows(n, width=8, seed=0):
    return np.random.default_rng(seed).normal(size=(n, width))


@pytest.mark.parametrize("width", [2, 3, 4, 9])
def test_a_row_of_four_entries_is_known_in_another_unit_and_a_narrower_row_is_not(width):
    first, scaled = (views_of(factor * rows(50, width))[0] for factor in (1.0, 3.7))
    assert (first == scaled).mean() == (1.0 if width >= 4 else 0.0)
    assert len(np.unique(first)) == 50
    assert not np.isin(views_of(-rows(50, width))[0], first).any()


def test_rounding_changes_few_coarse_numbers_and_the_order_of_entries_no_fine_number():
    given = rows(400, 60)
    rounded = torch.from_numpy(given).bfloat16().double().numpy()
    assert (views_of(given)[0] == views_of(rounded)[0]).mean() > 0.6
    assert (views_of(given)[0] == views_of(given + 0.3 * rows(400, 60, 1))[0]).mean() < 0.01
    turned = given[:, ::-1]
    assert (views_of(given)[1] == views_of(turned)[1]).all()
    assert not (views_of(given)[0] == views_of(turned)[0]).any()
    # The fine steps tell apart rows that the coarse steps hold for one.
    near = given * (1 + 0.0007 * rows(400, 60, 2))
    coarse, fine = ((one == other).mean() for one, other in zip(views_of(given), views_of(near), strict=True))
    assert coarse > 0.8 > 0.5 > fine


def test_huge_rows_have_numbers_and_rows_that_are_not_finite_are_alike():
    given = rows(6)
    wide = views_of(given * 1e300)[0]
    assert (wide == views_of(given)[0]).all()
    given[1], given[4, 2], given[5] = np.nan, np.inf, 0.0
    assert len(np.unique(views_of(given)[0])) == 4
    assert [len(views_of(np.ones((2, width)))) for width in (4096, 4097)] == [2, 1]


def test_a_sketch_keeps_the_smallest_numbers_and_how_often_each_was_there():
    given = np.repeat(rows(KEPT + 30), 3, axis=0)
    (text, _) = Sketches(views_of(given), "salt").texts()
    numbers, counts = sketch_of(text)
    assert len(numbers) == KEPT and set(counts) == {3}
    (more, _) = Sketches(views_of(np.concatenate([given, given[:3]])), "salt").texts()
    assert sketch_of(more)[1].sum() - counts.sum() in (0, 3)
    assert not np.isin(sketch_of(Sketches(views_of(given), "other").texts()[0])[0], numbers).any()


SOUND = {
    "two numbers": ([(1, 1), (2, 5)], True),
    "as many as are kept": ([(number, 1) for number in range(KEPT)], True),
    "one more": ([(number, 1) for number in range(KEPT + 1)], False),
    "none": ([], False),
    "a number twice": ([(1, 1), (1, 5)], False),
    "out of order": ([(2, 1), (1, 1)], False),
    "a number that was never there": ([(1, 0), (2, 1)], False),
}


@pytest.mark.parametrize("case", SOUND)
def test_a_text_is_a_sketch_or_it_is_not(case):
    entries, is_sound = SOUND[case]
    text = base64.b64encode(np.array(entries, ENTRY).tobytes()).decode()
    assert (sketch_of(text) is not None) == is_sound
    assert sketch_of(text + "!") is None
    assert sketch_of(text[:-4]) is None


def common(one, other):
    return Sketches(views_of(one), "salt").common(Sketches(views_of(other), "salt").texts())


@pytest.mark.parametrize(
    ("sizes", "shared", "share"), [((80, 80), 80, 1), ((90, 40), 40, 1), ((120, 60), 30, 0.5), ((50, 70), 0, 0)]
)
def test_common_records_are_a_share_of_the_smaller_set(sizes, shared, share):
    every = rows(sum(sizes))
    one, other = every[: sizes[0]], every[sizes[0] - shared : sizes[0] - shared + sizes[1]]
    assert common(one, other) == common(other, one) == share
    assert common(3 * one, other) == share


def test_of_large_sets_the_share_is_that_of_the_numbers_that_are_kept():
    every = rows(4 * KEPT)
    assert common(every, every) == 1
    assert common(every[: 3 * KEPT], every[KEPT:]) == pytest.approx(2 / 3, abs=0.08)


@pytest.mark.parametrize("width", [3, 5])
def test_disjoint_draws_of_few_values_have_much_in_common_and_do_not_look_alike(width):
    rng = np.random.default_rng(width)
    one, other = (rng.integers(0, 2, (n, width)) + 1.0 for n in (300, 200))
    assert common(one, other) == 0
    assert common(one, one) == 1  # each record is in both


COUNTS = {
    "singles": ([1, 1, 0, 1, 1], [1, 1, 1, 1, 1]),
    "some more": ([1, 2, 0, 3], [1, 2, 2, 2]),
    "unlike sizes": ([9, 7, 8, 5], [2, 1, 3, 2]),
    "often": ([400, 150], [380, 170]),
}


@pytest.mark.parametrize("case", COUNTS)
def test_the_chance_of_common_records_is_bounded_as_chernoff_does_and_above_the_exact_one(case):
    own, other = map(np.array, COUNTS[case])
    share, common = own.sum() / (own + other).sum(), np.minimum(own, other).sum()
    laws = [(np.arange(n + 1), binom.pmf(np.arange(n + 1), n, share)) for n in own + other]
    bounds = [
        np.exp(-t * common + sum(logsumexp(np.log(p) + t * np.minimum(k, k[-1] - k)) for k, p in laws)) for t in TILTS
    ]
    found = chance_of(own, other)
    assert found <= 1 and found == pytest.approx(min(*bounds, 1.0), rel=1e-6)
    exact = np.ones(1)  # the law of the sum of the smaller counts
    for k, p in laws:
        exact = np.convolve(exact, np.bincount(np.minimum(k, k[-1] - k), p))
    assert found >= exact[common:].sum() * (1 - 1e-9)
