"""Yardsticks of a board: what samples of the reference's own law get by each share instead of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.leaderboards.columns import RULES, too_few
from finc_eval.leaderboards.shares import estimate_unmatched, share_estimates
from finc_eval.measures.inputs import split_reference
from finc_eval.partitions.counts import Counter, Counts, tally_sets
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.settings import MAIN_LEVEL
from finc_eval.partitions.tests import EffectiveCounts

SPLITS = 20
"""Random splits of the reference whose mean is a yardstick. `unmatched` of one split of 400 digits into halves was 0 to
11 %, the mean of 20 splits has a third of a point as standard error."""


class Yardsticks:
    """Shares of parts of the reference against its rest, by the number of samples of a model.

    A part is as large as the model, and at most half of the reference (`split_reference`). The kinds are those of the
    reference alone, which do not know the parts. Two samples of one law differ by chance, in proportion to the error of
    the shares of their kinds: `unmatched` is brought to the numbers of the model and of the whole reference by it.

    Measured by 40 draws each of 10 or 40 kinds of one share, and of 60 kinds of shares like 1/k: references of 400
    samples with models of 100, 400 and 1,600, and of 1,000 with 1,000. Fresh samples got 1.2 to 3.1 % on average (with
    standard errors of 0.3 to 0.8), and the yardstick 0.7 points less to 1.2 more. Without the factor, it got up to 2.5
    more, where a model is larger than half of the reference.
    """

    def __init__(self, ref: Embeddings, seed: int, run: Run) -> None:
        self._ref, self._seed, self._run = ref, seed, replace(run, progress=silent)
        self._cells: NDArray[np.int32] | None = None
        self._kinds = 0
        self._found: dict[int, dict[str, float]] = {}

    def shares(self, n: int) -> dict[str, float]:
        """Return the shares for a model of n samples by key, without those that so few samples do not have."""
        if n not in self._found:
            self._found[n] = self._measure(n)
        return self._found[n]

    def _measure(self, n: int) -> dict[str, float]:
        splits = [self._shares_of(*pair) for pair in self._splits(n)]
        m, part = self._ref.n, min(n, self._ref.n // 2)
        keys = dict.fromkeys(key for split in splits for key in split)
        found = {key: float(np.mean([split[key] for split in splits if key in split])) for key in keys}
        if "unmatched" in found:
            found["unmatched"] *= ((1 / n + 1 / m) / (1 / part + 1 / (m - part))) ** 0.5
        return {key: float(np.clip(value, 0, 1)) for key, value in found.items()}

    def _splits(self, n: int) -> Iterator[tuple[EffectiveCounts, EffectiveCounts]]:
        """Yield the counts of both parts of each split; nothing for a reference that is too small."""
        groups = self._ref.group_hashes()
        for number in range(SPLITS):
            try:
                parts = split_reference(self._ref, n, seed=number)
            except DataError:
                return
            cells = self._assigned()
            part, rest = tally_sets(
                {
                    str(place): Counts.of(self._kinds, cells[half.rows], None if groups is None else groups[half.rows])
                    for place, half in enumerate(parts)
                }
            ).values()
            yield part.effective(), rest.effective()

    def _assigned(self) -> NDArray[np.int32]:
        """Return the kind of each sample of the reference, which is divided once."""
        if self._cells is None:
            kinds = KindTree.of_sets([self._ref], self._seed, self._run).pruned(MAIN_LEVEL)
            counter = Counter(kinds, run=self._run)
            counter.of(self._ref)
            self._cells, self._kinds = counter.kinds(), kinds.tree.leaves
        return self._cells

    def _shares_of(self, part: EffectiveCounts, rest: EffectiveCounts) -> dict[str, float]:
        found = {"unmatched": estimate_unmatched(part, rest, self._seed).value}
        if too_few([part]) is None:
            for key, rule in RULES.items():
                (estimate,) = share_estimates(rule, [part.members], rest.members)
                found[key] = estimate.value
        return found
