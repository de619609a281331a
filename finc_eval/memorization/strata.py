"""Strata of an audit: which kinds of the training set are memorized, with a test of copying in each.

The kinds are found from training samples only, so fresh and generated samples of a stratum compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.memorization.copying import MIN_CELL_SAMPLES, CellTest
from finc_eval.memorization.settings import STRATA_PART
from finc_eval.memorization.tails import tail_p_value
from finc_eval.numerics.families import holm
from finc_eval.partitions.answer import kind_id
from finc_eval.partitions.counts import Examples, count
from finc_eval.partitions.kind import names_of_unions
from finc_eval.partitions.kind_tree import KindTree


@dataclass(frozen=True)
class Stratum(Record):
    """Copying among the samples of one kind of the training set.

    Attributes:
        id: id of the kind.
        name: what most of its training samples have in common; None without significant evidence.
        examples: ids of the training samples that are most typical of it.
        generated, fresh: number of its samples in the generated set and in the holdout.
        suspicious: number of generated samples as near to the training set as the nearest hundredth of all fresh ones.
        fresh_suspicious: number of fresh samples as near.
        z: Z of its distances (a cell of C_T), below 0 if generated samples are nearer; None with too few samples.
        p_value: p-value of "no nearer than fresh samples of this stratum", by the exact tail test, adjusted for
            everything that the audit may find.
        against_holdout: p-value of "its most suspicious samples are as often nearer to the holdout", where copying is
            found; None elsewhere.
    """

    id: str
    name: str | None
    examples: tuple[str, ...]
    generated: int
    fresh: int
    suspicious: int
    fresh_suspicious: int
    z: float | None
    p_value: float
    against_holdout: float | None = None

    def __post_init__(self) -> None:
        if min(self.generated, self.fresh) < 1:
            raise DataError(f"the kind {self.id!r:.100} has no sample of a set, and is compared")


@dataclass(frozen=True, eq=False)
class TrainingKinds:
    """At most twelve kinds of the training set."""

    tree: KindTree
    examples: tuple[Examples, ...]
    names: tuple[str | None, ...]

    @classmethod
    def of(cls, train: Embeddings, seed: int, run: Run) -> TrainingKinds:
        """Divide a training set into kinds, and name them."""
        # 12: maximum number of strata.
        tree = KindTree.of_sets([train], seed, run).pruned(12)
        counted, kinds = count(train, tree, run=run), {leaf: [leaf] for leaf in range(tree.tree.leaves)}
        names = names_of_unions(kinds, {"train": counted}, {"train": train})
        examples = tuple(counted.examples(train, kind) for kind in kinds)
        return cls(tree, examples, tuple(names[kind].text for kind in kinds))

    def assign(self, samples: Embeddings, run: Run) -> NDArray[np.int64]:
        """Return the number of the kind of each sample, shape (n,)."""
        parts = [self.tree.assign(batch.rows, run)[0] for batch in samples.batches(run.portion)]
        return np.concatenate(parts).astype(np.int64)


def copying_by_stratum(
    kinds: TrainingKinds,
    cells: NDArray[np.int64],
    fresh_cells: NDArray[np.int64],
    calibrated: NDArray[np.float64],
    fresh_calibrated: NDArray[np.float64],
    threshold: float,
    test: CellTest,
) -> tuple[Stratum, ...]:
    """Test each stratum with enough samples for copying, by the cells and distances (n,); most suspicious first."""
    strata = []
    for cell, (name, examples) in enumerate(zip(kinds.names, kinds.examples, strict=True)):
        ours, fresh = calibrated[cells == cell], fresh_calibrated[fresh_cells == cell]
        if min(len(ours), len(fresh)) < MIN_CELL_SAMPLES:
            continue
        strata.append(
            Stratum(
                id=kind_id(cell),
                name=name,
                # 8: number of training samples that are kept as examples of a stratum.
                examples=examples.top_ids[:8],
                generated=len(ours),
                fresh=len(fresh),
                suspicious=int((ours <= threshold).sum()),
                fresh_suspicious=int((fresh <= threshold).sum()),
                z=test.by_cell[cell] if cell < len(test.by_cell) else None,
                p_value=tail_p_value(ours, fresh),
            )
        )
    adjusted = holm([stratum.p_value for stratum in strata], STRATA_PART).tolist()
    judged = [replace(stratum, p_value=p) for stratum, p in zip(strata, adjusted, strict=True)]
    return tuple(sorted(judged, key=lambda stratum: (stratum.p_value, -stratum.suspicious / stratum.generated)))
