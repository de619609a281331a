"""Tables of samples: as .csv files, and tables of their classes on the terminal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from math import isclose
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import finc_eval as fe
from finc_eval.cli.output import print_json, print_listing, refuse_loss
from finc_eval.core.doors import create_text, lines_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.csv_text import CsvLines, write_rows
from finc_eval.core.record import plain
from finc_eval.core.run import BATCH_SIZE
from finc_eval.core.storage import write_whole
from finc_eval.core.words import plural


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


def write_classes(
    out: Path,
    ids: Sequence[str],
    classes: Sequence[Hashable],
    values: NDArray[np.float64],
    labels: Sequence[str] | None,
    force: bool,
    as_json: bool,
    *,
    are_own: bool = False,
) -> None:
    """Write id, nearest class, distance and matching scores of samples, unless the file has other samples or classes.

    The class is empty if all distances are infinite. How many samples are of each class is printed and, with their
    labels, how well the classes are distinguished; `are_own` if the models were fitted to these samples.
    """

    def lines() -> Iterator[Sequence[str]]:
        yield ["id", "class", "distance", *(f"score {name}" for name in classes)]
        for name, distances, line in zip(ids, values, fe.kahm.matching_scores(values), strict=True):
            column = int(distances.argmin())
            label = "" if np.isinf(distances[column]) else str(classes[column])
            yield [name, label, f"{distances[column]:.6g}", *(f"{score:.6f}" for score in line)]

    refuse_loss(out, lambda path: is_table_of(path, lines(), len(ids)), force)
    with write_whole(out) as temporary, create_text(temporary) as file:
        write_rows(file, lines(), texts=2)
    undefined = np.isinf(values).all(1)
    nearest = np.where(undefined, -1, values.argmin(1))
    counts = {str(name): int((nearest == number).sum()) for number, name in enumerate(classes)}
    names = [str(name) for name in classes]
    strange = sorted({*labels} - {*names}) if labels is not None else []
    quality = None if labels is None or strange else fe.kahm.classification_quality(values, names, labels)
    if as_json:
        summary = {"path": str(out), "n": len(values), "classes": counts, "undefined": int(undefined.sum())}
        print_json({**summary, "are_own": are_own, "quality": None if quality is None else plain(quality)})
        return
    aucs = [None] * len(names) if quality is None else quality.aucs
    rows = [
        [name, f"{counts[name]:,}", "–" if area is None else f"{area:.3f}"]
        for name, area in zip(names, aucs, strict=True)
    ]
    print_listing(f"Classes of {plural(len(values), 'sample')}", ["class", "samples", "AUC"], rows, names=["class"])
    if quality is not None:
        of_fit = " on the samples that the models were fitted to: pass others to see that of new samples"
        print(f"accuracy {quality.accuracy:.4f}{of_fit * are_own}")
    if strange:
        print(f"no accuracy: the models have no class {strange[0]!r}, which samples are labeled with")
    if undefined.any():
        print(f"{plural(int(undefined.sum()), 'sample')} without a distance to any class")
    print(out)
