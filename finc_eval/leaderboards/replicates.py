"""Training runs of one model: one estimate, with the noise of sampling and of training apart.

The variance between the runs of a model is the sum of the variances of sampling and of training. Sampling noise is
known from the samples, and what is left is training noise. It is pooled over all models that were trained more than
once, and taken to be alike for all models of the board, also for models that were trained once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from finc_eval.leaderboards.estimates import Estimate


def training_noise(models: Mapping[str, Sequence[Estimate]]) -> tuple[float, float]:
    """Return the variance of a number between training runs, without sampling, and its degrees of freedom.

    Without a model of several runs it is 0, with infinite degrees: not measured.
    """
    between, degrees = 0.0, 0
    for runs in models.values():
        free = len(runs) - 1
        if free:
            sampled = float(np.mean([run.own_variance for run in runs]))
            between += free * (float(np.var([run.value for run in runs], ddof=1)) - sampled)
            degrees += free
    return (max(between / degrees, 0.0), float(degrees)) if degrees else (0.0, inf)


def over_runs(models: Mapping[str, Sequence[Estimate]]) -> dict[str, Estimate]:
    """Return one estimate per model: the mean of its training runs, which share the reference.

    Args:
        models: estimates of the runs of each model.
    """
    training, degrees = training_noise(models)
    return {name: _mean(runs, training, degrees) for name, runs in models.items() if runs}


def _mean(runs: Sequence[Estimate], training: float, degrees: float) -> Estimate:
    influences = [run.ref_influence for run in runs if run.ref_influence is not None]
    return Estimate(
        float(np.mean([run.value for run in runs])),
        float(np.sum([run.own_variance for run in runs])) / len(runs) ** 2,
        np.mean(influences, axis=0) if influences else None,
        training / len(runs),
        degrees,
        runs[0].own_interval if degrees == inf else None,
    )
