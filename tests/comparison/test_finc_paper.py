"""What FINC's paper says of eigenvalues and of ρ, on digits."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.numerics.inference import significant


def test_half_of_the_eigenvalues_of_two_sets_of_one_source_are_positive_and_none_is_a_mode(digits):
    """The paper keeps every eigenvector with λ > 0 as a mode of the generated set."""
    gen, ref = digits[0][:1000, ::4], digits[0][1000:2000, ::4]
    settings = fe.Settings(features=100, frequencies="iid", method=fe.Finc(rotation=None, clusters=False))
    reference = fe.Sketch.reference(ref, features=100, frequencies="iid")
    difference = fe.Sketch.of(gen, reference.feature_map).covariance - reference.covariance
    eigenvalues = torch.linalg.eigvalsh(difference.double())
    assert 0.4 < float((eigenvalues > 0).double().mean()) < 0.6
    assert not significant(fe.compare(gen, reference, settings).directions, 0.05)


@pytest.mark.parametrize("method", [fe.Finc(rotation=None, clusters=False), fe.Ken()], ids=["finc", "ken"])
def test_algorithm_1_lists_every_positive_eigenvalue_that_is_asked_for_with_its_p_value(method):
    rng = np.random.default_rng(0)
    gen, ref = (rng.standard_normal((n, 20)).astype(np.float32) for n in (250, 200))
    gen[:50] += 2
    for modes in (10, 200):
        found = fe.compare(gen, ref, method=method, features=60, frequencies="iid", modes=modes)
        difference = fe.Sketch.of(gen, found.feature_map).covariance - fe.Sketch.of(ref, found.feature_map).covariance
        eigenvalues = torch.linalg.eigvalsh(difference.double()).flip(0).cpu()
        positive = eigenvalues[eigenvalues > 1e-6]
        if method.name == "ken":  # whose eigenvalues are those of the kernel itself
            assert len(found.over) == 10 if modes == 10 else len(found.over) > 100
        else:
            listed = [mode.fitted_excess for mode in found.over]
            np.testing.assert_allclose(listed, positive[:modes], atol=1e-6)
        assert found.over[0].p_value < 0.05 < np.median([mode.p_value for mode in found.over])


@pytest.mark.long  # at one size: the test above
@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(6))
def test_algorithm_1_lists_as_many_eigenvalues_as_are_asked_for_whatever_the_sizes(seed):
    """Directions share their best samples once there are many of them, and each has an id of its own."""
    rng = np.random.default_rng(seed)
    n, m, width, features = (int(rng.integers(*ends)) for ends in ((50, 700), (50, 700), (2, 9), (100, 160)))
    gen, ref = (rng.standard_normal((rows, width)).astype(np.float32) for rows in (n, m))
    method = fe.Finc(rotation=None, clusters=False)
    found = fe.compare(gen, ref, method=method, features=features, modes=200)
    difference = fe.Sketch.of(gen, found.feature_map).covariance - fe.Sketch.of(ref, found.feature_map).covariance
    eigenvalues = torch.linalg.eigvalsh(difference.double())
    for modes, positive in ((found.over, eigenvalues > 1e-6), (found.under, eigenvalues < -1e-6)):
        assert abs(len(modes) - int(positive.sum())) <= 2  # some lie at 1e-6, within the rounding of float32
    assert len({mode.id for mode in found.directions}) == len(found.directions) > 50


def test_a_rho_near_0_gives_the_most_common_modes_of_one_set_alone():
    """Figure 11: C_X alone. Kinds with 50, 25, 15 and 10 % of the set are its modes, in this order."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(4, 2000, p=[0.5, 0.25, 0.15, 0.1])
    gen = (20 * np.eye(4)[kinds] + rng.standard_normal((2000, 4))).astype(np.float32)
    method = fe.Finc(rotation=None, clusters=False)
    found = fe.compare(gen, gen[::4] * 0.1, method=method, features=500, sigma=5.0, rho=1e-6, modes=4).over
    best = [np.bincount(kinds[[int(name) for name in mode.typical("gen")[:20]]]) for mode in found]
    assert [int(one.argmax()) for one in best] == [0, 1, 2, 3] and min(int(one.max()) for one in best) == 20
    np.testing.assert_array_less(
        [mode.fitted_excess for mode in found[1:]], [mode.fitted_excess for mode in found[:-1]]
    )


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
