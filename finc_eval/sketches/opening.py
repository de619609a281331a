"""Sets that are compared: sketches beside embeddings, and what is not independent in them as groups."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations
from pathlib import Path
from typing import cast

from finc_eval.core.device import Device
from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.needs import no_groups
from finc_eval.embeddings.opening import form_of, unmerged_error
from finc_eval.embeddings.recipe import check_alike
from finc_eval.embeddings.repeats import REPEATS, repeats_as_groups, warn_of_ungrouped
from finc_eval.embeddings.same_names import join_columns
from finc_eval.embeddings.set_info import unlike_files
from finc_eval.sketches.sketch import Sketch

SetInput = Embeddings | Sketch  # a set as it was opened


def as_sketch(source: object, device: Device = None) -> Sketch | None:
    """Open a set that is a sketch, or the path of one, on a device; None for any other.

    Without a device a sketch in memory stays where it is, and a file is read to the CPU.
    """
    return open_sketch(source, device) if form_of(source) == "sketch" else None


def open_sketch(source: object, device: Device = None) -> Sketch:
    """Open a sketch, or the path of one, on a device; see `as_sketch`."""
    path = source if isinstance(source, str | Path) else None
    sketch = cast(Sketch, source) if path is None else Sketch.load(path, device or "cpu")
    sketch = sketch if device is None else sketch.to(device)
    if sketch.shards:
        raise unmerged_error(str(path or "the sketch"), sketch.shards[0])
    return sketch


def group_sets(sets: Mapping[str, SetInput], column: str | None, run: Run) -> tuple[dict[str, SetInput], list[str]]:
    """Return sets that are compared, with groups of what is not independent, and sentences.

    The sentences say what to know of several sets together: what is not independent, values of columns that are written
    in several ways, which get one spelling, and files that are encoded unlike.

    Samples are grouped by the column; a set without it keeps its own grouping. Where a set has none, exact repeats are
    its groups.
    """
    for (name, held), (other_name, other) in combinations(sets.items(), 2):
        check_alike(name, held, other_name, other)
    embeddings, sentences = join_columns(
        {label: embeddings for label, embeddings in sets.items() if isinstance(embeddings, Embeddings)}
    )
    if column is not None:
        columns_of = [
            given_set.columns
            if isinstance(given_set, Embeddings)
            else ()
            if given_set.groups is None
            else (given_set.groups,)
            for given_set in sets.values()
        ]
        known = list(dict.fromkeys(chain(*columns_of)))
        if column not in known:
            kept = [label for label, each in sets.items() if isinstance(each, Sketch) and column in each.sample.columns]
            if kept:
                raise UsageError(
                    f"{kept[0]} is a sketch, which has the groups that it was made with: give the column {column!r} as "
                    "groups where it is made, or leave groups out"
                )
            raise no_groups(column, known, [*sets])
        for label, held in embeddings.items():
            sentences += warn_of_ungrouped(label, held, column)
            if column in held.columns:
                embeddings[label] = held.grouped(column)
    sentences += chain(*unlike_files(embeddings).values())
    grouped, on_repeats = repeats_as_groups(view_rows({**sets, **embeddings}), run)
    by_repeats = {
        label: given_set.grouped_by_repeats()
        for label, given_set in sets.items()
        if isinstance(given_set, Sketch) and label in grouped and grouped[label].grouping == REPEATS != given_set.groups
    }
    return {**sets, **{label: grouped[label] for label in embeddings}, **by_repeats}, sentences + on_repeats


def view_rows(sets: Mapping[str, SetInput]) -> dict[str, Embeddings]:
    """Return the embeddings of sets by label, with those that sketches hold as groups of their own.

    The sample of a sketch stands for its set, whose repeats are counted. If they are not, or its groups are unknown, it
    only shows what the other sets share with it.
    """
    rows_by_set: dict[str, Embeddings] = {}
    for label, given_set in sets.items():
        if isinstance(given_set, Embeddings):
            rows_by_set[label] = given_set
        elif given_set.repeats is not None and (held := given_set.held(label)) is not None:
            rows_by_set[label] = held
        elif len(rows := given_set.sample.rows):
            rows_by_set[label] = ArrayEmbeddings(rows, label).with_groups(given_set.sample.keys, "sketch")
    return rows_by_set
