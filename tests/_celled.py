"""Embeddings of made-up pictures with cells, in some of which a part is planted."""

import numpy as np

import finc_eval as fe
from finc_eval.embeddings.cells import Cells

GRID, PLACE, CHANNELS = 4, 6, 8  # windows of a side, number of the window with the part, and numbers of a window


class Celled(fe.EmbeddingSet):
    """Embeddings with cells."""

    cells_absent = ""

    def __init__(self, cells, *arguments, **given):
        super().__init__(*arguments, **given)
        self.values = cells

    @property
    def cells(self):
        return Cells(self.values, np.arange(self.n), "made-up")


def celled(seed, n=100, planted=0, like=None, **given):
    """Return pictures whose first ones have a part at `PLACE`; with `like`, they are nearly those of another seed."""
    own, shared = np.random.default_rng(seed), np.random.default_rng(seed if like is None else like)
    values = 20 * shared.normal(size=(n, GRID**2, CHANNELS)) + own.normal(size=(n, GRID**2, CHANNELS))
    values[:planted, PLACE, :4] += 120
    rows = shared.normal(size=(n, 6)) + 0.01 * own.normal(size=(n, 6))
    ids = given.pop("ids", [f"{seed if like is None else like}-{number}" for number in range(n)])
    return Celled(values.clip(-127, 127).astype(np.int8), rows.astype(np.float32), ids=ids, **given)
