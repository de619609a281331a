"""`SampleScores`: numbers that judges give to samples of a model, by id, prompt and seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.words import join_words
from finc_eval.judges.weighting import Weighting

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampleScores:
    """Scores of the samples of one model."""

    name: str  # name of the table in messages
    judges: dict[str, Array]  # score of each sample by the name of the judge, shape (n,); NaN where it is missing
    ids: tuple[str, ...]  # id of each sample; row numbers where the table has none
    prompts: tuple[str, ...]  # prompt of each sample; its id where the table has none
    has_ids: bool  # whether the table has ids
    has_prompts: bool  # whether the table has prompts
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns of texts with few values
    seeds: tuple[str, ...] = ()  # number of each sample among those of its prompt; empty texts without one
    has_names: bool = True  # whether ids name samples; False for ids that a layout makes from prompts
    known: frozenset[str] = frozenset()  # judges that are known to be judges, by the layout or because they were named
    stated: dict[str, float] = field(default_factory=dict)  # what the file states for the whole model, by judge
    weighted: dict[str, Weighting] = field(default_factory=dict)  # rule of a benchmark by judge, of the n samples
    is_numbered: bool = False  # whether ids are the last numbers of the names of samples
    repeats: dict[str, Array] = field(
        default_factory=dict
    )  # scores by repeat and sample, (k, n), NaN without; by judge
    repeat_names: tuple[str, ...] = ()  # names of the k repeats
    versions: dict[str, str] = field(default_factory=dict)  # version of a judge, as its table or its file says
    unnamed: str = ""  # path of a table whose judge has no name
    notes: tuple[str, ...] = ()  # what to know of the table

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.ids)

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """Id, prompt and seed of each sample; empty texts for those that the table does not have."""
        ids = self.ids if self.has_ids else ("",) * self.n
        prompts = self.prompts if self.has_prompts else ("",) * self.n
        return [*zip(ids, prompts, self.seeds or ("",) * self.n, strict=True)]

    def reported(self, judge: str) -> float | None:
        """Return what the file states of the model by a judge, or what the rule of its benchmark gives, if any."""
        if judge in self.stated or judge not in self.weighted:
            return self.stated.get(judge)
        number = self.weighted[judge].number(self.judges[judge])
        return number if np.isfinite(number) else None


def rules_of(judge: str, scores: Mapping[str, SampleScores], models: Iterable[str]) -> dict[str, Weighting]:
    """Return how benchmarks sum the scores of models by a judge; {} unless that is known of all that have the judge."""
    having = [name for name in models if judge in scores[name].judges]
    if not all(judge in scores[name].weighted for name in having):
        return {}
    return {name: scores[name].weighted[judge] for name in having}


def version_of(judge: str, scores: Mapping[str, SampleScores]) -> str:
    """Return which version of a judge scored all models, as far as their tables say; DataError if versions differ."""
    found = {name: table.versions[judge] for name, table in scores.items() if judge in table.versions}
    if len({*found.values()}) > 1:
        raise unlike_versions(judge, found)
    return next(iter(found.values()), "")


def unlike_versions(judge: str, versions: Mapping[str, str]) -> DataError:
    """Return the error for scores that unlike versions of a judge gave, by what has the scores."""
    said = join_words([f"{name} by version {version}" for name, version in versions.items()])
    return DataError(
        f"{judge} scored {said}: scores of unlike versions do not compare; score all with one, or give the versions "
        "names of their own"
    )
