"""Estimates of a score, of its parts, and of the differences between generators, as records of a result."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import sqrt

import torch

from finc_eval.numerics.inference import holm, normal_interval
from finc_eval.privacy.reference import mean_distance
from finc_eval.privacy.reference.mean_distance import NoisyMean, SampleMean
from finc_eval.privacy.reference.result import PairedDifference, Part


def estimate_part(name: str, ref: NoisyMean, gen: SampleMean, confidence: float) -> Part:
    """Estimate the squared distance of a generator, or of some of its features."""
    value = mean_distance.squared_distance(ref, gen)
    error = sqrt(mean_distance.variance(ref, gen))
    return Part(name, len(ref.mean), value, error, mean_distance.interval(ref, gen, confidence))


def estimate_parts(
    ref: NoisyMean, gen: SampleMean, entries: Mapping[str, torch.Tensor], confidence: float
) -> tuple[Part, ...]:
    """Estimate the squared distance part by part; `entries` are the indices of φ in each part, by the part's name."""
    return tuple(
        estimate_part(name, *mean_distance.part(ref, gen, chosen), confidence) for name, chosen in entries.items()
    )


def paired_differences(
    ref: NoisyMean, gens: Mapping[str, SampleMean], confidence: float
) -> tuple[PairedDifference, ...]:
    """Estimate the differences of all pairs of generators, in their order, with p-values adjusted by Holm."""
    estimates = []
    for first, second in combinations(gens, 2):
        value = mean_distance.difference(ref, gens[first], gens[second])
        error = sqrt(mean_distance.difference_variance(ref, gens[first], gens[second]))
        estimates.append((first, second, value, error))
    adjusted = holm(torch.tensor([mean_distance.two_sided(value, error) for *_, value, error in estimates]))
    return tuple(
        PairedDifference(*estimate, normal_interval(*estimate[2:], confidence), float(p))
        for estimate, p in zip(estimates, adjusted, strict=True)
    )
