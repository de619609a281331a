"""Captions of the samples that a page shows: their metadata, and the nearest sample of the other set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.search.neighbors import nearest

Captions = dict[str, dict[str, tuple[str, ...]]]
"""Lines on a sample, by the label of its set and its id."""

MAX_LENGTH = 300
"""Characters of a value of the metadata; prompts may be pages long."""


def captions_of(sets: Mapping[str, Embeddings], shown: Mapping[str, Iterable[str]], run: Run) -> Captions:
    """Describe the samples that a page shows, each set read once in portions.

    Args:
        sets: the generated and the reference set, by label.
        shown: ids of the samples to show, by label. Of those of the generated set the nearest reference sample is told.
        run: device and progress.
    """
    found: Captions = {}
    rows: dict[str, dict[str, int]] = {}
    for label, one in sets.items():
        known = one.metadata_of(set(shown.get(label, ())))
        rows[label] = {name: row for name, (row, _) in known.items()}
        found[label] = {name: tuple(_line(*pair) for pair in values.items()) for name, (_, values) in known.items()}
    names, places = list(rows["gen"]), np.array(list(rows["gen"].values()), np.int64)
    if names:
        near = nearest(ArrayEmbeddings(sets["gen"].rows_at(places)), sets["ref"], 1, device=run.device)
        others = sets["ref"].ids_at(near.indices[:, 0])
        for name, other, distance in zip(names, others, near.distances[:, 0], strict=True):
            found["gen"][name] += (f"nearest reference sample: {other}, at distance {distance:.3g}",)
    return found


def checked_captions(stored: Any) -> Captions:
    """Return captions that were read from a file, as texts."""
    return {
        str(label): {str(name): tuple(map(str, lines)) for name, lines in of_set.items()}
        for label, of_set in stored.items()
    }


def _line(column: str, value: str) -> str:
    return f"{column}: {value if len(value) <= MAX_LENGTH else value[:MAX_LENGTH] + '…'}"
