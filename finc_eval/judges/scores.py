"""`SampleScores`: numbers that judges give to samples of a model, by id, prompt and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.words import join_words
from finc_eval.judges.layouts import EXPECTED, rows_of
from finc_eval.judges.rows import Row, RowTable, find_column, number_of, read_table, text_of
from finc_eval.samples.metadata import LABEL_KEYS, NAME_KEYS, PROMPT_KEYS

Array = NDArray[np.float64]

ID_KEYS = ("id", "sample_id", *NAME_KEYS, "image_path", "video_path")
SEED_KEYS = ("seed", "sample", "index", "iteration")  # columns that number the samples of a prompt
MODEL = "model"  # column that says whose samples the rows of one table are


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

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.ids)


def read_scores(source: object, models: Sequence[str]) -> dict[str, SampleScores]:
    """Read scores of models by name: a table for each, or one table with a column "model".

    Args:
        source: tables by model, or one table. A table is a path, a frame, columns by name, rows, or one number a
            sample.
        models: names of the models of the board.

    Raises:
        UsageError: a model is not on the board.
        DataError: a table has no numeric column, or names a sample twice.
    """
    if isinstance(source, Mapping) and source and all(not _is_number(one) for one in source.values()):
        if strange := [str(one) for one in source if one not in models]:
            if find_column([source], MODEL) is None:
                raise UsageError(
                    f"scores are given for {join_words(strange)}, which the board does not have"
                    f"{did_you_mean(strange[0], models)}: it has {join_words(list(models))}"
                )
        else:
            return {str(name): _of_table(read_table(one, f"scores of {name}")) for name, one in source.items()}
    table = read_table(source, "scores")
    rows = rows_of(table)
    column = find_column(rows, MODEL)
    if column is None:
        raise DataError(
            f"{table.name} does not say whose samples it scores: give a file for each model, NAME=FILE, or a column "
            f'"{MODEL}"'
        )
    by_model: dict[str, list[Row]] = {}
    for number, row in enumerate(rows):
        name = text_of(row.get(column))
        if name not in models:
            raise DataError(
                f"{table.place(number)} has the model {name!r}, which the board does not have"
                f"{did_you_mean(name, models)}: it has {join_words(list(models))}"
            )
        by_model.setdefault(name, []).append({key: value for key, value in row.items() if key != column})
    return {name: scores_of(own, f"{table.name}, {name}") for name, own in by_model.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _of_table(table: RowTable) -> SampleScores:
    return scores_of(rows_of(table), table.name, table.first)


def scores_of(rows: Sequence[Row], name: str, first: int = 1) -> SampleScores:
    """Return the scores of rows: every column of numbers is a judge, and columns of few texts divide the samples.

    `first` is the number of the first row in messages.
    """
    key, text, seed = (find_column(rows, *keys) for keys in (ID_KEYS, PROMPT_KEYS, SEED_KEYS))
    columns = dict.fromkeys(column for row in rows for column in row if str(column).strip())
    judges: dict[str, Array] = {}
    labels: dict[str, tuple[str, ...]] = {}
    for column in [one for one in columns if one not in (key, text, seed)]:
        found = _values_of(rows, column, name, first)
        if found is None:
            texts = tuple(text_of(row.get(column)) for row in rows)
            if 2 <= len({*texts} - {""}) <= 40:  # more are names, or sentences
                labels[str(column).strip()] = texts
        elif not np.isnan(found).all():
            judges[str(column).strip()] = found
    if not judges:
        known = [str(one) for one in columns]
        if any(_is_empty(rows, one) for one in columns if one not in (key, text, seed)):
            raise DataError(f"{name} has no number in any row of {join_words(known)}: fill some in, or leave it out")
        raise DataError(f"{name} has no column of numbers, only {join_words(known) or 'nothing'}: {EXPECTED}")
    ids, prompts, seeds = ([text_of(row.get(one)) if one else "" for row in rows] for one in (key, text, seed))
    _check_once(name, ids, prompts, seeds, key is not None)
    named = [one or str(number) for number, one in enumerate(ids)]
    return SampleScores(
        name=name,
        judges=judges,
        ids=tuple(named),
        prompts=tuple(prompt or one for prompt, one in zip(prompts, named, strict=True)),
        has_ids=key is not None,
        has_prompts=text is not None,
        labels=labels,
    )


def _is_empty(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column may be of numbers and has none."""
    numbers = [number_of(row.get(column)) for row in rows]
    return all(one is not None and np.isnan(one) for one in numbers)


def _values_of(rows: Sequence[Row], column: str, name: str, first: int) -> Array | None:
    """Return a column of numbers, NaN where it is empty; None for labels and other texts."""
    numbers = [number_of(row.get(column)) for row in rows]
    if str(column).strip().lower() in LABEL_KEYS:
        return None
    if None not in numbers:
        values = np.array(numbers, float)
        if np.isinf(values).any():
            number = int(np.isinf(values).argmax()) + first
            raise DataError(f"row {number} of {name} has an infinite {column}: remove it")
        return values
    if _is_judged(numbers):
        number = numbers.index(None)
        value = f"{text_of(rows[number].get(column))!r:.60}"
        raise DataError(f"row {number + first} of {name} has {column} {value}, not a number: correct it")
    return None


def _is_judged(numbers: Sequence[float | None]) -> bool:
    """Return whether a column is of numbers but for few cells, so that these are mistakes."""
    known = sum(one is not None for one in numbers)
    return 0 < len(numbers) - known <= known / 9


def _check_once(name: str, ids: Sequence[str], prompts: Sequence[str], seeds: Sequence[str], has_ids: bool) -> None:
    """Raise DataError if a sample is scored twice."""
    if has_ids:
        twice, count = Counter(ids).most_common(1)[0]
        if count > 1 and twice:
            raise DataError(f"{name} scores {twice!r} {count} times: keep one row a sample")
    elif any(seeds):
        (prompt, seed), count = Counter(zip(prompts, seeds, strict=True)).most_common(1)[0]
        if count > 1:
            raise DataError(f"{name} scores seed {seed} of {prompt!r:.60} {count} times: keep one row a sample")


def _end(path: str, parts: int) -> str:
    """Return the last parts of a path."""
    return "/".join(PurePosixPath(path.replace("\\", "/")).parts[-parts:])


def match_ids(scored: Sequence[str], samples: Sequence[str]) -> NDArray[np.int64]:
    """Return the row of the set that each scored id is of, shape (n,); −1 for none.

    Ids are equal, or the ends of their paths are, such as their file names, or these without their endings.
    """
    ends = [partial(_end, parts=count) for count in (4, 3, 2, 1)]
    forms: tuple[Callable[[str], str], ...] = (str, *ends, lambda one: PurePosixPath(one).stem)
    for form in forms:
        rows: dict[str, int] = {}
        count = Counter(map(form, samples))
        for row, one in enumerate(samples):
            if count[form(one)] == 1:
                rows[form(one)] = row
        found = np.array([rows.get(form(one), -1) for one in scored], np.int64)
        if (found >= 0).any():
            return found
    return np.full(len(scored), -1)
