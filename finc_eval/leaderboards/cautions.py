"""`cautions`: what to know of the sets of a board together before trusting its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.words import counted, listed
from finc_eval.leaderboards.entry import Entry
from finc_eval.leaderboards.reference import BoardReference

ENOUGH_DEGREES = 4
"""Degrees of freedom of the noise of training from which on a board does not warn: three runs of each of two models."""


def cautions(reference: BoardReference, entries: Sequence[Entry]) -> list[str]:
    """Return sentences on few kinds, on samples under several names, and on few training runs."""
    return [*_few_kinds(reference, entries), *_same_samples(entries), *_few_runs(entries)]


def _few_kinds(reference: BoardReference, entries: Sequence[Entry]) -> list[str]:
    """Tell of a small set that leaves less than half of the kinds that were asked for."""
    kinds, asked = reference.partition.levels[0], reference.settings.level
    if 2 * kinds >= asked:
        return []
    sizes = {label: run.counted for one in entries for label, run in zip(one.labels(), one.runs, strict=True)}
    sizes[REFERENCE] = reference.tally.n
    small = min(sizes, key=lambda label: sizes[label])
    return [
        f"samples are divided into {kinds} kinds in place of {asked}, because a set is small ({small} has "
        f"{counted(sizes[small], 'sample')}): shares of all models miss what differs within a kind"
    ]


def _same_samples(entries: Sequence[Entry]) -> list[str]:
    names: dict[str, list[str]] = {}
    for one in entries:
        for run in one.runs:
            names.setdefault(run.info.digest, []).append(one.name)
    return [
        f"{listed(found)} have the same samples: remove all but one, or pass those of each model"
        for found in names.values()
        if len(found) > 1
    ]


def _few_runs(entries: Sequence[Entry]) -> list[str]:
    repeated = [one for one in entries if len(one.runs) > 1]
    runs = sum(len(one.runs) for one in repeated)
    if not 0 < runs - len(repeated) < ENOUGH_DEGREES:
        return []
    return [
        f"the {runs} training runs of {listed([one.name for one in repeated])} say little about the noise of training, "
        "so that all intervals and ranks are wide: three runs of each of two models are a good start"
    ]
