"""Error rates of people on generators of four data sets (Stein et al. 2023): rank sets, by participants as clusters."""

import csv
from collections import defaultdict

import numpy as np
import pytest

from finc_eval.leaderboards.judged import Judgments
from finc_eval.leaderboards.ranks import joint_covariance, rank

PUBLISHED = {
    "cifar10": {
        "LSGM-ODE": (0.436852, None),
        "PFGMPP": (0.435800, None),
        "iDDPM-DDIM": (0.399615, None),
        "StyleGAN-XL": (0.398800, None),
        "StyleGAN2-ada": (0.393000, None),
        "BigGAN": (0.386800, 0.014026),
        "MHGAN": (0.336200, None),
        "ReACGAN": (0.335600, None),
        "LOGAN": (0.205600, None),
        "WGAN-GP": (0.169600, None),
        "ACGAN": (0.148200, 0.012659),
        "NVAE": (0.130800, None),
        "RESFLOW": (0.088000, None),
    },
    "imagenet256": {
        "DiT-XL-2-guided": (0.329630, None),
        "LDM": (0.308846, None),
        "DiT-XL-2": (0.286200, 0.016117),
        "ADMG-ADMU": (0.268800, 0.015632),
        "ADM": (0.266400, 0.015736),
        "ADMG": (0.247600, 0.011669),
        "RQ-Transformer": (0.223462, None),
        "GigaGAN": (0.212400, None),
        "Mask-GIT": (0.183400, None),
        "BigGAN": (0.158000, 0.014248),
        "StyleGAN-XL": (0.153400, None),
    },
    "ffhq256": {
        "stylenat": (0.298600, 0.018738),
        "insgen": (0.255200, 0.017601),
        "stylegan2-ada": (0.215400, 0.016593),
        "ldm": (0.186400, 0.016489),
        "styleswin": (0.179600, None),
        "unleashing": (0.172593, None),
        "stylegan-xl": (0.160400, 0.011633),
        "projected-gan": (0.120400, 0.012359),
        "efficient-vdvae": (0.088400, 0.009664),
    },
    "lsun256": {
        "admnet-dropout": (0.387000, 0.019923),
        "iddpm": (0.297000, 0.021422),
        "ddpm": (0.267400, 0.021292),
        "stylegan": (0.216538, 0.018416),
        "unleashing-transformers": (0.209000, 0.022232),
        "ct2": (0.155200, 0.021648),
        "diffusion-projected-gan": (0.148269, 0.018794),
        "projected-gan": (0.142000, 0.017571),
    },
}
"""Mean error rate of people by data set and generator, and some standard errors, best first, as the authors' notebooks
print them (dgm-eval, commit d57a6d2, data/human-evaluation-realism/notebooks)."""


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


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", PUBLISHED)
def test_rank_sets_of_human_error_rates_hold_the_order_that_the_authors_print(assets, name):
    estimates, ranking, rows, notes = ranked(assets / "human" / f"realism_{name}.csv")
    by_model = defaultdict(list)
    for row in rows:
        by_model[row["model"]].append(float(row["err_rt"]))
    names = [*estimates]
    assert [names[place] for place in ranking.order] == [*PUBLISHED[name]]
    for place, own in enumerate(ranking.order, start=1):
        low, high = ranking.rank_sets[own]
        assert low <= place <= high
        error = np.std(by_model[names[own]], ddof=1) / len(by_model[names[own]]) ** 0.5
        assert estimates[names[own]].standard_error == pytest.approx(error)
    assert ranking.separable_pairs >= 10 and notes == []
    first, last = (ranking.rank_sets[ranking.order[place]] for place in (0, -1))
    assert first[1] < last[0]  # the best and the worst differ in all four


@pytest.mark.one_of_each
@pytest.mark.parametrize("name", PUBLISHED)
def test_values_and_errors_are_those_that_the_authors_print(assets, name):
    estimates, *_ = ranked(assets / "human" / f"realism_{name}.csv")
    assert {*estimates} == {*PUBLISHED[name]}
    for model, (value, error) in PUBLISHED[name].items():
        assert estimates[model].value == pytest.approx(value, abs=1e-6)
        if error is not None:
            assert estimates[model].standard_error == pytest.approx(error, abs=1e-6)
