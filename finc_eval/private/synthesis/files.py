"""Files of private and synthetic data: tables as .csv or .npz, images as .npz."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from pathlib import Path

import numpy as np

from finc_eval.core.doors import create_file, create_text, read_text
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.csv_text import CsvLines, write_rows
from finc_eval.core.files.npz import NpzFile, NpzRows
from finc_eval.core.memory import BYTES_PER_LINE, BYTES_PER_TEXT_BYTE, check_decoded, check_list
from finc_eval.core.places import disk_path
from finc_eval.core.storage import write_whole
from finc_eval.private.dp.public_values import column_arrays

SUFFIXES = (".csv", ".npz")


def check_form(data: Path, table: Path | None, classes: object) -> None:
    """Raise UsageError if data, the description of a table and a list of classes cannot belong together."""
    if data.is_dir():
        raise UsageError(
            f"{data} is a folder, and private images are taken from one file: pass an .npz of an array images of shape "
            "(n, height, width), uint8, and labels for classes, which numpy.savez writes"
        )
    if table is None and data.suffix != ".npz":
        raise UsageError(
            f"{data} is a table: pass --table with its columns and their public ranges, which are not taken from the "
            "data"
        )
    if table is not None and classes is not None:
        raise UsageError(
            "--classes is for images: the classes of a table are its label in --table, so pass only one of the two"
        )


def read_columns(path: str | Path) -> dict[str, np.ndarray]:
    """Read the columns of a table by name: of a .csv with a line of names, or the arrays (n,) of an .npz.

    Every line of a .csv is one record, whatever it holds: cells that are missing are empty, cells beyond the line of
    names are dropped, and bytes that are not UTF-8 become "�". So a record cannot make a release fail.
    """
    if Path(path).suffix == ".npz":
        file = NpzFile(path)
        columns = {name: file.array(name) for name in file.names}
    else:
        columns = _csv_columns(path)
    try:
        return column_arrays(columns)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def read_images(path: str | Path) -> tuple[NpzRows, np.ndarray | None]:
    """Open the array `images` of an .npz, to be read in batches, and read the array `labels` if there is one."""
    file = NpzFile(path)
    if "images" not in file.names:
        raise DataError(f"{path} must have an array `images`, and `labels` if there are classes, got {file.names}")
    return file.rows("images"), file.array("labels") if "labels" in file.names else None


def read_labeled(path: str | Path) -> tuple[np.ndarray, list[object]]:
    """Read the arrays `images` and `labels` of an .npz.

    Raises:
        DataError: the file cannot be read, or has no labels.
    """
    rows, labels = read_images(path)
    if labels is None:
        raise DataError(f"{path} has no array labels, which classifiers need: add it")
    return np.concatenate([*rows.batches(len(rows))]), list(labels)


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write columns as .csv or .npz, or images as .npz. The file appears when it is complete."""
    with write_whole(path) as temporary:
        if Path(path).suffix == ".npz":
            with create_file(temporary) as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # mypy takes them for allow_pickle
        else:
            with create_text(temporary) as text:
                write_rows(text, [[*arrays]])
                write_rows(text, zip(*map(_cells, arrays.values()), strict=True))


def _cells(column: np.ndarray) -> list[object]:
    """Return the cells of a column: what is missing is empty, and whole numbers stay whole next to it."""
    if column.dtype.kind != "f" or not (missing := np.isnan(column)).any():
        return list(column.tolist())
    is_whole = bool((np.mod(column[~missing], 1) == 0).all())
    return ["" if number != number else int(number) if is_whole else number for number in column.tolist()]


def irregular_lines(path: str | Path) -> int:
    """Return how many records of a .csv have more or fewer cells than its line of names; 0 for other files.

    The number is for the owner of the data. It is not protected by any noise.
    """
    if Path(path).suffix == ".npz":
        return 0
    head, *records = _csv_rows(path)
    return sum(len(row) != len(head) for row in records)


def _csv_columns(path: str | Path) -> dict[str, np.ndarray]:
    rows = _csv_rows(path)
    if len(rows) < 2:
        raise DataError(f"{path} must have a line of names and at least one record")
    head, *records = rows
    (often, times), *_ = Counter(head).most_common(1)
    if times > 1:
        raise DataError(f"{path} has {times} columns called {often!r}: give each a name of its own")
    # 16: bytes that a cell takes in a list of a column and in a row, without its text.
    check_decoded(16 * len(head) * len(records), f"{path} with {len(head):,} columns")
    columns = zip_longest(*(row[: len(head)] for row in [head, *records]), fillvalue="")
    cells = {name: cells for name, *cells in columns}
    # In an array, each text takes as much memory as the longest of its column.
    letters = sum(len(texts) * max(map(len, texts)) for texts in cells.values())
    check_decoded(letters * np.dtype("U1").itemsize, f"{path} with its longest texts")
    return {name: np.array(texts, dtype=np.str_) for name, texts in cells.items()}


def _csv_rows(path: str | Path) -> list[list[str]]:
    """Return the cells of all lines that are not empty; the line of names decides what separates them."""
    try:
        text = read_text(disk_path(path), "utf-8-sig", "replace", copies=BYTES_PER_TEXT_BYTE)
        check_list(text.count("\n"), str(path), "lines", BYTES_PER_LINE)
        return [[cell.strip() for cell in row] for row in CsvLines(text, str(path))]
    except OSError as error:
        raise DataError(f"{path} cannot be read as a .csv ({error})") from None
