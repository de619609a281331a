"""FLD, feature likelihood divergence (Jiralerspong et al., NeurIPS 2023, arXiv 2302.04440), and its per-sample form.

A mixture with one isotropic Gaussian per generated sample, of a variance fitted to training samples, should make unseen
test samples likely: copies of training samples get a tiny variance and explain nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from math import exp, log, pi, sqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.embeddings.neighbors import blocks, pair

OUTLIERS = 0.81
"""The background's squared distances count (1 − 0.1)², as in the authors' code, which the paper's numbers come from."""

LEAST, MOST = -40.0, 20.0
"""Bounds of a log variance, theirs too: the variance of a copy would be 0."""

OFFSET = 1e-3
"""Added to the nearest squared distance where the fit begins, theirs too."""

ENOUGH = 1e-6
"""Gain of log-likelihood per entry, a ten thousandth of an FLD unit, below which a fit ends."""

KEPT = 1 << 27
"""Distances of a fit that are kept from one step to the next, 512 MiB; more are computed anew."""

STEPS = 200
"""Of a fit, at most; it usually ends after ten to thirty."""

ACCURACY = 1e-3
"""Relative error of a squared distance above which it is computed anew: of near copies only."""

TOGETHER = 512
"""Rows of a block whose densities are held together, in float64."""


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """The per-sample form: how likely each generated sample is under a mixture around the test samples.

    Attributes:
        scores: log-likelihood per entry of the embedding, in nats, shape (n,): low is novel, or bad.
        signature: pins everything that changes the scores save the generated set.
    """

    scores: NDArray[np.float64]
    signature: Signature

    @property
    def order(self) -> NDArray[np.int64]:
        """The samples, most novel first."""
        return np.argsort(self.scores, kind="stable")

    def novel(self, *, threshold: float | None = None, share: float | None = None) -> NDArray[np.int64]:
        """The samples found novel, most novel first: scores below a threshold, or a share of all samples.

        Raises:
            FincEvalError: unless exactly one is given, the share between 0 and 1.
        """
        if (threshold is None) == (share is None):
            raise FincEvalError("what counts as novel needs a threshold or a share: pass exactly one of them")
        if threshold is not None:
            return self.order[: int((self.scores < threshold).sum())]
        if share is None or not 0 < share <= 1:
            raise FincEvalError(f"share must lie between 0 and 1, got {share}")
        return self.order[: max(round(share * len(self.scores)), 1)]


@dataclass(frozen=True, eq=False)
class Divergence:
    """FLD of a generated set.

    Attributes:
        fld: 100 · (nll − baseline); 0 is as good as training samples, more is worse.
        nll: −log-likelihood of the test samples per entry of the embedding, in nats.
        baseline: that under a mixture around training samples, fitted to the other training samples.
        standard_error: of `fld` over test samples: those of the difference of their two likelihoods; the generated and
            training samples are taken as they are.
        gap: 100 · (−log-likelihood of the training samples − nll): far below 0 where training samples were memorized.
        warning: what to know before trusting it; None if nothing.
        signature: pins everything that changes the number save the generated set.
    """

    fld: float
    nll: float
    baseline: float
    standard_error: float
    gap: float
    warning: str | None
    signature: Signature


class Gap(NamedTuple):
    """How much likelier training samples are than unseen ones, under a mixture around generated samples.

    Attributes:
        value: 100 · (−log-likelihood of the training samples − that of the test samples), per entry of the embedding.
        standard_error: over both, the generated samples taken as they are.
    """

    value: float
    standard_error: float


def fld(gen: object, train: object, test: object, *, seed: int = 0) -> Divergence:
    """FLD = 100 · (NLL of test / d − baseline), embeddings standardized by the mean and deviation of the test set.

    The baseline's mixture has min(n, train/2) training samples, drawn by the seed; n, the number of generated samples,
    is as the caller chooses (the authors take 10 000).

    Args:
        gen: embeddings of the generated set: array or tensor (n, d), `EmbeddingCache` or the path of one.
        train: those of the training set, likewise.
        test: those of samples that the generator has not seen.
        seed: of the baseline's split.

    Raises:
        FincEvalError: too few samples, unlike dimensions or extractors, a feature that is constant in the test set, or
            a row that is not finite.
    """
    x, y, z = _standardized(gen, train, test)
    if y.n < 4:
        raise FincEvalError(f"train has {y.n} samples and its baseline needs at least 4: pass more")
    fitted = fit(x, y)
    order = np.random.default_rng(seed).permutation(y.n)
    centers = min(x.n, y.n // 2)
    base = fit(y.part(order[:centers]), y.part(order[centers:]))
    own, others = -fitted.log_likelihood(z) / z.dim, -base.log_likelihood(z) / z.dim
    seen = -fitted.log_likelihood(y) / y.dim
    nll, baseline = float(own.mean()), float(others.mean())
    copies = int((fitted.log_variances <= LEAST).sum())
    warning = f"{copies} of {x.n} generated samples are copies of training samples" if copies else None
    return Divergence(
        fld=100 * (nll - baseline),
        nll=nll,
        baseline=baseline,
        standard_error=100 * float((own - others).std(ddof=1)) / z.n**0.5,
        gap=_gap(seen, own).value,
        warning=warning,
        signature=Signature("fld", (("n", f"{x.n}/{y.n}/{z.n}"), ("fx", z.space), ("seed", str(seed)), *_version())),
    )


def likelihood_gap(gen: object, train: object, test: object) -> Gap:
    """The gap of `fld` alone, without its baseline: far below that of fresh samples where training ones were copied.

    Arguments and errors as of `fld`.
    """
    x, y, z = _standardized(gen, train, test)
    fitted = fit(x, y)
    return _gap(-fitted.log_likelihood(y) / y.dim, -fitted.log_likelihood(z) / z.dim)


def sample_likelihoods(gen: object, train: object, test: object) -> Likelihoods:
    """FLD's score of single generated samples, under a mixture around the test samples, fitted to training samples.

    Arguments and errors as of `fld`.
    """
    x, y, z = _standardized(gen, train, test)
    scores = fit(z, y).log_likelihood(x) / x.dim
    fields = (("n", f"{x.n}/{y.n}/{z.n}"), ("fx", z.space), *_version())
    return Likelihoods(scores, Signature("fld-sample", fields))


@dataclass(frozen=True, eq=False)
class Mixture:
    """Isotropic Gaussians of equal weight.

    Attributes:
        centers: their means, shape (m, d).
        log_variances: log σ² of each, shape (m,).
        objective: log-likelihood per entry of the samples it was fitted to, with the background, after every step.
    """

    centers: Embeddings
    log_variances: NDArray[np.float64]
    objective: tuple[float, ...]

    def log_likelihood(self, samples: Embeddings) -> NDArray[np.float64]:
        """Of every sample, in nats, without the background that the fit had: shape (n,)."""
        result = np.full(samples.n, -np.inf)
        for rows, columns, squared in _squared(samples, self.centers):
            terms = _log_densities(squared, self.log_variances[columns], samples.dim)
            likelihood = terms.logsumexp(1).cpu().numpy() - log(self.centers.n)
            result[rows] = np.logaddexp(result[rows], likelihood)
        return result


def fit(centers: Embeddings, samples: Embeddings) -> Mixture:
    """The variances that make samples most likely, by expectation maximization.

    Each step is exact and none lowers the likelihood; the authors take 50 of Adam's. As theirs, the fit begins with
    each Gaussian at its best for its nearest sample, and has a background, a Gaussian of weight one around the mean of
    the samples, so that no Gaussian must widen for the sake of an outlier.
    """
    dim = samples.dim
    kept = list(_squared(samples, centers)) if samples.n * centers.n <= KEPT else None
    nearest = np.full(centers.n, np.inf)
    for _, columns, squared in kept or _squared(samples, centers):
        nearest[columns] = np.minimum(nearest[columns], squared.amin(0).cpu().numpy())
    log_variances = np.log((nearest + OFFSET) / dim).clip(LEAST, MOST)
    to_mean = OUTLIERS * _squared_to_mean(samples)
    background, objective = 0.0, [-np.inf]
    for _ in range(STEPS):
        outlying = -0.5 * (to_mean / exp(background) + dim * (background + log(2 * pi)))
        total = outlying.copy()
        for rows, columns, squared in kept or _squared(samples, centers):
            likelihood = _log_densities(squared, log_variances[columns], dim).logsumexp(1).cpu().numpy()
            total[rows] = np.logaddexp(total[rows], likelihood - log(centers.n))
        objective.append(float(total.mean()) / dim)
        if objective[-1] - objective[-2] < ENOUGH:
            break
        share, moment = np.zeros(centers.n), np.zeros(centers.n)
        for rows, columns, squared in kept or _squared(samples, centers):
            given = torch.from_numpy(total[rows, None] + log(centers.n)).to(squared.device)
            weights = _log_densities(squared, log_variances[columns], dim).sub_(given).exp_()
            share[columns] += weights.sum(0).cpu().numpy()
            moment[columns] += weights.mul_(squared).sum(0).cpu().numpy()
        log_variances = _log_variances(moment, share, dim, log_variances)
        of_outliers = np.exp(outlying - total)
        sums = np.array([of_outliers @ to_mean]), np.array([of_outliers.sum()])
        background = float(_log_variances(*sums, dim, np.array([background]))[0])
    return Mixture(centers, log_variances, tuple(objective[1:]))


def _gap(seen: NDArray[np.float64], unseen: NDArray[np.float64]) -> Gap:
    """From the negative log-likelihoods of training and test samples."""
    error = sqrt(sum(float(one.var(ddof=1)) / len(one) for one in (seen, unseen)))
    return Gap(100 * float(seen.mean() - unseen.mean()), 100 * error)


def _log_variances(
    moment: NDArray[np.float64], share: NDArray[np.float64], dim: int, before: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The best log variances, from the responsibilities' sums; a Gaussian that no sample needs keeps its own."""
    needed = share > 1e-200
    with np.errstate(divide="ignore"):
        best = np.log(moment / np.where(needed, share, 1) / dim).clip(LEAST, MOST)
    return np.where(needed, best, before)


def _squared(samples: Embeddings, centers: Embeddings) -> Iterator[tuple[slice, slice, torch.Tensor]]:
    """Squared distances of some samples to some centers, a part at a time: which samples, which centers, (b, c)."""
    for block in blocks(samples, centers):
        for start in range(0, len(block.lower), TOGETHER):
            part = slice(start, min(start + TOGETHER, len(block.lower)))
            rows = slice(block.x.start + part.start, block.x.start + part.stop)
            yield rows, block.columns, block.approximate(part, ACCURACY)


def _log_densities(squared: torch.Tensor, log_variances: NDArray[np.float64], dim: int) -> torch.Tensor:
    """The densities N(x; g, σ²I) as logarithms, from squared distances, shape (b, c); in float64, for large d."""
    variances = torch.from_numpy(log_variances).to(squared.device)
    return (squared.double() / variances.exp() + dim * (variances + log(2 * pi))).mul_(-0.5)


def _squared_to_mean(samples: Embeddings) -> NDArray[np.float64]:
    mean = sum((batch.rows.sum(0, dtype=torch.double) for batch in samples.batches()), torch.zeros(())) / samples.n
    return torch.cat([(batch.rows.double() - mean).square().sum(1).cpu() for batch in samples.batches()]).numpy()


class _View(Subset):
    """Some rows of a set, shifted and scaled."""

    def __init__(
        self, source: Embeddings, rows: NDArray[np.int64], mean: torch.Tensor, deviation: torch.Tensor
    ) -> None:
        super().__init__(source, rows)
        self.mean, self.deviation = mean, deviation

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        rows = super().rows_at(indices)
        return (rows - self.mean.to(rows)) / self.deviation.to(rows)

    def part(self, rows: NDArray[np.int64]) -> _View:
        """Some of these rows, in the order of the set, in which they are read fastest."""
        return _View(self.source, np.sort(self.rows[rows]), self.mean, self.deviation)


def _standardized(gen: object, train: object, test: object) -> tuple[_View, _View, _View]:
    """The three sets, shifted and scaled so that every feature of the test set has mean 0 and deviation 1."""
    x, z = pair(gen, test, ("gen", "test"))
    y, _ = pair(train, z, ("train", "test"))
    if z.n < 2:
        raise FincEvalError(f"test has {z.n} samples and their deviation needs at least 2: pass more")
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
        raise FincEvalError(
            f"{int(constant.sum())} of the {z.dim} features, the first of them number {first}, are constant in the "
            "test set, so that FLD cannot standardize them: leave them out of all three sets"
        )
    deviation = (square / (z.n - 1)).sqrt().float()
    views = [_View(source, np.arange(source.n), mean.float(), deviation) for source in (x, y, z)]
    return views[0], views[1], views[2]


def _version() -> tuple[tuple[str, str], ...]:
    return (("v", version("finc-eval")),)
