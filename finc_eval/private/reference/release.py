"""Release of a private sketch: the only moment at which private records are read and their budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from pathlib import Path
from typing import Unpack

import numpy as np
import torch

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.record import settings_from
from finc_eval.core.run import Run
from finc_eval.embeddings.needs import Check, needs_labels
from finc_eval.embeddings.opening import embed_sources
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.private.dp.gaussian_mechanism import add_gaussian_noise, class_features, class_indices
from finc_eval.private.dp.guarantee import Adjacency, Guarantee
from finc_eval.private.dp.ledger import Ledger, record_spending
from finc_eval.private.dp.losses import note_losses
from finc_eval.private.dp.population import RowViews
from finc_eval.private.dp.records import Records, open_records
from finc_eval.private.hermite.hermite import HermiteFeatures, TotalDegree, degree_probabilities
from finc_eval.private.reference.mean_distance import sampling_variance
from finc_eval.private.reference.result import SQUARE_WEIGHT, ReleaseRecord
from finc_eval.private.reference.sketch import MAX_SKETCH_FEATURES, PrivateSketch
from finc_eval.private.reference.transform import PublicTransform
from finc_eval.private.settings import ReleaseOptions, ReleaseSettings

NO_LABELS = "the private set has no labels: pass labels, or leave the classes out"

NEGLIGIBLE_TAIL = 1e-3  # largest 1 − ‖φ‖² at which ‖φ‖² counts as 1

THIRD_DEGREE_EPSILON, THIRD_DEGREE_RECORDS = 1.0, 5000
"""Smallest ε and number of records at which features of degree 3 reveal more than their noise hides."""

MEHLER_RHOS = np.geomspace(1e-3, 0.5, 60)  # values of Mehler's ρ that `total_degree_map` tries


def release_sketch(
    private: object,
    settings: ReleaseSettings | None = None,
    *,
    public: object,
    ledger: Ledger | str | Path | None,
    feature_map: HermiteFeatures | None = None,
    labels: Sequence[object] | None = None,
    classes: Sequence[object] | None = None,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **options: Unpack[ReleaseOptions],
) -> PrivateSketch:
    """Release a sketch of private records with (ε, δ)-differential privacy.

    Args:
        private: records: an array or tensor (n, d) of embeddings, an `EmbeddingCache`, the path of a file of
            embeddings, or of samples, which are embedded first. Their number is public. Rows that are not finite,
            and samples that could not be read, count as the center.
        settings: budget and sensitivity; default: built from the options.
        public: source of scales, axes and features: a `PublicTransform`; a public set in the same forms, to fit a
            transform to; or a released `PrivateSketch`, whose transform, features and classes are then shared, so that
            both can merge.
        ledger: ledger in which the spending is recorded, on the disk, before noise is drawn; None to record nothing.
        feature_map: φ on the transform's images; default: total degree 2, or 3 from ε = 1 and 5000 records on.
        labels: classes of the records; default: the labels of the cache.
        classes: public list of classes, for a sketch by class. Records of other classes count as nothing.
        extractor: how to embed samples; default: by the extractor behind the other set.
        run: device of the embedding, portions and progress. Records are read on the CPU.
        options: fields of `ReleaseSettings` as keywords; epsilon is required.

    Raises:
        BudgetError: the ledger's budget does not suffice. Nothing is spent.
        UsageError: an argument is out of range. Nothing is spent.
        DataError: the records cannot be used, or the transform has seen them. Nothing is spent.
        IncompatibleError: records and transform do not belong together. Nothing is spent.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(400)
        >>> public, private = ref[:200], ref[200:]
        >>> ledger = fe.privacy.Ledger.create("ledger.jsonl", epsilon=3, delta=1e-5)
        >>> sketch = fe.privacy.release_sketch(private, public=public, epsilon=1, ledger=ledger)
        >>> sketch.m, sketch.mean.shape, sketch.guarantees[0].epsilon
        (200, torch.Size([231]), 1)
    """
    chosen, run = settings_from(ReleaseSettings, settings, options), Run.of(run)
    guarantee = chosen.guarantee
    is_by_class = labels is None and getattr(public, "classes", classes) is not None
    checks = [needs_labels("private", DataError(NO_LABELS))] if is_by_class else []
    private, source = _open_both(private, public, extractor, run, checks)
    if isinstance(source, PrivateSketch):
        if feature_map is not None or classes is not None:
            raise UsageError("a released sketch brings its features and classes: leave feature_map and classes out")
        transform, feature_map, classes = source.transform, source.feature_map, source.classes
    else:
        transform = source
    records = open_records(private, "the private set")
    transform.check_public(records)
    if records.m < 2:
        raise DataError("a private sketch needs at least two records, got one")
    guarantee.check_delta(records.m)
    names = None if classes is None else _class_names(classes)
    class_count = len(names or (1,))
    phi = feature_map or _default_map(transform, guarantee, records.m, class_count)
    _check_size(phi, transform, class_count)
    places = None if names is None else _class_places(records, labels, names, chosen.max_undescribed)
    weighted = largest_tail(phi, transform.radius) > NEGLIGIBLE_TAIL
    sensitivity = sensitivity_of(records.m, phi, chosen.adjacency, SQUARE_WEIGHT if weighted else 0.0)
    noise = guarantee.noise(sensitivity)

    seen = None if ledger is None else RowViews()
    exact = _mean(records, transform, phi, places, class_count, run, seen)
    with note_losses():
        if ledger is not None and seen is not None:
            record_spending(ledger, records.identity(seen), chosen.name, guarantee, "private sketch")
        noisy = add_gaussian_noise(exact if weighted else exact[:-1], noise)

        mean = noisy[: len(exact) - 1]
        square = float(noisy[-1]) / SQUARE_WEIGHT if weighted else 1.0
        sampling, digest = sampling_variance(mean, noise, square, records.m), sha256_of(mean)
        made = ReleaseRecord(records.m, guarantee, sensitivity, noise, square, sampling, digest, records.windows)
        return PrivateSketch(
            transform=transform, feature_map=phi, classes=names, space=records.space, mean=mean, releases=(made,)
        )


def _open_both(
    private: object, public: object, extractor: AnyExtractor, run: Run, checks: Sequence[Check]
) -> tuple[object, PrivateSketch | PublicTransform]:
    """Embed what is not embedded yet; return the private set, and the source of scales, fitted to a public set."""
    if isinstance(public, PrivateSketch | PublicTransform):
        return embed_sources({"private": private}, extractor, run, [public.space], checks)["private"], public
    sets = embed_sources({"private": private, "public": public}, extractor, run, (), checks)
    return sets["private"], PublicTransform.fit(sets["public"])


def _class_names(classes: Sequence[object]) -> tuple[str, ...]:
    """Return the names of classes, or raise UsageError if they are not different."""
    names = tuple(map(str, classes))
    if not names or len(set(names)) < len(names):
        raise UsageError(f"classes must be different names, at least one, got {list(names)}")
    return names


def _class_places(
    records: Records, labels: Sequence[object] | None, classes: tuple[str, ...], max_undescribed: float
) -> torch.Tensor:
    """Return the place of each record's class among the classes, by the labels that are given or those it has."""
    given = records.labels if labels is None else labels
    if given is None:
        raise DataError(NO_LABELS)
    return class_indices(given, classes, records.m, max_undescribed)


def sensitivity_of(m: int, phi: HermiteFeatures, adjacency: Adjacency, square_weight: float) -> float:
    """Return the largest Euclidean distance by which one record moves (mean φ, w · mean ‖φ‖²): √(Δ² + w²)/m.

    Δ is the diameter of φ's images. If a record may count as nothing, Δ is their largest norm, 1.
    """
    return hypot(1.0 if adjacency == "zero-out" else phi.diameter, square_weight) / m


def largest_tail(phi: HermiteFeatures, radius: float) -> float:
    """Return the largest 1 − ‖φ(x)‖² over all x within the radius; 1 without a closed form."""
    if not isinstance(phi, TotalDegree):
        return 1.0
    return 1 - float(degree_probabilities(radius, phi.length_scale, phi.rho, phi.order, phi.dim).sum())


def total_degree_map(transform: PublicTransform, degree: int) -> TotalDegree:
    """Return the features of this total degree on a transform's images, with the Mehler ρ of the smallest tail."""
    candidates = [
        TotalDegree(transform.dims, degree, length_scale=transform.length_scale, rho=float(mehler_rho))
        for mehler_rho in MEHLER_RHOS
    ]
    return min(candidates, key=lambda phi: largest_tail(phi, transform.radius))


def _default_map(transform: PublicTransform, guarantee: Guarantee, m: int, classes: int) -> TotalDegree:
    """Choose total degree 2 or 3, from public facts alone."""
    if guarantee.epsilon >= THIRD_DEGREE_EPSILON and m >= THIRD_DEGREE_RECORDS:
        third = total_degree_map(transform, 3)
        if third.size * classes <= MAX_SKETCH_FEATURES:
            return third
    return total_degree_map(transform, 2)


def _check_size(phi: HermiteFeatures, transform: PublicTransform, classes: int) -> None:
    if phi.dim != transform.dims:
        raise IncompatibleError(f"the feature map takes {phi.dim} entries, the transform gives {transform.dims}")
    if phi.size * classes > MAX_SKETCH_FEATURES:
        raise UsageError(
            f"{phi.size * classes:,} features are more than {MAX_SKETCH_FEATURES:,}, and error bars need their "
            "covariance: take fewer dimensions, a lower degree or fewer classes"
        )


def _mean(
    records: Records,
    transform: PublicTransform,
    phi: HermiteFeatures,
    places: torch.Tensor | None,
    classes: int,
    run: Run,
    seen: RowViews | None,
) -> torch.Tensor:
    """Average φ over all records, with the mean of w‖φ‖² as the last entry: shape (A + 1,), float64."""
    total = torch.zeros(phi.size * classes + 1, dtype=torch.double)
    for start, rows in records.batches(run.portion):
        stop = start + len(rows)
        if seen is not None:
            seen.add(rows)
        features = class_features(phi, transform(rows), None if places is None else places[start:stop], classes)
        total[:-1] += features.sum(0)
        total[-1] += SQUARE_WEIGHT * features.square().sum()
        run.progress("release", stop, records.m)
    return total / records.m
