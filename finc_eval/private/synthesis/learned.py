"""Knowledge that a release of a table adds to its description, and to columns without relations: from it alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import torch

from finc_eval.core.record import Record
from finc_eval.private.synthesis.dp_hp import PrivateEmbedding, fit
from finc_eval.private.synthesis.generators import IndependentColumns
from finc_eval.private.synthesis.tabular import Table

LIMIT = 3.0
"""Spreads by which the discrepancy of columns without relations exceeds what noise and chance make of it, before the
release is said to show relations (`benchmarks/dp_hp_relations.py` measures how often this is wrong)."""

DRAWN = 128
"""Records that are drawn to learn how much chance adds to a discrepancy, which they give to a few percent."""


STEPS, RATE = 300, 0.1
"""Steps and learning rate of the fit of columns without relations. It must reach the end, because what it misses would
be taken for relations; with one component for all classes a step is cheap."""


@dataclass(frozen=True)
class Learned(Record):
    """Discrepancies from a release of tables that know less than the synthetic records.

    Attributes:
        description: of the public description alone, before anything was released.
        independent: of columns without relations to each other or to the class, each with the shares that fit best.
        chance: of the same columns, if the records had no relations but those of chance, on average.
        spread: how much noise and chance vary the latter.
    """

    description: float
    independent: float
    chance: float
    spread: float

    @property
    def shows_relations(self) -> bool:
        """True if relations between columns stand out from the noise, and from the chance relations of the records."""
        return self.independent > self.chance + LIMIT * self.spread


def learned_from(table: Table, target: PrivateEmbedding) -> Learned:
    """Return what a release of a table says beyond its description. It is post-processing, and costs no privacy."""
    without = IndependentColumns(table, target.shares)
    course = fit(without, target, steps=STEPS, rate=RATE, until=0)
    return Learned(course[0], min(course), *_by_chance(without, target))


@torch.no_grad()
def _by_chance(without: IndependentColumns, target: PrivateEmbedding) -> tuple[float, float]:
    """Return mean and spread of the discrepancy of a release from the law of its records, with noise and sampling.

    The mean of m records has the covariance C/m, and noise adds s² to each number. With weights w, the numerator of
    the discrepancy has the mean Σ w s² + tr C/m and the variance 2 (Σ w² s⁴ + 2 Σ w² s² tr C/m + tr C²/m²), where C is
    of all weighted features together. It comes from inner products of records that are drawn without relations.
    """
    records, classes = without.draw(DRAWN, 0)
    same = (classes[:, None] == classes).double()
    products, noise, mixed, squares = torch.zeros(DRAWN, DRAWN).double(), 0.0, 0.0, 0.0
    for statistic, mean, scale in zip(target.statistics, target.means, target.scales, strict=True):
        weight = scale**-2 if statistic.weight is None else statistic.weight
        features = statistic(records)
        inner = weight * (features @ features.T).double() * (same if statistic.by_class else 1.0)
        products += inner
        noise += weight * scale**2 * mean.numel()
        squares += (weight * scale**2) ** 2 * mean.numel()
        mixed += weight * scale**2 * _trace(inner)
    centered = _centered(products)
    pairs = (centered.square().sum() - centered.diag().square().sum()) / (DRAWN * (DRAWN - 1))
    m = target.records
    variance = 2 * (squares + 2 * mixed / m + float(pairs) / m**2)
    return 1 + _trace(products) / m / noise, sqrt(variance) / noise


def _centered(products: torch.Tensor) -> torch.Tensor:
    """Return the inner products of vectors after their mean is subtracted, from those before."""
    return products - products.mean(0) - products.mean(1, keepdim=True) + products.mean()


def _trace(products: torch.Tensor) -> float:
    """Return the trace of the covariance of vectors from their inner products."""
    return float(_centered(products).diag().sum() / (len(products) - 1))
