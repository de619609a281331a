"""Gains of models over the others by a judge, whose parts are compared: see `parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from finc_eval.judges.paired import Array, Means
from finc_eval.judges.parts import Division, Gains, without_twins


def gains_of(
    means: Means,
    values: Mapping[str, Array],
    prompts: Mapping[str, Sequence[str]],
    divisions: Mapping[str, Mapping[str, Division]],
    better: bool,
) -> tuple[list[Gains], list[str]]:
    """Return the gains of models over the others, and of parts over others whatever the model; and the prompts.

    Args:
        means: means of the models.
        values: scores of the samples of each model, shape (n,).
        prompts: prompt of each of these samples.
        divisions: divisions of these samples.
        better: whether higher scores are better.
    """
    names = sorted({prompt for texts in prompts.values() for prompt in texts})
    number = {name: place for place, name in enumerate(names)}
    gains, level = [], []
    for place, model in enumerate(means.models):
        block = np.array([number[prompt] for prompt in prompts[model]], np.int64)
        division = divisions.get(model, {})
        level.append(Gains("", values[model] - values[model].mean(), block, dict(division)))
        if len(means.models) < 2:
            continue
        others = np.delete(np.arange(len(means.models)), place)
        if means.is_paired:
            inside = np.isfinite(means.table[place, block])
            against = means.table[others].mean(0)[block]
        else:
            inside, against = np.ones(len(block), bool), np.full(len(block), means.values[others].mean())
        rows = np.flatnonzero(inside)
        of_rows = {by: parts.at(rows) for by, parts in division.items()}
        gains.append(Gains(model, (values[model] - against)[rows], block[rows], of_rows))
    shared = {by: Division.joined([gain.divisions[by] for gain in level]) for by in level[0].divisions}
    every = np.concatenate([gain.values for gain in level]), np.concatenate([gain.prompt for gain in level])
    best = means.values.argmax() if better else means.values.argmin()
    return [*without_twins(gains, int(best)), Gains("", *every, shared)], names
