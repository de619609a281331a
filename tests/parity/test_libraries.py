"""Every check of another library, on several kinds of arrays."""

from math import inf, nan

import numpy as np
import pytest
from _library_checks import CHECKS, TORCH_FIDELITY
from _parity import difference
from _theirs import KINDS, pair, theirs

from finc_eval.measures.frechet import frechet_distance

SECOND = ("pytorch-fid", "clean-fid")
"""Libraries whose metric another library has, too: importing each takes seconds."""


@pytest.mark.one_of_each("check", "kind")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=[pytest.mark.long] * (check.library.name in SECOND)) for check in CHECKS],
    ids=lambda check: f"{check.metric} of {check.library.name}",
)
def test_ours_are_the_numbers_of_the_library(check, kind):
    x, y = pair(kind)
    if len(x) < check.min_samples:
        pytest.skip(f"it takes {check.min_samples} samples")
    assert difference(check.ours(x, y), theirs(check, kind)) <= check.tolerance


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_in_their_files_have_their_distance(kind, tmp_path):
    for name, rows in zip("xy", pair(kind), strict=True):
        np.savez(tmp_path / f"{name}.npz", mu=rows.mean(0), sigma=np.cov(rows, rowvar=False))
    found = frechet_distance(tmp_path / "x.npz", tmp_path / "y.npz").value
    (check,) = (check for check in CHECKS if (check.metric, check.library) == ("fd", TORCH_FIDELITY))
    assert [found] == pytest.approx(theirs(check, kind), rel=1e-6)


def test_differences_are_relative_except_for_tiny_numbers():
    assert difference([1.0, 2.0], [1.0, 2.2]) == pytest.approx(0.2 / 2.2)
    assert difference([1e-12], [0.0]) == pytest.approx(1e-6)
    assert difference([1.0], [1.0, 1.0]) == difference([nan], [1.0]) == inf
