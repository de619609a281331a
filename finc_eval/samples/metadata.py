"""Labels, prompts and further columns in folder names, metadata.csv, metadata.jsonl or dataset.json."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from finc_eval.core.errors import DataError
from finc_eval.core.files.archives import DAMAGED
from finc_eval.core.files.csv_text import check_cells, csv_rows, gather_columns
from finc_eval.core.files.parsed import foreign_json, json_lines, json_size
from finc_eval.core.memory import check_decoded
from finc_eval.core.words import counted
from finc_eval.samples.source import aligned, reason

PROMPT_KEYS = ("prompt", "caption", "text")
LABEL_KEYS = ("label", "class")

NAME_KEYS = ("file_name", "filename", "file", "path", "image", "name")
"""Names of the column of the names of the samples."""

MAX_COMPARED = 1000
"""Names that are compared with those of the samples where none is one."""


def _slashed(name: str) -> str:
    return name.replace("\\", "/")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", _slashed(name)).casefold()


FORMS_OF_NAMES: Mapping[str, Callable[[str], str]] = {
    "Unicode form": lambda name: unicodedata.normalize("NFC", name),
    "backslashes": _slashed,
    "upper and lower case": _folded,
    "their folder": lambda name: _folded(name).rpartition("/")[2],
    "their suffix": lambda name: PurePosixPath(_folded(name).rpartition("/")[2]).stem,
}
"""Forms in which names may be alike that are not equal, by what tells them apart."""

ROWS_OF, SAMPLES_WITHOUT = "rows of", "samples without a row in"
"""First words of what has no partner, among the counts of what was left out."""

METADATA_FILES = ("metadata.jsonl", "metadata.csv", "dataset.json")
"""Files of metadata in the root of a folder or zip, in the order of the search: the first two are those of Hugging
Face's "imagefolder", the last is that of StyleGAN and EDM."""


class Metadata(NamedTuple):
    """Labels, prompts and all other columns, each aligned with the ids of a set.

    Labels and prompts are None where there are none; a missing value of another column is "". `unmatched` counts rows
    without a sample, and samples without a row.
    """

    labels: list[str] | None
    prompts: list[str] | None
    columns: Mapping[str, list[str]] = MappingProxyType({})
    unmatched: Mapping[str, int] = MappingProxyType({})


def find_metadata(ids: Sequence[str], where: str, read: Callable[[str], bytes]) -> Metadata:
    """Find labels and prompts in the root of a set; without labels there, the folders of the samples are the labels.

    `read` returns the content of a file in the root, and raises FileNotFoundError or KeyError for a missing one.
    """
    for name in METADATA_FILES:
        try:
            data = read(name)
        except (FileNotFoundError, KeyError):
            continue
        except DAMAGED as error:
            raise DataError(f"{where}/{name} cannot be read ({reason(error)}): repair it, or take it away") from error
        if found := _parsed(name, data, ids, f"{where}/{name}"):
            # StyleGAN's tool spreads unlabeled images over numbered folders, which are not classes.
            by_folder = None if name == "dataset.json" else folder_labels(ids)
            return found._replace(labels=found.labels or by_folder)
    return Metadata(folder_labels(ids), None)


def folder_labels(ids: Sequence[str]) -> list[str] | None:
    """Return each sample's folder as its label, if all samples lie in subfolders and these are at least two."""
    folders = [name.rpartition("/")[0] for name in ids]
    return folders if all(folders) and len(set(folders)) > 1 else None


def label_and_prompt(row: dict[str, Any]) -> tuple[str | None, str | None]:
    """Pick the label and the prompt from named values."""
    label, prompt = (_key(row, keys) for keys in (LABEL_KEYS, PROMPT_KEYS))
    return (None if label is None else str(row[label])), (None if prompt is None else str(row[prompt]))


def _parsed(name: str, data: bytes, ids: Sequence[str], where: str) -> Metadata | None:
    """Parse one of `METADATA_FILES`; None where the file has another purpose, without the keys of those formats."""
    try:
        text = data.decode("utf-8-sig")
        if name == "dataset.json":
            return _from_stylegan(foreign_json(text, where), ids, where)
        if name == "metadata.csv":
            head = text.partition("\n")[0].strip()
            if "\t" in head and "," not in head:
                text = text.replace("\t", ",")
                head = text.partition("\n")[0].strip()
            is_ours = any(name.strip(' "') in NAME_KEYS for name in head.split(","))
            return _from_rows(csv_rows(io.StringIO(text, newline=""), where), ids, where) if is_ours else None
        check_decoded(json_size(text), where)
        return _from_rows(json_lines(text, where), ids, where)
    except (ValueError, csv.Error) as error:
        raise DataError(f"{where} cannot be read ({error}): repair it, or take it away") from error


def _from_rows(rows: Iterable[Any], ids: Sequence[str], where: str) -> Metadata | None:
    known = (row for row in map(_named, rows) if row is not None)
    table = gather_columns(known, where)
    names = [str(PurePosixPath(name)) for name in table.pop("file_name", ())]
    if not names:
        return None
    _check_names(names, ids, where)
    labels, prompts = (_taken(table, keys, names) for keys in (LABEL_KEYS, PROMPT_KEYS))
    check_cells(len(table), len(ids), where)
    columns = {}
    for column, values in table.items():
        if found := {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}:
            columns[column] = [found.get(name, "") for name in ids]
    unmatched = unmatched_counts(names, ids, PurePosixPath(where).name)
    return Metadata(aligned(labels, ids, "label", where), aligned(prompts, ids, "prompt", where), columns, unmatched)


def _named(row: Any) -> dict[str, Any] | None:
    """Return a row whose name is under "file_name"; None where no usual key has one."""
    key = next((key for key in NAME_KEYS if isinstance(row, dict) and isinstance(row.get(key), str)), None)
    return None if key is None else {"file_name": row[key]} | {name: one for name, one in row.items() if name != key}


def _check_names(names: Sequence[str], ids: Sequence[str], where: str) -> None:
    """Raise DataError if no name is that of a sample, and say how the nearest ones differ."""
    if not ids or not set(ids).isdisjoint(names):
        return
    hint = f"{names[0]!r} is not {ids[0]!r}"
    for how, form in FORMS_OF_NAMES.items():
        by_form = {form(name): name for name in ids}
        if alike := next((name for name in names[:MAX_COMPARED] if form(name) in by_form), None):
            hint = f"they differ in {how}, as {alike!r} and the sample {by_form[form(alike)]!r}"
            break
    raise DataError(
        f"{where} has labels or other metadata for {counted(len(names), 'file')}, but no sample is called so: {hint}; "
        "write the names as the samples have them"
    )


def unmatched_counts(names: Sequence[str], ids: Sequence[str], table: str) -> dict[str, int]:
    """Count the rows of a table without a sample, and the samples without a row, by what they are."""
    named, known = set(names), set(ids)
    counts = {f"{ROWS_OF} {table} without a sample": sum(name not in known for name in names)}
    counts[f"{SAMPLES_WITHOUT} {table}"] = sum(name not in named for name in ids)
    return {what: count for what, count in counts.items() if count}


def _taken(table: dict[str, list[Any]], keys: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Take the value of the first of these columns that has one out of each row, and return it by the row's name."""
    found: dict[str, str] = {}
    rows: set[int] = set()
    for values in [table[key] for key in keys if key in table]:
        for row, value in enumerate(values):
            if value is not None and row not in rows:
                rows.add(row)
                found[names[row]], values[row] = str(value), None
    return found


def _key(row: dict[str, Any], keys: Sequence[str]) -> str | None:
    """Return the first of these keys that has a value."""
    return next((key for key in keys if row.get(key) is not None), None)


def _from_stylegan(content: Any, ids: Sequence[str], where: str) -> Metadata | None:
    if not isinstance(content, dict) or "labels" not in content:
        return None
    try:
        labels = {str(name): str(label) for name, label in content["labels"] or []}
    except (TypeError, ValueError) as error:
        raise ValueError('"labels" is not a list of [name, label]') from error
    return Metadata(aligned(labels, ids, "label", where), None)
