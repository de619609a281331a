"""What FINC's paper says of eigenvalues and of ρ, on digits."""

import numpy as np
import torch

import finc_eval as fe
from finc_eval.comparison.direction import significant


def test_half_of_the_eigenvalues_of_two_sets_of_one_source_are_positive_and_none_is_a_mode(digits):
    """The paper keeps every eigenvector with λ > 0 as a mode of the generated set."""
    gen, ref = digits[0][:1000], digits[0][1000:2000]
    settings = fe.Settings(features=100, frequencies="iid", method=fe.Finc(rotation=None, clusters=False))
    reference = fe.Sketch.reference(ref, features=100, frequencies="iid")
    difference = fe.Sketch.of(gen, reference.feature_map).covariance - reference.covariance
    eigenvalues = torch.linalg.eigvalsh(difference.double())
    assert 0.4 < float((eigenvalues > 0).double().mean()) < 0.6
    assert not significant(fe.compare(gen, reference, settings).directions, 0.05)


def test_of_kinds_three_times_and_thirty_times_as_frequent_a_rho_of_5_leaves_the_second():
    """Appendix B.4: ρ tells kinds that are more frequent from kinds that are new."""
    rng = np.random.default_rng(0)
    shares = np.ones(8) / 8, np.array([1 / 3, 1 / 30, 1, 1, 1, 1, 1, 1])
    kinds = [rng.choice(8, 1500, p=share / share.sum()) for share in shares]
    gen, ref = ((10 * np.eye(8)[one] + rng.standard_normal((1500, 8))).astype(np.float32) for one in kinds)
    found = []
    for point in fe.sweep(gen, ref, "rho", [1, 5], features=100, modes=4).points:
        best = [mode.typical("gen")[:20] for mode in significant(point.comparison.over, 0.05)]
        found.append({int(np.bincount(kinds[0][[int(name) for name in one]]).argmax()) for one in best})
    assert found == [{0, 1}, {1}]
