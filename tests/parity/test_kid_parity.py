import pytest
from _theirs import KINDS, pair, theirs_on_pairs

from finc_eval.metrics.kid import kid, kid_interval

TORCH_FIDELITY = """
import torch
from torch_fidelity.metric_kid import kid_features_to_metric
def their(x, y):
    size, x, y = min(len(x), len(y), 100), torch.from_numpy(x), torch.from_numpy(y)
    found = kid_features_to_metric(x, y, kid_subsets=20, kid_subset_size=size, rng_seed=7, verbose=False)
    return [found["kernel_inception_distance_mean"], found["kernel_inception_distance_std"]]
"""
CLEAN_FID = """
from cleanfid.fid import kernel_distance
def their(x, y):
    n = min(len(x), len(y))
    return kernel_distance(x[:n], y[:n], num_subsets=1, max_subset_size=n)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_deviation_over_the_same_subsets_are_torch_fidelitys(kind):
    x, y = pair(kind)
    found = kid(x, y, subsets=20, subset_size=min(len(x), len(y), 100), seed=7)
    # Subsets of two of two samples are one subset in another order: their spread is rounding, on either side.
    expected = theirs_on_pairs("torch_fidelity", TORCH_FIDELITY)[kind]
    assert [found.mean, found.std] == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("kind", ["random", "duplicated", "real"])
def test_the_estimate_of_all_pairs_is_clean_fids_of_one_subset_of_all(kind):
    x, y = pair(kind)
    n = min(len(x), len(y))
    assert kid_interval(x[:n], y[:n]).value == pytest.approx(theirs_on_pairs("cleanfid", CLEAN_FID)[kind], rel=1e-6)
