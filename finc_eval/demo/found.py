"""Planted against found: how well the modes of a comparison show a difference that is known to be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.modes import Mode
from finc_eval.comparison.result import Comparison

BEST_SAMPLES = 50
"""Number of a mode's best samples whose kinds decide whether it shows a planted kind."""

FOUND_PURITY = 0.8
"""A planted kind of digit is found when more than this share of some mode's 50 best samples are of it."""

Shares = tuple[dict[str, float], dict[str, float]]
"""The share of each kind in the generated and in the reference set."""


@dataclass(frozen=True)
class Planted:
    """One planted difference, and what the comparison says about it.

    Attributes:
        what: the difference, in words.
        share_gen, share_ref: true share of the kind in each set.
        mode: the purest mode, of several the one with the largest recall, if it is pure enough to show the difference;
            else None.
        purity: share of the purest mode's 50 best samples that are of the kind.
        recall: for a kind of n samples, the share of them that are among the n best samples of the purest mode.
    """

    what: str
    share_gen: float
    share_ref: float
    mode: Mode | None
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
    what: str,
    kind: str,
    modes: Sequence[Mode],
    scores: NDArray[np.float32],
    kinds: Sequence[str],
    shares: Shares,
    least: float = FOUND_PURITY,
) -> Planted:
    """Look for one planted kind of sample among the modes.

    Args:
        what: the difference, in words.
        kind: the kind that was planted.
        modes: the modes that might show it.
        scores: scores on these modes of the set that has more of the kind, shape (n, modes).
        kinds: kinds of the same samples, n of them.
        shares: share of every kind in the generated and in the reference set.
        least: purity above which the kind counts as found.
    """
    is_kind = np.array([one == kind for one in kinds])
    best = np.argsort(-scores, axis=0, kind="stable")
    purities, recalls = (is_kind[best[:n]].mean(0).tolist() for n in (BEST_SAMPLES, is_kind.sum()))
    purity, recall, purest = max(
        zip(purities, recalls, modes, strict=True), key=lambda one: one[:2], default=(0, 0, None)
    )
    return Planted(
        what=what,
        share_gen=shares[0].get(kind, 0.0),
        share_ref=shares[1].get(kind, 0.0),
        mode=purest if purity > least else None,
        purity=purity,
        recall=recall,
    )


def shares_of(gen: Sequence[str], ref: Sequence[str]) -> Shares:
    """Return the share of every kind in each set, from the kinds of their samples."""
    return _shares(gen), _shares(ref)


def _shares(kinds: Sequence[str]) -> dict[str, float]:
    names, counts = np.unique(np.array(kinds), return_counts=True)
    return dict(zip(names.tolist(), (counts / len(kinds)).tolist(), strict=True))
