import numpy as np
import pytest
from _theirs import KINDS, pair, theirs_on_pairs

from finc_eval.metrics.frechet import frechet_distance

# Both libraries are given float64: torch-fidelity takes the mean in the features' own type, off by 1e-7 in float32.
TORCH_FIDELITY = """
import torch
from torch_fidelity.metric_fid import fid_features_to_statistics, fid_statistics_to_metric
def their(x, y):
    statistics = [fid_features_to_statistics(torch.from_numpy(a)) for a in (x, y)]
    return fid_statistics_to_metric(*statistics, False)["frechet_inception_distance"]
"""
PYTORCH_FID = """
from pytorch_fid.fid_score import calculate_frechet_distance
def their(x, y):
    return float(calculate_frechet_distance(*(m for a in (x, y) for m in (a.mean(0), np.cov(a, rowvar=False)))))
"""


@pytest.mark.parametrize("package, code", [("torch_fidelity", TORCH_FIDELITY), ("pytorch_fid", PYTORCH_FID)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_distance_is_theirs(kind, package, code):
    x, y = pair(kind)
    assert frechet_distance(x, y).value == pytest.approx(theirs_on_pairs(package, code)[kind], rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_so_is_that_of_statistics_in_their_files(kind, tmp_path):
    for name, rows in zip("xy", pair(kind), strict=True):
        np.savez(tmp_path / f"{name}.npz", mu=rows.mean(0), sigma=np.cov(rows, rowvar=False))
    found = frechet_distance(tmp_path / "x.npz", tmp_path / "y.npz").value
    assert found == pytest.approx(theirs_on_pairs("pytorch_fid", PYTORCH_FID)[kind], rel=1e-6)
