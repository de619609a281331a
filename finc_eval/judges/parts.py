"""Parts of samples where a judge or voters like a model more, or less, than elsewhere: kinds, labels, looks, words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.estimates.error_source import ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.judges.paired import Array, Integers, Means
from finc_eval.numerics.families import bonferroni
from finc_eval.numerics.inference import ALPHA, least_variance
from finc_eval.prompts.words import Phrases, choose

KIND = "kind"  # name of the division of samples into kinds
LOOK = "look"  # name of the division of samples by what every eye sees, such as dark or blurred pictures
WORD = "word"  # name of the division of prompts by their words and phrases

FEWEST = 5
"""Prompts inside and outside of a part that is tested: errors of fewer are hardly known."""


@dataclass(frozen=True)
class JudgedPart(Record):
    """A part of the samples in which a model does better or worse than elsewhere, by a judge or by votes.

    Attributes:
        judge: name of the judge; "votes" for votes.
        name: the model; "" where the judge gives this part more, or less, whatever the model.
        by: what divides the samples: "kind", "look", "word", or a column such as "label".
        part: the part: a kind, a look such as "dark", a word or phrase of prompts, or a value of the column.
        value: mean gain of the model over the others in this part. By votes, points of a vote (1 won, ½ a tie) beyond
            what the strengths say. Without a model, the mean score of the part beyond that of each model.
        interval: 95 % interval of it alone, with prompts as clusters; wider where most prompts gain the same:
            a few answers that are all right do not show that all others are.
        elsewhere: the same in all other samples.
        prompts: number of prompts in the part.
        p_value: p-value of "it is as elsewhere", adjusted for all parts by this judge.
    """

    judge: str
    name: str
    by: str
    part: str
    value: float
    interval: tuple[float, float]
    elsewhere: float
    prompts: int
    p_value: float


@dataclass(frozen=True, eq=False)
class Division:
    """Samples divided into cells, and parts that are unions of cells, which may overlap."""

    names: tuple[str, ...]  # names of the parts
    cell: Integers  # cell of each row, shape (n,); −1 if it is not known
    members: NDArray[np.bool_]  # cells of each part, shape (parts, cells)

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Division:
        """Divide rows by a text of each; rows without one are in no part."""
        names = sorted({*texts} - {""})
        place = {name: number for number, name in enumerate(names)} | {"": -1}
        return cls(tuple(names), np.array([place[text] for text in texts], np.int64), np.eye(len(names), dtype=bool))

    @property
    def parts(self) -> range:
        """Numbers of the parts."""
        return range(len(self.names))

    def inside(self, part: int) -> NDArray[np.bool_]:
        """Return which rows are in a part, shape (n,)."""
        return np.asarray((self.cell >= 0) & self.members[part][self.cell])

    def at(self, rows: Integers) -> Division:
        """Return the division of some of the rows."""
        return Division(self.names, self.cell[rows], self.members)

    @classmethod
    def joined(cls, parts: Sequence[Division]) -> Division:
        """Return one division of the rows of several divisions into the same parts."""
        return cls(parts[0].names, np.concatenate([part.cell for part in parts]), parts[0].members)


@dataclass(frozen=True, eq=False)
class Gains:
    """Gain of a model over the others by each sample, or by each vote."""

    model: str  # name of the model; "" for all models together
    values: Array  # gain of each row, shape (n,)
    prompt: Integers  # number of the prompt of each row, shape (n,)
    divisions: Mapping[str, Division]  # parts of the rows by the name of what divides them
    has_words: bool = True  # whether the words of prompts are tested


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


def without_twins(gains: Sequence[Gains], better: int) -> list[Gains]:
    """Return the gains of models; of two, what the better one gains on prompts, and what each gains by its own samples.

    What one of two models gains, the other loses: the better one stands for both, except in kinds and looks, which are
    of the samples of a single model.
    """
    if len(gains) != 2:
        return [*gains]
    other = gains[1 - better]
    divisions = {by: division for by, division in other.divisions.items() if by in (KIND, LOOK)}
    return [gains[better], *([replace(other, divisions=divisions, has_words=False)] if divisions else [])]


def find_parts(judge: str, gains: Sequence[Gains], prompts: Sequence[str], seed: int = 0) -> tuple[JudgedPart, ...]:
    """Return the parts in which gains surely differ from those elsewhere, most certain first.

    Labels and kinds are tested by the means inside and outside, prompts as clusters (Bonferroni, half of the error),
    words under random signs (`prompts.words`, the other half), each without the parts before it.
    """
    family = sum(len(_testable(gain, by, _known(gain, by))) for gain in gains for by in gain.divisions)
    tested = [part for gain in gains for by in gain.divisions for part in _divided(judge, gain, by, family)]
    of_models = [gain for gain in gains if gain.model]
    spoken = [gain for gain in of_models if gain.has_words]
    words = [part for gain in spoken for part in _words(judge, gain, prompts, seed, 0.5 / len(spoken))]
    clear = sorted((part for part in (*tested, *words) if part.p_value <= ALPHA), key=_by_certainty)
    found = [part for part in clear if not _follows(part, clear, len(of_models))]
    groups = dict.fromkeys(part.by for part in found)
    return tuple(
        part for by in groups for part in [each for each in found if each.by == by][:6]
    )  # 6: parts of a division that a board keeps


def _by_certainty(part: JudgedPart) -> tuple[float, float]:
    return part.p_value, -abs(part.value - part.elsewhere)


def _follows(part: JudgedPart, parts: Sequence[JudgedPart], models: int) -> bool:
    """Return whether a part follows from the clearest model there.

    If one of p models loses d against the mean of the others, each of them gains d / (p − 1), and the mean of all
    models moves by less than d.
    """
    first = next((each for each in parts if each.name and (each.by, each.part) == (part.by, part.part)), part)
    if first is part:
        return False
    if not part.name:
        return abs(first.value - first.elsewhere) >= abs(part.value - part.elsewhere)
    gain, other = (judged.value - judged.elsewhere for judged in (part, first))
    halves = [(judged.interval[1] - judged.interval[0]) / 2 for judged in (part, first)]
    return abs(gain + other / (models - 1)) <= halves[0] + halves[1] / (models - 1)


def _known(gains: Gains, by: str) -> Integers:
    """Return the rows whose cell is known."""
    return np.flatnonzero(gains.divisions[by].cell >= 0)


def _testable(gains: Gains, by: str, rows: Integers) -> list[int]:
    """Return the parts with enough prompts inside and outside, among some rows."""
    prompt, division = gains.prompt[rows], gains.divisions[by].at(rows)
    prompts = [
        [len(np.unique(prompt[rows])) for rows in (inside, ~inside)] for inside in map(division.inside, division.parts)
    ]
    return [part for part, (inside, others) in enumerate(prompts) if min(inside, others) >= FEWEST]


def _divided(judge: str, gains: Gains, by: str, family: int) -> Iterator[JudgedPart]:
    """Yield the parts that differ from all other samples, the clearest first, each without those before it.

    Without it, every other part would differ from what is left, and kinds in which it lies would be found with it.
    """
    rows = _known(gains, by)
    while True:
        values, prompt, division = gains.values[rows], gains.prompt[rows], gains.divisions[by].at(rows)
        parts = _testable(gains, by, rows)
        found = [_compare(judge, gains.model, by, values, prompt, division, part) for part in parts]
        # Half of the error is for all parts by this judge.
        clear = [replace(part, p_value=float(bonferroni(part.p_value, family, 0.5))) for part in found]
        clear = [part for part in clear if part.p_value <= ALPHA]
        if not clear:
            return
        first = min(clear, key=_by_certainty)
        yield first
        rows = rows[~division.inside(division.names.index(first.part))]


def _compare(
    judge: str, model: str, by: str, values: Array, prompt: Integers, division: Division, part: int
) -> JudgedPart:
    """Return a part with the p-value of "it is as elsewhere": the larger one of Welch's and Student's t.

    Few answers in a part may all be right, so that their own variance is 0; the variance of all answers is not.
    """
    inside = division.inside(part)
    count = len(np.unique(prompt[inside]))
    mean, ends = _mean(values, prompt, inside)
    p_value = max(
        difference.p_value if difference.standard_error > 0 else 1.0
        for difference in _differences(values, prompt, inside)
    )
    elsewhere = float(values[~inside].mean())
    return JudgedPart(judge, model, by, division.names[part], mean, ends, elsewhere, count, p_value)


def _mean(values: Array, prompt: Integers, inside: NDArray[np.bool_]) -> tuple[float, tuple[float, float]]:
    """Return the mean of the rows inside and its 95 % interval, with prompts as clusters.

    Where most prompts gain the same, the variance is at least that with two prompts more at each end of all gains.
    """
    clusters, means = np.unique(prompt[inside], return_inverse=True)[1], _prompt_means(values, prompt)
    least = least_variance(_prompt_means(values[inside], prompt[inside]), (float(means.min()), float(means.max())))
    found = Estimate.of_mean(values[inside], clusters, least=least)
    return found.value, found.interval


def _prompt_means(values: Array, prompt: Integers) -> Array:
    """Return the mean of the rows of each prompt."""
    block = np.unique(prompt, return_inverse=True)[1]
    return np.asarray(np.bincount(block, values) / np.bincount(block))


def _differences(values: Array, prompt: Integers, inside: NDArray[np.bool_]) -> tuple[Estimate, Estimate]:
    """Estimate the mean inside minus the mean outside, with prompts as clusters, and as if all prompts vary alike.

    `values` are gains, `prompt` the number of the prompt of each, and `inside` marks the part: shape (n,) each.
    """
    names, units = np.unique(prompt, return_inverse=True)
    sources = [ErrorSource.of_samples(values[rows], units[rows], len(names)) for rows in (inside, ~inside)]
    gap = float(values[inside].mean() - values[~inside].mean())
    squares, counts = 0.0, []
    for rows in (inside, ~inside):
        means = _prompt_means(values[rows], prompt[rows])
        squares += float(((means - means.mean()) ** 2).sum())
        counts.append(len(means))
    free = sum(counts) - 2.0
    pooled = ErrorSource.of_variance(sources[0].name, squares / free * sum(1 / count for count in counts), free)
    return Estimate.of(gap, (sources[0].minus(sources[1]),)), Estimate.of(gap, (pooled,))


def _words(judge: str, gains: Gains, prompts: Sequence[str], seed: int, part: float) -> Iterator[JudgedPart]:
    """Yield the words of prompts whose gains differ from the mean, each without the prompts of the words before it."""
    left = np.ones(len(gains.values), bool)
    while True:
        values, (used, block) = gains.values[left], np.unique(gains.prompt[left], return_inverse=True)
        if len(used) < 2 * FEWEST:
            return
        per_prompt = _prompt_means(values, block)
        phrases = Phrases.of([prompts[number] for number in used])
        found = next(choose(phrases, per_prompt - per_prompt.mean(), np.arange(len(used)), seed, part), None)
        if found is None or len(found.rows) == len(used):
            return
        inside = np.isin(block, found.rows)
        mean, ends = _mean(values, block, inside)
        elsewhere, text = float(values[~inside].mean()), phrases.texts[found.phrase]
        yield JudgedPart(judge, gains.model, WORD, text, mean, ends, elsewhere, len(found.rows), found.p_value)
        left[np.flatnonzero(left)[inside]] = False
