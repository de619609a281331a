"""Planted against found: how well the modes of a comparison show a difference that is known to be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
        mode: among the modes that show the kind, the one whose members are most nearly the kind; None without any.
        purity: share of the 50 best samples of that mode that are of the kind; of the purest mode, where none shows it.
        precision: share of its members that are of the kind.
        recall: share of the samples of the kind that are its members.
    """

    what: str
    share_gen: float
    share_ref: float
    mode: Mode | None
    purity: float
    precision: float
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
    members: NDArray[np.bool_],
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
        members: which of these samples are members of the modes, shape (n, modes).
        kinds: kinds of the same samples, n of them.
        shares: share of every kind in the generated and in the reference set.
        least: purity above which the kind counts as found.
    """
    planted = Planted(what, shares[0].get(kind, 0.0), shares[1].get(kind, 0.0), None, 0.0, 0.0, 0.0)
    if not modes:
        return planted
    is_kind = np.array([one == kind for one in kinds])
    best = np.argsort(-scores, axis=0, kind="stable")[:BEST_SAMPLES]
    purity, inside, size = is_kind[best].mean(0), is_kind.astype(int) @ members, members.sum(0)
    shown = purity > least
    alike = inside / np.maximum(size + is_kind.sum(), 1)  # half of Dice's coefficient
    place = int(np.lexsort((purity, np.where(shown, alike, 0), shown))[-1])
    return replace(
        planted,
        mode=modes[place] if shown[place] else None,
        purity=float(purity[place]),
        precision=float(inside[place] / max(size[place], 1)),
        recall=float(inside[place] / max(is_kind.sum(), 1)),
    )


def shares_of(gen: Sequence[str], ref: Sequence[str]) -> Shares:
    """Return the share of every kind in each set, from the kinds of their samples."""
    return _shares(gen), _shares(ref)


def _shares(kinds: Sequence[str]) -> dict[str, float]:
    names, counts = np.unique(np.array(kinds), return_counts=True)
    return dict(zip(names.tolist(), (counts / len(kinds)).tolist(), strict=True))
