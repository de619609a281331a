"""Cells of made-up pictures, with a part planted at one window."""

import numpy as np

from finc_eval.local_evidence.inputs import LocalInput

WINDOW = 7  # place of the planted part in a grid of 4 × 4


def cells(rng, n, planted=0, by=120, channels=8):
    """Return cells (n, 16, channels) whose first pictures differ at `WINDOW` in four numbers."""
    values = rng.normal(0, 20, (n, 16, channels))
    values[:planted, WINDOW, :4] += by
    return values.clip(-127, 127).astype(np.int8)


def likeness(rng, n, planted=0):
    values = rng.normal(0, 0.1, (n, 5)).astype(np.float32)
    values[:planted, 0] = 0.9
    return values


def embedded(rng, n, copies=None):
    """Return embeddings, shape (n, 16); the first rows nearly equal the rows of `copies`."""
    rows = rng.normal(size=(n, 16)).astype(np.float32)
    if copies is not None:
        rows[: len(copies)] = copies + 0.01 * rng.normal(size=copies.shape)
    return rows


def pictures(rng, n, planted=0, **given):
    return LocalInput(cells=cells(rng, n, planted), **given)
