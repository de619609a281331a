from math import inf

import pytest
from _theirs import KINDS, pair, theirs_on_pairs

from finc_eval.metrics.vendi import gaussian_vendi, vendi

SIGMA = 6.0

# Its score of embeddings leaves the order out (score_X passes q=1 on), so theirs is that of the kernel matrix.
VENDI_SCORE = f"""
from vendi_score.vendi import score_K
def their(x, y):
    u = x / np.linalg.norm(x, axis=1)[:, None]
    squared = np.square(x[:, None] - x).sum(2)
    kernels = {{"cosine": u @ u.T, "gaussian": np.exp(-squared / (2 * {SIGMA}**2))}}
    return {{name: [float(score_K(K, q=q)) for q in (1, 2, 3, "inf")] for name, K in kernels.items()}}
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_of_both_kernels_are_theirs(kind):
    x, _ = pair(kind)
    expected = theirs_on_pairs("vendi_score", VENDI_SCORE)[kind]
    assert [vendi(x, order=q).value for q in (1, 2, 3, inf)] == pytest.approx(expected["cosine"], rel=1e-6)
    found = [gaussian_vendi(x, SIGMA, order=q).value for q in (1, 2, 3, inf)]
    assert found == pytest.approx(expected["gaussian"], rel=1e-6)
