"""Prediction-powered means: what people would say of all samples, from a judge of all and labels of a few.

Angelopoulos, Duchi and Zrnic 2023 (PPI++, arXiv 2311.01453). With labels y and scores f of n prompts, and scores of N
other prompts, the mean is λ·mean(f of N) + mean(y − λ·f of n). It is without bias for any λ and any judge, if the
labeled prompts are a random part. The best λ is Cov(y, f) / ((1 + n/N)·Var f).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.words import plural
from finc_eval.judges.paired import Array
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.scores import match_ids

MIN_LABELED = 50
"""Labeled prompts of a model at least. From 50 on, intervals held in 94.0 to 96.1 % of 1,000 repetitions, and with 20
in 91.5 to 94.6 %: by judges that are good, biased by kind, noise or reversed, and by whole numbers (labels.py)."""


@dataclass(frozen=True, eq=False)
class Labeled:
    """Labels and scores of the prompts of one model."""

    labels: Array  # mean label of each labeled prompt, (n,)
    scores: Array  # mean score of the labeled samples of each of these prompts, (n,)
    others: Array  # mean score of each prompt without a label, (N,)
    prompts: tuple[str, ...]  # the labeled prompts
    other_prompts: tuple[str, ...]  # the prompts without a label


@dataclass(frozen=True, eq=False)
class CorrectedMeans:
    """Means over prompts of p models, in the units of the labels."""

    models: tuple[str, ...]
    values: Array  # prediction-powered mean, (p,)
    influences: Array  # influence of each prompt, (p, b)
    degrees: float  # degrees of freedom of the errors
    labeled: tuple[int, ...]  # number of labeled prompts of each model
    weights: Array  # λ of each model, (p,)
    width: float  # width of the intervals in widths of those of labels alone, on average
    correlation: float  # correlation of labels and scores within models; NaN if one of them does not vary


def labeled_models(
    models: Sequence[str],
    labels: Mapping[str, SampleScores],
    label: str,
    scores: Mapping[str, SampleScores],
    judge: str,
) -> tuple[dict[str, Labeled], dict[str, str]]:
    """Return labels and scores of the models that have enough of them, and the reasons of the others."""
    found, reasons = dict[str, Labeled](), dict[str, str]()
    for name in models:
        if name not in labels or label not in labels[name].judges:
            reasons[name] = "it has no labels"
        elif name not in scores or judge not in scores[name].judges:
            reasons[name] = "it has no scores"
        else:
            joined = join_labels(labels[name], label, scores[name], judge)
            if len(joined.labels) < MIN_LABELED:
                reasons[name] = f"its labels are of {plural(len(joined.labels), 'prompt')}, and it takes {MIN_LABELED}"
            else:
                found[name] = joined
    return found, reasons


def join_labels(labels: SampleScores, label: str, scores: SampleScores, judge: str) -> Labeled:
    """Find the score of each labeled sample, by id, or else by prompt and seed, and average both by prompt.

    Raises:
        DataError: no labeled sample has a score.
    """
    rows = _rows_of(labels, scores)
    y, f = labels.judges[label], scores.judges[judge]
    has = (rows >= 0) & np.isfinite(y) & np.isfinite(f[rows])
    if not has.any():
        raise DataError(f"no sample of {labels.name} has a score by {judge}: name the samples as {scores.name} does")
    of_labels = [scores.prompts[row] for row in rows[has]]
    prompts, means = _by_prompt(of_labels, np.stack([y[has], f[rows[has]]]))
    known, scored = set(prompts), np.isfinite(f)
    rest = [row for row in np.flatnonzero(scored) if scores.prompts[row] not in known]
    others, of_others = _by_prompt([scores.prompts[row] for row in rest], f[rest][None])
    return Labeled(means[0], means[1], of_others[0], prompts, others)


def corrected_means(labeled: Mapping[str, Labeled]) -> CorrectedMeans:
    """Return the prediction-powered mean of each model, with the joint error of all.

    Residuals lose a degree of freedom to λ. Models share prompts, so the errors of their differences are paired.

    Raises:
        DataError: a model has fewer than `MIN_LABELED` labeled prompts.

    Example:
        >>> import numpy as np
        >>> from finc_eval.judges.prediction_powered import Labeled, corrected_means
        >>> y = np.arange(50.0)
        >>> names = tuple(map(str, range(150)))
        >>> found = corrected_means({"one": Labeled(y, 2 * y + 5, np.r_[100.0:200.0], names[:50], names[50:])})
        >>> round(float(found.values[0]), 1)  # 24.5 by the labels alone; the judge scores the others higher
        33.9
    """
    for model, known in labeled.items():
        if (n := len(known.labels)) < MIN_LABELED:
            raise DataError(f"{model} has labels of {n} prompts, and it takes {MIN_LABELED}: label more samples")
    names = sorted({name for known in labeled.values() for name in (*known.prompts, *known.other_prompts)})
    place = {name: number for number, name in enumerate(names)}
    influences = np.zeros((len(labeled), len(names)))
    values, weights, widths = (np.zeros(len(labeled)) for _ in range(3))
    for row, known in enumerate(labeled.values()):
        n, others, weight = len(known.labels), len(known.others), _weight(known)
        rest = known.labels - weight * known.scores
        values[row] = rest.mean() + (weight * known.others.mean() if others else 0.0)
        weights[row] = weight
        here = influences[row]
        here[[place[name] for name in known.prompts]] = (rest - rest.mean()) / np.sqrt(n * (n - 1 - bool(weight)))
        if weight:
            of_others = weight * (known.others - known.others.mean()) / np.sqrt(others * (others - 1))
            here[[place[name] for name in known.other_prompts]] = of_others
        alone = known.labels.std(ddof=1) / np.sqrt(n)
        widths[row] = np.sqrt((here**2).sum()) / alone if alone else 1.0
    labels, scores = (
        np.concatenate([part - part.mean() for part in parts])
        for parts in zip(*((known.labels, known.scores) for known in labeled.values()), strict=True)
    )
    spread = np.sqrt((labels**2).sum() * (scores**2).sum())
    counts = tuple(len(known.labels) for known in labeled.values())
    return CorrectedMeans(
        models=tuple(labeled),
        values=values,
        influences=influences,
        degrees=float(min(counts) - 2),
        labeled=counts,
        weights=weights,
        width=float(widths.mean()),
        correlation=float((labels * scores).sum() / spread) if spread else float("nan"),
    )


def say_correction(means: CorrectedMeans, label: str, judge: str, is_alike: bool) -> str:
    """Say what the judge is good for: its correlation with people, and what it saves.

    `is_alike` says whether higher numbers are better by both.
    """
    strength = means.correlation if is_alike else -means.correlation
    # 2: standard errors of a correlation that is 0, 1/√n.
    if not abs(strength) > 2 / sum(means.labeled) ** 0.5:
        return f"{judge} says nothing about {label}: the means are those of the labels alone"
    way = "as people do" if strength > 0 else "the other way round than people do"
    return (
        f"{judge} orders samples of one model {way} (correlation {means.correlation:.2f} with {label}); with it, "
        f"intervals of {label} are {means.width:.2f} as wide as by labels alone"
    )


def _weight(known: Labeled) -> float:
    """Return the λ of the least variance, as PPI++ does; 0 if the judge says nothing, or nothing is left to score."""
    n, others = len(known.labels), len(known.others)
    every = np.concatenate([known.scores, known.others])
    if others < 2 or not np.ptp(every):
        return 0.0
    together = ((known.labels - known.labels.mean()) * (known.scores - known.scores.mean())).sum() / (n - 1)
    return float(together / ((1 + n / others) * every.var(ddof=1)))


def _rows_of(labels: SampleScores, scores: SampleScores) -> np.ndarray:
    """Return the row of the scores that each label is of, −1 for none."""
    if labels.has_ids and scores.has_ids:
        return match_ids(labels.ids, scores.ids)
    if labels.has_ids or scores.has_ids or labels.has_prompts != scores.has_prompts:
        named = labels if labels.has_ids else scores
        raise DataError(f"{named.name} names samples otherwise: give labels and scores the same columns, such as id")
    row_of = {key: row for row, key in enumerate(scores.keys)}
    return np.array([row_of.get(key, -1) for key in labels.keys], np.int64)


def _by_prompt(prompts: Sequence[str], values: Array) -> tuple[tuple[str, ...], Array]:
    """Average values, (k, n), by prompt."""
    names, number = np.unique(np.array(prompts, object).astype(str), return_inverse=True)
    sums = np.stack([np.bincount(number, row, len(names)) for row in values])
    return tuple(names.tolist()), sums / np.bincount(number, minlength=len(names))
