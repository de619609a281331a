"""Tests of cells: the statistic, its permutations, and what is left without the images of a cell."""

import numpy as np
import pytest
from scipy.stats import hypergeom
from statsmodels.stats.contingency_tables import StratifiedTable

from finc_eval.prompts.cell_tests import CellTests
from finc_eval.prompts.words import Phrases

PROMPTS = [f"{'wet' if n % 4 == 0 else 'dry'} street {n}" for n in range(12)]
PROMPT = np.tile(np.repeat(np.arange(12), 4), 2)
IS_FIRST = np.arange(96) < 48
WET = PROMPT % 4 == 0


def cells_over(*attributes, families=1):
    phrases, has = Phrases.of(PROMPTS), np.stack(attributes, 1)
    order = np.arange(len(attributes)) % families == np.arange(families)[:, None]
    return phrases, CellTests(phrases, PROMPT, IS_FIRST, has, order, (1 / families,) * families, 0)


def random_attribute(seed, share=0.4):
    return np.random.default_rng(seed).random(96) < share


def test_the_statistic_is_that_of_cochran_mantel_and_haenszel():
    attribute = random_attribute(0)
    phrases, tests = cells_over(attribute)
    for word in range(len(phrases.texts)):
        inside = np.flatnonzero(np.asarray(phrases.has[:, [word]].todense()).ravel())
        tables = [
            [[(attribute & (b == PROMPT) & (first == IS_FIRST)).sum() for first in (True, False)],
             [(~attribute & (b == PROMPT) & (first == IS_FIRST)).sum() for first in (True, False)]]
            for b in inside
        ]  # fmt: skip
        strata = StratifiedTable([np.array(table, float) for table in tables])
        assert tests.tests[0].z[word] ** 2 == pytest.approx(strata.test_null_odds(correction=False).statistic)


def test_permutations_of_a_prompt_have_the_hypergeometric_law_and_keep_each_sets_number():
    attribute = random_attribute(1)
    _, tests = cells_over(attribute)
    for prompt in range(12):
        own = tests.prompt == prompt
        assert (tests.permuted[:, own].sum(1) == 4).all()
        k = int(attribute[prompt == PROMPT].sum())
        counts = np.bincount((tests.permuted & tests.attributes[:, 0])[:, own].sum(1), minlength=5)
        # 0.06: four standard errors of a share of 999 permutations
        assert counts / counts.sum() == pytest.approx(hypergeom(8, k, 4).pmf(np.arange(5)), abs=0.06)


def test_a_word_of_three_prompts_is_found_by_three_of_four_images_each():
    three_of_four = WET & IS_FIRST & (np.arange(96) % 4 > 0)
    others = [random_attribute(seed, 0.1) for seed in range(2, 10)]
    phrases, tests = cells_over(*others[:4], three_of_four, *others[4:])
    ((place, word, p_value),) = tests.choose()
    assert (place, phrases.texts[word]) == (4, "wet")
    assert 0.001 <= p_value <= 0.05


def test_what_comes_with_a_cell_is_no_cell_of_its_own_and_what_does_not_is_one():
    has = WET & IS_FIRST & (np.arange(96) % 4 > 0)
    comes_with, base = has & (np.arange(96) % 4 > 1), random_attribute(4, 0.1)
    other = (PROMPT % 4 > 0) & ~IS_FIRST & (np.arange(96) % 4 > 1)
    phrases, tests = cells_over(has, comes_with, other, base)
    assert [(place, phrases.texts[word]) for place, word, _ in tests.choose()] == [(2, "dry"), (0, "wet")]
    assert not (tests.left[:, None] & tests.attributes[:, [0, 2]])[np.isin(tests.prompt % 4, [0])].any()
    assert (tests.tests[1].z == 0).all()


def test_families_are_asked_in_order_and_share_the_error():
    has = WET & IS_FIRST & (np.arange(96) % 4 > 0)
    _, alone = cells_over(has)
    _, shared = cells_over(random_attribute(5, 0.1), has, families=2)
    ((_, _, p_alone),) = alone.choose()
    ((place, _, p_shared),) = shared.choose()
    assert place == 1 and p_shared == pytest.approx(2 * p_alone, rel=0.5)
