"""The eigenvalues of a comparison are those of the published algorithm."""

import numpy as np

import finc_eval as fe


def algorithm_1(x, y, omega, rho):
    """Return the eigenvalues of Algorithm 1 of FINC's paper in float64: outer products of all features, summed."""

    def covariance(rows):
        total = np.zeros((2 * omega.shape[1],) * 2)
        for batch in np.array_split(rows.astype(np.float64), len(rows) // 250):
            phases = batch @ omega
            features = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / np.sqrt(omega.shape[1])
            total += np.einsum("ij,ik->jk", features, features, optimize=True)
        return total / len(rows)

    return np.linalg.eigvalsh(covariance(x) - rho * covariance(y))


def test_eigenvalues_of_both_roles_are_those_of_the_papers_algorithm(digits):
    """2 000 with 2 000 digits, 1 000 frequencies as the paper draws them, to 1e-5."""
    gen, ref = digits[0][:2000] * 0.7, digits[0][2000:]
    for rho in (1.0, 2.0):
        options = {"rho": rho, "features": 1000, "frequencies": "iid"}
        found = fe.compare(gen, ref, method=fe.Finc(rotation=None, clusters=False), **options)
        feature_map = fe.Sketch.reference(ref, features=1000, frequencies="iid").feature_map
        omega = feature_map.frequencies.numpy().astype(np.float64)
        for ours, sets in ((found.spectrum.over, (gen, ref)), (found.spectrum.under, (ref, gen))):
            np.testing.assert_allclose(ours[:10], algorithm_1(*sets, omega, rho)[::-1][:10], rtol=0, atol=1e-5)
