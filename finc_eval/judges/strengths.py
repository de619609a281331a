"""Strengths of models by votes: the fit with its joint error, and how few votes would change who is first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.judges.bradley_terry import LEFT, TIE, Spread, StrengthFit, fit_strengths, say_separated, spread_of
from finc_eval.judges.covariates import EqualStrengths
from finc_eval.judges.paired import Array, Integers
from finc_eval.judges.parts import Division, Gains, JudgedPart, find_parts, without_twins
from finc_eval.judges.votes import Votes

VOTES = "votes"  # key of the column of votes, and name of their judge


@dataclass(frozen=True)
class Upset(Record):
    """The fewest votes without which another model would be first.

    Attributes:
        votes: number of votes to leave out; the ones that speak most for the first model.
        of: number of all votes.
        first: the model that is first by all votes.
        then: the model that would be first without them.
    """

    votes: int
    of: int
    first: str
    then: str


@dataclass(frozen=True, eq=False)
class Strengths:
    """Strengths of the models that have votes, and their joint error."""

    votes: Votes
    fit: StrengthFit
    spread: Spread
    equal: EqualStrengths | None = None  # strengths at equal covariates, if these are asked for

    @classmethod
    def of(cls, votes: Votes) -> Strengths:
        """Fit votes; prompts and voters are clusters.

        Raises:
            DataError: votes never compare some models with the others.
        """
        fit = fit_strengths(votes.left, votes.right, votes.outcome, len(votes.models))
        return cls(votes, fit, spread_of(fit, votes.prompt, votes.voter))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences to know before trusting their strengths."""
        found = [*self.votes.notes, *(() if self.equal is None else self.equal.notes)]
        if self.fit.separated:
            found.append(say_separated(self.fit.separated, self.votes.models))
        return tuple(found)

    def expected(self) -> Array:
        """Return the points that the fit expects of the left model in each vote, shape (v,)."""
        a, b = self.fit.strengths[self.votes.left], self.fit.strengths[self.votes.right]
        logits = np.stack([a, b, self.fit.log_tie + (a + b) / 2], 1)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray((weights[:, LEFT] + weights[:, TIE] / 2) / weights.sum(1))

    def parts(self, divisions: Mapping[str, Mapping[str, Division]], seed: int) -> tuple[JudgedPart, ...]:
        """Return where people prefer a model more, or less, than elsewhere.

        Args:
            divisions: by model, divisions of all votes by what the model shows there.
            seed: random seed of the tests of words.
        """
        left = self.expected()
        gains = []
        for number, model in enumerate(self.votes.models):
            rows, points = self.votes.points(number)
            expected = np.where(self.votes.left[rows] == number, left[rows], 1 - left[rows])
            of_rows = {by: division.at(rows) for by, division in divisions.get(model, {}).items()}
            gains.append(Gains(model, points - expected, self.votes.prompt[rows], of_rows))
        return find_parts(VOTES, without_twins(gains, int(self.fit.strengths.argmax())), self.votes.prompts, seed)

    def upset(self) -> Upset | None:
        """Return the fewest votes that found without which another model would be first; None if no others would be.

        Votes are left out in the order of their influence on the distance of two models, and the rest is fitted again.
        """
        strengths, influences = self.fit.strengths, self.fit.influences
        first = int(strengths.argmax())
        best: tuple[int, int] | None = None
        for other in range(len(strengths)):
            if other == first:
                continue
            pull = influences[:, first] - influences[:, other]
            order = pull.argsort()[::-1]
            reach = np.flatnonzero(np.cumsum(pull[order]) > strengths[first] - strengths[other])
            start = int(reach[0]) + 1 if len(reach) else self.votes.n // 2
            most = self.votes.n - 1 if best is None else best[0] - 1
            found = self._fewest(order, first, other, start, most)
            if found is not None and (best is None or found < best[0]):
                best = found, other
        names = self.votes.models
        return None if best is None else Upset(best[0], self.votes.n, names[first], names[best[1]])

    def _fewest(self, order: Integers, first: int, other: int, start: int, most: int) -> int | None:
        """Return how many of these votes must go for `other` to be above `first`, at most `most`; by bisection.

        `order` has the places of votes, shape (v,); the first of them go first.
        """
        low, high = 0, min(max(start, 1), most)
        while high >= 1 and not self._is_above(order[high:], first, other):
            if high >= most:
                return None
            low, high = high, min(max(high + 1, high * 5 // 4), most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_above(order[middle:], first, other) else (middle, high)
        return high if high >= 1 else None

    def _is_above(self, kept: Integers, first: int, other: int) -> bool:
        votes = self.votes
        try:
            fit = fit_strengths(votes.left[kept], votes.right[kept], votes.outcome[kept], len(votes.models))
        except DataError:
            return False
        return bool(fit.strengths[other] > fit.strengths[first])


def record_of(votes: Votes) -> dict[str, tuple[int, float, float, float]]:
    """Return the votes of each model, and the shares of them that it won, tied and lost."""
    found = {}
    for number, model in enumerate(votes.models):
        _, points = votes.points(number)
        shares = [float((points == outcome).mean()) for outcome in (1.0, 0.5, 0.0)]
        found[model] = (len(points), shares[0], shares[1], shares[2])
    return found
