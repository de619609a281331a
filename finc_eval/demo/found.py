"""Planted against found: how well the modes of a comparison show a difference that is known to be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.comparison.compare import compare
from finc_eval.comparison.modes import Mode
from finc_eval.comparison.result import Comparison
from finc_eval.core.progress import Progress, silent
from finc_eval.core.run import Run

BEST = 50
FOUND_PURITY = 0.8
"""A planted kind of digit is found when more than this share of some mode's 50 best samples are of it."""

MAJORITY = 0.5
"""The same for photographs and videos, among whose classes some look alike, such as convertibles and sports cars."""


@dataclass(frozen=True)
class Planted:
    """One planted difference, and what the comparison says of it.

    Attributes:
        what: the difference, in words.
        share_gen, share_ref: the true share of the kind in each set.
        mode: the mode that shows it, the purest one; None when none does.
        purity: the share of the purest mode's 50 best samples that are of the kind.
        recall: the share of the kind's samples that are among as many best samples of that mode.
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
        planted: the differences against what was found.
        report: the page; None where there are no pictures to show.
    """

    title: str
    comparison: Comparison
    planted: tuple[Planted, ...]
    report: Path | None


def planted_kind(
    what: str,
    kind: str,
    modes: Sequence[Mode],
    scores: NDArray[np.float32],
    own: Sequence[str],
    shares: Shares,
    least: float = FOUND_PURITY,
) -> Planted:
    """Look for one kind of sample among the modes.

    Args:
        what: the difference, in words.
        kind: the kind that was planted.
        modes: those that might show it.
        scores: of the samples of the set that has more of the kind, (n, modes).
        own: the kinds of those samples, (n,).
        shares: of every kind, in the generated and in the reference set.
        least: the purity from which the kind counts as found.
    """
    is_kind = np.array([one == kind for one in own])
    best = np.argsort(-scores, axis=0, kind="stable")
    purities = [float(is_kind[column[:BEST]].mean()) for column in best.T]
    purest = int(np.argmax(purities)) if purities else None
    return Planted(
        what=what,
        share_gen=shares[0].get(kind, 0.0),
        share_ref=shares[1].get(kind, 0.0),
        mode=modes[purest] if purest is not None and purities[purest] > least else None,
        purity=0.0 if purest is None else purities[purest],
        recall=0.0 if purest is None else float(is_kind[best[: is_kind.sum(), purest]].mean()),
    )


Shares = tuple[dict[str, float], dict[str, float]]


def shares_of(gen: Sequence[str], ref: Sequence[str]) -> Shares:
    """The share of every kind in each set."""
    return _shares(gen), _shares(ref)


def _shares(kinds: Sequence[str]) -> dict[str, float]:
    names, counts = np.unique(np.array(kinds), return_counts=True)
    return dict(zip(names.tolist(), (counts / len(kinds)).tolist(), strict=True))


def held_out_experiment(
    title: str,
    gen: object,
    ref: object,
    kinds: tuple[Sequence[str], Sequence[str]],
    report: Path | None,
    progress: Progress = silent,
) -> Experiment:
    """Compare two sets of which the second lacks some kinds of the first, and look for those.

    Args:
        title: what is compared.
        gen: the generated set, as `compare` takes it.
        ref: the reference set.
        kinds: of the samples of both.
        report: where the page goes; None for none.
        progress: called with (stage, done, total).
    """
    shares = shares_of(*kinds)
    held_out = sorted(set(shares[0]) - set(shares[1]))
    comparison = compare(gen, ref, run=Run(progress=progress))
    scores = comparison.score(gen)
    planted = tuple(
        planted_kind(f"{kind}, held out of the reference", kind, comparison.over, scores, kinds[0], shares, MAJORITY)
        for kind in held_out
    )
    return Experiment(title, comparison, planted, report and comparison.to_html(report))
