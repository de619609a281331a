"""Parts that scored samples and votes are in: kinds of a board, labels of sets, and columns of the tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.judges.paired import Integers
from finc_eval.judges.parts import KIND, Division
from finc_eval.judges.scores import SampleScores, match_ids
from finc_eval.judges.votes import Votes
from finc_eval.partitions.answer import kind_id
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS


class Dividing:
    """Divides scored samples and votes by kinds, and by columns of texts."""

    def __init__(self, kinds: KindTree, sets: Mapping[str, Embeddings], by: str | None, run: Run) -> None:
        self._tree, self._sets, self._by, self._run = kinds, sets, by, run
        parts = range(kinds.tree.nodes - 1)  # the last node is everything
        self._names, self._members = tuple(map(kind_id, parts)), kinds.tree.members[: len(parts)]
        self._leaves: dict[str, Integers] = {}

    def kinds(self, model: str, rows: Integers) -> Division:
        """Divide rows of a model's set into kinds; −1 stands for none."""
        if model not in self._leaves:
            parts = [self._tree.assign(one.rows, self._run)[0] for one in self._sets[model].batches()]
            self._leaves[model] = np.concatenate(parts).astype(np.int64)
        return Division(self._names, np.where(rows >= 0, self._leaves[model][rows], -1), self._members)

    def of_scores(
        self, scores: Mapping[str, SampleScores], rows: Mapping[str, Integers]
    ) -> dict[str, dict[str, Division]]:
        """Divide the scored samples of each model, into the same parts for all models."""
        texts: dict[str, dict[str, list[str]]] = {}
        for model, one in scores.items():
            own = self._sets[model]
            wanted = {self._by, *LABEL_KEYS} & {*own.columns}
            for by in sorted(column for column in wanted if column):
                values = own.column(by)
                texts.setdefault(by, {})[model] = [values[row] if row >= 0 else "" for row in rows[model]]
            for by, labels in one.labels.items():
                texts.setdefault(by, {})[model] = list(labels)
        found = {model: self._of_kinds(model, rows) for model in scores}
        for by, of_models in texts.items():
            names = sorted({one for own in of_models.values() for one in own} - {""})
            place = {name: number for number, name in enumerate(names)}
            for model, one in scores.items():
                cells = [place.get(text, -1) for text in of_models.get(model, [""] * one.n)]
                found[model][by] = Division(tuple(names), np.array(cells, np.int64), np.eye(len(names), dtype=bool))
        return found

    def _of_kinds(self, model: str, rows: Mapping[str, Integers]) -> dict[str, Division]:
        has = any((own >= 0).any() for own in rows.values())
        return {KIND: self.kinds(model, rows[model])} if has else {}

    def of_votes(self, votes: Votes) -> dict[str, dict[str, Division]]:
        """Divide votes by the kind of what each model shows, where its samples have prompts, one or more each."""
        found = {}
        for model in votes.models:
            own = self._sets[model]
            if PROMPT_KEYS[0] in own.columns:
                row_of = {text: row for row, text in reversed([*enumerate(own.column(PROMPT_KEYS[0]))])}
                found_rows = np.array([row_of.get(text, -1) for text in votes.prompts], np.int64)
            else:
                found_rows = match_ids(votes.prompts, own.ids_between(0, own.n))
            rows = found_rows[votes.prompt]
            if (rows >= 0).any():
                found[model] = {KIND: self.kinds(model, rows)}
        return found
