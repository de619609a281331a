"""Checks of sets before they are paired by id: whether they are two runs, and whether they share enough ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import form_of
from finc_eval.embeddings.same_names import MAX_JOINED_VALUES, rows_of
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.partitions.counts import MIN_SAMPLES

COMMON = 0.9  # part of the ids of both sets that must be the same: nearly all
NEAREST = 0.5
"""Part of these that must be nearest to the sample of their own id. Names such as 0001.png agree by chance: then
hardly any is."""


FOUND = (
    "most ids of gen are ids of ref, and most samples are nearest to the sample of their own id: the sets are compared "
    'pair by pair, as two runs with the same seeds (pairs="id")'
)


LEAST_FLOOR = 20  # pairs of two runs of the baseline from which they are a floor; of fewer than 20 pairs, all

PIXELS = "pixels"  # extractor without a network, whose vectors decide nothing about few pairs


def extractor_of_few(sources: Mapping[str, object], extractor: AnyExtractor) -> AnyExtractor:
    """Return an extractor without a network for few pairs of pictures, unless another is asked for."""
    paths = [source for source in sources.values() if isinstance(source, str | Path)]
    if extractor is not None or len(paths) < len(sources) or any(form_of(path) != "samples" for path in paths):
        return extractor
    from finc_eval.samples.opening import open_source  # the readers of samples, which arrays do not need

    try:
        is_few = min(len(open_source(path).ids) for path in paths) < MIN_SAMPLES
    except FincEvalError:
        return extractor  # it is said where the set is opened
    return PIXELS if is_few else extractor


def are_two_runs(sets: Mapping[str, Embeddings]) -> bool:
    """Return whether both sets have the same ids, which are names, for samples that belong together."""
    gen, ref = sets.values()
    most, least = max(gen.n, ref.n), min(gen.n, ref.n)
    if least < COMMON * most or most > MAX_JOINED_VALUES:
        return False
    # 200: samples whose nearest sample of the other set is looked for, among as many.
    drawn = np.unique(np.linspace(0, gen.n - 1, 200).astype(np.int64))
    names = gen.ids_at(drawn)
    if all(name.isdecimal() for name in names):  # numbers of rows name nothing
        return False
    rows = rows_of(ref, names)
    if len(rows) < COMMON * len(names):
        return False
    shared = [place for place, name in enumerate(names) if name in rows]
    first = gen.rows_at(drawn[shared]).cpu().double()
    second = ref.rows_at(np.array([rows[names[place]] for place in shared])).cpu().double()
    distance = torch.cdist(first, second)
    is_own = distance.diagonal() <= distance.min(1).values
    return float(is_own.double().mean()) > NEAREST


def least_of_run(pairs: int) -> int:
    """Return how many ids a further run of the baseline must share with it, by the number of pairs."""
    return min(LEAST_FLOOR, pairs)


def few_of_run(label: str, shared: int, least: int) -> DataError:
    """Return the error for a further run of the baseline that has too few of its ids."""
    return DataError(
        f"{label} has {plural(shared, 'id')} in common with ref: a further run of the baseline needs at least "
        f"{least} of its ids"
    )
