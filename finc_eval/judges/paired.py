"""Mean scores of models over prompts, paired where models share them, with their joint error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.numerics.inference import least_variance

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIRED_FROM = 0.5
"""Part of the prompts of the model with most of them that all models must have: then means are over these prompts.

With the part c of the prompts, paired differences are more exact than means of all prompts if prompts make more than
1 − c of the variance: half of it, or more."""


@dataclass(frozen=True, eq=False)
class Means:
    """Mean scores of p models by one judge.

    Each mean is an `Estimate` (`leaderboards.judged`); what it is not is in the table of all models and prompts.
    """

    models: tuple[str, ...]
    values: Array  # mean over prompts of the mean of each prompt's samples, shape (p,)
    influences: Array  # influence of each prompt, shape (p, b); 0 where a model lacks the prompt
    degrees: float  # degrees of freedom of the errors: prompts of the model with the fewest, minus 1
    prompts: tuple[int, ...]  # number of prompts behind the mean of each model
    is_paired: bool  # whether all means are over the same prompts
    table: Array  # mean score of each model and prompt, shape (p, b); NaN where a model lacks the prompt
    within: float  # mean variance of samples of one prompt and model; NaN if no prompt has two samples
    seeds: float  # mean number of samples of a prompt and model

    @property
    def covariance(self) -> Array:
        """Covariance of the means, shape (p, p)."""
        return np.asarray(self.influences @ self.influences.T)


def mean_scores(values: Mapping[str, Array], prompts: Mapping[str, Sequence[str]]) -> Means:
    """Return the means of models over prompts.

    Args:
        values: scores of the samples of each model, shape (n,), finite.
        prompts: prompt of each of these samples.
    """
    models = tuple(values)
    names = sorted({prompt for texts in prompts.values() for prompt in texts})
    number = {name: place for place, name in enumerate(names)}
    table = np.full((len(models), len(names)), np.nan)
    squares, degrees, sizes = 0.0, 0, []
    for place, model in enumerate(models):
        block = np.array([number[prompt] for prompt in prompts[model]], np.int64)
        count = np.bincount(block, minlength=len(names))
        total = np.bincount(block, values[model], minlength=len(names))
        has = count > 0
        table[place, has] = total[has] / count[has]
        squares += float(((values[model] - table[place, block]) ** 2).sum())
        degrees += int((count[has] - 1).sum())
        sizes.append(float(count[has].mean()))
    common = np.isfinite(table).all(0)
    most = int(np.isfinite(table).sum(1).max())
    is_paired = len(models) > 1 and common.sum() >= max(PAIRED_FROM * most, 2)  # two prompts have an interval
    kept = np.isfinite(table) & (common | (not is_paired))
    counts = kept.sum(1)
    means = np.where(kept, table, 0).sum(1) / counts
    free = np.maximum(counts - 1, 1)
    influences = np.where(kept, table - means[:, None], 0) / np.sqrt(counts * free)[:, None]
    return Means(
        models=models,
        values=means,
        influences=influences,
        degrees=float(max(counts.min() - 1, 1)),
        prompts=tuple(counts.tolist()),
        is_paired=bool(is_paired),
        table=np.where(kept, table, np.nan),
        within=squares / degrees if degrees else float("nan"),
        seeds=float(np.mean(sizes)),
    )


def floor_of_shares(means: Means) -> Array:
    """Return the least variance of each mean of zeros and ones, shape (p,); 0 for any other scores.

    Only a share of 0 or 1 has one: the variance of others is part of the joint error of all models.
    """
    known = np.isfinite(means.table)
    if not np.isin(means.table[known], (0.0, 1.0)).all():
        return np.zeros(len(means.values))
    is_sure = np.isin(means.values, (0.0, 1.0))
    rows = zip(means.table, known, is_sure, strict=True)
    return np.array([least_variance(row[has], (0.0, 1.0)) if sure else 0.0 for row, has, sure in rows])
