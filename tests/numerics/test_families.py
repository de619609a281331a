"""Families of tests: each policy against its definition, its error over draws of a null, and one owner of them all."""

import ast
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import finc_eval
from finc_eval.numerics.families import (
    bonferroni,
    closed_e_values,
    discrete_step_down,
    holm,
    holm_level,
    level_of_each,
    share_as_large,
    smallest_p,
    step_down,
    step_down_by,
)

ALPHA = 0.05


def test_holm_gives_the_textbook_values():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02], atol=1e-12)
    assert holm([]).shape == (0,)


@pytest.mark.parametrize("part", [1.0, 0.5, 0.25])
def test_holms_p_values_grow_by_the_tests_that_are_left_at_a_part_of_the_level(part):
    # Six tests; the third smallest is no less significant than the second.
    expected = np.array([0.05, 0.4, 0.05, 0.9, 0.0006, 0.12]) / part
    found = holm([0.01, 0.2, 0.011, 0.9, 0.0001, 0.04], part)
    np.testing.assert_allclose(found, np.minimum(expected, 1), rtol=1e-12)
    assert (found <= bonferroni([0.01, 0.2, 0.011, 0.9, 0.0001, 0.04], 6, part)).all()


@pytest.mark.parametrize("seed", range(20))
def test_tests_without_a_p_value_are_rejected_as_by_holms_p_values(seed):
    p = np.random.default_rng(seed).beta(0.3, 3, 1 + seed % 7)
    level = holm_level([lambda level, own=own: own <= level for own in p], ALPHA)
    np.testing.assert_array_equal(p <= level, holm(p) <= ALPHA)
    assert holm_level([], ALPHA) == ALPHA


def test_each_test_has_an_equal_part_or_its_own():
    assert [level_of_each(ALPHA, tests) for tests in (0, 1, 4)] == [0.05, 0.05, 0.0125]
    np.testing.assert_allclose(bonferroni([[0.01, 0.5], [0.02, 0.0]], 4), [[0.04, 1.0], [0.08, 0.0]])
    np.testing.assert_allclose(bonferroni([0.01, 0.01], part=np.array([0.75, 0.25])), [0.04 / 3, 0.04])
    for p, tests in product((0.001, 0.0124, 0.0126, 0.9), (1, 4, 9)):
        assert (bonferroni(p, tests) <= ALPHA) == (p <= level_of_each(ALPHA, tests))


@pytest.mark.parametrize("tests", [1, 5, 300])
def test_discrete_tests_that_can_take_any_p_value_are_adjusted_as_holm_does(tests):
    p = np.random.default_rng(0).beta(0.2, 9, tests)
    found = discrete_step_down(p, lambda some: np.broadcast_to(some, (tests, len(some))))
    np.testing.assert_allclose(found, holm(p), rtol=1e-9)
    # Tests that cannot have a p-value of .01 or less do not count against one that has.
    at_least = np.where(np.arange(3) == 0, 0.0, 0.02)[:, None]
    found = discrete_step_down(np.array([0.01, 0.02, 1.0]), lambda some: np.where(some >= at_least, some, 0.0))
    np.testing.assert_allclose(found, [0.01, 0.04, 1.0])


def test_step_down_counts_all_exchanges_of_larger_statistics():
    drawn = np.array(list(product((-1.0, 1.0), repeat=3)), np.float32) @ np.diag([3, 2, 1]).astype(np.float32)
    found = step_down(np.array([3.0, 2.0, 0.5]), drawn, is_exact=True)
    np.testing.assert_allclose(found, [1, 1, 1])
    assert step_down(np.array([9.0, 2.0, 0.5]), drawn)[0] == pytest.approx(1 / 9)


def test_step_down_takes_equal_statistics_for_equal_and_has_tests_of_one_family_in_order():
    observed, drawn = np.array([2.0, -1.0]), np.array([[2 * (1 - 5e-6), 0], [1.5, 0], [0, 1], [0.5, 0.5]], np.float32)
    np.testing.assert_allclose(step_down(observed, drawn), [2 / 5, 2 / 5])
    np.testing.assert_allclose(step_down(observed, drawn, is_exact=True), [1 / 4, 1 / 4])
    np.testing.assert_allclose(step_down(np.array([2.01, -0.45]), drawn), [1 / 5, 3 / 5])
    assert step_down(np.zeros(2), drawn).max() == 1


@pytest.mark.parametrize("seed", range(10))
def test_a_step_down_p_value_is_the_largest_over_all_families_that_hold_the_test(seed):
    """Closed testing by the largest statistic: a test is rejected if each part of the family with it is."""
    rng = np.random.default_rng(seed)
    observed, drawn = rng.normal(1, 1, 4), rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) / 2
    parts = [list(part) for count in range(1, 5) for part in combinations(range(4), count)]

    def p_value(part):
        return (1 + (drawn[:, part].max(1) >= observed[part].max()).sum()) / 61

    wanted = [max(p_value(part) for part in parts if own in part) for own in range(4)]
    found = step_down_by(observed, lambda test: drawn[:, test], 60)
    np.testing.assert_allclose(found, wanted)
    # A single step is never smaller, and the same for the largest.
    single = share_as_large(observed, drawn.max(1)[:, None])
    assert (single >= found).all() and single.min() == found.min()


def test_the_smallest_of_several_p_values_is_compared_with_its_own_values():
    rng = np.random.default_rng(0)
    statistics = rng.normal(size=(2, 200, 3)).round(1)  # with ties
    p = np.array([[[(row >= value).mean() for value in row] for row in one.T] for one in statistics])
    smallest = p.min(0)
    wanted = [(row <= row[0] + 1e-12).mean() for row in smallest]
    np.testing.assert_allclose(smallest_p(statistics), wanted)
    assert float(smallest_p(statistics[..., 0])) == pytest.approx(wanted[0])


def test_adjusted_e_values_are_those_of_closed_testing():
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 7):
        e = np.exp(rng.normal(0, 3, size))
        parts = [part for count in range(1, size + 1) for part in combinations(range(size), count)]
        wanted = [min(e[list(part)].mean() for part in parts if own in part) for own in range(size)]
        assert np.allclose(np.exp(closed_e_values(np.log(e))), wanted)


def one_sided_p(z):
    from scipy.special import ndtr

    return ndtr(-z)


POLICIES = {
    "bonferroni": lambda z, drawn: bonferroni(one_sided_p(z), len(z)).min(),
    "holm": lambda z, drawn: holm(one_sided_p(z)).min(),
    "step down": lambda z, drawn: step_down_by(z, lambda test: drawn[:, test], len(drawn)).min(),
    "two-sided step down": lambda z, drawn: step_down(z, drawn.astype(np.float32)).min(),
    "single step": lambda z, drawn: share_as_large(z, drawn.max(1)[:, None]).min(),
    "smallest p": lambda z, drawn: float(smallest_p(np.concatenate([z[None], drawn]).T)),
    "e-values": lambda z, drawn: np.exp(-closed_e_values(2 * z - 2)).min(),
}


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_rejects_any_true_null_with_probability_alpha_at_most(name, correlation):
    """400 families of eight correlated tests: of 20 false families on average, more than 36 have a chance of .0003."""
    rng, false = np.random.default_rng(1), 0
    root = np.linalg.cholesky(correlation + (1 - correlation) * np.eye(8))
    for _ in range(400):
        draws = rng.normal(size=(100, 8)) @ root.T
        false += bool(POLICIES[name](draws[0], draws[1:]) <= ALPHA)
    assert false <= 36


LEVEL = re.compile(r"\b\w*(alpha|level|confidence|false_years)\b", re.I)
P_VALUE = re.compile(r"\bp_values?$")
NO_FAMILY = {"growth"}  # a bound of privacy, (1 - δ - α) / e^ε


def shares_a_level(node):
    """Return whether an expression divides a level by a number of tests, or multiplies p-values by it."""
    if not isinstance(node, ast.BinOp) or any(isinstance(side, ast.Constant) for side in (node.left, node.right)):
        return False
    left, right = (ast.unparse(side) for side in (node.left, node.right))
    if isinstance(node.op, ast.Div):
        return isinstance(node.left, ast.Name | ast.Attribute | ast.BinOp) and bool(LEVEL.search(left))
    return isinstance(node.op, ast.Mult) and bool(P_VALUE.search(left) or P_VALUE.search(right))


@pytest.mark.parametrize(
    "text", ["ALPHA / len(looks)", "(1 - confidence) / n", "2 * family * test.p_value", "policy.alpha / policy.interim"]
)
def test_a_level_that_is_shared_is_seen(text):
    assert shares_a_level(ast.parse(text).body[0].value)


def test_levels_are_shared_among_tests_in_one_module_alone():
    package = Path(finc_eval.__file__).parent
    paths = [path for path in package.rglob("*.py") if path.name != "families.py"]
    found = [
        f"{path.relative_to(package)}:{node.lineno} {ast.unparse(node)}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if shares_a_level(node) and ast.unparse(node.right) not in NO_FAMILY
    ]
    assert found == []
