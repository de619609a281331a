"""Parts that scored samples and votes are in: kinds of a board, labels of sets, columns of the tables, and looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.judges.paired import Array, Integers
from finc_eval.judges.parts import KIND, LOOK, Division
from finc_eval.judges.sample_scores import SampleScores
from finc_eval.judges.scores import match_ids
from finc_eval.judges.votes import Votes, well_formed
from finc_eval.naming.measured import LOOKED, looks_of, measure_rows
from finc_eval.naming.traits import Trait
from finc_eval.numerics.arrays import without_fold
from finc_eval.partitions.answer import kind_id
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS

PART_OF_LOOK = 0.2
"""Part of the samples of all models with the most, and with the least, of a trait that have a look.

Of 60 draws of 300 samples of three models with 20 traits, a gain that falls with a trait by 0.4 a standard deviation
is found in 75 % with a fifth, in 38 % with a tenth and in 12 % with a twentieth."""


class Dividing:
    """Divides scored samples and votes by kinds, by columns of texts, and by looks."""

    def __init__(self, kinds: KindTree, sets: Mapping[str, Embeddings], by: str | None, run: Run) -> None:
        self._tree, self._sets, self._by, self._run = kinds, sets, by, run
        parts = range(kinds.tree.nodes - 1)  # the last node is everything
        self._names, self._members = tuple(map(kind_id, parts)), kinds.tree.members[: len(parts)]
        self._leaves: dict[str, Integers] = {}

    def kinds(self, model: str, rows: Integers) -> Division:
        """Divide rows of a model's set into kinds; −1 stands for none."""
        if model not in self._leaves:
            parts = [self._tree.assign(batch.rows, self._run)[0] for batch in self._sets[model].batches()]
            self._leaves[model] = np.concatenate(parts).astype(np.int64)
        return Division(self._names, np.where(rows >= 0, self._leaves[model][rows], -1), self._members)

    def of_scores(
        self, scores: Mapping[str, SampleScores], rows: Mapping[str, Integers]
    ) -> dict[str, dict[str, Division]]:
        """Divide the scored samples of each model, into the same parts for all models."""
        return self._divide(rows, {model: table.labels for model, table in scores.items()})

    def of_votes(self, votes: Votes) -> dict[str, dict[str, Division]]:
        """Divide votes by what each model shows: the first of its samples that have the prompt."""
        rows = {}
        for model in votes.models:
            first = [
                int(of_prompt[0]) if len(of_prompt) else -1 for of_prompt in rows_by_prompt(votes, self._sets[model])
            ]
            rows[model] = np.array(first, np.int64)[votes.prompt]
        return self._divide({model: of_model for model, of_model in rows.items() if (of_model >= 0).any()}, {})

    def _divide(
        self, rows: Mapping[str, Integers], labels: Mapping[str, Mapping[str, Sequence[str]]]
    ) -> dict[str, dict[str, Division]]:
        """Divide rows of the sets of models by their kinds, labels and looks, and by further labels."""
        texts: dict[str, dict[str, Sequence[str]]] = {}
        for model, of_model in rows.items():
            wanted = {self._by, *LABEL_KEYS} & {*self._sets[model].columns}
            for by in sorted(column for column in wanted if column):
                values = self._sets[model].column(by)
                texts.setdefault(by, {})[model] = [values[row] if row >= 0 else "" for row in of_model]
            for by, given in labels.get(model, {}).items():
                texts.setdefault(by, {})[model] = given
        is_any = any((of_model >= 0).any() for of_model in rows.values())
        found = {model: {KIND: self.kinds(model, of_model)} if is_any else {} for model, of_model in rows.items()}
        for by, of_models in texts.items():
            names = sorted({label for texts_of_model in of_models.values() for label in texts_of_model} - {""})
            place = {name: number for number, name in enumerate(names)}
            for model, of_model in rows.items():
                cells = [place.get(text, -1) for text in of_models.get(model, [""] * len(of_model))]
                found[model][by] = Division(tuple(names), np.array(cells, np.int64), np.eye(len(names), dtype=bool))
        for model, division in self._looks(rows).items():
            found[model][LOOK] = division
        return found

    def _looks(self, rows: Mapping[str, Integers]) -> dict[str, Division]:
        """Divide at most `LOOKED` samples of each model by looks, which may overlap; cells of others are not known."""
        traits: tuple[Trait, ...] = ()
        values: dict[str, Array] = {}
        looked = {model: _looked(self._sets[model], of_model) for model, of_model in rows.items()}
        for model, chosen in looked.items():
            traits, measured = looks_of(self._sets[model]), measure_rows(self._sets[model], chosen)
            if measured is None:
                return {}
            values[model] = measured
        if not sum(map(len, looked.values())):
            return {}
        names, has = _have_looks(traits, np.concatenate([*values.values()]))
        cells, cell = np.unique(has, axis=0, return_inverse=True)
        ends, found = np.cumsum([0, *map(len, looked.values())]), {}
        for place, (model, chosen) in enumerate(looked.items()):
            of_row = np.full(self._sets[model].n + 1, -1)  # the last one stands for row −1
            of_row[chosen] = cell[ends[place] : ends[place + 1]]
            found[model] = Division(names, of_row[rows[model]], cells.T)
        return found


def _looked(samples: Embeddings, rows: Integers) -> Integers:
    """Return at most `LOOKED` of the rows, drawn by the ids of their samples."""
    known = np.unique(rows[rows >= 0])
    if len(known) <= LOOKED:
        return known
    return np.sort(known[np.argpartition(without_fold(samples.id_keys())[known], LOOKED)[:LOOKED]])


def _have_looks(traits: Sequence[Trait], values: Array) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return the names of looks, and which samples have each of them, shape (n, looks)."""
    names, has = [], []
    for trait, column in zip(traits, values.T, strict=True):
        low, high = np.quantile(column, [PART_OF_LOOK, 1 - PART_OF_LOOK]) if trait.least is None else [trait.least] * 2
        sides = (trait.low, column < low), (trait.high, column > high if trait.least is None else column >= high)
        for name, inside in sides:
            if name is not None and inside.any():
                names.append(name)
                has.append(inside)
    return tuple(names), np.array(has, bool).reshape(len(names), len(values)).T


def rows_by_prompt(votes: Votes, samples: Embeddings) -> list[Integers]:
    """Return the rows of the samples of a set that have each prompt of votes, or that have it as their id."""
    if PROMPT_KEYS[0] not in samples.columns:
        rows = match_ids(votes.prompts, samples.ids_between(0, samples.n))
        return [np.array([row] if row >= 0 else [], np.int64) for row in rows]
    exact: dict[str, list[int]] = {}
    stripped: dict[str, list[int]] = {}
    for row, text in enumerate(map(well_formed, samples.column(PROMPT_KEYS[0]))):
        exact.setdefault(text, []).append(row)
        stripped.setdefault(text.strip(), []).append(row)
    return [np.array(exact.get(text) or stripped.get(text.strip(), []), np.int64) for text in votes.prompts]
