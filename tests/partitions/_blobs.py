"""Samples of separate blobs."""

import numpy as np

CENTERS = np.random.default_rng(0).normal(0, 1, (22, 80))


def blobs(n: int, seed: int, **planted: int) -> np.ndarray:
    """Samples of 20 blobs; the first `novel` of them are of a blob of their own, the next `other` of another one."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 20, n)
    novel, other = planted.get("novel", 0), planted.get("other", 0)
    which[:novel], which[novel : novel + other] = 20, 21
    return (CENTERS[which] + rng.normal(0, 1, (n, 80))).astype(np.float32)
