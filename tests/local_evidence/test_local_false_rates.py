"""Sets of one law: the test of local evidence says that they differ in 5 % of draws, by independent units."""

import numpy as np
import pytest
from _planted_cells import cells, embedded, likeness
from scipy.stats import binom

from finc_eval.local_evidence.find import find_local
from finc_eval.local_evidence.inputs import LocalInput


def single(rng, n):
    return [LocalInput(cells=cells(rng, m), likeness=likeness(rng, m), embeddings=embedded(rng, m)) for m in (n, 2 * n)]


def repeats(rng, n):
    """Return sets whose pictures come three times each."""
    units = np.arange(n).repeat(3)
    return [
        LocalInput(cells=each.cells[units], likeness=each.likeness[units], units=units)
        for each in (taken[0] for taken in (single(rng, n), single(rng, n)))
    ]


def uneven(rng, n):
    """Return groups of 1 to 6 equal pictures against single pictures."""
    first, second = single(rng, n)
    units = np.arange(n).repeat(np.resize([1, 2, 3, 6], n))
    return [LocalInput(cells=first.cells[units], likeness=first.likeness[units], units=units), second]


def prompts(rng, n):
    """Return sets of pictures that are alike inside prompts, with unlike numbers of pictures for each prompt."""
    of_prompt = rng.normal(0, 20, (n, 1, 8))
    sets = []
    for _ in range(2):
        blocks = np.arange(n).repeat(rng.integers(1, 4, n))
        values = (cells(rng, len(blocks)) + of_prompt[blocks]).clip(-127, 127).astype(np.int8)
        sets.append(LocalInput(cells=values, likeness=likeness(rng, len(blocks)), blocks=blocks))
    return sets


LAWS = {law.__name__: law for law in (single, repeats, uneven, prompts)}


def called_different(law, runs, n, permutations=39):
    found = [
        find_local(*law(np.random.default_rng(seed), n), seed=seed, permutations=permutations) for seed in range(runs)
    ]
    return sum(evidence.p_value <= 0.05 for evidence in found)


@pytest.mark.parametrize("name", LAWS)
def test_few_of_some_equal_sets_are_called_different(name):
    assert called_different(LAWS[name], 12, 20, permutations=19) <= binom.ppf(0.9999, 12, 0.05)


@pytest.mark.long
@pytest.mark.parametrize("name", LAWS)
def test_equal_sets_are_called_different_at_the_level(name):
    assert called_different(LAWS[name], 600, 30) <= binom.ppf(0.999, 600, 0.05)


def test_groups_that_are_permuted_as_samples_are_called_different():
    laws = [repeats(np.random.default_rng(seed), 20) for seed in range(12)]
    single_units = [[LocalInput(cells=each.cells, likeness=each.likeness) for each in sets] for sets in laws]
    assert sum(find_local(*sets, permutations=39).p_value <= 0.05 for sets in single_units) >= 5


def test_equal_scores_of_all_samples_are_called_different_by_chance_alone():
    blank = LocalInput(likeness=np.zeros((30, 5), np.float32))
    found = [find_local(blank, blank, seed=seed, permutations=19).p_value for seed in range(20)]
    assert sum(p <= 0.05 for p in found) <= binom.ppf(0.999, 20, 0.05)
