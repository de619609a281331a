"""Tables of samples as .csv files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import finc_eval as fe
from finc_eval.cli.output import refuse_loss
from finc_eval.core.doors import create_text, lines_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.csv_text import CsvLines, write_rows
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import write_whole

if TYPE_CHECKING:
    from finc_eval.private.kahm.classification import Classification


def is_table_of(path: Path, lines: Iterable[Sequence[str]], rows: int | None = None) -> bool:
    """Return whether a .csv file begins with these lines, but for the last digits of numbers.

    Two sets may have the same ids, such as row numbers, so their numbers must agree, too. The first `BATCH_SIZE` of
    `lines`, columns and rows, are compared; there must be `rows` in all.
    """
    wanted = list(islice(lines, BATCH_SIZE))
    try:
        table = CsvLines(lines_of(path), str(path))
        read = list(islice(table, len(wanted)))
        more = 0 if rows is None else sum(1 for _ in table)
    except (OSError, DataError, ValueError):
        return False
    if [line[:1] for line in read] != [[*line[:1]] for line in wanted] or rows not in (None, len(read) + more - 1):
        return False
    return all(
        len(line) == len(expected)
        and all(cell == other or _near(cell, other) for cell, other in zip(line, expected, strict=True))
        for line, expected in zip(read, wanted, strict=True)
    )


def _near(cell: str, wanted: str) -> bool:
    try:
        return isclose(float(cell), float(wanted), rel_tol=1e-3, abs_tol=1e-3)
    except ValueError:
        return False


def write_classes(out: Path, found: Classification, force: bool) -> None:
    """Write id, nearest class, distance and matching scores of samples, unless the file has other samples or classes.

    The class is empty if all distances are infinite.
    """
    values, classes = np.asarray(found.distances), [row.name for row in found.classes]

    def lines() -> Iterator[Sequence[str]]:
        yield ["id", "class", "distance", *(f"score {name}" for name in classes)]
        for name, distances, line in zip(found.ids, values, fe.kahm.matching_scores(values), strict=True):
            column = int(distances.argmin())
            label = "" if np.isinf(distances[column]) else classes[column]
            yield [name, label, f"{distances[column]:.6g}", *(f"{score:.6f}" for score in line)]

    refuse_loss(out, lambda path: is_table_of(path, lines(), found.samples), force)
    with write_whole(out) as temporary, create_text(temporary) as file:
        write_rows(file, lines(), texts=2)
