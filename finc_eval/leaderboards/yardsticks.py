"""Yardsticks of a board: what samples of the reference itself get by each share instead of a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.leaderboards.columns import share_columns
from finc_eval.leaderboards.shares import estimate_unmatched
from finc_eval.measures.inputs import split_reference
from finc_eval.partitions.counts import count, tally_sets
from finc_eval.partitions.kind_tree import KindTree


class Yardsticks:
    """Shares of a part of the reference against the rest of it, by the number of samples of a model.

    The part is as large as the model, and at most half of the reference (`split_reference`). `kinds` has no sample of
    the reference far from it.
    """

    def __init__(self, kinds: KindTree, ref: Embeddings, seed: int, run: Run) -> None:
        self._kinds, self._ref, self._seed, self._run = kinds, ref, seed, replace(run, progress=silent)
        self._found: dict[int, dict[str, float]] = {}

    def shares(self, n: int) -> dict[str, float]:
        """Return the shares for a model of n samples by key, without those that so few samples do not have."""
        n = min(n, self._ref.n // 2)
        if n not in self._found:
            self._found[n] = self._measure(n)
        return self._found[n]

    def _measure(self, n: int) -> dict[str, float]:
        try:
            parts = split_reference(self._ref, n)
        except DataError:
            return {}
        part, rest = tally_sets(
            {str(place): count(one, self._kinds, run=self._run).counts for place, one in enumerate(parts)}
        ).values()
        unmatched = estimate_unmatched(part.effective(), rest.effective(), self._seed)
        found = {"unmatched": unmatched.value}
        for column in share_columns({"": [part]}, rest, ()):
            for one in column.estimates.values():
                found[column.key] = one.value
        return {key: float(np.clip(value, 0, 1)) for key, value in found.items()}
