"""Captions of the samples that a page shows: their metadata, and the nearest sample of the other set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.search.neighbors import nearest


class Caption(NamedTuple):
    """Facts of a sample, and the reference sample that is nearest to it.

    Attributes:
        facts: its metadata, one line a column.
        nearest: id of the nearest reference sample of a generated one, and its distance; None for a reference sample.
    """

    facts: tuple[str, ...]
    nearest: tuple[str, float] | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines under a picture."""
        if self.nearest is None:
            return self.facts
        return (*self.facts, f"nearest reference sample: {self.nearest[0]}, at distance {self.nearest[1]:.3g}")


Captions = dict[str, dict[str, Caption]]
"""Captions by the label of the set and the id of the sample."""

MAX_LENGTH = 300
"""Characters of a value of the metadata; prompts may be pages long."""


def captions_of(sets: Mapping[str, Embeddings], shown: Mapping[str, Iterable[str]], run: Run) -> Captions:
    """Describe the samples that a page shows, each set read once in portions.

    Args:
        sets: the generated and the reference set, by label.
        shown: ids of the samples to show, by label. The reference sample nearest to each generated sample is described
            as well.
        run: device and progress.
    """
    gen = sets["gen"].metadata_of(set(shown.get("gen", ())))
    nearest = _nearest({name: row for name, (row, _) in gen.items()}, sets, run)
    ref = sets["ref"].metadata_of({*shown.get("ref", ()), *(other for other, _ in nearest.values())})
    return {
        "gen": {name: Caption(_facts(values), nearest[name]) for name, (_, values) in gen.items()},
        "ref": {name: Caption(_facts(values)) for name, (_, values) in ref.items()},
    }


def stored_captions(captions: Captions, shown: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return the captions of the samples that a page shows as plain JSON types."""
    wanted = {label: {*shown[label]} for label in captions}
    return {
        label: {name: list(one) for name, one in of_set.items() if name in wanted[label]}
        for label, of_set in captions.items()
    }


def checked_captions(stored: Any) -> Captions:
    """Return captions that `stored_captions` gave and a file kept."""
    return {
        str(label): {str(name): _check(*parts) for name, parts in of_set.items()} for label, of_set in stored.items()
    }


def _check(facts: Iterable[object], nearest: Any) -> Caption:
    if nearest is None:
        return Caption(tuple(map(str, facts)))
    other, distance = nearest
    return Caption(tuple(map(str, facts)), (str(other), float(distance)))


def _nearest(rows: Mapping[str, int], sets: Mapping[str, Embeddings], run: Run) -> dict[str, tuple[str, float]]:
    """Return the nearest reference sample of generated samples, whose rows are given by id, and its distance."""
    if not rows:
        return {}
    own = sets["gen"].rows_at(np.array(list(rows.values()), np.int64))
    near = nearest(ArrayEmbeddings(own), sets["ref"], 1, device=run.device)
    others = sets["ref"].ids_at(near.indices[:, 0])
    return dict(zip(rows, zip(others, near.distances[:, 0].tolist(), strict=True), strict=True))


def _facts(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_line(*pair) for pair in values.items())


def _line(column: str, value: str) -> str:
    return f"{column}: {value if len(value) <= MAX_LENGTH else value[:MAX_LENGTH] + '…'}"
