"""`Weighting`: how a benchmark makes one number of the scores of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Weighting:
    """Rule of a benchmark: the mean over tasks of the weighted means of samples.

    Attributes:
        rule: name of the rule, such as "VBench by frames".
        weights: weight of each of n samples within its task, shape (n,), above 0.
        tasks: task of each sample, n of them; () for a single task.
        bounds: least and largest number that is possible.
        lacks: why the samples do not give the number that the file states; "" if they do.
    """

    rule: str
    weights: Array
    tasks: tuple[str, ...] = ()
    bounds: tuple[float, float] = (-inf, inf)
    lacks: str = ""

    @classmethod
    def plain(cls, rule: str, n: int, bounds: tuple[float, float] = (-inf, inf)) -> Weighting:
        """Return the mean of n samples."""
        return cls(rule, np.ones(n), bounds=bounds)

    def at(self, rows: Integers) -> Weighting:
        """Return the rule for some of the samples, shape (k,)."""
        return replace(self, weights=self.weights[rows], tasks=tuple(self.tasks[row] for row in rows if self.tasks))

    @property
    def task_numbers(self) -> Integers:
        """Number of the task of each sample, from 0, shape (n,)."""
        if not self.tasks:
            return np.zeros(len(self.weights), np.int64)
        return np.unique(np.array(self.tasks, object).astype(str), return_inverse=True)[1].astype(np.int64)

    def number(self, scores: Array) -> float:
        """Return the number of scores, shape (n,); NaN is a missing score, and all missing give NaN.

        Example:
            >>> import numpy as np
            >>> from finc_eval.judges.weighting import Weighting
            >>> tasks = ("counting", "counting", "counting", "colors")
            >>> Weighting("GenEval", np.ones(4), tasks).number(np.array([1.0, 1.0, 1.0, 0.0]))
            0.5
        """
        known = np.isfinite(scores)
        if not known.any():
            return nan
        _, task = np.unique(self.task_numbers[known], return_inverse=True)
        weights = self.weights[known]
        sums = np.bincount(task, weights * scores[known]) / np.bincount(task, weights)
        return float(sums.mean())

    @staticmethod
    def joined(parts: Sequence[Weighting], rows: Sequence[Integers], n: int) -> Weighting | None:
        """Return the rule of n samples that several files have parts of; None if the rules of the parts differ.

        `rows` has the places of the samples of each part among all.
        """
        rule, bounds = parts[0].rule, parts[0].bounds
        if any((part.rule, part.bounds, bool(part.tasks)) != (rule, bounds, bool(parts[0].tasks)) for part in parts):
            return None
        weights, tasks = np.ones(n), [""] * n
        for part, places in zip(parts, rows, strict=True):
            weights[places] = part.weights
            for place, task in zip(places.tolist(), part.tasks, strict=False):
                tasks[place] = task
        return Weighting(
            rule,
            weights,
            tuple(tasks) if parts[0].tasks else (),
            bounds,
            next((part.lacks for part in parts if part.lacks), ""),
        )


def bounds_of(values: Mapping[str, Array], rules: Mapping[str, Weighting]) -> tuple[float, float]:
    """Return between which numbers means of scores lie: answers that are right or wrong, or as all rules say."""
    every = np.concatenate([np.zeros(0), *values.values()])
    if not len(every):
        return -inf, inf
    if np.isin(every, (0.0, 1.0)).all():
        return 0.0, 1.0
    bounds = {rule.bounds for rule in rules.values()}
    low, high = bounds.pop() if len(bounds) == 1 else (-inf, inf)
    return (low, high) if ((every >= low) & (every <= high)).all() else (-inf, inf)
