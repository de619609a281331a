"""What FINC's paper says of eigenvalues, on digits."""

import torch

import finc_eval as fe


def test_half_of_the_eigenvalues_of_two_sets_of_one_source_are_positive_and_none_is_a_mode(digits):
    """The paper keeps every eigenvector with λ > 0 as a mode of the generated set."""
    gen, ref = digits[0][:1000], digits[0][1000:2000]
    settings = fe.Settings(features=100, frequencies="iid", method=fe.Finc(rotation=None, clusters=False))
    reference = fe.Sketch.reference(ref, features=100, frequencies="iid")
    difference = fe.Sketch.of(gen, reference.feature_map).covariance - reference.covariance
    eigenvalues = torch.linalg.eigvalsh(difference.double())
    assert 0.4 < float((eigenvalues > 0).double().mean()) < 0.6
    assert not fe.compare(gen, reference, settings).significant()
