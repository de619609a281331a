"""Are two sets samples of one law? A test of the means of φ, and how well a simple classifier tells the sets apart.

‖mean φ_gen − mean φ_ref‖² is the squared MMD of the kernel. Unlike the test of kinds, it sees a slight change of every
sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.comparison.inputs import OpenSets, SketchedSet
from finc_eval.core.record import Record
from finc_eval.numerics.arrays import fold_of
from finc_eval.numerics.eigen import PrincipalAxes
from finc_eval.numerics.exchanges import (
    MAX_UNITS,
    UnitSums,
    exchange_units,
    flip_blocks,
    sketched_p_value,
    unit_numbers,
)
from finc_eval.numerics.inference import clopper_pearson
from finc_eval.numerics.moments import weighted_sum

TESTED_FREQUENCIES = 512  # frequencies of φ that the test takes, the first

RIDGE = 0.1  # part of the mean variance of an axis, over both sets, that is added to the variance of each
SUREST = 8  # samples of each set that the classifier is surest of, to be shown


@dataclass(frozen=True)
class Separability(Record):
    """Accuracy with which a simple classifier assigns held-out samples to their sets.

    Attributes:
        value: mean over both sets of the share of samples that it assigns to their set; 0.5 is chance.
        interval: 95 % interval, with half of the number of samples, as both folds follow one accidental direction.
        surest: ids of the samples that it is surest of, by set.
    """

    value: float
    interval: tuple[float, float]
    surest: dict[str, tuple[str, ...]]


class UnitFeatures:
    """Sums of φ over the independent units of a set, on the device of φ, as its samples stream by.

    Units are groups, or samples; of paired sets, blocks, to whose sums a sample adds with its weight in the difference.
    """

    def __init__(
        self, units: NDArray[np.int64], weights: NDArray[np.float64] | None, size: int, device: torch.device
    ) -> None:
        self._units = torch.from_numpy(units).to(device)
        self._weights = None if weights is None else torch.from_numpy(weights).float().to(device)
        half = size // 2
        tested = min(half, TESTED_FREQUENCIES)
        self._parts = (slice(0, tested), slice(half, half + tested)) if tested < half else (slice(0, size),)
        columns = sum(part.stop - part.start for part in self._parts)
        self._sums = torch.zeros(1 + int(units.max(initial=0)), columns, device=device)
        self.sizes = np.bincount(units, minlength=len(self._sums)).astype(np.float64)

    def update(self, features: torch.Tensor, index: torch.Tensor) -> None:
        """Add φ of samples, shape (b, q), by their indices in the set, shape (b,)."""
        rows = torch.cat([features[:, part] for part in self._parts], 1)
        if self._weights is not None:
            rows = rows * self._weights[index][:, None]
        self._sums.index_add_(0, self._units[index], rows)

    def result(self) -> UnitSums:
        """Copy the sums to the host."""
        return UnitSums(self._sums.cpu().numpy(), self.sizes)


def unit_features(opened: OpenSets, label: str) -> UnitFeatures | None:
    """Return what collects the sums of a set of embeddings; None for a sketch."""
    one = opened.sets[label]
    if one.embeddings is None:
        return None
    phi = one.sketch.feature_map
    if opened.pairing is None:
        return UnitFeatures(unit_numbers(one.embeddings.unit_keys()), None, phi.size, phi.device)
    blocked = opened.pairing.blocked
    mine = blocked.owner == [*opened.pairing.block].index(label)
    units = np.append(blocked.block[mine] % MAX_UNITS, min(len(blocked.sizes), MAX_UNITS) - 1)
    return UnitFeatures(units, np.append(blocked.contrasts[0][mine], 0), phi.size, phi.device)


def sets_p_value(opened: OpenSets, units: Mapping[str, UnitFeatures], seed: int) -> float | None:
    """Return the p-value of "both sets are samples of one law"; None if a set has too few independent samples.

    Units are exchanged between the sets; of paired sets, blocks change their sign. Sketches without embeddings know the
    moments of φ alone: their p-value is an approximation by two moments, for independent samples.
    """
    gen, ref = opened.sets["gen"], opened.sets["ref"]
    if not (gen.is_testable and ref.is_testable):
        return None
    if len(units) == 2:
        first, second = (units[label].result() for label in ("gen", "ref"))
        if opened.pairing is not None:
            return flip_blocks(first.sums + second.sums, seed).p_value()
        return exchange_units(first, second, seed, by_column=False).p_value()
    return None if gen.sketch.groups or ref.sketch.groups else _of_sketches(gen, ref)


def _of_sketches(gen: SketchedSet, ref: SketchedSet) -> float:
    folds = [*gen.sketch.folds, *ref.sketch.folds]
    n, m = gen.sketch.n, ref.sketch.n
    means = [
        torch.stack([fold.first.double().cpu() for fold in one.sketch.folds]).sum(0) / one.sketch.n
        for one in (gen, ref)
    ]
    middle = (n * means[0] + m * means[1]) / (n + m)
    second = weighted_sum([(1 / (n + m), fold) for fold in folds]).double().cpu()
    covariance = (second - torch.outer(middle, middle)) * (n + m) / (n + m - 1)
    return sketched_p_value(float((means[0] - means[1]).square().sum()), covariance.numpy(), (n, m))


def separate(gen: SketchedSet, ref: SketchedSet) -> Separability | None:
    """Fit a linear classifier on each fold of the samples that the sketches keep, and judge it on the other fold.

    Fisher's discriminant on the principal axes of both sets together. It shows at least how different the sets are: a
    better classifier may do better.
    """
    kept = [one.sketch.sample for one in (gen, ref)]
    if min(len(one.ids) for one in kept) < 2:
        return None
    rows = torch.cat([one.rows for one in kept])
    owner = torch.cat([torch.full((len(one.ids),), number) for number, one in enumerate(kept)])
    folds = torch.from_numpy(np.concatenate([fold_of(one.keys) for one in kept]))
    scores = _score_folds(PrincipalAxes.of(rows)(rows).double(), owner, folds)
    if scores is None:
        return None
    right = [(scores[owner == 0] > 0).double().mean(), (scores[owner == 1] < 0).double().mean()]
    value = float(sum(right) / 2)
    independent = [one.sketch.samples_per_group for one in (gen, ref)]
    sizes = [len(one.ids) / each for one, each in zip(kept, independent, strict=True)]
    half = 2 / sum(1 / size for size in sizes)
    low, high = clopper_pearson(value * half, half)
    order = [scores[owner == number].argsort(descending=number == 0)[:SUREST].tolist() for number in (0, 1)]
    surest = {
        label: tuple(one.ids[i] for i in each) for label, one, each in zip(("gen", "ref"), kept, order, strict=True)
    }
    return Separability(value, (float(low), float(high)), surest)


def _score_folds(rows: torch.Tensor, owner: torch.Tensor, folds: torch.Tensor) -> torch.Tensor | None:
    """Return the score of each sample by the discriminant of the other fold, above 0 for the first set."""
    scores, axes = torch.zeros(len(rows), dtype=torch.double), rows.shape[1]
    for fold in (0, 1):
        parts = [rows[(folds != fold) & (owner == number)] for number in (0, 1)]
        if min(map(len, parts)) < 2:
            return None
        means = [part.mean(0) for part in parts]
        within = torch.stack([part.T.cov().reshape(axes, axes) for part in parts]).mean(0)
        # The variance over all rows: two sets of one point each have none within.
        ridge = RIDGE * float(rows.square().mean()) * torch.eye(axes, dtype=torch.double)
        normal = torch.linalg.solve(within + ridge, means[0] - means[1])
        mine = folds == fold
        scores[mine] = (rows[mine] - (means[0] + means[1]) / 2) @ normal
    return scores
