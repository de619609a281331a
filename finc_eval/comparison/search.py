"""How the modes of a comparison are sought: the same for two sets and for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal

import torch

from finc_eval.comparison.cross_fit import CrossFit, cross_fit
from finc_eval.comparison.directions import OVERSAMPLING, Eigenvectors, RotationSample
from finc_eval.comparison.inputs import Side
from finc_eval.core.errors import FincEvalError

Rotation = Literal["varimax"] | None

SPECTRUM = 25
"""Leading eigenvalues kept for the plot."""

LARGEST_RHO = 1e9
"""Nothing of the first set is left in a float32 difference beyond it; far beyond it, products overflow."""

NUMERICAL_ZERO = 1e-6
"""Excess below this is rounding: moments are float32, and masses lie between 0 and 1."""


def check_search(rho: float, modes: int, rotation: str | None) -> None:
    """Raise FincEvalError unless modes can be sought with these parameters."""
    for name, value in (("rho", rho), ("modes", modes)):
        if not 0 < value < inf:
            raise FincEvalError(f"{name} must be a positive number, got {value}")
    if rho > LARGEST_RHO:
        raise FincEvalError(f"rho must be at most {LARGEST_RHO:g}, got {rho:g}: no kind of samples would pass it")
    if rotation not in ("varimax", None):
        raise FincEvalError(f'rotation must be "varimax" or None, got {rotation!r}')


def directions_sought(sides: Sequence[Side], modes: int) -> int:
    """How many eigenvectors to fit for so many modes."""
    phi = sides[0].sketch.feature_map
    halves = phi.halves()
    # No fit has more directions with mass than it has samples, or entries of φ.
    smallest_half = min(sum(side.sketch.folds[fold].n for side in sides) for fold in (0, 1))
    entries = phi.size if halves is None else min(len(half) for half in halves)
    return min(ceil(OVERSAMPLING * modes), smallest_half, entries)


@dataclass(frozen=True)
class Search:
    """Seeks directions on which one mixture of sets has more than ρ times the mass of another.

    Attributes:
        rho: ρ.
        count: how many directions each fit gives.
        sample: the bottom-k samples of all sets, to rotate by; None for raw eigenvectors.
        frequency_halves: the entries of φ of either half of the frequencies, where there are any.
    """

    rho: float
    count: int
    sample: RotationSample | None
    frequency_halves: tuple[torch.Tensor, torch.Tensor] | None

    @classmethod
    def among(cls, sides: Sequence[Side], rho: float, modes: int, rotation: Rotation) -> Search:
        """The search for this many modes among these sets, which share their feature map.

        Raises:
            FincEvalError: when modes are to be rotated and the sketches keep no samples to rotate by.
        """
        sample = None
        if rotation is not None:
            features, folds = zip(*(side.sample for side in sides), strict=True)
            sample = RotationSample(features, torch.cat(folds))
        if sample is not None and min(int((sample.folds == fold).sum()) for fold in (0, 1)) < 2:
            raise FincEvalError("the sketches keep no sample to rotate by: make them with one, or pass rotation=None")
        return cls(rho, directions_sought(sides, modes), sample, sides[0].sketch.feature_map.halves())

    def fit(self, first: Sequence[tuple[float, Side]], second: Sequence[tuple[float, Side]]) -> CrossFit:
        """The directions on which the first mixture of sets has more; weights add to 1 on either side."""
        more, less = ([(weight, side.population) for weight, side in sides] for sides in (first, second))
        propose = Eigenvectors(more, less, self.rho, self.count, self.sample, SPECTRUM)
        return cross_fit(propose, [*more, *less], self.frequency_halves)
