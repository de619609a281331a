"""Labels and prompts that lie beside image files: in folder names, in metadata.csv, in dataset.json."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.source import aligned

PROMPT_KEYS = ("prompt", "caption", "text")
LABEL_KEYS = ("label", "class")

ANNOTATION_FILES = ("metadata.jsonl", "metadata.csv", "dataset.json")
"""What is looked for in the root of a folder or zip, in this order: the first two are those of Hugging Face's
"imagefolder", the last that of StyleGAN and EDM."""


class Annotations(NamedTuple):
    """Labels and prompts aligned with the ids of a set; None where there are none."""

    labels: list[str] | None
    prompts: list[str] | None


def beside(name: str, data: bytes, ids: Sequence[str], where: str) -> Annotations | None:
    """Read one of `ANNOTATION_FILES`.

    Args:
        name: which of them.
        data: its content.
        ids: the set's ids.
        where: its path, for messages.

    Returns:
        None where the file is of another purpose: it has no column or key as those formats have.

    Raises:
        FincEvalError: it cannot be read, or speaks of some samples only.
    """
    try:
        text = data.decode("utf-8-sig")
        if name == "dataset.json":
            return _of_stylegan(json.loads(text), ids, where)
        if name == "metadata.csv":
            return _of_rows(csv.DictReader(io.StringIO(text, newline="")), ids, where)
        return _of_rows((json.loads(line) for line in text.splitlines() if line.strip()), ids, where)
    except (ValueError, csv.Error, RecursionError) as error:
        raise FincEvalError(f"{where} cannot be read ({error}): repair it, or take it away") from error


def of_folders(ids: Sequence[str]) -> list[str] | None:
    """Return each sample's folder as its label, if every sample lies in a sub-folder, and there are two at least."""
    folders = [name.rpartition("/")[0] for name in ids]
    return folders if all(folders) and len(set(folders)) > 1 else None


def label_and_prompt(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """Pick a label and a prompt from named values."""
    label = next((row[key] for key in LABEL_KEYS if row.get(key) is not None), None)
    prompt = next((row[key] for key in PROMPT_KEYS if row.get(key) is not None), None)
    return (None if label is None else str(label)), (None if prompt is None else str(prompt))


def _of_rows(rows: Iterable[Any], ids: Sequence[str], where: str) -> Annotations | None:
    known, labels, prompts = False, {}, {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("file_name"), str):
            continue
        known = True
        name = str(PurePosixPath(row["file_name"]))
        label, prompt = label_and_prompt(row)
        if label is not None:
            labels[name] = label
        if prompt is not None:
            prompts[name] = prompt
    if not known:
        return None
    return Annotations(aligned(labels, ids, "label", where), aligned(prompts, ids, "prompt", where))


def _of_stylegan(content: Any, ids: Sequence[str], where: str) -> Annotations | None:
    if not isinstance(content, dict) or "labels" not in content:
        return None
    try:
        labels = {str(name): str(label) for name, label in content["labels"] or []}
    except (TypeError, ValueError) as error:
        raise ValueError('"labels" is no list of [name, label]') from error
    return Annotations(aligned(labels, ids, "label", where), None)
