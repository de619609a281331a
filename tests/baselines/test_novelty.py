"""The KEN score, exact in two forms."""

from functools import partial
from math import log

import numpy as np
import pytest
import torch

from finc_eval.baselines.ken import ken_score, ken_spectrum, novelty
from finc_eval.core.errors import FincEvalError
from finc_eval.numerics.kernels import gaussian_kernel

RNG = np.random.default_rng(0)
CENTERS = 6 * RNG.normal(size=(6, 12))


def draw(n, kinds, seed=0):
    rng = np.random.default_rng(seed)
    return (CENTERS[rng.integers(0, kinds, n)] + rng.normal(size=(n, 12))).astype(np.float32)


GEN, REF = draw(200, 6, 1), draw(160, 4, 2)


def by_definition(x, y, sigma, rho=1.0):
    """The score of the KEN paper's non-symmetric block matrix."""
    x, y = (torch.from_numpy(rows).double() for rows in (x, y))
    k = partial(gaussian_kernel, sigma=sigma)
    n, m = len(x), len(y)
    cross = rho**0.5 * k(x, y) / (n * m) ** 0.5
    blocks = torch.cat([torch.cat([k(x, x) / n, cross], 1), torch.cat([-cross.T, -rho * k(y, y) / m], 1)])
    values = torch.linalg.eigvals(blocks).real
    values = values[values > 1e-10]
    return float((values * torch.log(values.sum() / values)).sum())


def spectrum(x, y, **options):
    rows, others = (torch.from_numpy(one).double() for one in (x, y))
    return ken_spectrum(rows, others, partial(gaussian_kernel, sigma=4.0), **options)


@pytest.mark.parametrize("form", ["cholesky", "eigen"])
@pytest.mark.parametrize("rho", [0.5, 1.0, 5.0])
def test_both_exact_forms_are_the_definition(form, rho):
    found = ken_score(spectrum(GEN, REF, rho=rho, form=form))
    assert found == pytest.approx(by_definition(GEN, REF, 4.0, rho), rel=1e-6)


def test_the_score_is_the_definition_and_its_signature_names_the_kernel():
    found = novelty(GEN, REF, sigma=4.0)
    assert found.score == pytest.approx(by_definition(GEN, REF, 4.0), rel=1e-6) and found.warning is None
    assert "|kernel:gaussian|sigma:4|rho:1|form:cholesky|" in str(found.signature)


def test_the_forms_agree_where_samples_are_repeated():
    gen = np.concatenate([GEN, GEN[:50], GEN[:50]])
    cholesky, eigen = (spectrum(gen, REF, form=form) for form in ("cholesky", "eigen"))
    assert ken_score(cholesky) == pytest.approx(ken_score(eigen), rel=1e-6)
    count = min(len(cholesky), len(eigen))
    torch.testing.assert_close(cholesky[:count], eigen[:count], atol=1e-8, rtol=0)


def test_a_set_against_itself_has_no_novelty():
    assert novelty(GEN, GEN, sigma=4.0).score == pytest.approx(0, abs=1e-6)


def test_a_bandwidth_under_which_every_sample_is_alone_is_warned_of():
    found = novelty(GEN, REF, sigma=0.05)
    assert found.score == pytest.approx(log(200), rel=0.02)
    assert "every sample is alone" in found.warning


@pytest.mark.parametrize(
    ("gen", "options", "message"),
    [
        (GEN, {"sigma": -1.0}, "sigma must be a positive number"),
        (GEN[:, :5], {}, "gen has 5 entries per embedding"),
        (np.zeros((20_001, 12), np.float32), {}, "kernel matrix of all 20,161 samples, at its peak 8 GB: compare"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(gen, options, message):
    with pytest.raises(FincEvalError, match=message):
        novelty(gen, REF, **options)


def test_the_spectrum_has_the_same_positive_part_in_both_forms():
    one, other = (spectrum(GEN, REF, form=form) for form in ("cholesky", "eigen"))
    torch.testing.assert_close(one[:50], other[:50], atol=1e-9, rtol=0)
