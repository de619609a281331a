"""Planted against found: how well the kinds of a comparison show a difference that is known to be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.result import Comparison
from finc_eval.partitions.kind import Kind

FOUND_PURITY = 0.8
"""A planted kind is found when at least this share of the samples of some kind that differs are of it."""

Shares = tuple[dict[str, float], dict[str, float]]
"""The share of each planted kind in the generated and in the reference set."""


@dataclass(frozen=True)
class Planted:
    """One planted difference, and what the comparison says about it.

    Attributes:
        what: the difference, in words.
        share_gen, share_ref: true share of the planted kind in each set.
        kind: of the kinds that differ and whose samples are mostly of the planted kind, the one that has most of its
            samples and fewest others; None without any.
        purity: share of the samples of that kind that are of the planted one, in the set that has more.
        recall: share of the samples of the planted kind, in that set, that are of that kind.
    """

    what: str
    share_gen: float
    share_ref: float
    kind: Kind | None
    purity: float
    recall: float


@dataclass(frozen=True)
class Experiment:
    """A comparison of two sets with planted differences.

    Attributes:
        title: what was compared.
        comparison: its result.
        planted: the planted differences, each with what was found.
        report: file of the page; None if the samples cannot be shown.
        copies: number of generated samples that are planted copies of reference samples.
    """

    title: str
    comparison: Comparison
    planted: tuple[Planted, ...]
    report: Path | None
    copies: int = 0


def find_planted(
    what: str, name: str, kinds: Sequence[Kind], places: NDArray[np.int64], names: Sequence[str], shares: Shares
) -> Planted:
    """Look for one planted kind among the kinds that differ.

    Args:
        what: the difference, in words.
        name: the kind that was planted.
        kinds: the kinds that differ.
        places: place among these of the kind of each sample of the set that has more of the planted kind, shape (n,);
            any other number for a sample of none.
        names: planted kinds of the same samples, n of them.
        shares: share of every planted kind in the generated and in the reference set.
    """
    is_planted = np.array([one == name for one in names])
    both = [int((is_planted & (places == place)).sum()) for place in range(len(kinds))]
    sizes = [int((places == place).sum()) for place in range(len(kinds))]
    shown = [place for place in range(len(kinds)) if sizes[place] and both[place] >= FOUND_PURITY * sizes[place]]
    best = max(shown, key=lambda place: both[place] / (sizes[place] + is_planted.sum() - both[place]), default=None)
    return Planted(
        what=what,
        share_gen=shares[0].get(name, 0.0),
        share_ref=shares[1].get(name, 0.0),
        kind=None if best is None else kinds[best],
        purity=0.0 if best is None else both[best] / sizes[best],
        recall=0.0 if best is None else both[best] / int(is_planted.sum()),
    )


def shares_of(gen: Sequence[str], ref: Sequence[str]) -> Shares:
    """Return the share of every planted kind in each set, from the names of their samples."""
    return _shares(gen), _shares(ref)


def _shares(kinds: Sequence[str]) -> dict[str, float]:
    names, counts = np.unique(np.array(kinds), return_counts=True)
    return dict(zip(names.tolist(), (counts / len(kinds)).tolist(), strict=True))
