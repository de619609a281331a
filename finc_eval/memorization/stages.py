"""The stages of an audit, and how long all take: measured on first batches, and told before the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.progress import Stage, silent
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.memorization.distances import STAGE
from finc_eval.memorization.hashes import (
    HASHES,
    PICTURES_HELD,
    TRAIN_VIEWS,
    nearest_hashes,
    pictures_at,
    query_views,
    view_hashes,
)
from finc_eval.memorization.views import ALTERATIONS, ALTERED, MAX_ALTERED, SUSPECTS, VIEWS, SuspectViews, views_of
from finc_eval.samples.source import ahead

SAME_LAW, KINDS = Stage("training set against holdout", cost=0.5), Stage("kinds of the training set", cost=1.4)
FITTED, PLANTED = (Stage("MiFID", cost=3.6), Stage("FLD's gap", cost=10)), Stage("planted copies", cost=0.7)
ATTACKS = Stage("attacks", cost=17)
OF_PICTURES = (HASHES, VIEWS, ALTERED)  # stages that sets without pictures do not have
AUDIT_STAGES = (STAGE, SAME_LAW, KINDS, *OF_PICTURES, *FITTED, PLANTED, ATTACKS)
"""Stages of the progress, in their order."""


def planned(sets: Mapping[str, Embeddings], neighbors: int, embed: SuspectViews | None, run: Run) -> Run:
    """Return the run with the stages of an audit, each with its seconds, as first batches take them.

    The unit of `STAGE` is a pair of samples; the other stages without pictures take as much of it as they did with
    10,000 embeddings.
    """
    gen, train, holdout = (sets[label] for label in ("gen", "train", "holdout"))
    pairs = gen.n * (train.n + holdout.n) + train.n // 2 * (train.n // 2 + holdout.n) + train.n * (holdout.n + train.n)
    some, base = (Subset(part, np.arange(min(part.n, most))) for part, most in ((gen, 256), (train, 2048)))
    measured = _seconds(lambda: nearest(some, base, min(neighbors, base.n), device=run.torch_device))
    unit = measured / (some.n * base.n) * pairs / (STAGE.cost or 1)
    costs = {stage: unit * (stage.cost or 1) for stage in AUDIT_STAGES if stage not in OF_PICTURES}
    costs |= _of_pictures(gen, train, holdout, embed, run)
    return run.planned(
        *(Stage(stage, cost=costs[stage]) for stage in AUDIT_STAGES if stage in costs), seconds=sum(costs.values())
    )


def _of_pictures(
    gen: Embeddings, train: Embeddings, holdout: Embeddings, embed: SuspectViews | None, run: Run
) -> dict[Stage, float]:
    """Return the seconds of the stages of pictures; none where these are not at hand."""
    rows = np.arange(min(PICTURES_HELD, train.n))
    if any(part.images_at(rows[:1]) is None for part in (gen, train, holdout)):
        return {}
    searched = query_views(max(gen.n, holdout.n), train.n)
    try:
        reading = _seconds(lambda: pictures_at(train, rows, "train")) / len(rows)
        pictures = [image.convert("RGB") for image in pictures_at(train, rows, "train")]
        view_hashes(pictures[0], searched)  # the first call loads what it needs
        hashing = _seconds(lambda: [*ahead(lambda image: view_hashes(image, searched), pictures)]) / len(rows)
    except DataError:
        return {}
    queries, bases = (np.zeros((n, len(views), 32), np.uint8) for n, views in ((32, searched), (1024, TRAIN_VIEWS)))
    product = _seconds(lambda: nearest_hashes(queries, bases, 1, run)) / (32 * 1024)
    altered = min(MAX_ALTERED, train.n) * len(ALTERATIONS)
    # pictures of which all views are searched, or as many hashes
    hashed = gen.n + holdout.n + train.n * len(TRAIN_VIEWS) / len(searched)
    costs = {
        HASHES: (gen.n + holdout.n + train.n) * reading + hashed * hashing + (gen.n + holdout.n) * train.n * product,
        ALTERED: altered * (hashing + train.n * product),
    }
    if embed is not None:
        most, views = min(SUSPECTS, gen.n + holdout.n), views_of(searched[-1])
        first = dict.fromkeys(rows.tolist(), views[:1])
        costs[VIEWS] = most * len(views) / len(rows) * _seconds(lambda: embed(train, "first views", first, silent))
    return costs


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
