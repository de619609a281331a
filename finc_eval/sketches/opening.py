"""Sets that are compared: sketches beside embeddings, and what is not independent in them as groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import torch

from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.files.front import file_type
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings, unmerged_error
from finc_eval.embeddings.recipe import check_alike
from finc_eval.embeddings.repeats import repeats_as_groups, warn_of_ungrouped
from finc_eval.sketches.sketch import Sketch
from finc_eval.sketches.stored import SKETCH

SetInput = Embeddings | Sketch
"""A set as it was opened."""


def as_sketch(source: object, device: str | torch.device = "cpu") -> Sketch | None:
    """Open a set that is a sketch, or the path of one; None for any other."""
    path = source if isinstance(source, str | Path) else None
    found = Sketch.load(path, device) if path is not None and file_type(path) == SKETCH else source
    if not isinstance(found, Sketch):
        return None
    if found.shards:
        raise unmerged_error(str(path or "the sketch"), found.shards[0])
    return found


def group_sets(sets: Mapping[str, SetInput], column: str | None, run: Run) -> tuple[dict[str, Embeddings], list[str]]:
    """Return the embeddings among sets that are compared, with groups of what is not independent, and sentences on it.

    Samples are grouped by the column; a set without it keeps its own grouping. Where a set has none, exact repeats are
    its groups.
    """
    for (name, one), (other_name, other) in combinations(sets.items(), 2):
        check_alike(name, one, other_name, other)
    sets, sentences = (sets, []) if column is None else _by_column(sets, column)
    grouped, on_repeats = repeats_as_groups(view_rows(sets), run)
    return {label: grouped[label] for label, one in sets.items() if isinstance(one, Embeddings)}, sentences + on_repeats


def view_rows(sets: Mapping[str, SetInput]) -> dict[str, Embeddings]:
    """Return the embeddings of sets by label, with those that sketches hold as groups of their own.

    The sample of a sketch shows what the other sets share with it; its own repeats are counted already.
    """
    found: dict[str, Embeddings] = {}
    for label, one in sets.items():
        if isinstance(one, Embeddings):
            found[label] = one
        elif len(rows := one.sample.rows):
            found[label] = as_embeddings(rows, label).with_groups(one.sample.keys, "sketch")
    return found


def _by_column(sets: Mapping[str, SetInput], column: str) -> tuple[dict[str, SetInput], list[str]]:
    has = {label: _columns(one) for label, one in sets.items()}
    if not any(column in columns for columns in has.values()):
        known = list(dict.fromkeys(name for columns in has.values() for name in columns))
        raise UsageError(
            f"none of {', '.join(sets)} has the column {column!r} that groups asks for{did_you_mean(column, known)}: "
            + (f"they have {', '.join(known)}" if known else "give the samples metadata (fe.EmbeddingSet, --metadata)")
        )
    rows = {label: one for label, one in sets.items() if isinstance(one, Embeddings)}
    grouped = {label: one.grouped(column) for label, one in rows.items() if column in one.columns}
    return {**sets, **grouped}, [line for label, one in rows.items() for line in warn_of_ungrouped(label, one, column)]


def _columns(one: SetInput) -> tuple[str, ...]:
    """Return the columns by which a set is, or can be, grouped."""
    if isinstance(one, Embeddings):
        return one.columns
    return () if one.groups is None else (one.groups,)
