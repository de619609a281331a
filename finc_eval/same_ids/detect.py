"""The check whether two sets are two runs of a generator with the same prompts and seeds, unasked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
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


PIXELS = "pixels"  # extractor without a network, whose vectors decide nothing about few pairs


def extractor_of_few(sources: Mapping[str, object], extractor: AnyExtractor) -> AnyExtractor:
    """Return an extractor without a network for few pairs of pictures, unless another is asked for."""
    paths = [one for one in sources.values() if isinstance(one, str | Path)]
    if extractor is not None or len(paths) < len(sources) or any(form_of(one) != "samples" for one in paths):
        return extractor
    from finc_eval.samples.opening import open_source  # the readers of samples, which arrays do not need

    try:
        is_few = min(len(open_source(one).ids) for one in paths) < MIN_SAMPLES
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
