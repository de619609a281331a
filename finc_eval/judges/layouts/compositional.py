"""Layouts of checks whether images show what prompts ask for: GenEval, GenEval 2 and T2I-CompBench."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.files.columns_in import Columns
from finc_eval.core.files.csv_text import gather_columns
from finc_eval.judges.layouts.scored import Scored, needed, score_in
from finc_eval.judges.tables import NamedColumns, number_of, text_of
from finc_eval.judges.weighting import Weighting

COMP_BENCH_FOLDERS = {
    "annotation_blip": "blip_vqa",
    "annotation_obj_detection_2d": "unidet_2d",
    "annotation_obj_detection_3d": "unidet_3d",
    "annotation_num": "unidet_numeracy",
    "annotation_clip": "clip_score",
    "annotation_3_in_1": "three_in_one",
    "sharegpt4v": "sharegpt4v",
    "gpt4v": "gpt4v",
}
"""Judges of T2I-CompBench by the folder that its programs write their scores to."""


def is_geneval(table: NamedColumns) -> bool:
    """Return whether a table is a result file of GenEval."""
    return {"filename", "tag", "prompt", "correct"} <= table.columns.keys()


def read_geneval(table: NamedColumns) -> Scored:
    """Return whether each image is right; GenEval prints the mean over its tasks of the share of right images."""
    names: dict[str, list[Any]] = {key: [] for key in ("id", "prompt", "tag", "geneval")}
    columns = [table.columns[key] for key in ("filename", "prompt", "tag", "correct")]
    for row, values in enumerate(zip(*columns, strict=True)):
        where = table.place(row)
        for key, value in zip(("filename", "prompt", "tag", "correct"), values, strict=True):
            needed(value, where, key)
        score = score_in(values[3], where, "correct")
        for column, value in zip(names.values(), (*map(text_of, values[:3]), score), strict=True):
            column.append(value)
    rule = Weighting("GenEval by tasks", np.ones(table.n), tuple(names["tag"]), (0.0, 1.0))
    return Scored({**names}, ("geneval",), weighted={"geneval": rule})


def is_comp_bench(table: NamedColumns) -> bool:
    """Return whether a table is a result file of T2I-CompBench."""
    return table.columns.keys() == {"question_id", "answer"}


def read_comp_bench(table: NamedColumns) -> Scored:
    """Return the scores of images, whose number is the last of the name; T2I-CompBench prints their mean.

    The folder of the file names the judge; in another folder, it is called "answer".
    """
    judge = COMP_BENCH_FOLDERS.get(PurePosixPath(table.name.replace("\\", "/")).parent.name, "answer")
    ids, scores = list[str](), list[float]()
    for row, (number, answer) in enumerate(zip(table.columns["question_id"], table.columns["answer"], strict=True)):
        where = table.place(row)
        ids.append(text_of(needed(number, where, "question_id")))
        scores.append(score_in(needed(answer, where, "answer"), where, "answer"))
    rule = Weighting.plain("T2I-CompBench by images", table.n)
    columns: Columns = {"id": [*ids], judge: [*scores]}
    return Scored(columns, (judge,), has_names=False, is_numbered=True, weighted={judge: rule})


def _atoms(scores: Any) -> bool:
    return isinstance(scores, list) and bool(scores) and all(number_of(score) is not None for score in scores)


def _is_order(scores: list[Any]) -> bool:
    """Return whether numbers are 0, 1, 2, … in any order, as in the rankings that HPS writes."""
    numbers = [number_of(score) for score in scores]
    known = [number for number in numbers if number is not None]
    return len(scores) > 1 and len(known) == len(numbers) and sorted(known) == [*range(len(scores))]


def is_geneval2(table: NamedColumns) -> bool:
    """Return whether a table is a result file of GenEval 2."""
    value = table.value
    if isinstance(value, list):
        return bool(value) and all(isinstance(atoms, list) for atoms in value) and _any_atoms(value)
    results = value.get("results") if isinstance(value, Mapping) else None
    return isinstance(results, list) and any(
        isinstance(result, Mapping) and "atom_scores" in result for result in results
    )


def _any_atoms(value: list[Any]) -> bool:
    """Return whether lists are of numbers, but for few mistakes, and are not all rankings."""
    return 2 * sum(map(_atoms, value)) > len(value) and not all(map(_is_order, value))


def read_geneval2(table: NamedColumns) -> Scored:
    """Return the arithmetic and the geometric mean of the atoms of each image (Soft-TIFA)."""
    results = table.value["results"] if isinstance(table.value, Mapping) else table.value
    rows = []
    for number, result in enumerate(results):
        where = f"prompt {number + 1} of {table.name}"
        has = isinstance(result, Mapping)
        given = result.get("atom_scores") if has else result
        if not isinstance(given, list) or not given:
            raise DataError(f"{where} lacks atom_scores: the file is cut or mixed with another; make it again")
        atoms = [score_in(needed(score, where, "an atom's score"), where, "an atom's score") for score in given]
        geometric = exp(sum(log(max(score, 1e-12)) for score in atoms) / len(atoms))
        named = (
            {"id": result.get("sample_id", number), "prompt": result.get("prompt", number)}
            if has
            else {"prompt": number}
        )
        rows.append({**named, "soft_tifa_am": sum(atoms) / len(atoms), "soft_tifa_gm": geometric})
    return Scored(gather_columns(rows, table.name), ("soft_tifa_am", "soft_tifa_gm"), has_names=False)
