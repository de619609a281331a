"""Releases of a generator of 20 kinds in 16 dimensions."""

import numpy as np

CENTERS = np.random.default_rng(0).normal(0, 1.5, (22, 16))


def release(n: int, seed: int, *, lost: int = 0, part: float = 1.0, new: float = 0.0, **metadata) -> np.ndarray:
    """Samples of 20 kinds; the first `lost` of them have lost a part, and a new kind has a share."""
    rng = np.random.default_rng(seed)
    weights = np.r_[np.ones(20), 0.0, 0.0]
    weights[:lost] *= 1 - part
    weights[20] = new / (1 - new) * weights.sum()
    kinds = rng.choice(22, n, p=weights / weights.sum())
    return (CENTERS[kinds] + 0.5 * rng.normal(0, 1, (n, 16))).astype(np.float32)
