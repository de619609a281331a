"""Samples that a judge, or several, scored more than once: their means, and what the judge adds to the error.

A score of prompt c in repeat r is s = μ + P_c + R_r + E_cr. The error of a mean over prompts has the parts σ_P²/b and
σ_E²/(b·k) of b prompts and k repeats, which means of prompts show, and σ_R²/k, which they do not: all scores of a
repeat may be higher together, as of a rater who is mild, or of a service after an update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import percent, plural
from finc_eval.judges.bradley_terry import effective_clusters, positive_part
from finc_eval.judges.paired import Array, Integers, Means, mean_scores
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.weighting import Weighting
from finc_eval.numerics.inference import student_quantile


def fold_repeats(table: SampleScores, repeat: Sequence[str]) -> SampleScores:
    """Return the table with one row a sample, the mean of its repeats; `repeat` names that of each row."""
    keys = table.keys
    first: dict[tuple[str, str, str], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    place = {key: number for number, key in enumerate(first)}
    samples = np.array([place[key] for key in keys], np.int64)
    names, number = np.unique(np.array(repeat, object).astype(str), return_inverse=True)
    rows = [*first.values()]
    repeats, judges = dict[str, Array](), dict[str, Array]()
    for judge, values in table.judges.items():
        found = repeats[judge] = np.full((len(names), len(first)), np.nan)
        found[number, samples] = values
        judges[judge] = mean_of_repeats(found)

    def of_samples(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(texts[row] for row in rows) if texts else ()

    return replace(
        table,
        judges=judges,
        ids=of_samples(table.ids),
        prompts=of_samples(table.prompts),
        seeds=of_samples(table.seeds),
        labels={label: of_samples(texts) for label, texts in table.labels.items()},
        repeats=repeats,
        repeat_names=tuple(names.tolist()),
    )


def mean_of_repeats(scores: Array) -> Array:
    """Return the mean score of each sample, (n,), of scores by repeat, (k, n); NaN for a sample without any."""
    known = np.isfinite(scores)
    return np.asarray(np.where(known, scores, 0).sum(0) / np.where(known.any(0), known.sum(0), np.nan))


@dataclass(frozen=True, eq=False)
class RepeatedScores:
    """Scores of the samples of a model by repeat."""

    names: tuple[str, ...]  # names of k repeats, which models may share
    values: Array  # score of each repeat and sample, shape (k, n); NaN where a sample was not scored
    prompts: tuple[str, ...]  # prompt of each sample

    @property
    def scored(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield the name of each repeat, and which samples it has a score of, shape (n,)."""
        yield from zip(self.names, np.isfinite(self.values), strict=True)


def means_of(
    judge: str, tables: Mapping[str, SampleScores], kept: Mapping[str, Integers], rules: Mapping[str, Weighting]
) -> tuple[Means, list[str]]:
    """Return the means of models by a judge, and a sentence if samples were scored more than once.

    Args:
        judge: name of the judge.
        tables: scores by model.
        kept: rows with a score of each model that counts.
        rules: rule of a benchmark for these rows of each model; {} for means over prompts.
    """
    repeats = {}
    for name, rows in kept.items():
        table = tables[name]
        scores = table.repeats.get(judge, table.judges[judge][None])[:, rows]
        prompts = tuple(table.prompts[row] for row in rows)
        repeats[name] = RepeatedScores(table.repeat_names or ("",), scores, prompts)
    values = {name: tables[name].judges[judge][rows] for name, rows in kept.items()}
    means = mean_scores(values, {name: own.prompts for name, own in repeats.items()}, rules or None)
    if not any((np.isfinite(own.values).sum(0) > 1).any() for own in repeats.values()):
        return means, []
    found, share = with_repeats(means, repeats)
    return found, [say_repeats(judge, repeats, share)]


def with_repeats(means: Means, repeats: Mapping[str, RepeatedScores]) -> tuple[Means, float]:
    """Return means whose error has the part of repeats, and the share of the judge in the variance of the means.

    V = V_prompts + (V_repeats − V_rest)₊. V_repeats is of sums over each repeat of the distances of scores from the
    mean of their sample, and V_rest of such distances by prompt and repeat, without what a repeat has in all prompts.
    Few repeats say little of their variance: their part is wider by the square of Student's quantile of k − 1 over that
    of the prompts. With degrees of freedom of both together, intervals of strong repeats held in 88 to 92 %. The share
    of the judge is (V − V_prompts + V_rest) / V, without that.

    Args:
        means: means over prompts of the mean of the repeats.
        repeats: scores by repeat of the same models, at least two of some samples.

    Example:
        >>> import numpy as np
        >>> from finc_eval.judges.asked_again import RepeatedScores, with_repeats
        >>> from finc_eval.judges.paired import mean_scores
        >>> scores, prompts = np.array([[1.0, 2.0, 3.0, 2.0], [2.0, 3.0, 4.0, 3.0]]), tuple("pqrs")
        >>> means = mean_scores({"one": scores.mean(0)}, {"one": prompts})
        >>> found, share = with_repeats(means, {"one": RepeatedScores(("a", "b"), scores, prompts)})
        >>> round(float(means.covariance[0, 0]), 3), round(float(found.covariance[0, 0]), 3), round(share, 2)
        (0.167, 0.417, 0.6)
    """
    names = {name: place for place, name in enumerate(dict.fromkeys(n for own in repeats.values() for n in own.names))}
    texts = {text for own in repeats.values() for text in own.prompts}
    prompts = {text: place for place, text in enumerate(sorted(texts))}
    moved = np.zeros((len(means.models), len(prompts), len(names)))
    for place, model in enumerate(means.models):
        own = repeats[model]
        block = np.array([prompts[text] for text in own.prompts], np.int64)
        moved[place][:, [names[name] for name in own.names]] = _moved(own.values, block, len(prompts))
    of_repeats, flat = moved.sum(1) @ moved.sum(1).T, moved.reshape(len(moved), -1)
    b = max(min(means.prompts), 2)
    rest = positive_part((flat @ flat.T - of_repeats / b) * b / (b - 1))
    added = positive_part(of_repeats - rest)
    parts = [float(np.trace(means.covariance)), float(np.trace(added))]
    numbers = [[names[name]] * int(known.sum()) for own in repeats.values() for name, known in own.scored]
    clusters = effective_clusters(np.array([number for own in numbers for number in own], np.int64))
    wider = student_quantile(max(clusters - 1, 1.0)) / student_quantile(means.degrees)
    values, vectors = np.linalg.eigh(added)
    influences = np.hstack([means.influences, wider * vectors * np.sqrt(values.clip(0))])
    share = (parts[1] + float(np.trace(rest))) / sum(parts) if sum(parts) else 0.0
    return replace(means, influences=influences, fixed=wider**2 * added), min(share, 1.0)


def _moved(values: Array, block: Integers, b: int) -> Array:
    """Return what each prompt and repeat adds to the mean over prompts of a model, shape (b, k).

    `values` are scores by repeat and sample, shape (k, n), and `block` the prompt of each sample, shape (n,).
    """
    known = np.isfinite(values)
    count = known.sum(0)
    mean = np.where(known, values, 0).sum(0) / np.maximum(count, 1)
    # As much wider as distances from a mean of k scores are too small.
    scale = np.sqrt(count / np.maximum(count - 1, 1)) / np.maximum(count, 1)
    has = count > 0
    samples = np.bincount(block[has], minlength=b)
    weight = np.where(has, 1 / np.maximum(samples[block], 1), 0) / max(int((samples > 0).sum()), 1)
    distances = np.where(known, values - mean, 0) * scale * weight
    return np.stack([np.bincount(block, row, b) for row in distances], 1)


def say_repeats(judge: str, repeats: Mapping[str, RepeatedScores], share: float) -> str:
    """Say how often a judge was asked, and which part of the variance of means is the judge's."""
    counts = np.concatenate([np.isfinite(own.values).sum(0) for own in repeats.values()])
    names = len({name for own in repeats.values() for name in own.names})
    return (
        f"{judge} has {counts[counts > 0].mean():.3g} scores a sample, by {plural(names, 'repeat')}: their mean "
        f"counts, and {percent(share)} of the variance of the means is the judge's, that of asking again"
    )
