"""Utility of synthetic records for marginals and classifiers, on the private records: for their holder alone.

Nothing here is private. No noise is added, so no guarantee covers the numbers, and no ledger counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, UsageError, check_seed
from finc_eval.core.progress import Progress, silent
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.core.serialize import Document
from finc_eval.core.words import plural
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, normal_quantile
from finc_eval.private.dp.fitting import check_fit
from finc_eval.private.dp.gaussian_mechanism import class_indices
from finc_eval.private.dp.public_values import column_array, column_arrays, count_texts
from finc_eval.private.synthesis.marginals import Levels, marginal_distance
from finc_eval.private.synthesis.tabular import Table

CLASSIFIERS = ("logistic regression", "random forest")
"""Names of the classifiers: the second sees relations of several columns. The paper of DP-HP has twelve."""

Labeled = tuple[NDArray[Any], NDArray[np.int64]]
"""Features (n, d) and classes (n,) of records."""

Predict = Callable[[NDArray[Any]], NDArray[np.int64]]


@dataclass(frozen=True)
class MarginalUtility(Record):
    """Distances from the private records of the joint distribution of a few columns: total variation, from 0 to 1.

    All tables have as many records as the synthetic one, so that chance adds as much to each distance.

    Attributes:
        columns: number of columns that are joined.
        synthetic: of the synthetic records; a fact about these two tables.
        resampled: of private records that are drawn again: what a generator has that knows their law.
        independent: of columns that are drawn again one by one: what is known without relations.
    """

    columns: int
    synthetic: float
    resampled: float
    independent: float


@dataclass(frozen=True)
class ClassifierUtility(Record):
    """Balanced accuracy of a classifier on private records: the mean over classes of the share that is recognized.

    Attributes:
        classifier: its name.
        synthetic: trained on synthetic records.
        private: trained on as many private ones, of the half in which the tested record is not.
        difference: synthetic minus private.
        interval: 95 % interval of the difference, of these trained classifiers on fresh records.
    """

    classifier: str
    synthetic: float
    private: float
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Utility(Document):
    """Usefulness of synthetic records, measured on the private ones. It is not private.

    Attributes:
        records: number of private records.
        synthetic: number of synthetic records.
        classes: names of the classes that private records have; empty without a label.
        trained: number of records that each classifier was trained on.
        marginals: distances of marginals of 1, 2 and 3 columns, the label among them; empty for images.
        classifiers: classifiers of the label; empty without one.
        seed: random seed of the halves, of the classifiers and of what is drawn again.
    """

    type_name: ClassVar[str] = "utility"
    page: ClassVar[str] = "finc_eval.private.synthesis.utility_page"

    records: int
    synthetic: int
    classes: tuple[str, ...]
    trained: int
    marginals: tuple[MarginalUtility, ...]
    classifiers: tuple[ClassifierUtility, ...]
    seed: int

    def _summary(self) -> str:
        return f"{self.synthetic} synthetic records measured on {self.records} private ones, not private"

    def _frame_rows(self) -> list[dict[str, object]]:
        """Return the difference of each classifier, with its interval, and the distance of each size of marginals."""
        classifiers: list[dict[str, object]] = [
            {"name": each.classifier, "value": each.difference, "interval": each.interval, "private": each.private}
            for each in self.classifiers
        ]
        marginals = [
            {"name": f"{plural(each.columns, 'column')} together", "value": each.synthetic}
            | {"resampled": each.resampled, "independent": each.independent}
            for each in self.marginals
        ]
        return [*classifiers, *marginals]


def table_utility(
    private: Mapping[str, ArrayLike],
    synthetic: Mapping[str, ArrayLike],
    table: Table,
    *,
    seed: int = 0,
    run: Run | None = None,
) -> Utility:
    """Measure on a private table how good a synthetic one is. The result is for the holder of the private table alone.

    Args:
        private: private columns by name.
        synthetic: synthetic columns by name, of this program or of another.
        table: public description of the table, in whose levels both are compared.
        seed: random seed of the halves, of the classifiers and of what is drawn again.
        run: progress.

    Raises:
        UsageError: the seed is negative.
        DataError: the data do not fit the description, or are too few.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> table = fe.privacy.Table((fe.privacy.Category("ward", ("east", "west")),), fe.privacy.Category("ill", "ny"))
        >>> private = {"ward": np.array(["east", "west"] * 50), "ill": np.array(list("ny") * 50)}
        >>> found = fe.privacy.table_utility(private, private, table)
        >>> [one.synthetic for one in found.marginals], found.classifiers[0].synthetic
        ([0.0, 0.0], 1.0)
    """
    progress, seed = Run.of(run).progress, check_seed(seed)
    (x, known), (made, drawn) = (_encoded(table, *given) for given in (("private", private), ("synthetic", synthetic)))
    levels, made_levels = (
        table.level_indices(rows).numpy() if labels is None else np.c_[table.level_indices(rows).numpy(), labels]
        for rows, labels in ((x, known), (made, drawn))
    )
    trained_on = _trained(len(x), len(made))
    classifiers: tuple[ClassifierUtility, ...] = ()
    if known is not None and drawn is not None:
        pairs = (x.numpy(), known), (made.numpy(), drawn)
        classifiers = classifiers_utility(*pairs, table.classes, seed=seed, progress=progress)
    return Utility(
        records=len(x),
        synthetic=len(made),
        classes=_present(table.label.values, known) if table.label and known is not None else (),
        trained=trained_on,
        marginals=_marginals(levels, made_levels, seed, progress),
        classifiers=classifiers,
        seed=seed,
        provenance=Provenance.here("cpu"),
    )


def image_utility(
    private: NDArray[np.uint8],
    labels: Sequence[object],
    synthetic: NDArray[np.uint8],
    synthetic_labels: Sequence[object],
    classes: Sequence[str],
    *,
    seed: int = 0,
    run: Run | None = None,
) -> Utility:
    """Measure on private images how good synthetic ones are for classifiers of their pixels. It is not private.

    Args:
        private: private images, (m, h, w) or (m, h, w, c), uint8.
        labels: class of each private image.
        synthetic: synthetic images of the same shape.
        synthetic_labels: class of each synthetic image.
        classes: list of classes. Images of other classes are left out.
        seed: random seed of the halves and of the classifiers.
        run: progress.

    Raises:
        UsageError: the list of classes is empty, or the seed is negative.
        DataError: the images have different shapes, or no labels of these classes, or are too few.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> labels = ["healthy", "ill"] * 30
        >>> images = np.full((60, 4, 4), 9, np.uint8)
        >>> images[1::2] = 200
        >>> found = fe.privacy.image_utility(images, labels, images, labels, ("healthy", "ill"))
        >>> [row.synthetic for row in found.classifiers]
        [1.0, 1.0]
    """
    seed = check_seed(seed)
    if private.shape[1:] != synthetic.shape[1:]:
        raise DataError(f"images must have one shape, got {private.shape[1:]} and synthetic {synthetic.shape[1:]}")
    if not classes:
        raise UsageError("images are classified by their labels: pass the list of classes")
    of_private = _pixels("private", private, labels, classes)
    of_synthetic = _pixels("synthetic", synthetic, synthetic_labels, classes)
    (x, known), (made, _) = of_private, of_synthetic
    return Utility(
        records=len(x),
        synthetic=len(made),
        classes=_present(classes, known),
        trained=_trained(len(x), len(made)),
        marginals=(),
        classifiers=classifiers_utility(
            of_private, of_synthetic, len(classes), seed=seed, progress=Run.of(run).progress
        ),
        seed=seed,
        provenance=Provenance.here("cpu"),
    )


def _encoded(
    table: Table, whose: str, values: Mapping[str, ArrayLike]
) -> tuple[torch.Tensor, NDArray[np.int64] | None]:
    """Return the records of a table, (n, D), and the number of each one's class; warn of values that do not fit."""
    columns = column_arrays(values)
    records, labels = table.encoded(columns)
    fate = "take the usual level, or the nearest"
    check_fit(table.misfits(columns), len(records), 1, fate, table.of_missing, whose)
    return records, None if labels is None else labels.numpy()


def _present(classes: Sequence[str], places: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the classes that records have, by the numbers of their classes, (n,)."""
    return tuple(classes[place] for place in np.unique(places))


def _pixels(whose: str, images: NDArray[np.uint8], labels: Sequence[object], classes: Sequence[str]) -> Labeled:
    """Return the pixels of the images of these classes, (n, h·w·c), from 0 to 1, and the number of each one's class."""
    places = class_indices(labels, classes, len(images)).numpy()
    chosen = places >= 0
    if not chosen.any():
        raise DataError(f"no image has a class of {', '.join(classes)}: pass the list of classes that the labels have")
    others = count_texts(column_array(labels, "labels"), ~chosen)
    check_fit({"labels": others}, len(images), 1, "are left out, with their images", whose=whose)
    return images[chosen].reshape(int(chosen.sum()), -1) / np.float32(255), places[chosen]


def _trained(records: int, synthetic: int) -> int:
    """Return how many records a classifier is trained on, of a half of the private records or of the synthetic ones."""
    if records < 4 or synthetic < 2:
        raise DataError(f"utility needs at least 4 private and 2 synthetic records, got {records} and {synthetic}")
    # 10 000: records that a classifier is trained on at most.
    return min(records // 2, synthetic, 10_000)


def _marginals(levels: Levels, made: Levels, seed: int, progress: Progress) -> tuple[MarginalUtility, ...]:
    """Return the distances of marginals of 1 to 3 columns, of the synthetic table and of the yardsticks."""
    rng, count = np.random.default_rng(seed), len(made)
    again = levels[rng.integers(len(levels), size=count)]
    apart = np.stack([column[rng.integers(len(levels), size=count)] for column in levels.T], 1)
    # 3, 100: columns of the largest marginals, and choices of columns whose mean a distance is, at most.
    found, most = [], min(3, levels.shape[1])
    for columns in range(1, most + 1):
        distances = [marginal_distance(levels, other, columns, at_most=100) for other in (made, again, apart)]
        found.append(MarginalUtility(columns, *distances))
        progress("marginals", columns, most)
    return tuple(found)


def classifiers_utility(
    private: Labeled,
    synthetic: Labeled,
    classes: int,
    names: Sequence[str] = CLASSIFIERS,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[ClassifierUtility, ...]:
    """Train classifiers on synthetic and on private records, and test both on private ones.

    Args:
        private: features (n, d) and classes (n,) of the private records.
        synthetic: features and classes of the synthetic records.
        classes: number of classes.
        names: names of classifiers.
        seed: random seed of the halves and of the classifiers.
        progress: called after every classifier.
    """
    results = []
    for done, name in enumerate(names):
        of_synthetic, of_halves, halves = trained(name, private, synthetic, seed)
        (x, y), by_private = private, np.empty(len(private[1]), np.int64)
        for half, predict in enumerate(of_halves):
            tested = halves != half
            by_private[tested] = predict(x[tested])
        right = of_synthetic(x) == y, by_private == y
        synthetic_right, private_right = (_balanced(flags, y) for flags in right)
        difference = balanced_difference(*right, y, classes)
        results.append(ClassifierUtility(name, synthetic_right, private_right, *difference))
        progress("classifiers", done + 1, len(names))
    return tuple(results)


def trained(
    name: str, private: Labeled, synthetic: Labeled, seed: int
) -> tuple[Predict, tuple[Predict, Predict], NDArray[np.int64]]:
    """Train a classifier on synthetic records, and on each half of the private ones, on equally many.

    Returns:
        The classifier of the synthetic records; those of the halves 0 and 1; the half of each private record, (n,).
    """
    (x, y), (made, drawn), rng = private, synthetic, np.random.default_rng(seed)
    order = np.argsort(y + rng.random(len(y)), kind="stable")  # by class, in random order within each
    halves = np.empty(len(y), np.int64)
    halves[order] = np.arange(len(y)) % 2
    count = _trained(len(x), len(made))
    chosen = [rng.permutation(np.nonzero(halves == half)[0])[:count] for half in (0, 1)]
    some = rng.permutation(len(made))[:count]
    first, second = (_fitted(name, x[places], y[places], seed) for places in chosen)
    return _fitted(name, made[some], drawn[some], seed), (first, second), halves


def balanced_difference(
    first: NDArray[np.bool_], second: NDArray[np.bool_], classes: NDArray[np.int64], count: int
) -> tuple[float, tuple[float, float]]:
    """Return the difference of two balanced accuracies on the same records, and its 95 % interval.

    Within a class, records are paired. The interval adds half a record to each of the four outcomes (Agresti and Min,
    Statistics in Medicine 24, 2005), because in a rare class both classifiers may be right about the same records.
    """
    means, centers, variances = [], [], []
    for number in range(count):
        if not (chosen := classes == number).any():
            continue
        paired = first[chosen].astype(float) - second[chosen]
        size = len(paired) + 2
        centers.append(paired.sum() / size)
        variances.append(((paired @ paired + 1) / size - centers[-1] ** 2) / size)
        means.append(paired.mean())
    center, error = float(np.mean(centers)), sqrt(sum(variances)) / len(means)
    half = normal_quantile(DEFAULT_CONFIDENCE) * error
    return float(np.mean(means)), (max(center - half, -1.0), min(center + half, 1.0))


def _balanced(right: NDArray[np.bool_], classes: NDArray[np.int64]) -> float:
    return float(np.mean([right[classes == number].mean() for number in np.unique(classes)]))


def _fitted(name: str, features: NDArray[Any], classes: NDArray[np.int64], seed: int) -> Predict:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    if (only := np.unique(classes)).size == 1:
        return lambda rows: np.full(len(rows), only[0])
    # Classes count alike, as in the score.
    makers: dict[str, Any] = {
        "logistic regression": lambda: LogisticRegression(max_iter=1000, class_weight="balanced"),
        "random forest": lambda: RandomForestClassifier(
            min_samples_leaf=5, class_weight="balanced_subsample", random_state=seed
        ),
    }
    if name not in makers:
        raise UsageError(f"classifiers are {', '.join(makers)}, got {name!r}")
    fitted = makers[name]().fit(features, classes)
    return lambda rows: fitted.predict(rows)
