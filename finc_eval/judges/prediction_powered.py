"""Prediction-powered means: what people would say of all samples, from a judge of all and labels of a few.

Angelopoulos, Duchi and Zrnic 2023 (PPI++, arXiv 2311.01453). With labels y and scores f of n prompts, and scores of N
other prompts, the mean is λ·mean(f of N) + mean(y − λ·f of n). It is without bias for any λ and any judge, if the
labeled prompts are a random part. The best λ is Cov(y, f) / ((1 + n/N)·Var f).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.words import figure, join_words, plural
from finc_eval.judges.paired import Array
from finc_eval.judges.power import MarginPlan, plan
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.scores import match_ids
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.inference import ALPHA, upper_quantile

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

    known: Mapping[str, Labeled]  # labels and scores of each model
    values: Array  # prediction-powered mean, (p,)
    of_labels: Array  # influence of each prompt by its label, (p, b)
    of_others: Array  # influence of each prompt without a label, (p, b)
    weights: Array  # λ of each model, (p,)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(self.known)

    @property
    def influences(self) -> Array:
        """Influence of each prompt, (p, b)."""
        return self.of_labels + self.of_others

    @property
    def labeled(self) -> tuple[int, ...]:
        """Number of labeled prompts of each model."""
        return tuple(len(known.labels) for known in self.known.values())

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the errors."""
        return float(min(self.labeled) - 2)

    @property
    def width(self) -> float:
        """Width of the intervals in widths of those of labels alone, on average."""
        alone = np.array([sem_of(known.labels) for known in self.known.values()])
        errors = np.sqrt((self.influences**2).sum(1))
        return float(np.where(alone > 0, errors / np.where(alone > 0, alone, 1), 1).mean())

    @property
    def correlation(self) -> float:
        """Correlation of labels and scores within models; NaN if one of them does not vary."""
        labels, scores = (
            np.concatenate([part - part.mean() for part in parts])
            for parts in zip(*((known.labels, known.scores) for known in self.known.values()), strict=True)
        )
        spread = np.sqrt((labels**2).sum() * (scores**2).sum())
        return float((labels * scores).sum() / spread) if spread else float("nan")

    @property
    def judged(self) -> Array:
        """Mean score of all prompts by the judge, in its own units, (p,)."""
        return np.array([np.concatenate([known.scores, known.others]).mean() for known in self.known.values()])


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
    of_labels, of_others = np.zeros((2, len(labeled), len(names)))
    values, weights = np.zeros((2, len(labeled)))
    for row, known in enumerate(labeled.values()):
        n, others, weight = len(known.labels), len(known.others), _weight(known)
        rest = known.labels - weight * known.scores
        values[row] = rest.mean() + (weight * known.others.mean() if others else 0.0)
        weights[row] = weight
        at = [place[name] for name in known.prompts]
        of_labels[row, at] = (rest - rest.mean()) / np.sqrt(n * (n - 1 - bool(weight)))
        if weight:
            distances = known.others - known.others.mean()
            at = [place[name] for name in known.other_prompts]
            of_others[row, at] = weight * distances / np.sqrt(others * (others - 1))
    return CorrectedMeans(dict(labeled), values, of_labels, of_others, weights)


def plan_labels(key: str, means: CorrectedMeans, better: bool) -> tuple[MarginPlan, ...]:
    """Plan how many labeled prompts of each model decide the margins of neighbors; none for a single model.

    More labels leave the error of scores of other prompts as it is, and there are as many labels as prompts at most.
    """
    if len(means.models) < 2:
        return ()
    shrinks = means.of_labels @ means.of_labels.T
    most = min(len(known.labels) + len(known.others) for known in means.known.values())
    values = means.values if better else -means.values
    fixed = means.influences @ means.influences.T - shrinks
    return plan(
        key, means.models, values, shrinks, "labels", min(means.labeled), fixed=fixed, least=MIN_LABELED, most=most + 1
    )


def say_correction(means: CorrectedMeans, label: str, judge: str, is_alike: bool) -> str:
    """Say what the judge is good for: whether it orders samples and models as people do, its scale, what it saves.

    `is_alike` says whether higher numbers are better by both.
    """
    strength = means.correlation if is_alike else -means.correlation
    # 2: standard errors of a correlation that is 0, 1/√n.
    if not abs(strength) > 2 / sum(means.labeled) ** 0.5:
        return f"{judge} says nothing about {label}: the means are those of the labels alone"
    way = "as people do" if strength > 0 else "the other way round than people do"
    return (
        f"{judge} orders samples of one model {way} (correlation {means.correlation:.2f} with {label})"
        f"{_say_models(means, is_alike)}; {_say_scale(means)}; with it, intervals of {label} are {means.width:.2f} as "
        "wide as by labels alone"
    )


def say_alone(key: str, reasons: Mapping[str, str], judge: str) -> Iterator[str]:
    """Yield that labels of one model alone rank nobody, and what to do; `reasons` are those of the other models."""
    if reasons:
        others = join_words([f"of {name}, {reason}" for name, reason in reasons.items()])
        yield (
            f"{key} ranks no model ({others}): how {judge} errs for one model does not say how it errs for another; "
            f"label {MIN_LABELED} prompts of each"
        )


def _say_models(means: CorrectedMeans, is_alike: bool) -> str:
    """Say that the judge orders two models otherwise than people surely do; "" if it does not."""
    sign, pairs = 1 if is_alike else -1, [*permutations(range(len(means.models)), 2)]
    for a, b in pairs:
        error = float(np.sqrt(((means.influences[a] - means.influences[b]) ** 2).sum()))
        reach = upper_quantile(level_of_each(ALPHA, len(pairs)), means.degrees) * error
        if means.values[a] - means.values[b] > reach and sign * (means.judged[a] - means.judged[b]) < 0:
            return f"; it orders {means.models[a]} and {means.models[b]} otherwise than people do"
    return ""


def _say_scale(means: CorrectedMeans) -> str:
    """Say whether the numbers of the judge are those of people, as far as the labels show."""
    known = [*means.known.values()]
    gaps = np.array([(each.scores - each.labels).mean() for each in known])
    errors = np.array([sem_of(each.scores - each.labels) for each in known])
    level = level_of_each(ALPHA, len(known)) / 2
    reach = errors * np.array([upper_quantile(level, len(each.labels) - 1) for each in known])
    if not (np.abs(gaps) > reach).any():
        return "its numbers do not surely differ from those of people"
    place = int(np.abs(gaps).argmax())
    said = (
        f"it gives {means.models[place]} {figure(float(known[place].scores.mean()), '.3g')} where people give "
        f"{figure(float(known[place].labels.mean()), '.3g')}"
    )
    # A judge that errs by more than samples of a model differ says nothing by its numbers.
    is_worthless = abs(float(gaps[place])) > known[place].labels.std(ddof=1)
    return f"its scale is {'worthless' if is_worthless else 'not theirs'}: {said}"


def sem_of(values: Array) -> float:
    """Return the standard error of the mean of values, shape (n,)."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


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
