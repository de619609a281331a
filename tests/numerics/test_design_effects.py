"""Design effects are right where groups show them, and cautious where they do not."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from finc_eval.numerics.design_effects import GroupedKinds, GroupSizes, design_effects


def groups_of(kinds, sizes, of=3):
    """Groups of one kind each."""
    table = csr_matrix((np.array(sizes, float), (np.arange(len(kinds)), kinds)), (len(kinds), of))
    return GroupedKinds.of(table, np.array(sizes, float))


def test_copies_in_groups_of_three_inform_a_third_as_much_also_of_a_kind_that_is_lacking():
    copies = groups_of([0] * 10 + [1] * 90, [3] * 100)
    (effects,) = design_effects([copies])
    assert effects == pytest.approx([3, 3, 3])
    assert copies.even == pytest.approx([3, 3, 3]) and copies.within.tolist() == [300] * 3


def test_groups_with_one_member_each_of_a_kind_inform_like_independent_samples():
    spread = GroupedKinds.of(csr_matrix(np.tile([1.0, 2.0], (100, 1))), np.full(100, 3.0))
    assert design_effects([spread])[0] == pytest.approx([1, 1])


def test_independent_samples_have_a_design_effect_of_exactly_one():
    sets = [GroupedKinds.independent(np.array(members), 1000) for members in ([0, 7, 993], [3, 0, 997])]
    assert all((effects == 1).all() for effects in design_effects(sets))


def test_what_a_set_lacks_is_as_grouped_as_the_other_set_shows():
    singles, bursts = [1] * 400, [25] * 2
    own = groups_of([2] * 400 + [0, 0], singles + bursts)
    same = groups_of([2] * 400 + [1, 1], singles + bursts)
    effects = design_effects([own, same])
    assert all((one[:2] > 20).all() for one in effects)


def test_what_a_set_lacks_may_come_in_its_largest_groups():
    """Independent samples of the other set do not tell how this one is grouped."""
    own, single = groups_of([2] * 400 + [1, 1], [1] * 400 + [25] * 2), groups_of([0] * 50 + [2] * 400, [1] * 450)
    ours, theirs = design_effects([own, single])
    assert ours[0] == pytest.approx(25) and (theirs == 1).all()


def test_one_large_group_does_not_blur_kinds_that_are_not_in_it():
    clip = groups_of([0, *range(1, 21)] + list(range(1, 21)) * 49, [100, *[1] * 1000], 21)
    (effects,) = design_effects([clip])
    assert effects[0] > 50 and (effects[1:] < 2).all()
    assert clip.within.tolist() == [1100] + [1000] * 20


def test_kinds_in_small_groups_by_chance_have_an_even_effect_of_groups_of_any_size():
    sizes = GroupSizes.of(np.array([1.0, 1, 1, 1, 6]))
    assert (sizes.n, sizes.mean) == (10, 4)
    assert sizes.worst(np.array([0.0, 6, 8])) == pytest.approx([6, 6, (36 + 2) / 8])
    assert groups_of([0, 0, 1, 1, 2], [1, 1, 1, 1, 6]).even[:2] == pytest.approx([4, 4])


def test_a_share_near_one_is_as_uncertain_as_that_of_the_others():
    kinds = np.array([0] * 475 + [1] * 25 + [0] * 10)
    near_one = groups_of(kinds, [1] * 500 + [50] * 10, of=2)
    assert near_one.even == pytest.approx([25.5, 25.5], rel=0.01)


def test_a_kind_that_has_all_samples_is_as_grouped_as_the_set():
    one_large = groups_of([0] * 901, [1] * 900 + [100])
    assert one_large.seen[0] == pytest.approx(10.9)
