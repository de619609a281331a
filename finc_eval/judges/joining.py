"""Several tables of one model as one: a benchmark may write a file for each of its dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.words import join_words
from finc_eval.judges.asked_again import mean_of_repeats
from finc_eval.judges.sample_scores import SampleScores, unlike_versions
from finc_eval.judges.tables import SCORE
from finc_eval.judges.weighting import Weighting

Key = tuple[str, str, str]


def name_unnamed(tables: Mapping[str, Sequence[SampleScores]]) -> dict[str, list[SampleScores]]:
    """Return the tables of each model; judges without a name have that of their file, if all models share it.

    A file "one_niqe.txt" of the model "one" names "niqe".

    Raises:
        DataError: a model has several tables without a name that their files do not give.
    """
    given = {
        model: [_name_in(table.unnamed, model) for table in of_model if table.unnamed]
        for model, of_model in tables.items()
    }
    used = [sorted(names) for names in given.values() if names]
    by_file = (
        bool(used) and all(names == used[0] for names in used) and all(used[0]) and len({*used[0]}) == len(used[0])
    )
    for model, names in given.items():
        if len(names) > 1 and not by_file:
            files = join_words([table.unnamed for table in tables[model] if table.unnamed])
            raise DataError(f"{files} of {model} do not name their judges: write a heading to each, such as id,clip")
    return {
        model: [
            _renamed(table, _name_in(table.unnamed, model)) if table.unnamed and by_file else table
            for table in of_model
        ]
        for model, of_model in tables.items()
    }


def _name_in(path: str, model: str) -> str:
    """Return what the name of a file says besides the name of the model."""
    stem = PurePosixPath(path.replace("\\", "/")).stem
    return stem.replace(model, "").strip(" _-.")


def _renamed(table: SampleScores, name: str) -> SampleScores:
    return replace(table, judges={name if judge == SCORE else judge: values for judge, values in table.judges.items()})


def join_tables(model: str, tables: Sequence[SampleScores]) -> SampleScores:
    """Join the tables of a model: by ids if all have them, else by prompts and seeds, else by the numbers of rows.

    Raises:
        DataError: tables give unlike scores, or name their samples in unlike ways.
    """
    if len(tables) == 1:
        return tables[0]
    keys = [_keys(table, tables, model) for table in tables]
    place: dict[Key, int] = {}
    for of_table in keys:
        for key in of_table:
            place.setdefault(key, len(place))
    rows = [np.array([place[key] for key in of_table], np.int64) for of_table in keys]
    judges: dict[str, np.ndarray] = {}
    source: dict[str, np.ndarray] = {}
    for number, (table, at) in enumerate(zip(tables, rows, strict=True)):
        for judge, values in table.judges.items():
            known = judges.setdefault(judge, np.full(len(place), np.nan))
            of = source.setdefault(judge, np.zeros(len(place), np.int64))
            if not table.repeats:
                _check_alike(model, judge, tables, number, known[at], of[at])
            given = np.isfinite(values)
            known[at[given]], of[at[given]] = values[given], number
    return _joined(model, tables, rows, len(place), judges)


def _keys(table: SampleScores, tables: Sequence[SampleScores], model: str) -> list[Key]:
    """Return the keys by which the samples of a table are found in the others."""
    if all(each.has_ids for each in tables):
        return [(key[0], "", "") for key in table.keys]
    if all(each.has_prompts for each in tables):
        found = [("", prompt, seed) for _, prompt, seed in table.keys]
        if len({*found}) < len(found):
            raise DataError(f"{table.name} has a prompt several times without a seed: add a column seed, or id")
        return found
    if not any(each.has_ids or each.has_prompts for each in tables) and len({each.n for each in tables}) == 1:
        return [("", "", str(row)) for row in range(table.n)]
    names = join_words([each.name for each in tables])
    raise DataError(f"{names} of {model} name their samples in unlike ways: give each a column id, or each a prompt")


def _check_alike(
    model: str, judge: str, tables: Sequence[SampleScores], number: int, known: np.ndarray, of: np.ndarray
) -> None:
    """Raise DataError if a table before gave another score to a sample."""
    given = tables[number].judges[judge]
    unlike = np.flatnonzero(np.isfinite(known) & np.isfinite(given) & ~np.isclose(known, given, rtol=1e-6, atol=0))
    if len(unlike):
        row = int(unlike[0])
        raise DataError(
            f"{tables[int(of[row])].name} gives {judge} {known[row]:g} to {tables[number].ids[row]!r:.100} of {model}, "
            f"and {tables[number].name} {given[row]:g} ({len(unlike):,} such): take one of them out"
        )


def _joined(
    model: str, tables: Sequence[SampleScores], rows: Sequence[np.ndarray], n: int, judges: dict[str, np.ndarray]
) -> SampleScores:
    """Return one table; ids, prompts, seeds and labels are of the first table that has them."""

    def texts(of_table: Sequence[Sequence[str]]) -> tuple[str, ...]:
        found = [""] * n
        for of_rows, values in zip(rows, of_table, strict=True):
            for row, value in zip(of_rows.tolist(), values, strict=False):
                found[row] = found[row] or value
        return tuple(found)

    labels = dict.fromkeys(label for table in tables for label in table.labels)
    ids = texts([table.ids for table in tables])
    prompts = texts([table.prompts if table.has_prompts else () for table in tables])
    # What a file states is of its own samples.
    stated = [(judge, value) for table in tables for judge, value in table.stated.items()]
    alone = {judge for judge in judges if sum(judge in table.judges for table in tables) == 1}
    repeats = _joined_repeats(model, tables, rows, n, judges)
    return SampleScores(
        name=join_words([table.name for table in tables]),
        judges=judges,
        ids=ids,
        prompts=tuple(prompt or id for prompt, id in zip(prompts, ids, strict=True)),
        has_ids=all(table.has_ids for table in tables),
        has_prompts=any(table.has_prompts for table in tables),
        labels={label: texts([table.labels.get(label, ()) for table in tables]) for label in labels},
        seeds=texts([table.seeds for table in tables]),
        has_names=all(table.has_names for table in tables),
        known=frozenset[str]().union(*(table.known for table in tables)),
        stated={judge: value for judge, value in stated if judge in alone},
        weighted={judge: rule for judge in judges if (rule := _joined_rule(judge, tables, rows, n)) is not None},
        **repeats,
        versions=_joined_versions(tables),
        is_numbered=all(table.is_numbered for table in tables),
        notes=tuple(note for table in tables for note in table.notes),
    )


def _joined_rule(judge: str, tables: Sequence[SampleScores], rows: Sequence[np.ndarray], n: int) -> Weighting | None:
    """Return the rule of a judge over all samples, if all tables that have the judge have the same rule."""
    having = [number for number, table in enumerate(tables) if judge in table.judges]
    rules = [tables[number].weighted[judge] for number in having if judge in tables[number].weighted]
    return Weighting.joined(rules, [rows[number] for number in having], n) if len(rules) == len(having) else None


def _joined_repeats(
    model: str, tables: Sequence[SampleScores], rows: Sequence[np.ndarray], n: int, judges: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the repeats of all samples, whose means become the scores; a table without any is a repeat of its own."""
    if not any(table.repeats for table in tables):
        return {}
    names = [*dict.fromkeys(name for table in tables for name in table.repeat_names or ("",))]
    repeats = {judge: np.full((len(names), n), np.nan) for judge in judges}
    for table, at in zip(tables, rows, strict=True):
        for judge, values in table.judges.items():
            for name, given in zip(table.repeat_names or ("",), table.repeats.get(judge, values[None]), strict=True):
                known = repeats[judge][names.index(name)]
                both = np.isfinite(known[at]) & np.isfinite(given)
                if not np.allclose(known[at][both], given[both], rtol=1e-6, atol=0):
                    raise DataError(
                        f"{table.name} gives samples of {model} other {judge} than a table before, in {name}"
                    )
                known[at[np.isfinite(given)]] = given[np.isfinite(given)]
    judges |= {judge: mean_of_repeats(scores) for judge, scores in repeats.items()}
    return {"repeats": repeats, "repeat_names": tuple(names)}


def _joined_versions(tables: Sequence[SampleScores]) -> dict[str, str]:
    """Return the version of each judge; DataError if tables of one model have unlike ones."""
    found: dict[str, tuple[str, str]] = {}
    for table in tables:
        for judge, version in table.versions.items():
            known, name = found.setdefault(judge, (version, table.name))
            if known != version:
                raise unlike_versions(judge, {name: known, table.name: version})
    return {judge: version for judge, (version, _) in found.items()}
