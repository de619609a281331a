"""Design effects are right where groups show them, and cautious where they do not."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from finc_eval.numerics.design_effects import GroupedKinds, GroupedShares, GroupSizes, design_effects


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
    assert sets[0].within.tolist() == [1000] * 3 and sets[0].even.tolist() == [1] * 3


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


def test_the_variance_of_a_share_over_groups_is_that_of_the_ratio_of_sums():
    table, sizes = np.array([[2, 1, 0], [0, 3, 0], [1, 0, 4], [0, 1, 0], [2, 2, 2]], float), np.array([3.0, 3, 5, 1, 6])
    found = GroupedKinds.of(csr_matrix(table), sizes)
    n, p = 18, table.sum(0) / 18
    spread = ((table - sizes[:, None] * p) ** 2).sum(0)
    np.testing.assert_allclose(found.seen, spread / (n * p * (1 - p)))
    np.testing.assert_allclose(found.around, (table * sizes[:, None]).sum(0) / table.sum(0))
    assert found.groups.tolist() == [3, 4, 2]
    assert found.members.tolist() == [5, 7, 6]
    # Groups up to the largest with a member.
    assert found.within.tolist() == [18, 18, 18]
    lacking = GroupedKinds.of(csr_matrix(np.pad(table, ((0, 0), (0, 1)))), sizes)
    assert lacking.within[3] == 18 and lacking.around[3] == 1
    small = GroupedKinds.of(csr_matrix(np.array([[1.0, 0], [0, 2], [0, 6]])), np.array([3.0, 3, 6]))
    assert small.within.tolist() == [6, 12]


@pytest.mark.parametrize(("members", "is_most"), [(4, False), (5, False), (6, True)])
def test_beyond_half_of_the_samples_groups_are_those_of_the_others(members, is_most):
    """Groups of 1, 1, 2, 2 and 4 samples; the members come in the order of the groups."""
    sizes = np.array([1.0, 1, 2, 2, 4])
    table = np.clip(members - np.r_[0, np.cumsum(sizes)[:-1]], 0, sizes)
    found = GroupedKinds.of(csr_matrix(np.stack([table, sizes - table], 1)), sizes)
    counted = sizes - table if is_most else table
    assert found.groups[0] == np.count_nonzero(counted)
    assert found.around[0] == pytest.approx(counted @ sizes / counted.sum())


def shares(groups, seen, around=1.0, members=6.0):
    """Three samples in a group of their own, one group of 6, and two of 4."""
    one = np.ones(1)
    return GroupedShares(
        members * one, groups * one, seen * one, around * one, GroupSizes.of(np.array([1.0, 1, 1, 6, 4, 4]))
    )


def test_likeness_within_groups_is_averaged_with_one_more_group_that_is_all_alike():
    mean = (3 + 36 + 32) / 17
    # ρ = (3 − 1) / (5 − 1) in three groups, and 1 in one more.
    assert shares(3, 3, 5).even == pytest.approx(1 + (3 * 0.5 + 1) / 4 * (mean - 1))
    assert shares(3, 9, 5).even == pytest.approx(mean)  # no likeness is beyond 1, or below 0
    assert shares(3, 0.5, 5).even == pytest.approx(1 + (mean - 1) / 4)
    assert shares(3, 1, 1).even == pytest.approx(mean)  # without another sample in any group nothing is known


def test_a_design_effect_is_averaged_with_a_part_of_the_worst_as_one_more_group():
    """Six members fill the group of 6; what the set shows is a third of that."""
    part = (4 * 2 / 6 + 1) / 5
    assert design_effects([shares(4, 2)])[0] == pytest.approx((4 * 2 + part * 6) / 5)
    # Ten members fill the groups of 6 and of 4.
    worst = (36 + 16) / 10
    assert design_effects([shares(4, 9, members=10.0)])[0] == pytest.approx((4 * 9 + worst) / 5)
    assert design_effects([shares(4, 0.1)])[0] == pytest.approx(max((4 * 0.1 + (4 * 0.1 / 6 + 1) / 5 * 6) / 5, 1))


def test_all_sets_together_show_the_part_of_the_worst_and_a_set_without_members_has_their_share():
    """The first set has 12 members, which fill its groups of 6 and 4; the second, of the same groups, none."""
    own, empty = shares(3, 2, members=12.0), shares(0, 1, members=0.0)
    part = (3 * (2 / ((36 + 24) / 12)) + 1) / 4
    ours, theirs = design_effects([own, empty])
    assert ours == pytest.approx((3 * 2 + part * 5) / 4)
    assert theirs == pytest.approx(max(part * 6, 1))  # six members, in the group of 6


def test_a_set_without_members_is_as_grouped_as_its_size_allows():
    """The second set is half as large, so that it would have half as many members: six, in its group of 6."""
    own = GroupedShares(*(one * np.ones(1) for one in (12.0, 3, 2, 1)), GroupSizes.of(np.array([6.0, 6, 6, 6, 6, 4])))
    empty = shares(0, 1, members=0.0)
    part = (3 * 2 / 6 + 1) / 4
    wanted = 12 / 51 * 17
    worst = wanted * 6 / wanted
    assert design_effects([own, empty])[1] == pytest.approx(max(part * worst, 1))
