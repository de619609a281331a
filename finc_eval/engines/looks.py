"""Looks of the images of a batch, as columns."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.naming.measured import column_measurer, looks_of, measure_rows
from finc_eval.naming.properties import LOOK_COLUMN
from finc_eval.samples.source import RandomAccessSource, Source

Array = NDArray[np.float64]


def looks_of_images(samples: Source | None) -> tuple[dict[str, Array], list[tuple[str, str]]]:
    """Return the looks and registered columns of images by name, (n,), and which cannot be read and why.

    Values of images that cannot be read are NaN. None stands for no samples.
    """
    read = [] if samples is None else [cast(RandomAccessSource, samples).sample(row) for row in range(len(samples.ids))]
    failures = [(sample.id, sample.error) for sample in read if sample.error is not None]
    rows = np.array([row for row, sample in enumerate(read) if sample.pixels is not None], np.int64)
    if not len(rows):
        return {}, failures
    # No embedding is asked for: the set only holds the pictures.
    held = EmbeddingSet(np.zeros((len(rows), 1), np.float32), images=[read[row].pixels for row in rows.tolist()])
    every = np.arange(len(rows))
    values, asked = measure_rows(held, every), column_measurer(held, every)
    asked.add(every.tolist(), held.images_at(every) or [])
    assert values is not None  # the pictures are at hand
    columns = {trait.name: values[:, place] for place, trait in enumerate(looks_of(held))}
    columns |= {column.name: found.values for column, found in asked.found.items()}
    found = {f"{LOOK_COLUMN}{name}": np.full(len(read), np.nan) for name in columns}
    for name, of_images in columns.items():
        found[f"{LOOK_COLUMN}{name}"][rows] = of_images
    return found, failures
