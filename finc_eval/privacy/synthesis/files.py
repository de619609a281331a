"""Files of private and synthetic data: tables as .csv or .npz, images as .npz."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import numpy as np

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.storage import written_whole

SUFFIXES = (".csv", ".npz")


def read_columns(path: str | Path) -> dict[str, np.ndarray]:
    """Read the columns of a table by name: of a .csv with a line of names, or the arrays (n,) of an .npz."""
    columns = _arrays(path) if Path(path).suffix == ".npz" else _csv_columns(path)
    shapes = {column.shape for column in columns.values()}
    if len(shapes) != 1 or not all(len(shape) == 1 and shape[0] > 0 for shape in shapes):
        raise DataError(f"{path} must have columns of one length, with at least one record, got {sorted(shapes)}")
    return columns


def read_images(path: str | Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Read the array `images` of an .npz, and the array `labels` if there is one."""
    arrays = _arrays(path)
    if "images" not in arrays:
        raise DataError(f"{path} must have an array `images`, and `labels` if there are classes, got {list(arrays)}")
    return arrays["images"], arrays.get("labels")


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write columns as .csv or .npz, or images as .npz. The file appears when it is complete."""
    with written_whole(path) as temporary:
        if Path(path).suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # mypy takes them for allow_pickle
        else:
            with temporary.open("w", newline="", encoding="utf-8") as text:
                writer = csv.writer(text)
                writer.writerow(arrays)
                writer.writerows(zip(*(column.tolist() for column in arrays.values()), strict=True))


def check_out(path: str | Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Refuse a path that cannot be written to, before a budget is spent."""
    target = Path(path)
    if target.suffix not in suffixes:
        raise UsageError(f"{path} must end in {' or '.join(suffixes)}")
    if target.exists():
        raise UsageError(f"{path} exists: synthetic records are not made twice by mistake, choose another name")


def columns_digest(columns: dict[str, np.ndarray]) -> str:
    """Return a digest that identifies a table in the ledger: of all its columns and records, in any order."""
    names = sorted(columns)
    records = sorted("\x1f".join(map(str, record)) for record in zip(*(columns[name] for name in names), strict=True))
    return sha256_of("\x1e".join(["\x1f".join(names), *records]))


def _arrays(path: str | Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise DataError(f"{path} cannot be read as an .npz ({error})") from None


def _csv_columns(path: str | Path) -> dict[str, np.ndarray]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a .csv ({error})") from None
    if len(rows) < 2:
        raise DataError(f"{path} must have a line of names and at least one record")
    head, *records = rows
    for number, row in enumerate(records, 1):
        if len(row) != len(head):
            raise DataError(f"{path}: record {number} has {len(row)} cells, the line of names {len(head)}")
    return dict(zip(head, np.array(records).T, strict=True))
