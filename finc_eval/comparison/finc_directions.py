"""FINC among sketched sets: how many directions to fit, and what to rotate them by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import torch

from finc_eval.comparison.cross_fit import CrossFit, cross_fit
from finc_eval.comparison.directions import OVERSAMPLING, EigenDirections, EigenProblem, RotationSample
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


@dataclass(frozen=True)
class FincFit:
    """Fits the directions on which one mixture of sets has more than ρ times the mass of another.

    Attributes:
        sample: bottom-k samples of all sets, to rotate by; None for eigenvectors.
        frequency_halves: entries of φ of either half of the frequencies; None for a map without frequencies.
    """

    rho: float
    count: int
    sample: RotationSample | None
    frequency_halves: tuple[torch.Tensor, torch.Tensor] | None

    @classmethod
    def among(cls, sets: Sequence[SketchedSet], settings: Settings) -> FincFit:
        """Prepare fits among sets that share their feature map."""
        sample = None
        if not settings.by_eigenvalue:
            features, folds = zip(*(one.sample for one in sets), strict=True)
            sample = RotationSample(features, torch.cat(folds))
            if min(int((sample.folds == fold).sum()) for fold in (0, 1)) < 2:
                raise DataError(
                    "the sketches keep no sample to rotate by: make them with one, or ask for unrotated eigenvectors "
                    "(method=Finc(rotation=None), --no-rotation)"
                )
        count = direction_count(sets, settings)
        return cls(settings.rho, count, sample, sets[0].sketch.feature_map.halves())

    def __call__(
        self, first: Sequence[tuple[float, SketchedSet]], second: Sequence[tuple[float, SketchedSet]]
    ) -> CrossFit:
        """Fit the directions on which the first mixture has more; the weights of each mixture add to 1."""
        return self.of(self.problem(first, second))

    def problem(
        self,
        first: Sequence[tuple[float, SketchedSet]],
        second: Sequence[tuple[float, SketchedSet]],
        *,
        both: bool = False,
    ) -> EigenProblem:
        """Return the eigenproblem of two mixtures, of both ends of its spectrum where both are asked for."""
        more, less = ([(weight, one.moments) for weight, one in mixture] for mixture in (first, second))
        return EigenProblem(more, less, self.rho, self.count, SPECTRUM, both)

    def of(self, problem: EigenProblem, end: int = 0) -> CrossFit:
        """Fit the directions at an end of the spectrum."""
        find = EigenDirections(problem, self.sample, end)
        sets = [moments for _, moments in (*problem.first, *problem.second)]
        return cross_fit(find, sets, self.frequency_halves)


def finc_fit(settings: Settings, gen: SketchedSet, ref: SketchedSet) -> Fit:
    """Return a function that fits the directions of FINC between two sets.

    With ρ = 1, what ref has more of is the other end of the spectrum of what gen has more of.
    """
    fit = FincFit.among([gen, ref], settings)
    if fit.rho == 1:
        problem = fit.problem([(1.0, gen)], [(1.0, ref)], both=True)
        return lambda first, second: fit.of(problem, 0 if first is gen else 1)
    return lambda first, second: fit([(1.0, first)], [(1.0, second)])
