"""Two small sets of real digits, for examples and first steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.demo.planted import shipped_digits

Embeddings = NDArray[np.float32]


def example_sets(n: int = 500) -> tuple[Embeddings, Embeddings]:
    """Return a generated and a reference set of digits, as pixels in [0, 1].

    The generated set has no zeros and about four times as many ones; the two sets have no image in common.

    Args:
        n: number of samples of each set, at most 1000.

    Returns:
        Two arrays of shape (n, 784).

    Example:
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> gen.shape
        (300, 784)
    """
    images, labels = shipped_digits()
    rows = images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
    rng = np.random.default_rng(0)
    ref, rest = np.split(rng.permutation(len(rows)), [n])
    weights = np.choose(labels[rest].clip(0, 2), [0.0, 4.0, 1.0])
    gen = rng.choice(rest, n, replace=False, p=weights / weights.sum())
    return rows[gen], rows[ref]
