"""FLD, feature likelihood divergence (Jiralerspong et al., NeurIPS 2023, arXiv 2302.04440), and its per-sample form.

A mixture has one isotropic Gaussian per generated sample, with a variance that is fitted to the training samples. A
good mixture makes unseen test samples likely. Copies of training samples get a tiny variance and explain nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log, pi

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import Device
from finc_eval.core.errors import DataError, check_seed
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import open_pair
from finc_eval.embeddings.search.distance_blocks import blocks
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.estimate import Estimate, units_of

Array = NDArray[np.float64]

BACKGROUND_SHRINKAGE = 0.81
"""Factor (1 − 0.1)² of the background's squared distances, from the authors' code, which made the paper's numbers."""

MIN_LOG_VARIANCE, MAX_LOG_VARIANCE = -40.0, 20.0
"""Bounds of a log variance, from the authors' code: the variance of a copy would be 0."""

START_OFFSET = 1e-3  # number added to the nearest squared distances where the fit begins, from the authors' code
MIN_FIT_GAIN = 1e-6  # gain of log-likelihood per entry below which a fit ends: a ten-thousandth of a unit of FLD

MAX_KEPT_DISTANCES = 1 << 27
"""Distances of a fit that are kept from one step to the next, 512 MiB; more are computed again at every step."""


DISTANCE_ACCURACY = 1e-3
"""Relative error of a squared distance above which it is computed in float64: only near copies are."""

DENSITY_ROWS = 512  # rows of a block whose densities are held together, in float64


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Likelihood of each generated sample under a mixture around the test samples: FLD's per-sample form."""

    # log-likelihood per entry of the embedding, in nats, shape (n,); a low one is novel, or bad
    scores: NDArray[np.float64]
    signature: Signature  # everything that changes the scores, except the generated set

    @property
    def order(self) -> NDArray[np.int64]:
        """All samples, most novel first; equal samples in their order."""
        return np.argsort(self.scores, kind="stable")


@dataclass(frozen=True, eq=False)
class Divergence:
    """FLD of a generated set."""

    fld: float  # 100 · (nll − baseline); 0 is as good as training samples, more is worse
    nll: float  # −log-likelihood of the test samples per entry of the embedding, in nats
    baseline: float  # the same under a mixture around training samples that is fitted to the other training samples
    # `fld` with its error over test samples, groups as one; the generated and training samples are taken as fixed
    estimate: Estimate
    gap: float  # 100 · (−log-likelihood of the training samples − nll): far below 0 if training samples were memorized
    warning: str | None  # reason to distrust the value, or None
    signature: Signature  # everything that changes the number, except the generated set

    @property
    def standard_error(self) -> float:
        """Standard error of `fld`."""
        return self.estimate.standard_error


def fld(gen: object, train: object, test: object, *, seed: int = 0, run: Run | None = None) -> Divergence:
    """Compute FLD = 100 · (NLL of test / d − baseline), after standardizing embeddings by the test set.

    The baseline's mixture has min(n, train/2) training samples, drawn by the seed; n, the number of generated samples,
    is the caller's choice (the authors take 10 000). Sets are embeddings (n, d) or their file; the generator has not
    seen those of `test`.
    """
    x, y, z = _standardize(gen, train, test)
    device = Run.of(run).torch_device
    if y.n < 4:
        raise DataError(f"train has too few samples, {y.n}: the baseline needs at least 4")
    fitted = fit(x, y, device)
    order = np.random.default_rng(check_seed(seed)).permutation(y.n)
    centers = min(x.n, y.n // 2)
    base = fit(y.part(order[:centers]), y.part(order[centers:]), device)
    ours, others = -fitted.log_likelihood(z) / z.dim, -base.log_likelihood(z) / z.dim
    seen = -fitted.log_likelihood(y) / y.dim
    nll, baseline = float(ours.mean()), float(others.mean())
    copies = int((fitted.log_variances <= MIN_LOG_VARIANCE).sum())
    verb = "is a copy" if copies == 1 else "are copies"
    warning = f"{copies} of {x.n} generated samples {verb} of training samples" if copies else None
    return Divergence(
        fld=100 * (nll - baseline),
        nll=nll,
        baseline=baseline,
        estimate=Estimate.of_mean(100 * (ours - others), units_of(z)),
        gap=100 * float(seen.mean() - ours.mean()),
        warning=warning,
        signature=Signature.of("fld", (x.n, y.n, z.n), z.space, ("seed", str(seed))),
    )


def negative_likelihoods(gen: object, train: object, test: object, run: Run) -> tuple[Array, Array]:
    """Compute −log-likelihood per entry of the training samples, (n,), and of the test samples, (m,).

    The mixture is the one of `fld`. 100 times the difference of the means is the gap of `fld`, without a baseline: far
    below the gap of fresh samples if training samples were copied.
    """
    x, y, z = _standardize(gen, train, test)
    fitted = fit(x, y, run.torch_device)
    seen, unseen = (-fitted.log_likelihood(embeddings) / embeddings.dim for embeddings in (y, z))
    return seen, unseen


def sample_likelihoods(gen: object, train: object, test: object, *, run: Run | None = None) -> Likelihoods:
    """Score single generated samples by a mixture around the test samples that is fitted to the training samples."""
    x, y, z = _standardize(gen, train, test)
    scores = fit(z, y, Run.of(run).torch_device).log_likelihood(x) / x.dim
    return Likelihoods(scores, Signature.of("fld-sample", (x.n, y.n, z.n), z.space))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Isotropic Gaussians of equal weight."""

    centers: Embeddings  # means of the Gaussians, shape (m, d)
    log_variances: NDArray[np.float64]  # log σ² of each Gaussian, shape (m,)
    # log-likelihood per entry of the samples of the fit, with the background, after every step
    objective: tuple[float, ...]
    device: Device = None  # device to compute on

    def log_likelihood(self, samples: Embeddings) -> NDArray[np.float64]:
        """Compute the log-likelihood of every sample, in nats, without the background of the fit: shape (n,)."""
        result = np.full(samples.n, -np.inf)
        for rows, columns, squared in _square_distances(samples, self.centers, self.device):
            terms = _log_densities(squared, self.log_variances[columns], samples.dim)
            likelihood = terms.logsumexp(1).cpu().numpy() - log(self.centers.n)
            result[rows] = np.logaddexp(result[rows], likelihood)
        return result


def fit(centers: Embeddings, samples: Embeddings, device: Device = None) -> Mixture:
    """Fit the variances that make samples most likely, by expectation maximization.

    Each step is exact and none lowers the likelihood; the authors take 50 steps of Adam instead. As in their code, each
    Gaussian begins with its best variance for its nearest sample, and there is a background, a Gaussian of weight one
    around the mean of the samples. It keeps the other Gaussians from widening for the sake of an outlier.
    """
    dim = samples.dim
    kept = list(_square_distances(samples, centers, device)) if samples.n * centers.n <= MAX_KEPT_DISTANCES else None
    nearest = np.full(centers.n, np.inf)
    for _, columns, squared in kept or _square_distances(samples, centers, device):
        nearest[columns] = np.minimum(nearest[columns], squared.amin(0).cpu().numpy())
    log_variances = np.log((nearest + START_OFFSET) / dim).clip(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE)
    mean = sum((batch.rows.sum(0, dtype=torch.double) for batch in samples.batches()), torch.zeros(())) / samples.n
    squared_to_mean = [(batch.rows.double() - mean).square().sum(1).cpu() for batch in samples.batches()]
    to_mean = BACKGROUND_SHRINKAGE * torch.cat(squared_to_mean).numpy()
    background, objective = 0.0, [-np.inf]
    # 200: maximum number of steps of a fit; it usually ends after ten to thirty.
    for _ in range(200):
        outlying = -0.5 * (to_mean / exp(background) + dim * (background + log(2 * pi)))
        total = outlying.copy()
        for rows, columns, squared in kept or _square_distances(samples, centers, device):
            likelihood = _log_densities(squared, log_variances[columns], dim).logsumexp(1).cpu().numpy()
            total[rows] = np.logaddexp(total[rows], likelihood - log(centers.n))
        objective.append(float(total.mean()) / dim)
        if objective[-1] - objective[-2] < MIN_FIT_GAIN:
            break
        share, moment = np.zeros(centers.n), np.zeros(centers.n)
        for rows, columns, squared in kept or _square_distances(samples, centers, device):
            given = torch.from_numpy(total[rows, None] + log(centers.n)).to(squared.device)
            weights = _log_densities(squared, log_variances[columns], dim).sub_(given).exp_()
            share[columns] += weights.sum(0).cpu().numpy()
            moment[columns] += weights.mul_(squared).sum(0).cpu().numpy()
        log_variances = _log_variances(moment, share, dim, log_variances)
        of_outliers = np.exp(outlying - total)
        sums = np.array([of_outliers @ to_mean]), np.array([of_outliers.sum()])
        background = float(_log_variances(*sums, dim, np.array([background]))[0])
    return Mixture(centers, log_variances, tuple(objective[1:]), device)


def _log_variances(
    moment: NDArray[np.float64], share: NDArray[np.float64], dim: int, before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the best log variances from sums of responsibilities; a Gaussian that no sample needs keeps its own."""
    needed = share > 1e-200
    with np.errstate(divide="ignore"):
        best = np.log(moment / np.where(needed, share, 1) / dim).clip(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE)
    return np.where(needed, best, before)


def _square_distances(
    samples: Embeddings, centers: Embeddings, device: Device
) -> Iterator[tuple[slice, slice, torch.Tensor]]:
    """Yield squared distances part by part: a slice of the samples, a slice of the centers, distances (b, c)."""
    for block in blocks(samples, centers, device):
        for start in range(0, len(block.lower), DENSITY_ROWS):
            part = slice(start, min(start + DENSITY_ROWS, len(block.lower)))
            rows = slice(block.x.start + part.start, block.x.start + part.stop)
            yield rows, block.columns, block.approximate(part, DISTANCE_ACCURACY)


def _log_densities(squared: torch.Tensor, log_variances: NDArray[np.float64], dim: int) -> torch.Tensor:
    """Return the log densities log N(x; g, σ²I) from squared distances, shape (b, c); float64, because d is large."""
    variances = torch.from_numpy(log_variances).to(squared.device)
    return (squared.double() / variances.exp() + dim * (variances + log(2 * pi))).mul_(-0.5)


class _View(Subset):
    """View of some rows of a set, shifted and scaled."""

    def __init__(
        self, source: Embeddings, rows: NDArray[np.int64], mean: torch.Tensor, deviation: torch.Tensor
    ) -> None:
        super().__init__(source, rows)
        self.mean, self.deviation = mean, deviation

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        rows = super().rows_at(indices)
        return (rows - self.mean.to(rows)) / self.deviation.to(rows)

    def part(self, rows: NDArray[np.int64]) -> _View:
        """Return a subset of these rows in the order of the set, which is the fastest to read."""
        return _View(self.source, np.sort(self.rows[rows]), self.mean, self.deviation)


def _standardize(gen: object, train: object, test: object) -> tuple[_View, _View, _View]:
    """Return the three sets, shifted and scaled so that every entry of the test set has mean 0 and deviation 1."""
    x, z = open_pair(gen, test, names=("gen", "test"))
    y, _ = open_pair(train, z, names=("train", "test"))
    if z.n < 2:
        raise DataError(f"test has too few samples, {z.n}: their standard deviation needs at least 2")
    total = torch.zeros(z.dim, dtype=torch.double)
    for batch in z.batches():
        total += batch.rows.sum(0, dtype=torch.double).cpu()
    mean, square = total / z.n, torch.zeros(z.dim, dtype=torch.double)
    for batch in z.batches():
        square += (batch.rows.cpu().double() - mean).square_().sum(0)
    # The mean of equal numbers is off by rounding, and so is their deviation.
    constant = (square / z.n).sqrt() <= 1e-12 * mean.abs()
    if constant.any():
        first = int(constant.nonzero()[0])
        raise DataError(
            f"FLD cannot standardize entries of the embedding that are constant in the test set, {int(constant.sum())} "
            f"of {z.dim}, the first of them number {first}: leave them out of all three sets"
        )
    deviation = (square / (z.n - 1)).sqrt().float()
    views = [_View(source, np.arange(source.n), mean.float(), deviation) for source in (x, y, z)]
    return views[0], views[1], views[2]
