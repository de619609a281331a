"""Parts of samples where a judge or voters prefer a model more, or less, than elsewhere: labels, kinds, words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student

from finc_eval.core.record import Record
from finc_eval.judges.paired import Array, Integers
from finc_eval.numerics.inference import ALPHA, holm, student_quantile
from finc_eval.prompts.words import Phrases, choose

KIND = "kind"  # name of the division of samples into kinds
WORD = "word"  # name of the division of prompts by their words and phrases

FEWEST = 5
"""Prompts inside and outside of a part that is tested: errors of fewer are hardly known."""

SHOWN = 6  # parts of one judge and division that a board keeps, the most certain first


@dataclass(frozen=True)
class Part(Record):
    """A part of the samples in which a model does better or worse than elsewhere, by a judge or by votes.

    Attributes:
        judge: name of the judge; "votes" for votes.
        name: the model; "" where the judge gives this part more, or less, whatever the model.
        by: what divides the samples: "kind", "word", or a column such as "label".
        part: the part: a kind, a word or phrase of prompts, or a value of the column.
        value: mean gain of the model over the others in this part. By votes, points of a vote (1 won, ½ a tie) beyond
            what the strengths say. Without a model, the mean score of the part beyond that of each model.
        interval: 95 % interval of it, by itself.
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
    cell: Integers  # cell of each row, shape (n,); −1 for none
    members: NDArray[np.bool_]  # cells of each part, shape (parts, cells)

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Division:
        """Divide rows by a text of each; rows without one are in no part."""
        names = sorted({*texts} - {""})
        place = {name: number for number, name in enumerate(names)} | {"": -1}
        return cls(tuple(names), np.array([place[one] for one in texts], np.int64), np.eye(len(names), dtype=bool))

    def inside(self, part: int) -> NDArray[np.bool_]:
        """Return which rows are in a part, shape (n,)."""
        return np.asarray((self.cell >= 0) & self.members[part][self.cell])

    def at(self, rows: Integers) -> Division:
        """Return the division of some of the rows."""
        return Division(self.names, self.cell[rows], self.members)

    @classmethod
    def joined(cls, parts: Sequence[Division]) -> Division:
        """Return one division of the rows of several divisions into the same parts."""
        return cls(parts[0].names, np.concatenate([one.cell for one in parts]), parts[0].members)


@dataclass(frozen=True, eq=False)
class Gains:
    """What each sample, or each vote, says for a model against the others."""

    model: str  # name of the model; "" for all models together
    values: Array  # gain of each row, shape (n,)
    prompt: Integers  # number of the prompt of each row, shape (n,)
    divisions: Mapping[str, Division]  # parts of the rows by the name of what divides them


def find_parts(judge: str, gains: Sequence[Gains], prompts: Sequence[str], seed: int = 0) -> tuple[Part, ...]:
    """Return the parts in which gains surely differ from those elsewhere, most certain first.

    Labels and kinds are tested by the means inside and outside, prompts as clusters (Holm, half of the error), words
    one after the other under random signs (`prompts.words`, the other half).
    """
    rows = [found for one in gains for found in _divided(judge, one)]
    adjusted = holm(torch.tensor([one.p_value for one, _ in rows], dtype=torch.float64), 0.5).tolist() if rows else []
    clear = [(_with(one, p), inside) for (one, inside), p in zip(rows, adjusted, strict=True) if p <= ALPHA]
    tested = list(_without_overlap(clear))
    of_models = [one for one in gains if one.model]
    words = [part for one in of_models for part in _words(judge, one, prompts, seed, 0.5 / len(of_models))]
    found = sorted((one for one in (*tested, *words) if one.p_value <= ALPHA), key=_by_certainty)
    groups = dict.fromkeys(one.by for one in found)
    return tuple(one for by in groups for one in [each for each in found if each.by == by][:SHOWN])


def _by_certainty(part: Part) -> tuple[float, float]:
    return part.p_value, -abs(part.value - part.elsewhere)


def _with(part: Part, p_value: float) -> Part:
    return replace(part, p_value=p_value)


def _without_overlap(found: Sequence[tuple[Part, NDArray[np.bool_]]]) -> Iterator[Part]:
    """Yield the parts of each model and division that no clearer one overlaps: kinds lie in each other."""
    taken: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for part, inside in sorted(found, key=lambda one: _by_certainty(one[0])):
        key = part.name, part.by
        before = taken.get(key, np.zeros(len(inside), bool))
        # What is all the rest of a clearer part says the same.
        if not (before & inside).any() and not (before | inside).all():
            taken[key] = before | inside
            yield part


def _divided(judge: str, gains: Gains) -> Iterator[tuple[Part, NDArray[np.bool_]]]:
    """Yield every part, with the p-value of its difference from all other samples, and which rows it has."""
    for by, division in gains.divisions.items():
        for number, text in enumerate(division.names):
            inside = division.inside(number)
            prompts = [len(np.unique(gains.prompt[rows])) for rows in (inside, ~inside)]
            if min(prompts) < FEWEST:
                continue
            mean, error = _mean(gains.values[inside], gains.prompt[inside])
            other = float(gains.values[~inside].mean())
            spread = _error_of_difference(gains.values, gains.prompt, inside)
            degrees = min(prompts) - 1
            p_value = 2 * float(student.sf(abs(mean - other) / spread, degrees)) if spread > 0 else 1.0
            half = student_quantile(prompts[0] - 1) * error
            interval = (mean - half, mean + half)
            yield Part(judge, gains.model, by, text, mean, interval, other, prompts[0], p_value), inside


def _mean(values: Array, prompt: Integers) -> tuple[float, float]:
    """Return the mean of rows and its standard error, with prompts as clusters."""
    mean = float(values.mean())
    sums = np.bincount(np.unique(prompt, return_inverse=True)[1], values - mean)
    count = len(sums)
    return mean, float(np.sqrt((sums**2).sum() * count / max(count - 1, 1))) / len(values)


def _error_of_difference(values: Array, prompt: Integers, inside: NDArray[np.bool_]) -> float:
    """Return the standard error of the mean inside minus the mean outside, with prompts as clusters."""
    own = np.where(inside, (values - values[inside].mean()) / inside.sum(), 0.0)
    own -= np.where(~inside, (values - values[~inside].mean()) / (~inside).sum(), 0.0)
    sums = np.bincount(prompt, own)
    count = len(np.unique(prompt))
    return float(np.sqrt((sums**2).sum() * count / max(count - 1, 1)))


def _words(judge: str, gains: Gains, prompts: Sequence[str], seed: int, part: float) -> Iterator[Part]:
    """Yield the words of prompts whose gains differ, each without the prompts of the words before it."""
    used, block = np.unique(gains.prompt, return_inverse=True)
    if len(used) < 2 * FEWEST:
        return
    per_prompt = np.bincount(block, gains.values) / np.bincount(block)
    phrases = Phrases.of([prompts[one] for one in used])
    overall = float(per_prompt.mean())
    for found in choose(phrases, per_prompt - overall, np.arange(len(used)), seed, part):
        if text := phrases.texts[found.phrase]:
            rows = np.isin(block, found.rows)
            mean, error = _mean(gains.values[rows], gains.prompt[rows])
            half = student_quantile(max(len(found.rows) - 1, 1)) * error
            other = float(gains.values[~rows].mean()) if not rows.all() else 0.0
            interval = (mean - half, mean + half)
            yield Part(judge, gains.model, WORD, text, mean, interval, other, len(found.rows), found.p_value)
