"""Error rates of people on generators of four data sets (Stein et al. 2023): rank sets, by participants as clusters."""

import csv
from collections import defaultdict

import numpy as np
import pytest

from finc_eval.leaderboards.judged import Judgments
from finc_eval.leaderboards.ranks import joint_covariance, rank

SETS = ("cifar10", "imagenet256", "ffhq256", "lsun256")

PUBLISHED_FFHQ = {
    "stylenat": (0.2986, 0.018738),
    "insgen": (0.2552, 0.017601),
    "stylegan2-ada": (0.2154, 0.016593),
    "ldm": (0.1864, 0.016489),
    "styleswin": (0.1796, None),
    "unleashing": (0.172593, None),
    "stylegan-xl": (0.1604, 0.011633),
    "projected-gan": (0.1204, 0.012359),
    "efficient-vdvae": (0.0884, 0.009664),
}
"""Mean error rate of people and its standard error, as the authors' notebook prints them (dgm-eval, commit d57a6d2)."""


def ranked(path):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    models = list(dict.fromkeys(row["model"] for row in rows))
    found = Judgments.read(path, None, models, ()).results(0)
    column = next(one for one in found.columns if one.key == "err_rt")
    estimates = {name: one for name, (one,) in column.runs.items()}
    ranking = rank(
        [one.value for one in estimates.values()], joint_covariance([*estimates.values()]), higher_is_better=True
    )
    return estimates, ranking, rows, found.notes


@pytest.mark.parametrize("name", SETS)
def test_rank_sets_of_human_error_rates_hold_the_order_of_the_paper(assets, name):
    estimates, ranking, rows, notes = ranked(assets / "human" / f"realism_{name}.csv")
    by_model = defaultdict(list)
    for row in rows:
        by_model[row["model"]].append(float(row["err_rt"]))
    order = sorted(by_model, key=lambda one: -np.mean(by_model[one]))
    names = [*estimates]
    assert [names[place] for place in ranking.order] == order
    for place, own in enumerate(ranking.order, start=1):
        low, high = ranking.rank_sets[own]
        assert low <= place <= high
        error = np.std(by_model[names[own]], ddof=1) / len(by_model[names[own]]) ** 0.5
        assert estimates[names[own]].sampling_variance ** 0.5 == pytest.approx(error)
    assert ranking.separable_pairs >= 10 and notes == []
    first, last = (ranking.rank_sets[ranking.order[place]] for place in (0, -1))
    assert first[1] < last[0]  # the best and the worst differ in all four


def test_values_and_errors_are_those_that_the_authors_print(assets):
    estimates, *_ = ranked(assets / "human" / "realism_ffhq256.csv")
    for name, (value, error) in PUBLISHED_FFHQ.items():
        assert estimates[name].value == pytest.approx(value, abs=1e-6)
        if error is not None:
            assert estimates[name].sampling_variance ** 0.5 == pytest.approx(error, abs=1e-6)
