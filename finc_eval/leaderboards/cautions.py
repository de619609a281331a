"""`cautions`: what to know of the sets of a board together before trusting its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from finc_eval.core.words import join_words
from finc_eval.leaderboards.entry import Entry

ENOUGH_DEGREES = 4
"""Degrees of freedom of the noise of training from which on a board does not warn: three runs of each of two models."""


def cautions(entries: Sequence[Entry]) -> list[str]:
    """Return sentences on samples under several names, and on few training runs."""
    return [*_same_samples(entries), *_few_runs(entries)]


def _same_samples(entries: Sequence[Entry]) -> list[str]:
    names: dict[str, list[str]] = {}
    for one in entries:
        for run in one.runs:
            names.setdefault(run.info.digest, []).append(one.name)
    return [
        f"{join_words(found)} have the same samples: remove all but one, or pass the samples of each model"
        for found in names.values()
        if len(found) > 1
    ]


def _few_runs(entries: Sequence[Entry]) -> list[str]:
    repeated = [one for one in entries if len(one.runs) > 1]
    runs = sum(len(one.runs) for one in repeated)
    if not 0 < runs - len(repeated) < ENOUGH_DEGREES:
        return []
    return [
        f"the {runs} training runs of {join_words([one.name for one in repeated])} say little about the noise of "
        "training, so that all intervals and ranks are wide: three runs of each of two models are a good start"
    ]
