"""A comparison finds what is planted, says how large it is, and finds nothing where there is nothing."""

from dataclasses import replace

import numpy as np
import pytest
from _designs import clusters, drawn, judge, same_law, shown, six

import finc_eval as fe

ALPHA, SETS = 0.05, ("gen", "ref")


@pytest.fixture(scope="module")
def planted():
    """Five comparisons of 2 000 with 2 000 samples of 26 clusters that touch; two of them are new, two gone, and two
    have three times the share or a third of it. Sets, results and fresh samples of both laws.
    """
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        source = clusters(26, 512, centers=0.3)(rng)
        laws = six(source, (2000, 2000), share=0.015, base=0.02, factor=3)
        sets = replace(laws, **{one: drawn(source, rng, law, 2000) for one, law in zip(SETS, laws.shares, strict=True)})
        fresh = [drawn(source, rng, law, 20_000).rows for law in laws.shares]
        found.append((sets, fe.compare(sets.gen.rows, sets.ref.rows, features=500, seed=seed), fresh))
    return found


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("sizes", [(500, 500), (100, 3000)], ids=str)
def test_sets_of_one_law_with_rare_kinds_differ_in_5_percent_of_runs_at_most(sizes):
    """200 clusters with shares in proportion to 1/rank. At a rate of 5 %, 1.4 % of all draws have more than 5 of 40."""
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        gen, ref = same_law(clusters(200, 64, spread=0.1, zipf=True)(rng), rng, *sizes)
        found = fe.compare(gen.rows, ref.rows, features=125, seed=seed)
        false += any(one.p_value <= ALPHA for one in (*found.kinds, *found.directions))
    assert false <= 5


def test_planted_kinds_are_found_and_no_others(planted):
    found, others, purities = zip(
        *(judge(sets, [*map(shown, comparison.significant(ALPHA))]) for sets, comparison, _ in planted), strict=True
    )
    assert sum(map(len, found)) >= 29, "of 30"
    assert sum(others) <= 1
    assert np.mean(np.concatenate(purities)) >= 0.95


def test_shares_of_kinds_are_those_of_the_law(planted):
    """Off by at most 0.5 % of a set on average; intervals hold what 20 000 fresh samples say, up to their error."""
    errors, missed, intervals = [], 0, 0
    for sets, comparison, fresh in planted:
        kinds = comparison.significant(ALPHA)
        for name, place in judge(sets, [*map(shown, kinds)])[0].items():
            shares = [kinds[place].shares[one].share for one in SETS]
            errors += [abs(share - law[name]) for share, law in zip(shares, sets.shares, strict=True)]
        for one, rows in zip(SETS, fresh, strict=True):
            places = np.asarray(comparison.assign(rows))
            for number, kind in enumerate(comparison.kinds):
                (low, high), truth = kind.shares[one].interval, float(np.mean(places == number))
                missed += not low - 0.003 <= truth <= high + 0.003
                intervals += 1
    assert np.mean(errors) <= 0.005
    assert intervals > 100 and missed <= 1
