"""`Classification`: samples by their nearest model, how often that is right, and which samples are in doubt.

The nearest class is that of Definition 7 (Kumar, Moser and Fischer, JAIR 79, 2024), the scores behind the AUCs are of
Definition 8, and distances over several parties are of eq. 104. Yardsticks classify by the samples of the same models:
these are in the models (`Kahm.samples`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, check_labels
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.estimates.error_source import Integers
from finc_eval.estimates.shares import share_interval
from finc_eval.gallery.pictured import Pictured
from finc_eval.numerics.attack_statistics import auc
from finc_eval.private.kahm.models import matching_scores

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CLASSIFIED = "classified"  # label of the set


@dataclass(frozen=True)
class ClassResult(Record):
    """Result of one class: how many samples are nearest to it, and how many of its own are recognized.

    Attributes:
        name: label of the class.
        nearest: number of samples whose nearest class it is.
        labeled: number of samples that are labeled with it; None without labels.
        recognized: share of the samples labeled with it whose nearest class it is; None without such samples.
        interval: 95 % interval of that share, for fresh samples of the class; None for the samples of the models.
        auc: area under the ROC curve of its class-matching score (Definition 8), samples of the class against all
            others, as in the paper's Table 4; None if one of both is missing.
    """

    name: str
    nearest: int
    labeled: int | None = None
    recognized: float | None = None
    interval: tuple[float, float] | None = None
    auc: float | None = None


@dataclass(frozen=True)
class Yardstick(Record):
    """Another classifier, by the samples of the same models.

    Attributes:
        name: its name.
        accuracy: share of the labeled samples that it recognizes.
        difference: accuracy of the nearest model minus that of the yardstick.
        interval: 95 % interval of the difference, for fresh samples.
    """

    name: str
    accuracy: float
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Confusion(Record):
    """Samples of one class that are nearest to another.

    Attributes:
        label: class that the samples are labeled with.
        nearest: class of the nearest model; "" for samples without a distance to any.
        samples: number of samples.
    """

    label: str
    nearest: str
    samples: int


@dataclass(frozen=True)
class ClassifiedSample(Record):
    """A sample that a page shows.

    Attributes:
        id: its id.
        label: its label; "" if unknown.
        nearest, second: classes of the nearest and of the second nearest model; the second is "" without a distance.
        distance: distance to the nearest model, in the unit of the features.
        margin: 1 − distance to the nearest model / distance to the second: 0 for equal distances, 1 at most.
    """

    id: str
    label: str
    nearest: str
    second: str
    distance: float
    margin: float


@dataclass(frozen=True, eq=False)
class Classification(Pictured):
    """The classes of samples by their nearest model, and how often they are right.

    Attributes:
        set: the classified set; None for distances whose samples are elsewhere.
        samples: number of classified samples.
        classes: what is known of each class, in the order of the models.
        labeled: number of samples whose label is one of the classes; 0 if nothing is judged.
        accuracy: share of the labeled samples whose nearest class is their own (Definition 7). None if nothing is
            judged. A sample without a distance to any class has no nearest class.
        accuracy_interval: 95 % interval of the accuracy, for fresh samples; None for the samples of the models.
        are_own: whether the models were fitted to these samples: an accuracy is then no estimate for others.
        repeated: number of samples that are also samples of the models; None if the models are elsewhere.
        undefined: number of samples without a distance to any class.
        strange: labels of samples that no model has; then nothing is judged.
        yardsticks: other classifiers; empty without labels, or if `are_own`, or if the models are elsewhere.
        confusions: pairs of unlike classes, the most frequent first.
        doubtful: samples with the smallest margins.
        mistaken: samples of which the nearest class is wrong, with the largest margins.
        parties: names of the parties whose models were asked; empty for one file of models.
        settings: settings of the models; "" if unknown.
        ids: id of each sample; empty for a result that was read from a file.
        distances: distance of each sample and class, (n, classes); None for a result that was read from a file.
    """

    type_name: ClassVar[str] = "classification"
    page: ClassVar[str] = "finc_eval.private.kahm.classification_page"

    set: SetInfo | None
    samples: int
    classes: tuple[ClassResult, ...]
    labeled: int
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    are_own: bool
    repeated: int | None
    undefined: int
    strange: tuple[str, ...]
    yardsticks: tuple[Yardstick, ...]
    confusions: tuple[Confusion, ...]
    doubtful: tuple[ClassifiedSample, ...]
    mistaken: tuple[ClassifiedSample, ...]
    parties: tuple[str, ...]
    settings: str
    ids: Annotated[Sequence[str], *NOT_IN_JSON] = field(default=(), kw_only=True, repr=False)
    distances: Annotated[Array | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the classified set."""
        return {} if self.set is None else {CLASSIFIED: self.set}

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples that a page shows: doubtful and mistaken ones."""
        shown = [row.id for rows in (self.doubtful, self.mistaken) for row in rows[: self.shown]]
        return {CLASSIFIED: list(dict.fromkeys(shown))}

    def _summary(self) -> str:
        judged = "not judged" if self.accuracy is None else f"accuracy {self.accuracy:.3f}"
        return f"{self.samples} samples of {len(self.classes)} classes, {judged}"

    def _frame_rows(self) -> list[dict[str, object]]:
        """Return the accuracy of all, of each class, and of the yardsticks; without labels the share of each class."""
        if self.accuracy is None:
            return [
                {"name": row.name, "value": row.nearest / max(self.samples, 1), "interval": None}
                for row in self.classes
            ]
        numbers = [
            ("all classes", self.accuracy, self.accuracy_interval),
            *((row.name, row.recognized, row.interval) for row in self.classes),
            *((row.name, row.accuracy, None) for row in self.yardsticks),
        ]
        return [{"name": name, "value": value, "interval": interval} for name, value, interval in numbers]


def classification(
    distances: ArrayLike,
    classes: Sequence[Hashable],
    labels: ArrayLike | None = None,
    *,
    ids: Sequence[str] | None = None,
    units: Integers | None = None,
    settings: str = "",
    parties: Sequence[str] = (),
    are_own: bool = False,
) -> Classification:
    """Judge distances to classes: accuracy and recognized shares with intervals, AUCs, confusions, doubtful samples.

    Args:
        distances: distance of each sample and class, shape (n, classes); infinite if there is none.
        classes: labels of the columns.
        labels: true label of each sample, shape (n,), "" if it is unknown; None for samples without labels.
        ids: id of each sample; default: its number.
        units: number of the independent unit of each sample, shape (n,), such as its video; default: itself.
        settings: settings of the models, as text for the result.
        parties: names of the parties whose distances these are.
        are_own: whether the models were fitted to these samples; intervals for fresh samples are then left out.

    Raises:
        DataError: there is not one label for each sample, or the distances have another shape, or are NaN.

    Example:
        >>> import finc_eval as fe
        >>> far_and_near = [[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]]
        >>> found = fe.kahm.classification(far_and_near, ("a", "b"), ["a", "b", "b"])
        >>> found.accuracy, [row.auc for row in found.classes]
        (1.0, [1.0, 1.0])
    """
    values, names = np.asarray(distances, np.float64), [str(name) for name in classes]
    if values.ndim != 2 or 0 in values.shape or values.shape[1] != len(names) or np.isnan(values).any():
        raise DataError(
            f"distances must be numbers of shape (samples, {len(names)}), got shape {values.shape}, or NaN among them"
        )
    known, strange = known_classes(labels, names, len(values))
    codes, judged = nearest_classes(values), known >= 0
    right = (codes == known)[judged]
    ids = [str(row) for row in range(len(values))] if ids is None else ids
    texts = np.array([*names, ""], object)
    doubtful, mistaken = _shown_samples(values, codes, known, texts, ids)
    scores = matching_scores(values)
    return Classification(
        provenance=Provenance.here("cpu"),
        set=None,
        samples=len(values),
        classes=tuple(_of_class(number, names, scores, codes, known, units, are_own) for number in range(len(names))),
        labeled=len(right),
        accuracy=float(right.mean()) if len(right) else None,
        accuracy_interval=None if are_own or not len(right) else share_interval(right, among(units, judged)),
        are_own=are_own,
        repeated=None,
        undefined=int((codes < 0).sum()),
        strange=strange,
        yardsticks=(),
        confusions=_confusions(texts[known[judged]], texts[codes[judged]]),
        doubtful=doubtful,
        mistaken=mistaken,
        parties=tuple(parties),
        settings=settings,
        ids=ids,
        distances=values,
    )


def nearest_classes(values: Array) -> Integers:
    """Return the number of the nearest class of each sample, (n,), from distances (n, classes); −1 without any."""
    return np.where(np.isfinite(values.min(1)), values.argmin(1), -1)


def among(units: Integers | None, chosen: Mask) -> Integers | None:
    """Return the units of chosen samples, (n,), numbered from 0 without gaps."""
    return None if units is None else np.unique(units[chosen], return_inverse=True)[1]


def known_classes(labels: ArrayLike | None, names: Sequence[str], n: int) -> tuple[Integers, tuple[str, ...]]:
    """Return the class of each sample, (n,), −1 if it is not judged, and the labels that no model has."""
    if labels is None:
        return np.full(n, -1), ()
    given = np.asarray(labels)
    check_labels(given.shape, n)
    texts = [str(label) for label in given.tolist()]
    strange = tuple(sorted({*texts} - {*names, ""}))
    place = {name: number for number, name in enumerate(names)}
    return np.array([-1 if strange else place.get(text, -1) for text in texts], np.int64), strange


def _of_class(
    number: int,
    names: Sequence[str],
    scores: Array,
    codes: Integers,
    known: Integers,
    units: Integers | None,
    are_own: bool,
) -> ClassResult:
    """Return what is known of a class, from scores (n, classes), the nearest class and the label of samples (n,)."""
    nearest_count, judged = int((codes == number).sum()), known >= 0
    if not judged.any():
        return ClassResult(names[number], nearest_count)
    members = known == number
    right = codes[members] == number
    of_class, of_others = scores[members, number], scores[judged & ~members, number]
    return ClassResult(
        name=names[number],
        nearest=nearest_count,
        labeled=len(right),
        recognized=float(right.mean()) if len(right) else None,
        interval=share_interval(right, among(units, members)) if len(right) and not are_own else None,
        auc=auc(of_class, of_others) if len(of_class) and len(of_others) else None,
    )


def _confusions(labels: NDArray[np.object_], nearest_names: NDArray[np.object_]) -> tuple[Confusion, ...]:
    """Return pairs of unlike classes of samples, (n,) each, the most frequent first."""
    pairs = Counter((label, name) for label, name in zip(labels, nearest_names, strict=True) if label != name)
    return tuple(Confusion(*pair, count) for pair, count in sorted(pairs.items(), key=lambda row: (-row[1], row[0])))


def _shown_samples(
    values: Array, codes: Integers, known: Integers, names: NDArray[np.object_], ids: Sequence[str]
) -> tuple[tuple[ClassifiedSample, ...], tuple[ClassifiedSample, ...]]:
    """Return the samples with the smallest margins, and the wrong ones with the largest."""
    if values.shape[1] < 2:
        return (), ()
    order = np.argsort(values, 1, kind="stable")[:, :2]
    first, second = np.take_along_axis(values, order, 1).T
    is_near = np.isfinite(first)
    margins = 1 - np.divide(
        first, second, out=np.where(second == 0, 1.0, 0.0), where=np.isfinite(second) & (second > 0)
    )
    wrong = is_near & (known >= 0) & (codes != known)

    def rows(chosen: Mask, keys: Array) -> tuple[ClassifiedSample, ...]:
        places = np.flatnonzero(chosen)
        # 16: samples that a page can show at most.
        places = places[np.argsort(keys[places], kind="stable")[:16]].tolist()
        return tuple(
            ClassifiedSample(
                id=str(ids[row]),
                label=str(names[known[row]]),
                nearest=str(names[codes[row]]),
                second=str(names[order[row, 1] if np.isfinite(second[row]) else -1]),
                distance=float(first[row]),
                margin=float(margins[row]),
            )
            for row in places
        )

    return rows(is_near, margins), rows(wrong, -margins)
