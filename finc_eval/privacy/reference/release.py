"""Releasing a private sketch: the one moment at which private records are read, paid for and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.progress import Progress, silent
from finc_eval.feature_maps.class_features import class_indices, features_of
from finc_eval.feature_maps.hermite import HermiteFeatures, TotalDegree
from finc_eval.feature_maps.hermite_series import degree_probabilities
from finc_eval.privacy.dp.gaussian_mechanism import Adjacency, Guarantee, released
from finc_eval.privacy.dp.ledger import Ledger
from finc_eval.privacy.dp.records import Records, opened_records
from finc_eval.privacy.reference.mean_distance import sampling_variance
from finc_eval.privacy.reference.note import Release, digest_of
from finc_eval.privacy.reference.sketch import LARGEST, PrivateSketch
from finc_eval.privacy.reference.transform import PublicTransform

Bound = Literal["tight", "paper"]
"""How far one replaced record moves a sum of features: √2, which docs/private_reference.md proves, or the paper's 2."""

NEGLIGIBLE = 1e-3
"""Tail of ‖φ‖² up to which it counts as 1."""

SQUARE_WEIGHT = 0.1
"""Weight of the coordinate that releases the mean of ‖φ‖². It enters the estimate divided by the number of records, so
it may be ten times as noisy as the others; at weight 1 it would make all noise √(3/2) times as large."""

THIRD_DEGREE = (1.0, 5000)
"""ε and number of records from which degree 3 tells more than its noise hides."""


def release(
    private: object,
    *,
    public: object,
    epsilon: float,
    delta: float = 1e-5,
    ledger: Ledger | str | Path | None,
    adjacency: Adjacency = "replace",
    bound: Bound = "tight",
    feature_map: HermiteFeatures | None = None,
    labels: Sequence[object] | None = None,
    classes: Sequence[object] | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> PrivateSketch:
    """Sketch private records with (ε, δ)-differential privacy.

    Args:
        private: the records: an array or tensor (n, d) of embeddings, an `EmbeddingCache`, or the path of one. Their
            number is public. Rows that are not finite, and samples that could not be read, count as the center.
        public: what decides scales, axes and features: a `PublicTransform`; public embeddings to fit one to; or a
            released `PrivateSketch`, whose transform, features and classes are then shared, so that both merge.
        epsilon: ε of the guarantee.
        delta: δ of it; below one over the number of records, and better far below.
        ledger: where the spending is recorded, on the disk, before noise is drawn; None where nobody counts.
        adjacency: "replace", or "zero-out", where a neighboring data set has a record that counts as nothing.
        bound: "tight" or "paper"; it matters for "replace" alone.
        feature_map: φ on the transform's images; total degree 2, or 3 where ε ≥ 1 and there are 5000 records.
        labels: the records' classes; those of the cache when left out.
        classes: the public list of classes, for a sketch by class; records of none of them count as nothing.
        name: what the ledger calls the data set, beside its digests.
        progress: told the stage, the records done and their number.

    Raises:
        FincEvalError: the transform has seen the private records, an argument is out of range, or the budget does not
            suffice. Nothing is spent then.
    """
    guarantee = Guarantee.of(epsilon, delta, adjacency)
    if bound not in get_args(Bound):
        raise FincEvalError(
            f"bound must be one of {', '.join(get_args(Bound))}, got {bound!r}{did_you_mean(bound, get_args(Bound))}"
        )
    if isinstance(public, PrivateSketch):
        if feature_map is not None or classes is not None:
            raise FincEvalError("a released sketch brings its features and classes: leave feature_map and classes out")
        transform, feature_map, classes = public.transform, public.feature_map, public.classes
    else:
        transform = public if isinstance(public, PublicTransform) else PublicTransform.fitted(public)
    records = opened_records(private, "the private set")
    transform.check_public(records)
    if records.m < 2:
        raise FincEvalError("a private sketch needs two records at least, got one")
    guarantee.check_delta(records.m)
    classes = None if classes is None else tuple(map(str, classes))
    if classes is not None and (not classes or len(set(classes)) < len(classes)):
        raise FincEvalError(f"classes must be different names, one at least, got {list(classes)}")
    phi = feature_map or _default_map(transform, guarantee, records.m, len(classes or (1,)))
    _check_size(phi, transform, len(classes or (1,)))
    places = None if classes is None else _places(records, labels, classes)
    weighted = largest_tail(phi, transform.radius) > NEGLIGIBLE
    sensitivity = sensitivity_of(records.m, phi, adjacency, bound, SQUARE_WEIGHT if weighted else 0.0)
    noise = guarantee.noise(sensitivity)

    exact = _mean(records, transform, phi, places, len(classes or (1,)), progress)
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        book.spend((*records.identities, *([name] if name else [])), guarantee, "private sketch")
    noisy = released(exact if weighted else exact[:-1], noise)

    mean = noisy[: len(exact) - 1]
    square = float(noisy[-1]) / SQUARE_WEIGHT if weighted else 1.0
    sampling = sampling_variance(mean, noise, square, records.m)
    return PrivateSketch(
        transform=transform,
        feature_map=phi,
        classes=classes,
        space=records.space,
        mean=mean,
        releases=(Release(records.m, guarantee, sensitivity, noise, square, sampling, digest_of(mean)),),
    )


def sensitivity_of(m: int, phi: HermiteFeatures, adjacency: Adjacency, bound: Bound, square_weight: float) -> float:
    """How far one record moves (mean φ, w · mean ‖φ‖²), in Euclidean distance: √(Δ² + w²)/m.

    Δ is the diameter √2 of φ's images, the paper's 2, or their largest norm 1 where a record may count as nothing.
    """
    farthest = 1.0 if adjacency == "zero-out" else phi.diameter if bound == "tight" else 2.0
    return hypot(farthest, square_weight) / m


def largest_tail(phi: HermiteFeatures, radius: float) -> float:
    """The largest 1 − ‖φ(x)‖² of an x of this norm or a smaller one; 1 where no closed form is known."""
    if not isinstance(phi, TotalDegree):
        return 1.0
    return 1 - float(degree_probabilities(radius, phi.length_scale, phi.rho, phi.order, phi.dim).sum())


def of_degree(transform: PublicTransform, degree: int) -> TotalDegree:
    """The features of this total degree on a transform's images, with the ρ that leaves out least at the radius."""
    candidates = [
        TotalDegree(transform.dims, degree, length_scale=transform.length_scale, rho=float(rho))
        for rho in np.geomspace(1e-3, 0.5, 60)
    ]
    return min(candidates, key=lambda phi: largest_tail(phi, transform.radius))


def _default_map(transform: PublicTransform, guarantee: Guarantee, m: int, classes: int) -> TotalDegree:
    """Total degree 2 or 3, by what is public alone."""
    epsilon, records = THIRD_DEGREE
    third = of_degree(transform, 3) if guarantee.epsilon >= epsilon and m >= records else None
    return third if third is not None and third.size * classes <= LARGEST else of_degree(transform, 2)


def _check_size(phi: HermiteFeatures, transform: PublicTransform, classes: int) -> None:
    if phi.dim != transform.dims:
        raise FincEvalError(f"the feature map takes {phi.dim} entries, the transform gives {transform.dims}")
    if phi.size * classes > LARGEST:
        raise FincEvalError(
            f"{phi.size * classes:,} features are more than {LARGEST:,}, whose covariance error bars need: take fewer "
            "dimensions, a lower degree or fewer classes"
        )


def _places(records: Records, labels: Sequence[object] | None, classes: Sequence[str]) -> torch.Tensor:
    given = records.labels if labels is None else labels
    if given is None:
        raise FincEvalError("the private set has no labels: pass labels, or leave the classes out")
    return class_indices(given, classes, records.m)


def _mean(
    records: Records,
    transform: PublicTransform,
    phi: HermiteFeatures,
    places: torch.Tensor | None,
    classes: int,
    progress: Progress,
) -> torch.Tensor:
    """The mean of φ over all records, and of w‖φ‖² as its last entry: shape (A + 1,), float64."""
    total = torch.zeros(phi.size * classes + 1, dtype=torch.double)
    for start, rows in records.batches():
        stop = start + len(rows)
        features = features_of(phi, transform(rows), None if places is None else places[start:stop], classes)
        total[:-1] += features.sum(0)
        total[-1] += SQUARE_WEIGHT * features.square().sum()
        progress("release", stop, records.m)
    return total / records.m
