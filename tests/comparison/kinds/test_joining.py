"""One kind is one mode, however many directions and clusters show it, and two kinds are two."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.comparison.kinds.joining import Inside, joined, one_kind


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


def few_kinds(seed):
    """Sets of few kinds: gen has a kind of its own and one 1.5 times as often, and lacks one."""
    sets = []
    for number, shares in enumerate(([0.1, 0.3, 0.3, 0.3, 0], [0, 0.3, 0.3, 0.2, 0.2])):
        rng = np.random.default_rng(seed + number)
        rows = 8 * np.eye(5, 6)[rng.choice(5, 1200, p=shares)] + 0.5 * rng.standard_normal((1200, 6))
        sets.append(rows.astype(np.float32))
    return sets


@pytest.mark.parametrize("seed", [2, 12, 22])  # where FINC has up to five directions for the kind that is gone
def test_few_kinds_are_as_many_modes(seed):
    found = fe.compare(*few_kinds(seed), features=200)
    assert [len([mode for mode in role if mode.p_value <= 0.05]) for role in (found.over, found.under)] == [2, 1]
    assert "more of 2 kinds and less of 1 kind." in found.headline


def test_unrotated_eigenvectors_are_not_joined():
    found = fe.compare(*few_kinds(2), features=200, method=fe.Finc(rotation=None))
    directions = [mode for mode in found.significant() if mode.found_by != "clusters"]
    assert len(directions) > 8  # rotated, they are three
    for role in (found.over, found.under):
        fitted = [mode.fitted_excess for mode in role if mode in directions]
        assert fitted == sorted(fitted, reverse=True)


HERE, THERE = np.random.default_rng(0).standard_normal((2, 50, 2)).astype(np.float32) + np.float32([[[0]], [[90]]])


def inside(own, other, best=HERE, n=1000):
    """Members of both sets, given by the ranges of their numbers, which say where they lie."""
    masks = []
    for part in (own, other):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[part] = True
        masks.append(mask)
    where = np.arange(n, dtype=np.float32)[:, None]
    return Inside(*masks, per_group=(1.0, 1.0), where=(where, where), best=best)


NOVEL, NOBODY = inside(slice(0, 200), slice(0, 0)), slice(0, 0)


def test_what_lies_in_the_middle_of_a_kind_is_of_that_kind():
    assert one_kind(inside(slice(0, 20), NOBODY), NOVEL, 1.0, 20)
    assert one_kind(inside(slice(150, 220), slice(500, 505)), NOVEL, 1.0, 20)


def test_what_lies_apart_is_another_kind_unless_it_is_amid_the_larger_one():
    assert not one_kind(inside(slice(0, 100), NOBODY, THERE), NOVEL, 1.0, 20)
    assert one_kind(inside(slice(0, 200, 4), NOBODY, THERE), NOVEL, 1.0, 20)


def test_what_lies_outside_is_another_kind():
    assert not one_kind(inside(slice(150, 300), NOBODY), NOVEL, 1.0, 20)


def test_what_one_set_has_more_of_than_of_the_rest_is_another_kind():
    mixed = inside(slice(0, 120), slice(0, 60))
    assert not one_kind(inside(slice(0, 40), NOBODY), mixed, 1.0, 20)  # 40 of 120, and 0 of 60
    assert one_kind(inside(slice(0, 40), slice(0, 20)), mixed, 1.0, 20)


def test_nothing_is_joined_where_nothing_was_found():
    assert joined([], {}, 1.0, 0) == []
