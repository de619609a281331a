"""The sets of a gate, opened together: the new release, its baselines and the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.partitions.sets import open_sets

GEN, BASELINE, REF = "gen", "baseline", "ref"
"""Labels of the sets; with replicates, the baselines are called baseline-1, baseline-2 …"""


@dataclass(frozen=True)
class GateSets:
    """The sets of a gate.

    Attributes:
        gen: the new release.
        baselines: the baseline, or its replicates, by label.
        ref: the reference.
        sources: what the caller passed, by label.
        infos: descriptions, by label.
        warnings: what to know about the sets.
    """

    gen: Embeddings
    baselines: dict[str, Embeddings]
    ref: Embeddings
    sources: dict[str, object]
    infos: dict[str, SetInfo]
    warnings: tuple[str, ...]

    @property
    def all(self) -> dict[str, Embeddings]:
        """All sets by label."""
        return {GEN: self.gen, **self.baselines, REF: self.ref}

    @classmethod
    def open(cls, gen: object, baselines: Sequence[object], ref: object, groups: str | None, run: Run) -> GateSets:
        """Open the sets, and check that they are of one extractor."""
        if not baselines:
            raise UsageError("the gate needs a baseline to compare with: pass the release before")
        labels = [BASELINE] if len(baselines) == 1 else [f"{BASELINE}-{i}" for i in range(1, len(baselines) + 1)]
        sources = {GEN: gen, **dict(zip(labels, baselines, strict=True)), REF: ref}
        opened, warnings = open_sets(sources, groups, run)
        embeddings = {label: one.embeddings for label, one in opened.items()}
        return cls(
            gen=embeddings[GEN],
            baselines={label: embeddings[label] for label in labels},
            ref=embeddings[REF],
            sources=sources,
            infos={label: one.info() for label, one in opened.items()},
            warnings=warnings,
        )


def mean_group(embeddings: Embeddings) -> float:
    """Return Σ m² / n over groups of m samples: how much less than independent ones they tell at worst; 1 without."""
    groups = embeddings.group_hashes()
    if groups is None:
        return 1.0
    sizes = np.unique(groups, return_counts=True)[1]
    return float(np.square(sizes).sum() / sizes.sum())
