"""Scores of samples: tables of one model or of several as `SampleScores`, and the samples that they are of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.columns_in import Columns
from finc_eval.core.words import join_words, plural, quote
from finc_eval.judges.asked_again import fold_repeats
from finc_eval.judges.joining import join_tables, name_unnamed
from finc_eval.judges.layouts.known import EXPECTED, scored
from finc_eval.judges.layouts.scored import MAX_SCORE, Scored, score_in
from finc_eval.judges.sample_scores import Array, SampleScores
from finc_eval.judges.tables import NamedColumns, find_column, is_file, is_number, number_of, read_table, shown, text_of
from finc_eval.samples.metadata import LABEL_KEYS, NAME_KEYS, PROMPT_KEYS

ID_KEYS = ("id", "sample_id", *NAME_KEYS, "image_path", "video_path")
SEED_KEYS = ("seed", "sample", "index", "iteration")  # columns that number the samples of a prompt
REPEAT_KEYS = ("repeat", "rater", "annotator", "attempt", "trial")  # columns that number the scores of one sample
VERSION_KEYS = ("judge_version", "judge_model")  # columns that say which version of a judge scored
MODEL = "model"  # column that says whose samples the rows of one table are
NAMING = (*ID_KEYS, *PROMPT_KEYS, *SEED_KEYS, *LABEL_KEYS)  # columns that name samples, unless they have fractions
NEVER_SCORES = ("id", "sample_id", PROMPT_KEYS[0], "seed")  # columns that name samples, whatever their values

NUMERAL = re.compile(r"[-+]?\d*[.,]?\d+\s*(?:%|/\s*\d+)?")  # "85 %", "4/5" and "0,83" are written for numbers


def read_scores(source: object, models: Sequence[str], wanted: Sequence[str] = ()) -> dict[str, SampleScores]:
    """Read scores of models by name: tables for each, or tables with a column "model".

    Args:
        source: tables by model, or one table, or paths of several. A table is a path, a frame, columns by name, rows,
            or one number a sample; a list of paths is several tables of one model.
        models: names of the models of the board.
        wanted: columns that are scores even if they are called as ids or seeds are.

    Raises:
        UsageError: a model is not on the board.
        DataError: a table has no numeric column, or names a sample twice, or two tables contradict each other.
    """
    found: dict[str, list[SampleScores]] = {}
    for part in source if is_several(source) else [source]:
        for name, table in _read_part(part, models, wanted):
            found.setdefault(name, []).append(table)
    return {name: join_tables(name, tables) for name, tables in name_unnamed(found).items()}


def is_several(source: object) -> TypeGuard[Sequence[object]]:
    """Return whether scores are several tables: a list with a path in it, beside which are tables by model."""
    return isinstance(source, list | tuple) and any(isinstance(table, str | Path) for table in source)


def columns_in(scores: object) -> tuple[str, ...]:
    """Return scores that are names of columns; () for tables.

    Raises:
        UsageError: names of columns stand beside files.
    """
    is_text = isinstance(scores, str) and not (Path(scores).suffix or is_file(scores))
    given = str(scores).split(",") if is_text else scores
    if not isinstance(given, list | tuple) or not is_several(given):
        return ()
    names = [name.strip() for name in given if isinstance(name, str) and name.strip() and not is_file(name)]
    if names and len(names) < len(given):
        raise UsageError(
            f"scores names {join_words(names)} beside files, and no file is called so: give files alone, or names of "
            "columns of the sets alone"
        )
    return tuple(dict.fromkeys(names))


def _read_part(source: object, models: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[str, SampleScores]]:
    """Yield models and their scores from tables by model, or from one table with a column "model"."""
    if isinstance(source, Mapping) and source and not any(map(is_number, source.values())):
        if strange := [str(model) for model in source if model not in models]:
            if find_column(source, MODEL) is None:
                raise UsageError(
                    f"scores are given for {join_words(strange[:5])}, which the board does not have"
                    f"{did_you_mean(strange[0], models)}: it has {join_words(list(models))}"
                )
        else:
            for name, given in source.items():
                for part in given if _are_tables(given) else [given]:
                    yield str(name), scores_of(read_table(part, f"scores of {name}"), wanted)
            return
    table = read_table(source, "scores")
    layout = scored(table)
    column = find_column(layout.columns, MODEL)
    if column is None:
        raise DataError(
            f"{table.name} does not say whose samples it scores: give a file for each model, NAME=FILE, or a column "
            f'"{MODEL}"'
        )
    yield from _by_model(table, layout, column, models, wanted)


def _are_tables(source: object) -> bool:
    """Return whether what is given for a model is several tables, and not rows or numbers of one."""
    if not isinstance(source, list | tuple) or not source:
        return False
    if any(isinstance(table, str | Path) or hasattr(table, "columns") for table in source):
        return True
    values = [value for row in source if isinstance(row, Mapping) for value in row.values()]
    return bool(values) and all(isinstance(value, list | tuple | np.ndarray) for value in values)


def _by_model(
    table: NamedColumns, layout: Scored, column: str, models: Sequence[str], wanted: Sequence[str]
) -> Iterator[tuple[str, SampleScores]]:
    names = [text_of(cell) for cell in layout.columns[column]]
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    if strange := [model for model in rows if model not in models]:
        raise DataError(
            f"{table.place(rows[strange[0]][0])} has the model {strange[0]!r}, which the board does not have"
            f"{did_you_mean(strange[0], models)}: it has {join_words(list(models))}"
        )
    for name, of_model in rows.items():
        columns = {key: [values[row] for row in of_model] for key, values in layout.columns.items() if key != column}

        def place(row: int, of_model: Sequence[int] = of_model) -> str:
            return table.place(of_model[row])

        yield name, scores_in(replace(layout, columns=columns), f"{table.name}, {name}", place, wanted)


def scores_of(table: NamedColumns, wanted: Sequence[str] = ()) -> SampleScores:
    """Return the scores of a table of one model."""
    return replace(scores_in(scored(table), table.name, table.place, wanted), unnamed=table.unnamed)


def scores_in(
    layout: Scored, name: str, place: Callable[[int], str] | None = None, wanted: Sequence[str] = ()
) -> SampleScores:
    """Return the scores of columns: every column of numbers may be a judge, and columns of few texts divide samples.

    `place` says where a row is in messages; `wanted` are scores whatever their names are.
    """
    place = place or NamedColumns(name, layout.columns).place
    columns = {key: values for key, values in layout.columns.items() if str(key).strip()}
    free = [head for head in columns if head.strip() not in wanted and not _is_score(head, columns[head])]
    key, text, seed = (find_column(free, *keys) for keys in (ID_KEYS, PROMPT_KEYS, SEED_KEYS))
    repeat, version = (find_column(columns, *keys) for keys in (REPEAT_KEYS, VERSION_KEYS))
    others = [other for other in columns if other not in (key, text, seed, repeat, version) or other in wanted]
    judges, labels, notes = _judges_in(columns, others, place, wanted)
    if not judges:
        raise _without_judge(columns, others, name)
    n = len(next(iter(columns.values())))
    ids, prompts, seeds = ([*map(text_of, columns[head])] if head else [""] * n for head in (key, text, seed))
    has_ids = any(ids)
    repeats = [*map(text_of, columns[repeat])] if repeat and (has_ids or any(prompts)) else [""] * n
    _check_once(name, ids, prompts, seeds, has_ids, repeats)
    named = [id or str(number) for number, id in enumerate(ids)]
    table = SampleScores(
        name=name,
        judges=judges,
        ids=tuple(named),
        prompts=tuple(prompt or id for prompt, id in zip(prompts, named, strict=True)),
        has_ids=has_ids,
        has_prompts=text is not None,
        labels=labels,
        seeds=tuple(seeds),
        has_names=layout.has_names,
        known=frozenset(layout.judges or ()),
        stated=layout.stated,
        weighted=layout.weighted,
        is_numbered=layout.is_numbered,
        notes=tuple(notes),
        versions=_versions(columns, version, judges, name) | layout.versions,
    )
    return fold_repeats(table, repeats) if any(repeats) else table


def _judges_in(
    columns: Columns, names: Sequence[str], place: Callable[[int], str], wanted: Sequence[str]
) -> tuple[dict[str, Array], dict[str, tuple[str, ...]], list[str]]:
    """Return the columns of numbers and of few texts among these names, and what to know of others."""
    judges, labels, notes = dict[str, Array](), dict[str, tuple[str, ...]](), list[str]()
    for column in names:
        found = _values_of(columns[column], column, place, wanted)
        if found is None:
            notes += _say_unread(column.strip(), columns[column], place)
            texts = tuple(map(text_of, columns[column]))
            if 2 <= len({*texts} - {""}) <= 40:  # more are names, or sentences
                labels[column.strip()] = texts
        elif not np.isnan(found).all():
            judges[column.strip()] = found
    return judges, labels, notes


def _versions(columns: Columns, version: str | None, judges: Iterable[str], name: str) -> dict[str, str]:
    """Return the version that a column gives to all judges of a table; DataError if there are several."""
    if version is None:
        return {}
    found = [*dict.fromkeys(text for cell in columns[version] if (text := text_of(cell)))]
    if len(found) > 1:
        raise DataError(
            f"{name} has scores by {join_words(found[:3])} in {version}: scores of unlike versions do not compare; "
            "give each version a column of its own, or leave all but one out"
        )
    return dict.fromkeys(judges, found[0]) if found else {}


def _is_score(column: str, values: Sequence[object]) -> bool:
    """Return whether a column that may name samples, such as "text" or "index", has fractions, as no names have."""
    if find_column([column], *NEVER_SCORES) or not find_column([column], *NAMING):
        return False
    numbers = [number_of(value) for value in values]
    known = [number for number in numbers if number is not None and np.isfinite(number)]
    return None not in numbers and any(not number.is_integer() for number in known)


def _say_unread(column: str, values: Sequence[object], place: Callable[[int], str]) -> Iterator[str]:
    """Yield that texts keep a column of numbers, or of numerals such as "4/5", from being a score."""
    if column.lower() in LABEL_KEYS:
        return
    texts = [row for row, value in enumerate(values) if number_of(value) is None]
    given = sum(text_of(value) != "" for value in values)
    numerals = sum(isinstance(values[row], str) and bool(NUMERAL.fullmatch(str(values[row]).strip())) for row in texts)
    if texts and 2 * (given - len(texts) + numerals) >= given:
        yield (
            f"{column} is not read as a score: {len(texts):,} of {plural(given, 'cell')} "
            f"{'is a text' if len(texts) == 1 else 'are texts'}, such as {shown(values[texts[0]]):.60} in "
            f"{place(texts[0])}: write numbers, or leave the cells empty"
        )


def _without_judge(columns: Columns, others: Sequence[str], name: str) -> DataError:
    """Return the error for a table without a number."""
    known = [*columns]
    said = join_words([*known[:10], plural(len(known) - 10, "more column")] if len(known) > 11 else known)
    numbers = (map(number_of, columns[column]) for column in others)
    if any(all(number is not None and np.isnan(number) for number in cells) for cells in numbers):
        return DataError(f"{name} has no number in any row of {said}: fill some in, or leave it out")
    texts = (
        (column, value) for column in others for value in columns[column] if isinstance(value, str) and value.strip()
    )
    example = next((f" (the first {column} is {quote(value.strip()[:40])})" for column, value in texts), "")
    return DataError(f"{name} has no column of numbers, only {said or 'nothing'}{example}: {EXPECTED}")


def _values_of(
    values: Sequence[object], column: str, place: Callable[[int], str], wanted: Sequence[str]
) -> Array | None:
    """Return a column of numbers, NaN where it is empty; None for labels and other texts."""
    is_wanted = column.strip() in wanted
    if column.strip().lower() in LABEL_KEYS and not (is_wanted or _is_score(column, values)):
        return None
    numbers = [number_of(value) for value in values]
    if None in numbers:
        known = sum(number is not None for number in numbers)
        if not is_wanted and len(numbers) - known > known / 9:  # few cells that are not numbers are mistakes
            return None
        row = numbers.index(None)
        value = f"{shown(values[row]):.60}"
        raise DataError(f"{place(row)} has {column} {value}, not a number: correct it")
    found = np.array(numbers, float)
    if (large := np.flatnonzero(np.abs(found) > MAX_SCORE)).size:
        score_in(values[large[0]], place(int(large[0])), column)  # refuses it
    return found


def _check_once(
    name: str, ids: Sequence[str], prompts: Sequence[str], seeds: Sequence[str], has_ids: bool, repeats: Sequence[str]
) -> None:
    """Raise DataError if a sample is scored twice in one repeat."""
    what = "one row a sample, or number its rows in a column repeat" if not any(repeats) else "one row a repeat"
    if has_ids:
        for (twice, _), count in Counter(zip(ids, repeats, strict=True)).most_common(2):
            if count > 1 and twice:
                raise DataError(f"{name} scores {twice!r:.200} {count} times: keep {what}")
    elif any(seeds) or any(repeats):
        (prompt, seed, _), count = Counter(zip(prompts, seeds, repeats, strict=True)).most_common(1)[0]
        if count > 1:
            raise DataError(f"{name} scores seed {seed} of {prompt!r:.60} {count} times: keep {what}")


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def _end(path: str, parts: int) -> str:
    """Return the last parts of a path."""
    return "/".join(_parts(path)[-parts:])


def _stem(path: str) -> str:
    """Return the name of a file without its folder and its ending."""
    return splitext(_end(path, 1))[0]


def match_ids(scored: Sequence[str], samples: Iterable[str]) -> NDArray[np.int64]:
    """Return the row of the set that each scored id is of, shape (n,); −1 for none.

    Ids are equal, or the ends of their paths are, such as their file names, or these without their endings.
    """
    samples = [*samples]
    ends = [partial(_end, parts=count) for count in (4, 3, 2, 1)]
    forms: tuple[Callable[[str], str], ...] = (str, *ends, _stem)
    for form in forms:
        rows: dict[str, int] = {}
        formed = [*map(form, samples)]
        count = Counter(formed)
        for row, id in enumerate(formed):
            if count[id] == 1:
                rows[id] = row
        found = np.array([rows.get(form(id), -1) for id in scored], np.int64)
        if (found >= 0).any():
            return found
    return np.full(len(scored), -1)


def match_numbers(numbers: Sequence[str], samples: Iterable[str]) -> NDArray[np.int64]:
    """Return the row of the set whose name ends with each number, such as "a cat_000007.png" with 7; −1 for none.

    Numbers that several names end with are of none of them.
    """
    ends = [re.search(r"\d+$", _stem(name)) for name in samples]
    found = [-1 if end is None else int(end[0]) for end in ends]
    count = Counter(found)
    row_of = {number: row for row, number in enumerate(found) if count[number] == 1}
    return np.array([row_of.get(int(n), -1) if n.isdecimal() else -1 for n in numbers], np.int64)
