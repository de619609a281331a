"""The number of a metric under the conventions of its arithmetic, and its error over generated samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar

from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import GEN
from finc_eval.estimates.estimate import Estimate
from finc_eval.measures.frechet import distance_of_gaussians
from finc_eval.measures.gaussians.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, from_embeddings
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.kid import SUBSET_SIZE, kid, polynomial_kernel
from finc_eval.measures.mmd import kernel_sums
from finc_eval.measures.registry import METRICS, function_of

Form = Callable[[Embeddings, Embeddings, Run], float]
"""Function of two sets of embeddings that returns a number."""

DIVIDED, ROOT = "divided by n", "root"  # forms of a Fréchet distance
MAX_GAUSSIANS = 16  # Gaussians that are kept: 64 MB each in 2,048 dimensions


@dataclass(frozen=True, eq=False)
class Frechet:
    """A Fréchet distance; the Gaussian of each set is fitted once."""

    run: Run
    forms: ClassVar[dict[str, object]] = {
        "covariances divided by n, not by n − 1": DIVIDED,
        "the square root of the distance": ROOT,
    }
    _kept: dict[Hashable, GaussianStatistics] = field(default_factory=dict)

    def __call__(self, gen: Embeddings, ref: Embeddings, keys: tuple[Hashable, Hashable], form: object) -> float:
        """Compute the distance of two sets that are known by their keys."""
        x, y = (self._gaussian(rows, key) for rows, key in zip((gen, ref), keys, strict=True))
        if form == DIVIDED:
            x, y = x.divided_by_n(), y.divided_by_n()
        value = distance_of_gaussians(x, y).value
        return sqrt(value) if form == ROOT else value

    def estimate(self, gen: Embeddings, ref: Embeddings) -> Estimate:
        """Estimate the error; blocks are its units if there are fewer samples than dimensions."""
        return estimate_frechet(FrechetSet.of(gen, self.run), FrechetSet.of(ref, self.run), run=self.run)

    def _gaussian(self, rows: Embeddings, key: Hashable) -> GaussianStatistics:
        kept = self._kept.pop(key, None) or from_embeddings(rows, run=self.run)
        self._kept[key] = kept  # the last used is the last to go
        if len(self._kept) > MAX_GAUSSIANS:
            del self._kept[next(iter(self._kept))]
        return kept


@dataclass(frozen=True, eq=False)
class Kid:
    """Kernel inception distance; `metrics` takes 100 subsets of 1,000 samples, or all pairs of small sets."""

    run: Run
    forms: ClassVar[dict[str, object]] = {
        "all pairs of samples, without subsets": "all",
        "the biased value, with pairs of a sample with itself": "biased",
        **{f"100 subsets of {size} samples": size for size in (50, 100, 500)},
        "10 subsets of 1,000 samples": (10, 1000),
    }

    def __call__(self, gen: Embeddings, ref: Embeddings, keys: tuple[Hashable, Hashable], form: object) -> float:
        """Compute the distance of two sets."""
        if isinstance(form, int | tuple):
            subsets, size = (100, form) if isinstance(form, int) else form
            return kid(gen, ref, subsets=subsets, subset_size=size, run=self.run).mean
        if form is None and min(gen.n, ref.n) >= SUBSET_SIZE:
            return kid(gen, ref, run=self.run).mean
        sums = kernel_sums(gen, ref, polynomial_kernel, run=self.run)
        return sums.biased() if form == "biased" else sums.unbiased()

    def estimate(self, gen: Embeddings, ref: Embeddings) -> Estimate:
        """Estimate the error from the influence of each sample."""
        estimator = METRICS["kid"].estimator
        assert estimator is not None
        return estimator(ref, self.run)(gen, None)


@dataclass(frozen=True, eq=False)
class Other:
    """The first number of any metric."""

    run: Run
    metric: Metric

    @property
    def forms(self) -> dict[str, object]:
        """Numbers of neighbors that papers take, for a metric that has them."""
        return {f"{k} neighbors": k for k in (3, 5, 10)} if self.metric.name in ("prdc", "precision_recall") else {}

    def __call__(self, gen: Embeddings, ref: Embeddings, keys: tuple[Hashable, Hashable], form: object) -> float:
        """Compute the number of two sets."""
        parameters = {} if form is None else {"k": form}
        inputs = MetricInputs(self.metric.name, gen, ref, run=self.run)
        return self.metric.compute(inputs, **parameters)[0].value

    def estimate(self, gen: Embeddings, ref: Embeddings) -> Estimate:
        """Estimate the error, if the metric has an estimator."""
        if self.metric.estimator is None:
            raise DataError(f"the error of {self.metric.name} is not known")
        return self.metric.estimator(ref, self.run)(gen, None)


AnyNumber = Frechet | Kid | Other


def number_of(metric: Metric, run: Run) -> AnyNumber:
    """Return how the number of a metric is computed."""
    if metric.output is None and function_of(metric) is METRICS["fd"].compute:
        return Frechet(run)
    return Kid(run) if metric.name == "kid" else Other(run, metric)


def error_over_samples(number: AnyNumber, gen: Embeddings, ref: Embeddings) -> float | None:
    """Return the standard error of a number over generated samples, with the reference held; None if unknown."""
    try:
        found = number.estimate(gen, ref)
    except (DataError, IncompatibleError):
        return None
    source = found.source(GEN)
    return None if source is None else sqrt(source.variance)
