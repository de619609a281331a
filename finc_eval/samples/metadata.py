"""Labels, prompts and further columns of a set: in files of metadata, beside or in its samples, or in their names."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import PurePosixPath
from posixpath import basename, splitext
from types import MappingProxyType
from typing import Any, NamedTuple

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.archives import DAMAGED
from finc_eval.core.files.csv_text import check_cells, csv_table, gather_columns
from finc_eval.core.files.parsed import foreign_json, json_lines, json_size, read_text
from finc_eval.core.files.png_texts import PNG, png_prompt
from finc_eval.core.forms import FORMS_OF_FILES
from finc_eval.core.memory import BYTES_PER_LINE, check_decoded, check_list
from finc_eval.core.words import join_words, plural
from finc_eval.samples.images import FixedSettings
from finc_eval.samples.source import align, reason

PROMPT_KEYS = ("prompt", "caption", "text", "prompts")
LABEL_KEYS = ("label", "class")

NAME_KEYS = ("file_name", "filename", "file", "path", "image", "name")
"""Names of the column of the names of the samples."""

CELLS = re.compile(r'[^,;|\t\r\n"]+')  # cells of a line of a table, whatever divides them
PROMPT_LISTS = ("prompts.txt", "prompts.tsv")  # files with a prompt in each line, for samples that are numbered by it

NAMED_SUFFIXES = (".csv", ".jsonl")
LIST_SUFFIXES = (".txt", ".tsv", *NAMED_SUFFIXES)  # suffixes of files of prompts; those that may name samples

NUMBER = re.compile(r"0*(\d{1,18})")  # number of a line at the beginning of a name

SEEDED = re.compile(r"(?P<prompt>.+?)[ _-](?:seed[ _-]?)?(?P<seed>\d+)")
"""Name of a file of a prompt and the number of its image."""


ROWS_OF, SAMPLES_WITHOUT = "rows of", "samples without a row in"
"""First words of what has no partner, among the counts of what was left out."""

FOLDER_FILES = ("metadata.jsonl", "metadata.csv")  # files of Hugging Face's "imagefolder", in the order of the search
METADATA_FILES = (*FOLDER_FILES, "dataset.json")
"""Files of metadata in the root of a folder or zip, in the order of the search; the last is of StyleGAN and EDM."""


def divide_ignored(ignored: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counts of files that are not samples, and of metadata and samples that do not fit each other."""
    unmatched = {what: n for what, n in ignored.items() if what.startswith((ROWS_OF, SAMPLES_WITHOUT))}
    return {what: n for what, n in ignored.items() if what not in unmatched}, unmatched


class Metadata(NamedTuple):
    """Labels, prompts and all other columns, each aligned with the ids of a set.

    Labels and prompts are None if there are none; a missing value of another column is "". `unmatched` counts rows
    without a sample, and samples without a row. `from_folders` says that `FOLDER_FILES` below the root were read.
    """

    labels: list[str] | None
    prompts: list[str] | None
    columns: Mapping[str, list[str]] = MappingProxyType({})
    unmatched: Mapping[str, int] = MappingProxyType({})
    from_folders: bool = False


Read = Callable[..., bytes]
"""Returns the content of a file by its name, or its first bytes; FileNotFoundError or KeyError for a missing one."""

Rows = list[dict[str, Any] | None]  # metadata of each sample; None if there are none


def find_metadata(ids: Sequence[str], where: str, read: Read) -> Metadata:
    """Find labels and prompts in the root of a set; without labels there, the folders of the samples are the labels.

    Without a file of metadata, prompts are looked for in `OTHER_PLACES`.
    """
    passed_over: dict[str, int] = {}
    for name in METADATA_FILES:
        try:
            data = read(name)
        except (FileNotFoundError, KeyError):
            continue
        except DAMAGED as error:
            raise DataError(f"{where}/{name} cannot be read ({reason(error)}): repair it, or take it away") from error
        metadata = _parse(name, data, ids, f"{where}/{name}")
        if metadata is None and name != "dataset.json" and data.strip():
            passed_over[f"{name}, which names no samples"] = 1
        if metadata:
            # StyleGAN's tool spreads unlabeled images over numbered folders, which are not classes.
            by_folder = None if name == "dataset.json" else folder_labels(ids)
            return metadata._replace(labels=metadata.labels or by_folder)
    if metadata := _in_folders(ids, where, read):
        labels, unmatched = metadata.labels or folder_labels(ids), {**metadata.unmatched, **passed_over}
        return metadata._replace(labels=labels, unmatched=unmatched, from_folders=True)
    rows = next(filter(None, (find(ids, where, read) for find in OTHER_PLACES)), None)
    if rows and (made := _from_rows(_with_names(rows, ids), ids, where)):
        return made._replace(labels=made.labels or folder_labels(ids), unmatched=passed_over)
    return Metadata(folder_labels(ids), None, unmatched=passed_over)


def folder_labels(ids: Sequence[str]) -> list[str] | None:
    """Return each sample's folder as its label, if all samples lie in subfolders and these are at least two."""
    folders = [name.rpartition("/")[0] for name in ids]
    return folders if all(folders) and len(set(folders)) > 1 else None


def _parse(name: str, data: bytes, ids: Sequence[str], where: str) -> Metadata | None:
    """Parse one of `METADATA_FILES`; None if the file has another purpose, without the keys of those formats."""
    try:
        text = data.decode("utf-8-sig")
        if name == "dataset.json":
            content = foreign_json(text, where)
            if not isinstance(content, dict) or "labels" not in content:
                return None
            try:
                labels = {str(name): str(label) for name, label in content["labels"] or []}
            except (TypeError, ValueError) as error:
                raise ValueError('"labels" is not a list of [name, label]') from error
            return Metadata(align(labels, ids, "label", where), None)
        if name == "metadata.csv":
            columns, rows = csv_table(text, where)
            first = next(islice(filter(str.strip, io.StringIO(text)), 1, None), "")
            is_ours = any(_usual(column) in NAME_KEYS for column in columns) or (
                set(ids).isdisjoint(columns) and not set(ids).isdisjoint(CELLS.findall(first))
            )
            return _from_rows(rows, ids, where) if is_ours else None
        check_decoded(json_size(text), where)
        return _from_rows(json_lines(text, where), ids, where)
    except ValueError as error:
        raise DataError(f"{where} cannot be read ({error}): repair it, or take it away") from error


def _from_rows(rows: Iterable[Any], ids: Sequence[str], where: str) -> Metadata | None:
    first, rows = (next(rest := iter(rows), None)), rest
    known = {*ids}
    column = None  # of the names of the samples, if its key is not a usual one
    if isinstance(first, dict) and not any(_usual(key) in NAME_KEYS for key in first if key):
        column = next((key for key, value in first.items() if isinstance(value, str) and value in known), None)
    with_names = (row for table_row in chain([first], rows) if (row := _name_row(table_row, column)) is not None)
    table = gather_columns(with_names, where)
    names = [name if name in known else str(PurePosixPath(name)) for name in table.pop("file_name", ())]
    if not names:
        return None
    _check_names(names, ids, where)
    first_rows: dict[str, int] = {}
    for number, name in enumerate(names):
        before = first_rows.setdefault(name, number)
        if before != number and any(values[before] != values[number] for values in table.values()):
            raise DataError(f"{where} names {name!r} twice, with unlike values: keep one row a sample")
    labels, prompts = (_take(table, keys, names) for keys in (LABEL_KEYS, PROMPT_KEYS))
    check_cells(len(table), len(ids), where)
    columns = {}
    for column, values in table.items():
        if texts := {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}:
            columns[column] = [texts.get(name, "") for name in ids]
    named, file = {*names}, PurePosixPath(where).name
    unmatched = {f"{ROWS_OF} {file} without a sample": sum(name not in known for name in names)}
    unmatched[f"{SAMPLES_WITHOUT} {file}"] = sum(name not in named for name in ids)
    unmatched = {what: count for what, count in unmatched.items() if count}
    return Metadata(align(labels, ids, "label", where), align(prompts, ids, "prompt", where), columns, unmatched)


def _name_row(row: Any, column: str | None) -> dict[str, Any] | None:
    """Return a row whose name is under "file_name", and whose other keys are the usual keys; None without a name.

    `column` is the key of the name, by default one of `NAME_KEYS`.
    """
    if not isinstance(row, dict):
        return None
    named = dict(zip(_usual_names(tuple(row)), row.values(), strict=True))
    named.pop("", None)
    key = next((key for key in (column, *NAME_KEYS) if key and isinstance(named.get(key), str)), None)
    if key is None:
        return None
    if key != "file_name":
        named["file_name"] = named.pop(key)
    return named


@lru_cache(maxsize=16)  # nearly all rows of a table have the same keys
def _usual_names(keys: tuple[str, ...]) -> list[str]:
    return [usual if (usual := _usual(key)) == key or usual not in keys else key for key in keys]


@lru_cache(maxsize=1024)
def _usual(key: str) -> str:
    """Return the usual form of a key that is usual but for spaces and capitals, such as "File Name"; others as such."""
    plain = key.strip().lower().replace(" ", "_")
    return plain if plain in (*NAME_KEYS, *LABEL_KEYS, *PROMPT_KEYS) else key


def _check_names(names: Sequence[str], ids: Sequence[str], where: str) -> None:
    """Raise DataError if no name is a sample's, and say how the nearest names differ."""
    if not ids or not set(ids).isdisjoint(names):
        return
    hint = f"{names[0]!r} is not {ids[0]!r}"
    for how, form in FORMS_OF_FILES.items():
        by_form = {form(name): name for name in ids}
        # 1000: names that are compared with the samples' names if none matches.
        if alike := next((name for name in names[:1000] if form(name) in by_form), None):
            hint = f"they differ in {how}, as {alike!r} and the sample {by_form[form(alike)]!r}"
            break
    raise DataError(
        f"{where} has labels or other metadata for {plural(len(names), 'file')}, but no sample is called so: {hint}; "
        "write the names as the samples have them"
    )


def _take(table: dict[str, list[Any]], keys: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Take the value of the first of these columns that has one out of each row, and return it by the row's name."""
    taken: dict[str, str] = {}
    rows: set[int] = set()
    for values in [table[key] for key in keys if key in table]:
        for row, value in enumerate(values):
            if value is not None and row not in rows:
                rows.add(row)
                taken[names[row]], values[row] = str(value), None
    return taken


def _in_list(ids: Sequence[str], where: str, read: Read) -> Rows | None:
    """Read prompts.txt or prompts.tsv, for samples whose names or folders begin with numbers."""
    name, text = next(((name, text) for name in PROMPT_LISTS if (text := _text(name, read)) is not None), ("", ""))
    is_numbered = text.strip() and all(NUMBER.match(PurePosixPath(name).parts[0]) for name in ids)
    return [*_rows_of_lines(text, f"{where}/{name}", ids)] if is_numbered else None


def read_prompts(given: str, ids: Sequence[str], columns: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the column "prompt", by the name of a column or file, and further columns of a file; see `open_source`."""
    if given in columns:
        return {"prompt": list(columns[given])}
    suffix = PurePosixPath(given).suffix.lower()
    if suffix not in LIST_SUFFIXES:
        has = f"the columns {', '.join(columns)}" if columns else "no columns"
        files = join_words(LIST_SUFFIXES, "or")
        raise UsageError(f"prompts is {given!r}, and the samples have {has}: name a column, or a {files} file")
    text = read_text(given, "a list of prompts", "" if suffix == ".csv" else None).removeprefix("\ufeff")
    kept = suffix in NAMED_SUFFIXES and _parse(f"metadata{suffix}", text.encode(), ids, given)
    if kept and kept.prompts:
        return {**kept.columns, "prompt": kept.prompts}
    rows = _rows_of_lines(text, given, ids)
    names = dict.fromkeys(name for row in rows for name in row if name and name not in PROMPT_KEYS)
    return {name: [row.get(name, "") for row in rows] for name in ("prompt", *names)}


def _rows_of_lines(text: str, where: str, ids: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a list of prompts, of which line k is for the samples whose name, or folder, begins with k."""
    suffix = PurePosixPath(where).suffix.lower()
    check_list(text.count("\n"), where, "lines", BYTES_PER_LINE)
    lines = [line.strip("\r") for line in text.split("\n")]
    lines = lines[: max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)]
    given: Iterable[Mapping[str, Any]]
    if suffix == ".jsonl":
        given = (_plain(row) or {} for row in json_lines(text, where))
    elif suffix == ".csv":
        given = csv_table(text, where)[1]
    else:
        head = lines[0].split("\t") if lines else []
        is_headed = suffix == ".tsv" and any(cell.strip().lower() in PROMPT_KEYS for cell in head)
        names = head if is_headed else ["prompt"]
        given = (dict(zip(names, line.split("\t"), strict=False)) for line in islice(lines, int(is_headed), None))
    named = ({key.strip().lower(): str(value) for key, value in row.items() if key} for row in given)
    rows = [
        {"prompt": row[key], **row} if (key := next((key for key in PROMPT_KEYS if key in row), "")) else row
        for row in named
    ]
    if not any("prompt" in row for row in rows):
        raise DataError(f"{where} has no prompts: call their column prompt")
    numbers = [NUMBER.match(PurePosixPath(name).parts[0]) for name in ids]
    if not all(numbers):
        unnumbered = next(name for name, number in zip(ids, numbers, strict=True) if not number)
        raise DataError(
            f"{where} has a prompt a line, and {unnumbered!r} has no number: begin the names of samples or folders "
            "with the number of the line, or add a column file_name"
        )
    places = [int(number[1]) for number in numbers if number]
    first = int(max(places) == len(rows) and min(places) > 0)
    if max(places) - first >= len(rows):
        raise DataError(
            f"{where} has {plural(len(rows), 'prompt')}, and a sample has the number {max(places)}: "
            "number the samples by the lines, from 0 or from 1"
        )
    return [rows[number - first] for number in places]


def _in_folders(ids: Sequence[str], where: str, read: Read) -> Metadata | None:
    """Read the tables of all samples: that in the folder of a sample or, without one, in the topmost folder above it.

    Its rows name files of that folder, as in Hugging Face's train/metadata.csv; or one row is for all of them, as in
    GenEval's 00000/metadata.jsonl.
    """
    tables: dict[str, tuple[str, str] | None] = {}
    members: dict[str, list[int]] = {}
    for row_of_id, name in enumerate(ids):
        for folder in (name.rpartition("/")[0], name.partition("/")[0] if "/" in name else ""):
            if folder not in tables:
                texts = ((file, _text(f"{folder}/{file}", read)) for file in FOLDER_FILES if folder)
                tables[folder] = next(((file, text) for file, text in texts if text is not None), None)
            if tables[folder]:
                members.setdefault(folder, []).append(row_of_id)
                break
        else:
            return None
    check_decoded(sum(len(table[1]) for table in tables.values() if table), where)
    rows: dict[int, dict[str, Any] | None] = {}
    unmatched = Counter[str]()
    for folder, places in members.items():
        file, text = tables[folder] or ("", "")
        inside, path = [ids[number][len(folder) + 1 :] for number in places], f"{where}/{folder}/{file}"
        if table := _parse(file, text.encode(), inside, path) if "\n" in text.strip() else None:
            columns = {"label": table.labels, "prompt": table.prompts, **table.columns}.items()
            rows |= {number: {key: texts[row] for key, texts in columns if texts} for row, number in enumerate(places)}
            unmatched += Counter(table.unmatched)
        else:
            first = next(json_lines(text, path), None) if file == "metadata.jsonl" else None
            rows.update(dict.fromkeys(places, _plain(first)))
    made = _from_rows(_with_names([rows[number] for number in range(len(ids))], ids), ids, where)
    return made and made._replace(unmatched=unmatched)


def _with_names(rows: Rows, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of samples, under whose names they are found."""
    return ({**row, "file_name": name} for name, row in zip(ids, rows, strict=True) if row)


def _next_to_samples(ids: Sequence[str], where: str, read: Read) -> Rows | None:
    """Read a.txt, the prompt of a.png, or a.json, its metadata."""
    for suffix in (".txt", ".json"):
        if not ids or _text(splitext(ids[0])[0] + suffix, read) is None:
            continue
        names = [splitext(name)[0] + suffix for name in ids]
        texts = [_text(name, read) for name in names]
        check_decoded(sum(len(text) for text in texts if text), where)
        if suffix == ".txt":
            return [{"prompt": text.strip()} if text and text.strip() else None for text in texts]
        return [
            None if text is None else _plain(foreign_json(text, f"{where}/{name}"))
            for name, text in zip(names, texts, strict=True)
        ]
    return None


@FixedSettings()
def _in_pictures(ids: Sequence[str], where: str, read: Read) -> Rows | None:
    """Read the prompts that programs keep in the text of PNG files."""

    def prompt_of(name: str) -> str | None:
        if name.lower().endswith(".png"):
            with suppress(ValueError, *DAMAGED):  # such a sample is refused where it is read
                # Bytes in which its text is looked for; the second if its pixels do not begin in the first.
                for most in (1 << 16, 1 << 22):
                    if (prompt := png_prompt(head := read(name, most))) or b"IDAT" in head or not head.startswith(PNG):
                        return prompt
        return None

    if not ids or prompt_of(ids[0]) is None:
        return None
    return [None if (prompt := prompt_of(name)) is None else {"prompt": prompt} for name in ids]


def _in_names(ids: Sequence[str], where: str, read: Read) -> Rows | None:
    """Read names such as a_red_cat_on_grass_0.png: at least three words, and the number of the image."""
    matches, texts = [], []
    for name in ids:
        match = SEEDED.fullmatch(splitext(basename(name))[0])
        text = re.sub(r"[ _]+", " ", match["prompt"]).strip() if match else ""
        if text.count(" ") < 2:
            return None
        matches.append(match)
        texts.append(text)
    if len(set(texts)) < 2:
        return None
    return [{"prompt": text, "seed": match["seed"]} for text, match in zip(texts, matches, strict=True) if match]


OTHER_PLACES = (_in_list, _next_to_samples, _in_pictures, _in_names)
"""Places of prompts in a set without a file of metadata, in the order in which they are tried."""


def _text(name: str, read: Read) -> str | None:
    """Return the text of a file; None if it is missing."""
    try:
        return read(name).decode("utf-8-sig", "replace")
    except (FileNotFoundError, KeyError):
        return None


def _plain(row: Any) -> dict[str, Any] | None:
    """Return the values of a row that are one text or number each."""
    if not isinstance(row, dict):
        return None
    return {str(key): value for key, value in row.items() if isinstance(value, str | int | float)}
