"""`sets_p_value`: the test of the sets of a comparison, from the pass that scores their samples."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

import numpy as np
import torch

from finc_eval.comparison.inputs import SketchedSet, SketchedSets
from finc_eval.core.files.stored import StoredFile
from finc_eval.numerics.exchanges import (
    LEAST_UNITS,
    MeanLaw,
    UnitSums,
    exchange_units,
    flip_blocks,
    sketched_p_value,
    unit_numbers,
)
from finc_eval.numerics.moments import weighted_sum
from finc_eval.sketches.one_law import UnitFeatures, block_units


def unit_features(opened: SketchedSets, label: str) -> UnitFeatures | None:
    """Return what collects the sums of a set of embeddings; None for a sketch."""
    sketched = opened.sets[label]
    if sketched.embeddings is None:
        return None
    phi = sketched.sketch.feature_map
    if opened.pairing is None:
        return UnitFeatures(unit_numbers(sketched.embeddings.unit_keys()), None, phi.size, phi.device)
    units, weights = block_units(opened.pairing.blocked, [*opened.pairing.block].index(label))
    return UnitFeatures(units, weights, phi.size, phi.device)


def sets_p_value(opened: SketchedSets, units: Mapping[str, UnitSums], seed: int) -> float | None:
    """Return the p-value of "both sets are samples of one law"; None if a set has too few independent samples.

    Units are exchanged between the sets; of paired sets, blocks change their sign. Sketches of independent samples know
    the moments of φ: their p-value is an approximation by two moments. Of groups, only the samples that a sketch keeps
    are known.
    """
    gen, ref = opened.sets["gen"], opened.sets["ref"]
    if not (gen.is_testable and ref.is_testable):
        return None
    if len(units) == 2:
        first, second = units["gen"], units["ref"]
        if opened.pairing is not None:
            return flip_blocks(first.sums + second.sums, seed).p_value()
        return exchange_units(first, second, seed, by_column=False).p_value()
    if not (gen.sketch.groups or ref.sketch.groups):
        return _of_sketches(gen, ref)
    if not (gen.has_rows and ref.has_rows):
        return None
    first, second = (units[side.label] if side.label in units else _units_of_kept(side) for side in (gen, ref))
    return exchange_units(first, second, seed, by_column=False).p_value()


def _units_of_kept(sketched: SketchedSet) -> UnitSums:
    """Return the sums of φ over the groups of the samples that a sketch keeps."""
    features, _ = sketched.sample
    sums = UnitFeatures(unit_numbers(sketched.at_hand.unit_keys()), None, features.shape[1], features.device)
    sums.update(features, torch.arange(len(features), device=features.device))
    return sums.result()


def _of_sketches(gen: SketchedSet, ref: SketchedSet) -> float:
    folds = [*gen.sketch.folds, *ref.sketch.folds]
    n, m = gen.sketch.n, ref.sketch.n
    means = [
        torch.stack([fold.first.double().cpu() for fold in sketched.sketch.folds]).sum(0) / sketched.sketch.n
        for sketched in (gen, ref)
    ]
    middle = (n * means[0] + m * means[1]) / (n + m)
    second = weighted_sum([(1 / (n + m), fold) for fold in folds]).double().cpu()
    covariance = (second - torch.outer(middle, middle)) * (n + m) / (n + m - 1)
    return sketched_p_value(float((means[0] - means[1]).square().sum()), covariance.numpy(), (n, m))


def read_law(file: StoredFile) -> MeanLaw | None:
    """Read the mean of φ over the generated set; older files have none, or not its number of units."""
    if (moments := file.header.get("law")) is None:
        return None
    mean = file.array("law", None, dtype="<f8")
    trace, squares = (float(moment) for moment in moments)
    if not (np.isfinite(mean).all() and isfinite(trace) and isfinite(squares) and min(trace, squares) >= 0):
        raise ValueError("the mean of its features has numbers that are not finite")
    units = float(file.header.get("law_units", inf))
    if not units >= LEAST_UNITS:
        raise ValueError("the mean of its features is of too few units")
    return MeanLaw(mean, trace, squares, units)
