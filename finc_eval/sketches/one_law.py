"""Are sets samples of one law? A test of the means of φ, and how well a simple classifier tells two sets apart.

‖mean φ_gen − mean φ_ref‖² is the squared MMD of the kernel. Unlike the test of kinds, it sees a slight change of every
sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.numerics.arrays import fold_of
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.design_effects import MIN_INDEPENDENT
from finc_eval.numerics.eigen import PrincipalAxes
from finc_eval.numerics.exchanges import (
    EXCHANGED,
    MAX_UNITS,
    MeanLaw,
    UnitSums,
    exchange_units,
    flip_blocks,
    unit_numbers,
)
from finc_eval.numerics.inference import clopper_pearson
from finc_eval.sketches.folds import SAMPLE_SIZE, BottomSample
from finc_eval.sketches.reference import reference_feature_map
from finc_eval.sketches.settings import SketchSettings

OWN_FREQUENCIES = 256
"""Frequencies where φ is made for the test alone. `kinds` of 300 + 300 samples takes 144 ms of a core, with 512 165."""

SCREEN = 0.05  # p-value by two moments above which no exchanges are drawn where only p ≤ .0125 would be said


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
        # 512: frequencies of φ that the test takes, the first.
        tested = min(half, 512)
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


def block_units(blocked: Blocked, chosen: int, row: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the block of each sample of a paired set, and its weight in a difference of sets, as `UnitFeatures` takes.

    All sets of a pairing have equal numbers of units: the last block has one more sample, of weight 0.
    """
    mine = blocked.owner == chosen
    units = np.append(blocked.block[mine] % MAX_UNITS, min(len(blocked.sizes), MAX_UNITS) - 1)
    return units, np.append(blocked.contrasts[row][mine], 0)


def sets_p_values(
    sets: Mapping[str, Embeddings],
    seed: int,
    run: Run,
    *,
    blocked: Blocked | None = None,
    exchanges: int = EXCHANGED,
    is_screened: bool = False,
) -> dict[str, float | None]:
    """Return, for each set, the p-value of "this set and all others together are samples of one law".

    Units are exchanged between the sets; of paired sets, blocks change their sign. φ is that of the sets together.

    Args:
        sets: two sets or more, by label.
        seed: random seed of φ and of the exchanges.
        run: device and portions of the pass over each set.
        blocked: blocks of the samples of paired sets, one set after the other.
        exchanges: number of random exchanges.
        is_screened: whether two sets get the p-value of two moments where that is above `SCREEN`, which takes no
            exchanges.

    Returns:
        p-values by label, both the same for two sets; None for all if a set has too few independent samples, or if most
        samples are equal, so that no bandwidth follows from them.
    """
    if not all(map(_is_testable, sets.values())):
        return dict.fromkeys(sets)
    settings = SketchSettings(features=OWN_FREQUENCIES, seed=seed)
    try:
        phi, _ = reference_feature_map([*sets.values()], settings, run.torch_device)
    except DataError:  # it has no bandwidth
        return dict.fromkeys(sets)
    if blocked is None:
        units = [
            UnitFeatures(unit_numbers(embeddings.unit_keys()), None, phi.size, phi.device)
            for embeddings in sets.values()
        ]
        sums = [_sum_up(embeddings, phi, [into], run)[0] for embeddings, into in zip(sets.values(), units, strict=True)]
        if is_screened and (p := _by_moments(sums)) is not None and p > SCREEN:
            return dict.fromkeys(sets, p)
        p_values = [
            _against_others(sums, number, seed, exchanges) for number in range(1 if len(sets) == 2 else len(sets))
        ]
    else:
        rows = range(len(blocked.contrasts))
        parts = [
            _sum_up(
                embeddings,
                phi,
                [UnitFeatures(*block_units(blocked, at, row), phi.size, phi.device) for row in rows],
                run,
            )
            for at, embeddings in enumerate(sets.values())
        ]
        p_values = [
            flip_blocks(reduce(np.add, [of[row].sums for of in parts]), seed, exchanges).p_value() for row in rows
        ]
    return dict(zip(sets, p_values if len(p_values) == len(sets) else 2 * p_values, strict=True))


def _is_testable(embeddings: Embeddings) -> bool:
    """Return whether a set has enough independent samples for tests to hold."""
    return embeddings.n >= MIN_INDEPENDENT * _samples_per_unit(embeddings)


def _samples_per_unit(embeddings: Embeddings) -> float:
    """Return Σ m² / Σ m over independent units of m samples; 1 without groups."""
    sizes = np.unique(embeddings.unit_keys(), return_counts=True)[1]
    return float((sizes**2).sum() / sizes.sum())


def _sum_up(embeddings: Embeddings, phi: FeatureMap, units: list[UnitFeatures], run: Run) -> list[UnitSums]:
    """Sum φ of a set over its units, in one pass."""
    for batch in embeddings.batches(run.portion, phi.prepared):
        index = torch.arange(batch.start, batch.start + len(batch.rows), device=phi.device)
        features = phi.apply(batch.rows)
        for each in units:
            each.update(features, index)
    return [each.result() for each in units]


def _by_moments(sums: list[UnitSums]) -> float | None:
    """Return the p-value of two sets by moments of their means; None for more sets, and for very few units."""
    laws = [MeanLaw.of(unit_sums) for unit_sums in sums]
    return None if len(laws) != 2 or laws[0] is None or laws[1] is None else laws[0].p_value(laws[1])


def _against_others(sums: list[UnitSums], target: int, seed: int, exchanges: int) -> float:
    others = [each for number, each in enumerate(sums) if number != target]
    rest = UnitSums(np.concatenate([each.sums for each in others]), np.concatenate([each.sizes for each in others]))
    return exchange_units(sums[target], rest, seed, by_column=False, exchanges=exchanges).p_value()


@dataclass(frozen=True, eq=False)
class KeptSample:
    """Samples of a set that are kept: those with the smallest id hashes.

    Attributes:
        sample: the samples.
        per_group: Σ m² / Σ m over groups of m samples of the set; 1 without groups.
    """

    sample: BottomSample
    per_group: float

    @classmethod
    def of(cls, embeddings: Embeddings) -> KeptSample:
        """Keep samples of embeddings."""
        sample = BottomSample(embeddings.dim, SAMPLE_SIZE)
        sample.update(embeddings.id_keys(), embeddings.ids_at, embeddings.rows_at)
        return cls(sample, _samples_per_unit(embeddings))


def separate(gen: KeptSample, ref: KeptSample) -> Separability | None:
    """Fit a linear classifier on each fold of the samples that are kept, and judge it on the other fold.

    Fisher's discriminant on the principal axes of both sets together. It shows at least how different the sets are: a
    better classifier may do better.
    """
    kept = [law.sample for law in (gen, ref)]
    if min(len(sample.ids) for sample in kept) < 2:
        return None
    rows = torch.cat([sample.rows for sample in kept])
    owner = torch.cat([torch.full((len(sample.ids),), number) for number, sample in enumerate(kept)])
    folds = torch.from_numpy(np.concatenate([fold_of(sample.keys) for sample in kept]))
    scores = _score_folds(PrincipalAxes.of(rows)(rows).double(), owner, folds)
    if scores is None:
        return None
    right = [(scores[owner == 0] > 0).double().mean(), (scores[owner == 1] < 0).double().mean()]
    value = float(sum(right) / 2)
    sizes = [len(law.sample.ids) / law.per_group for law in (gen, ref)]
    half = 2 / sum(1 / size for size in sizes)
    low, high = clopper_pearson(value * half, half)
    # 8: samples of each set that the classifier is surest of, to be shown.
    order = [scores[owner == number].argsort(descending=number == 0)[:8].tolist() for number in (0, 1)]
    surest = {
        label: tuple(sample.ids[i] for i in each)
        for label, sample, each in zip(("gen", "ref"), kept, order, strict=True)
    }
    return Separability(value, (float(low), float(high)), surest)


def _score_folds(rows: torch.Tensor, owner: torch.Tensor, folds: torch.Tensor) -> torch.Tensor | None:
    """Return the score of each sample (n,) by the discriminant of the other fold, above 0 for the first set."""
    scores, axes = torch.zeros(len(rows), dtype=torch.double), rows.shape[1]
    for fold in (0, 1):
        parts = [rows[(folds != fold) & (owner == number)] for number in (0, 1)]
        if min(map(len, parts)) < 2:
            return None
        means = [part.mean(0) for part in parts]
        within = torch.stack([part.T.cov().reshape(axes, axes) for part in parts]).mean(0)
        # The variance over all rows: two sets of one point each have none within.
        # 0.1: part of the mean variance of an axis that is added to each.
        ridge = 0.1 * float(rows.square().mean()) * torch.eye(axes, dtype=torch.double)
        normal = torch.linalg.solve(within + ridge, means[0] - means[1])
        mine = folds == fold
        scores[mine] = (rows[mine] - (means[0] + means[1]) / 2) @ normal
    return scores
