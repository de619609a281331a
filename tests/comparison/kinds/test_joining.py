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


N = 1000
FIRST, LAST = -torch.arange(N).float(), torch.arange(N).float()
CLOUD = np.random.default_rng(0).standard_normal((N, 2)).astype(np.float32)
LINE = np.arange(N, dtype=np.float32)[:, None]


def inside(own, other, where=CLOUD, scores=FIRST):
    """Members of both sets, given by the ranges of their numbers; the first are the best."""
    masks = torch.zeros(2, N, dtype=torch.bool)
    masks[0, own] = masks[1, other] = True
    return Inside(*masks, per_group=(1.0, 1.0), where=(where, where), scores=scores)


def first_at(place, count):
    """Samples of which the first lie in another place than all others."""
    return CLOUD + np.float32(place) * (np.arange(N) < count)[:, None]


NOVEL, NOBODY = inside(slice(0, 200), slice(0, 0)), slice(0, 0)


def test_what_lies_in_the_middle_of_a_kind_is_of_that_kind():
    assert one_kind(inside(slice(0, 20), NOBODY), NOVEL, 1.0, 20)
    assert one_kind(inside(slice(150, 220), slice(500, 505)), NOVEL, 1.0, 20)


def test_what_lies_apart_is_another_kind_unless_it_is_amid_the_larger_one():
    apart = first_at(90, 100)
    whole = inside(slice(0, 300), NOBODY, apart, LAST)
    assert not one_kind(inside(slice(0, 100), NOBODY, apart), whole, 1.0, 20)
    whole = inside(slice(0, 800), NOBODY, LINE, LAST)
    assert one_kind(inside(slice(0, 800, 4), NOBODY, LINE), whole, 1.0, 20)


@pytest.mark.parametrize(("count", "joins"), [(60, False), (160, True)])
def test_the_best_of_a_mode_that_is_mostly_something_else_are_another_kind(count, joins):
    apart = first_at(90, count)
    whole = inside(slice(0, 200), NOBODY, apart)
    assert one_kind(inside(slice(0, count), NOBODY, apart), whole, 1.0, 20) == joins


def test_what_lies_outside_is_another_kind():
    assert not one_kind(inside(slice(150, 300), NOBODY), NOVEL, 1.0, 20)


def test_what_one_set_has_more_of_than_of_the_rest_is_another_kind():
    mixed = inside(slice(0, 120), slice(0, 60))
    assert not one_kind(inside(slice(0, 40), NOBODY), mixed, 1.0, 20)  # 40 of 120, and 0 of 60
    assert one_kind(inside(slice(0, 40), slice(0, 20)), mixed, 1.0, 20)


def test_nothing_is_joined_where_nothing_was_found():
    assert joined([], {}, 1.0, 0) == []
