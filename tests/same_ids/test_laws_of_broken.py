"""Laws of broken pairs: exponential tails at their rate, what an eye sees, and how clips move otherwise."""

import numpy as np
import pytest

from finc_eval.same_ids.broken import _tails, find_broken, is_blank, is_seen, logarithms, of_other_ids
from finc_eval.same_ids.clips import FRAMES, moves_otherwise
from finc_eval.same_ids.pairs import PairTable


def broken_table(values, **rest):
    n = len(next(iter(values.values())))
    return PairTable(values, rest.get("others", np.zeros(n)), None)


def exponential(n, scale, start=0.0):
    """Distances whose logarithms have exactly the quantiles of an exponential law."""
    return np.exp(start - scale * np.log1p(-(np.arange(n)) / (n - 1 + 1e-12) * (1 - 1e-4))) - 0.05


@pytest.mark.parametrize("scale", [0.3, 0.05])
@pytest.mark.parametrize("measures", [1, 2])
@pytest.mark.parametrize("by", [-0.1, 0.1])
def test_the_tail_of_the_bulk_lists_a_pair_at_the_rate(scale, measures, by):
    n, rate = 101, 0.02
    bulk = exponential(n, scale)
    bulk[-10:] = bulk[-11]
    used = max(scale, 0.1)  # of a bulk in which all are as far apart
    known = np.log(bulk + 0.05)
    slope = max(
        used,
        *(
            (np.quantile(known, h) - np.quantile(known, w)) / np.log((1 - w) / (1 - h))
            for w, h in ((0.5, 0.8), (0.75, 0.85))
        ),
    )
    limit = np.quantile(known, 0.85) + slope * np.log(0.15 * n * measures / rate)
    bulk[-1] = np.exp(limit + by) - 0.05
    values = {"distance": bulk} | ({"motion": np.zeros(n)} if measures > 1 else {})
    assert find_broken(broken_table(values), None, rate).tolist() == [False] * (n - 1) + [by > 0]


@pytest.mark.parametrize("by", [-0.1, 0.1])
def test_a_pair_must_be_beyond_the_floor_too(by):
    n, rate = 101, 0.02
    bulk, floor = exponential(n, 0.1), exponential(51, 0.4)
    bulk[-10:] = bulk[-11]
    known = np.log(floor + 0.05)
    slopes = (
        (np.quantile(known, h) - np.quantile(known, w)) / np.log((1 - w) / (1 - h))
        for w, h in ((0.5, 0.8), (0.75, 0.85))
    )
    bulk[-1] = np.exp(known.max() + max(slopes) * np.log(n / 52 / rate) + by) - 0.05
    found = find_broken(broken_table({"distance": bulk}), broken_table({"distance": floor}), rate)
    assert found.tolist() == [False] * (n - 1) + [by > 0]


def test_what_is_compared_are_logarithms_with_what_no_eye_sees():
    values = {"mse": 0.02, "detail": 0.005, "structure": 0.8, "coarse": 0.7, "motion": 0.3, "distance": 0.5}
    found = logarithms(broken_table({name: np.full(1, one) for name, one in values.items()}))
    assert found[0] == pytest.approx(np.log([0.021, 0.021 / 0.006, 0.21, 0.32, 0.4, 0.55]))
    assert logarithms(broken_table({"distance": np.full(1, 0.5)}))[0] == pytest.approx([np.log(0.55)])


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ({"mse": 0.0021, "structure": 0.89, "coarse": 0.95}, True),
        ({"mse": 0.0021, "structure": 0.95, "coarse": 0.89}, True),
        ({"mse": 0.0021, "structure": 0.91, "coarse": 0.91}, False),
        ({"mse": 0.0019, "structure": 0.1, "coarse": 0.1}, False),
        ({"mse": 0.0, "structure": 1.0, "coarse": 1.0, "motion": 0.41}, True),
        ({"mse": 0.0, "structure": 1.0, "coarse": 1.0, "motion": 0.39}, False),
        ({"distance": 0.0}, True),
    ],
)
def test_a_difference_is_seen_or_not(values, seen):
    assert is_seen(broken_table({name: np.full(2, one) for name, one in values.items()})).tolist() == [seen, seen]


def test_pairs_as_far_as_other_ids_and_blank_pictures_are_broken_unless_the_baseline_has_some():
    others, blank = np.r_[np.zeros(20), 0.049, 0.05], np.r_[np.zeros(20), 0.5, 0.51]
    table = broken_table({"distance": np.ones(22), "blank": blank}, others=others)
    clean = broken_table({"distance": np.ones(22), "blank": np.full(22, 0.5)}, others=np.full(22, 0.049))
    for found in (of_other_ids(table), is_blank(table), of_other_ids(table, clean), is_blank(table, clean)):
        assert np.flatnonzero(found).tolist() == [21]
    assert not of_other_ids(table, table).any() and not is_blank(table, table).any()
    bulk = broken_table({"distance": np.ones(22)}, others=np.where(np.arange(22) < 17, 0.0, 0.5))
    assert of_other_ids(bulk).sum() == 5
    bulk.others[16] = 0.5
    assert not of_other_ids(bulk).any()  # a quarter is not nearest to its own


def moving(strength=40.0, noise=0.0, order=range(FRAMES)):
    """Thumbnails of a clip whose frames are unlike each other, (1, 8 × 16, 16, 3)."""
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(FRAMES, 16, 16, 3))
    frames -= frames.mean(0)
    frames *= strength / np.sqrt((frames**2).mean())
    frames = frames[[*order]] + noise * rng.normal(size=frames.shape)
    return np.clip(np.rint(127 + frames), 0, 255).astype(np.uint8).reshape(1, -1, 16, 3)


ORDERS = {
    "the same": (moving(), moving(), ""),
    "frozen": (moving(7.6), moving(), "frozen"),
    "hardly moving": (moving(8.6), moving(), ""),
    "backwards": (moving(order=range(7, -1, -1)), moving(), "played backwards"),
    "in another order": (moving(order=(3, 0, 1, 2, 7, 4, 5, 6)), moving(), "with frames in another order"),
    "two frames exchanged": (moving(order=(1, 0, 2, 3, 4, 5, 6, 7)), moving(), ""),
    "backwards, with noise": (moving(25, 22, range(7, -1, -1)), moving(25), "played backwards"),
    "backwards, with much noise": (moving(25, 35, range(7, -1, -1)), moving(25), ""),
    "a still clip that moves": (moving(), moving(1.7), ""),
    "a still clip that stands": (moving(0), moving(1.7), ""),
    "a clip of little motion that stands": (moving(0), moving(2.4), "frozen"),
}
"""Two clips, and how the first moves otherwise."""


@pytest.mark.parametrize("case", ORDERS)
def test_a_clip_moves_otherwise(case):
    first, second, expected = ORDERS[case]
    assert moves_otherwise(first, second).tolist() == [expected]


@pytest.mark.parametrize(("value", "at_least"), [(0.5, 4), (1.0, 4), (2.5, 2), (3.0, 2), (4.0, 1)])
def test_among_the_pairs_of_a_baseline_the_tail_is_its_part_that_is_as_far_apart_and_the_pair_itself(value, at_least):
    known = np.array([[3.0], [1.0], [4.0], [2.0]])
    assert _tails(np.array([[value]]), known, is_bulk=False)[0, 0] == pytest.approx((at_least + 1) / 5)
    assert _tails(np.array([[9.0]]), known, is_bulk=False)[0, 0] < 1 / 5
