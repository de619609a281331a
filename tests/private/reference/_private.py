"""Private sketches of the tests."""

from unittest import mock

import torch

from finc_eval.privacy import release_sketch
from finc_eval.private.dp import gaussian_mechanism

DELTA = 1e-5


def sketch_of(private, public, epsilon=1.0, **rest):
    return release_sketch(private, public=public, epsilon=epsilon, delta=DELTA, ledger=None, **rest)


def sketch_of_known_noise(private, public, seed=0, **rest):
    """Release a sketch whose noise is the same in each run, for tests of verdicts and ranks."""
    generator = torch.Generator().manual_seed(seed)
    normal = lambda shape: torch.randn(shape, generator=generator, dtype=torch.double)  # noqa: E731
    with mock.patch.object(gaussian_mechanism, "secure_normal", normal):
        return sketch_of(private, public, **rest)
