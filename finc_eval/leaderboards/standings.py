"""`Standing`, `Row` and `Criterion`: a model by one number, by all numbers, and all models by one number.

A standing keeps the number and the interval of an `Estimate`, with the rank among other models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import computed_field, model_validator

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.signature import SignatureText
from finc_eval.findings.facts import short
from finc_eval.findings.finding import Finding
from finc_eval.findings.visible import Visible
from finc_eval.naming.evidence import is_unnamed
from finc_eval.partitions.answer import LARGEST


@dataclass(frozen=True)
class Standing(Record):
    """A number of one model, and its rank by it.

    Attributes:
        value: the number, without the bias of finite sets; None if it could not be computed.
        interval: 95 % interval of it, of this model alone; None if it is not known.
        rank_set: lowest and highest rank that the model may have; all rank sets of one number hold together with
            probability 0.95. None if the model is not ranked.
        group: number of its group, from 1: models of a group cannot be distinguished from the best one in it.
        reason: why it is not ranked; None if it is.
        sampling_error: standard error of the number from the drawing of samples; None if it is not known.
        training_error: standard error of the number from the training of the model; None if no model of the board
            was trained more than once.
        floor: what samples of the reference get instead, as many as the model has; None if it is not known.
    """

    value: float | None
    interval: tuple[float, float] | None
    rank_set: tuple[int, int] | None
    group: int | None
    reason: str | None = None
    sampling_error: float | None = None
    training_error: float | None = None
    floor: float | None = None


@dataclass(frozen=True)
class ScoreStanding(Record):
    """A model by the scores of a judge.

    Attributes:
        judge: name of the judge, which is a key of the board's numbers.
        name: name of the model.
        value: mean score over prompts, or the number that the rule of its benchmark gives; None if the model has no
            scores.
        interval: 95 % interval of it, of this model alone, with prompts as clusters; None if it is not ranked.
        rank_set: lowest and highest rank that the model may have; None if it is not ranked.
        higher_is_better: whether a better model has a higher value.
        prompts: number of prompts behind the value.
        reported: what the file of a benchmark states for the whole model, or what the benchmark prints of such a file;
            None for scores of no benchmark. It equals `value`, or a warning says why not.
    """

    judge: str
    name: str
    value: float | None
    interval: tuple[float, float] | None
    rank_set: tuple[int, int] | None
    higher_is_better: bool
    prompts: int
    reported: float | None = None


@dataclass(frozen=True)
class VoteStanding(Record):
    """A model by votes.

    Attributes:
        name: name of the model.
        value: its strength: log odds of winning against a model of mean strength; None if it has no votes.
        interval: 95 % interval of it, of this model alone, with prompts and voters as clusters; None without votes.
        rank_set: lowest and highest rank that the model may have; None without votes.
        votes: number of votes that it is in.
        won, tied, lost: shares of these votes.
        equal: its strength if all models showed the same of the covariates; None without covariates.
        equal_interval: 95 % interval of it.
        equal_rank_set: lowest and highest rank that the model may have by it.
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None
    rank_set: tuple[int, int] | None
    votes: int
    won: float
    tied: float
    lost: float
    equal: float | None = None
    equal_interval: tuple[float, float] | None = None
    equal_rank_set: tuple[int, int] | None = None


@dataclass(frozen=True)
class Row(Record):
    """A model of a leaderboard.

    Attributes:
        name: name of the model.
        rank_set: lowest and highest rank that it may have, by the number that orders the rows; None if it is not
            ranked.
        group: number of its group, from 1: models of a group cannot be distinguished from the best one in it.
        scores: its standing by each number.
        runs: number of training runs, over which its numbers are means.
        findings: in what its first training run differs from the reference, by name, the largest first. They are
            adjusted for all models of the board.
        is_searched: whether anybody looked for such differences.
        visible: which shares of faults would have been found; None where a fault was, and where it is not known.
    """

    name: str
    rank_set: tuple[int, int] | None
    group: int | None
    scores: dict[str, Standing]
    runs: int = 1
    findings: tuple[Finding, ...] = ()
    is_searched: bool = True
    visible: Visible | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_earlier(cls, data: Any) -> Any:
        """Read a row of an earlier version, which kept its faults in words alone, or looked for none."""
        if not isinstance(data, Mapping) or "findings" in data:
            return data
        unknown = {"whole": False, "share_gen": None, "share_ref": None, "p_value": None}
        found = [
            {"name": fault.partition(" (")[0], "kind": "sets", "text": fault, **unknown}
            for fault in data.get("faults", ())
        ]
        return {**data, "findings": found, "is_searched": data.get("fault_size") is not None}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def faults(self) -> tuple[str, ...]:
        """The largest of its findings in words."""
        return tuple(finding.told("reference") for finding in self.findings[:LARGEST])

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fault_size(self) -> float | None:
        """Difference of the shares of the largest finding; 0 where nothing was found, None where nobody looked."""
        return max((finding.size for finding in self.findings), default=0.0) if self.is_searched else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fault(self) -> str:
        """All of its faults in one text, the largest with their shares; "" where nothing was found."""
        return "; ".join((*self.faults, *self._in_few_words(self.findings[LARGEST:])))

    @property
    def fault_names(self) -> tuple[str, ...]:
        """The largest fault in words, and the others, if they have a name, with their shares alone."""
        return (*self.faults[:1], *self._in_few_words(self.findings[1:]))

    def _in_few_words(self, findings: Sequence[Finding]) -> tuple[str, ...]:
        return tuple(short(finding) for finding in findings if not is_unnamed(finding.name))

    @property
    def titled(self) -> str:
        """Name with the largest fault, if one was found: no model stands as equal to others without it."""
        return f"{self.name} ({self.faults[0]})" if self.faults else self.name


@dataclass(frozen=True)
class Criterion(Record):
    """A number that models are ranked by.

    Attributes:
        key: name of the number, such as "missing" or "fd".
        title: what it is, in a few words.
        is_share: whether it is a share, between 0 and 1.
        higher_is_better: whether a better model has a larger value.
        names: names of the ranked models, best estimate first.
        groups: names of the models of each group, best first. All of a group cannot be distinguished from its first.
        p_values: p-value of "the first is not better than the second" for each two of `names`, adjusted for all
            ordered pairs (step-down); at most 0.05: it is surely better. 1 where the number of the second is better.
        separable_neighbors: number of models that can be distinguished from the next one.
        separable_pairs: number of pairs that can be distinguished.
        smallest_separable_gap: smallest difference of two models that can be distinguished; None if no two can be.
        training_error: standard deviation of the number between training runs of one model, without the noise of
            sampling; None if no model was trained more than once.
        signature: everything that changes the number, except the models.
    """

    key: str
    title: str
    is_share: bool
    higher_is_better: bool
    names: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    p_values: tuple[tuple[float, ...], ...]
    separable_neighbors: int
    separable_pairs: int
    smallest_separable_gap: float | None
    training_error: float | None
    signature: SignatureText

    @property
    def pairs(self) -> int:
        """Number of pairs of ranked models."""
        return len(self.names) * (len(self.names) - 1) // 2

    def p_value(self, first: str, second: str) -> float:
        """Return the adjusted p-value of "these two do not differ in this direction or the other", the smaller one.

        Raises:
            DataError: one of them is not ranked.
        """
        for name in (first, second):
            if name not in self._places:
                raise DataError(f"{name} is not ranked by {self.key}: see its reason in rows[…].scores")
        a, b = self._places[first], self._places[second]
        return min(self.p_values[a][b], self.p_values[b][a])

    def better(self, first: str, second: str, alpha: float) -> bool:
        """Return whether the first model is surely better than the second; False if one of them is not ranked."""
        if first not in self._places or second not in self._places:
            return False
        return self.p_values[self._places[first]][self._places[second]] <= alpha

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def run_label(name: str, number: int) -> str:
    """Return the label of a training run of a model; the first has the name of the model."""
    return name if number == 0 else f"{name}, run {number + 1}"
