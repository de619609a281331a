"""FINC among sketched sets: how many directions to fit, and what to rotate them by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil

import torch

from finc_eval.comparison.cross_fit import CrossFit, cross_fit
from finc_eval.comparison.directions import OVERSAMPLING, EigenProblem, RotationSample, eigen_directions
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.settings import Settings
from finc_eval.core.errors import DataError

Fit = Callable[[SketchedSet, SketchedSet], CrossFit]
"""A function that fits the directions on which its first set has more than its second."""

SPECTRUM = 25
"""Leading eigenvalues kept for the plot."""


def direction_count(sets: Sequence[SketchedSet], settings: Settings) -> int:
    """Return the number of eigenvectors to fit for the modes asked for."""
    phi, wanted = sets[0].sketch.feature_map, ceil(OVERSAMPLING * settings.modes)
    # No fit has more directions with mass than it has samples, or entries of φ.
    if settings.by_eigenvalue:  # all that Algorithm 1 has, whether a half of the data has a counterpart or not
        return min(wanted, sum(one.sketch.n for one in sets), phi.size)
    halves = phi.halves()
    smallest_half = min(sum(one.sketch.folds[fold].n for one in sets) for fold in (0, 1))
    return min(wanted, smallest_half, phi.size if halves is None else min(len(half) for half in halves))


def rotation_sample(sets: Sequence[SketchedSet], settings: Settings) -> RotationSample | None:
    """Return the bottom-k samples of all sets, to rotate directions by; None for eigenvectors."""
    if settings.by_eigenvalue:
        return None
    features, folds = zip(*(one.sample for one in sets), strict=True)
    sample = RotationSample(features, torch.cat(folds))
    if min(int((sample.folds == fold).sum()) for fold in (0, 1)) < 2:
        raise DataError(
            "the sketches keep no sample to rotate by: make them with one, or ask for unrotated eigenvectors "
            "(method=Finc(rotation=None), --no-rotation)"
        )
    return sample


def finc_fit(settings: Settings, gen: SketchedSet, ref: SketchedSet) -> Fit:
    """Return a function that fits the directions of FINC between two sets.

    With ρ = 1, what ref has more of is the other end of the spectrum of what gen has more of.
    """
    sample, count = rotation_sample([gen, ref], settings), direction_count([gen, ref], settings)
    halves, rho = gen.sketch.feature_map.halves(), settings.rho
    of_both = EigenProblem(gen.moments, ref.moments, rho, count, SPECTRUM, both=True) if rho == 1 else None

    def fit(first: SketchedSet, second: SketchedSet) -> CrossFit:
        problem = of_both or EigenProblem(first.moments, second.moments, rho, count, SPECTRUM)
        find = partial(eigen_directions, problem, sample, end=int(of_both is not None and first is not gen))
        return cross_fit(find, [problem.first, problem.second], halves)

    return fit
