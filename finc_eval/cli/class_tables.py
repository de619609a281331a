"""Tables of the classes of samples, by their distances: as .csv files, and on the terminal."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import finc_eval as fe
from finc_eval.cli.output import print_json
from finc_eval.core.record import plain
from finc_eval.core.storage import written_whole
from finc_eval.core.words import counted

if TYPE_CHECKING:
    from finc_eval.embeddings.base import Embeddings


def all_ids(embeddings: Embeddings) -> list[str]:
    """Return the ids of all samples."""
    return embeddings.ids_between(0, embeddings.n)


def class_columns(classes: Sequence[Hashable]) -> list[str]:
    """Return the columns of a table of classes."""
    return ["id", "class", "distance", *(f"score {name}" for name in classes)]


def write_classes(out: Path, ids: Sequence[str], classes: Sequence[Hashable], values: NDArray[np.float64]) -> None:
    """Write id, nearest class, distance and matching scores of every sample; the class is empty if all are infinite."""
    scores = fe.kahm.matching_scores(values)
    with written_whole(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(class_columns(classes))
        for name, distances, line in zip(ids, values, scores, strict=True):
            place = int(distances.argmin())
            own = "" if np.isinf(distances[place]) else str(classes[place])
            writer.writerow([name, own, f"{distances[place]:.6g}", *(f"{score:.6f}" for score in line)])


def tell_classes(
    out: Path,
    classes: Sequence[Hashable],
    values: NDArray[np.float64],
    labels: Sequence[str] | None,
    as_json: bool,
) -> None:
    """Print how many samples are of each class, and with their labels, how well the classes are told."""
    undefined = np.isinf(values).all(1)
    nearest = np.where(undefined, -1, values.argmin(1))
    counts = {str(name): int((nearest == place).sum()) for place, name in enumerate(classes)}
    names = [str(name) for name in classes]
    strange = sorted({*labels} - {*names}) if labels is not None else []
    quality = None if labels is None or strange else fe.kahm.classification_quality(values, names, labels)
    if as_json:
        told = {"path": str(out), "n": len(values), "classes": counts, "undefined": int(undefined.sum())}
        print_json({**told, "quality": None if quality is None else plain(quality)})
        return
    from finc_eval.report.terminal import print_table

    aucs = [None] * len(names) if quality is None else quality.aucs
    rows = [
        [name, f"{counts[name]:,}", "–" if area is None else f"{area:.3f}"]
        for name, area in zip(names, aucs, strict=True)
    ]
    print_table(f"Classes of {counted(len(values), 'sample')}", ["class", "samples", "AUC"], rows, names=["class"])
    if quality is not None:
        print(f"accuracy {quality.accuracy:.4f}")
    if strange:
        print(f"no accuracy: the models have no class {strange[0]!r}, which samples are labeled with")
    if undefined.any():
        print(f"{counted(int(undefined.sum()), 'sample')} without a distance to any class")
    print(out)


def is_class_table(path: Path, classes: Sequence[Hashable], ids: Sequence[str]) -> bool:
    """Return whether a .csv file is a table of these classes and samples."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            return next(lines, []) == class_columns(classes) and [line[0] for line in lines] == [*ids]
    except (OSError, ValueError, IndexError, csv.Error):
        return False
