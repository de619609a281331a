"""Bounds on waits and copies of a computation on a device, which do not grow with the number of batches."""

import numpy as np
from _portions import portions_of
from _simulated import simulated

import finc_eval as fe

N, SMALL_BATCH = 90, 30
MORE_BATCHES = N // SMALL_BATCH - 1

COPIES_PER_BATCH = 11
"""Copies to the device that a batch of one set may take: rows for the hashes, the sketch, the kinds of all, of the
pooled and of the kept samples, and the scores; the order of the folds, the folds, and two lists of the rows that the
bottom-k sample keeps. None of them is waited for."""


def mixture(seed, kinds, n=N):
    """Return samples of some of six kinds, shape (n, 8)."""
    centers, rng = 3 * np.random.default_rng(9).standard_normal((6, 8)), np.random.default_rng(seed)
    return (centers[rng.integers(0, kinds, n)] + rng.standard_normal((n, 8))).astype(np.float32)


def measured(call, batch=None):
    """Run a computation on a simulated device, in batches of this size; return its result and what crossed."""
    with portions_of(batch), simulated() as device:
        found = call(fe.Run(device="sim", batch_size=batch))
    assert device.host_indices == 0, f"indices of the host on tensors of the device:\n{device.by_place('host index')}"
    return found, device


def check_steady(call, *, waits, sets=2, copies=COPIES_PER_BATCH):
    """Check that a computation waits at most so often, and not more often when its batches are smaller.

    Return its result.
    """
    _, many = measured(call, SMALL_BATCH)
    found, one = measured(call)
    assert one.waits <= waits, f"{one.waits} waits, more than {waits}:\n{one.by_place()}"
    assert many.waits == one.waits, f"waits grow with batches:\n{many.by_place()}\nin one batch:\n{one.by_place()}"
    more = many.uploads - one.uploads
    assert more <= copies * sets * MORE_BATCHES, f"{more} more copies to the device:\n{many.by_place('to device')}"
    return found
