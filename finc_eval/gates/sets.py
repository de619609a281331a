"""The sets of a gate, opened together: the new release, its baselines and the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.partitions.sets import open_sets

GEN, BASELINE, ANCHOR, REF = "gen", "baseline", "anchor", "ref"
"""Labels of the sets; with replicates, the baselines are called baseline-1, baseline-2 …"""


@dataclass(frozen=True)
class GateSets:
    """The sets of a gate.

    Attributes:
        gen: the new release.
        baselines: the baseline, or its replicates, by label.
        anchor: an old baseline, which slow drift is seen against; None without one.
        ref: the reference.
        sources: what the caller passed, by label.
        extractor: how to embed samples.
        infos: descriptions, by label.
        warnings: what to know about the sets.
    """

    gen: Embeddings
    baselines: dict[str, Embeddings]
    anchor: Embeddings | None
    ref: Embeddings
    sources: dict[str, object]
    extractor: AnyExtractor
    infos: dict[str, SetInfo]
    warnings: tuple[str, ...]

    @property
    def all(self) -> dict[str, Embeddings]:
        """All sets by label."""
        anchor = {} if self.anchor is None else {ANCHOR: self.anchor}
        return {GEN: self.gen, **self.baselines, **anchor, REF: self.ref}

    def against_anchor(self) -> GateSets | None:
        """Return the same sets with the anchor as the baseline; None without one."""
        return None if self.anchor is None else replace(self, baselines={ANCHOR: self.anchor}, anchor=None)

    def rule(self, name: str) -> str:
        """Return the name of a rule: of one against the anchor, it says so."""
        return f"{name}-{ANCHOR}" if ANCHOR in self.baselines else name

    @classmethod
    def open(
        cls,
        gen: object,
        baselines: Sequence[object],
        ref: object,
        groups: str | None,
        run: Run,
        *,
        anchor: object | None = None,
        extractor: AnyExtractor = None,
    ) -> GateSets:
        """Open the sets, and check that they are of one extractor."""
        if not baselines:
            raise UsageError("the gate needs a baseline to compare with: pass the release before")
        labels = [BASELINE] if len(baselines) == 1 else [f"{BASELINE}-{i}" for i in range(1, len(baselines) + 1)]
        old = {} if anchor is None else {ANCHOR: anchor}
        sources = {GEN: gen, **dict(zip(labels, baselines, strict=True)), **old, REF: ref}
        opened, warnings = open_sets(sources, groups, run, extractor)
        embeddings = {label: one.embeddings for label, one in opened.items()}
        return cls(
            gen=embeddings[GEN],
            baselines={label: embeddings[label] for label in labels},
            anchor=embeddings.get(ANCHOR),
            ref=embeddings[REF],
            sources=sources,
            extractor=extractor,
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
