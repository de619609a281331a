"""What is left of a kind joins its mode; what one set has more of within a mode stays beside it."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.comparison.clusters import _is_remainder, _Members, joined, without_remainders


@pytest.mark.parametrize("seed", [13, 19])  # where a second direction has p < 0.001 for the same kind
def test_one_kind_that_two_directions_show_is_one_mode(seed):
    rng = np.random.default_rng(seed)
    middles = 3 * rng.standard_normal((11, 32))
    old, new = rng.integers(0, 10, 1000), np.where(rng.random(1000) < 0.1, 10, rng.integers(0, 10, 1000))
    ref, gen = ((middles[kinds] + rng.standard_normal((1000, 32))).astype(np.float32) for kinds in (old, new))
    found = fe.compare(gen, ref)
    (mode,) = found.significant()
    assert mode.role == "over" and mode.share_gen == pytest.approx(np.mean(new == 10), abs=0.02)
    assert found.headline.count("more of 1 kind.") == 1


def members(own, other, n=1000):
    """Members of both sets, given by the ranges of their numbers."""
    masks = []
    for part in (own, other):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[part] = True
        masks.append(mask)
    return _Members(*masks, per_group=(1.0, 1.0))


def test_a_part_is_a_remainder_unless_a_set_has_more_of_it_than_of_the_rest():
    novel = members(slice(0, 100), slice(0, 0))
    assert _is_remainder(members(slice(80, 110), slice(500, 505)), novel, 1.0, 20)
    mixed = members(slice(0, 120), slice(0, 60))
    assert not _is_remainder(members(slice(0, 40), slice(0, 0)), mixed, 1.0, 20)  # 40 of 120, and 0 of 60
    assert not _is_remainder(members(slice(90, 130), slice(0, 0)), novel, 1.0, 20)  # most lie outside


def test_nothing_is_joined_where_nothing_was_found():
    assert joined([], [], None, 0) == without_remainders([], None, 1.0) == []
