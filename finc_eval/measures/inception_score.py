"""The inception score (Salimans et al. 2016, arXiv 1606.03498): exp of the mean KL of p(class | image) to p(class)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch

from finc_eval.core.errors import DataError, UsageError, check_count, check_seed
from finc_eval.core.words import plural
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.repeats import mean_group_size
from finc_eval.estimates.estimate import Estimate
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.score import Score

IS_SPLITS, IS_SEED = 10, 2020  # torch-fidelity's defaults
MIN_SPLIT_SAMPLES = 500  # number of images of a split below which a note warns; published scores have 5000


@dataclass(frozen=True)
class InceptionScore:
    """The inception score over splits of a set."""

    # mean score of the splits. It is biased low: p(class) of a split is estimated from its own samples, so the score
    # grows with their number, and compares at equal n and splits only (Chong and Forsyth, CVPR 2020).
    mean: float
    std: float  # standard deviation of the scores of the splits
    whole: float  # score of all samples as one split, which is less biased
    scores: tuple[float, ...]  # scores of the splits, shape (splits,)
    n: int  # number of samples
    splits: int  # number of splits
    seed: int  # random seed of the shuffle
    group_size: float = 1.0  # mean size of the group of a sample

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Student's interval for the mean over splits of as many other samples, from the scores of the splits.

        The splits do not share samples, so none are resampled. In simulations (10 and 100 classes with 100 to 5000
        samples, 1008 with 100 to 2000, ten splits) intervals of 95 % held the mean score of that many samples in 92 to
        98 % of 150 to 300 repetitions. They do not hold the score of larger splits, which is higher. Samples of a group
        are in several splits, which hides how alike they are: the error is that of groups whose samples are all equal.
        """
        if self.splits < 2:
            raise UsageError("the interval of an inception score comes from its splits: ask for two at least")
        half = sqrt(self.group_size) * Estimate.of_mean(np.array(self.scores)).half_at(confidence)
        return max(self.mean - half, 1.0), self.mean + half


def inception_score(logits: object, *, splits: int = IS_SPLITS, seed: int = IS_SEED) -> InceptionScore:
    """Compute the inception score of class logits, shuffled and split as torch-fidelity does.

    Only Σ p and Σ p·log p of each split are kept: KL is the mean of Σ_c p log p, minus Σ_c q log q of their mean q.
    For the FID Inception these are its 1008 logits without bias, `EmbeddingCache(path, "logits_unbiased")`.
    """
    check_count("splits", splits)
    source = as_embeddings(logits, "the logits")
    n = source.n
    if splits > n:
        raise DataError(f"{source.name}: {n} samples do not make {splits} splits, ask for 1 to {n}")
    split_of = torch.empty(n, dtype=torch.long)
    order = np.random.RandomState(check_seed(seed)).permutation(n)
    for split in range(splits):
        split_of[torch.from_numpy(order[split * n // splits : (split + 1) * n // splits])] = split
    classes = torch.zeros(splits, source.dim, dtype=torch.double)
    surprise = torch.zeros(splits, dtype=torch.double)
    maybe_probabilities = True
    for batch in source.batches():
        rows = batch.rows.double().cpu()
        maybe_probabilities &= bool((rows >= 0).all() and (rows.sum(1) - 1).abs().max() < 1e-3)
        logarithm = rows.log_softmax(1)
        p = logarithm.exp()
        which = split_of[batch.start : batch.start + len(rows)]
        classes.index_add_(0, which, p)
        surprise.index_add_(0, which, (p * logarithm).sum(1))
    if maybe_probabilities:
        raise DataError(f"the rows of {source.name} are probabilities: give the logits before the softmax")
    counts = split_of.bincount(minlength=splits)
    size = mean_group_size(source)
    scores = [_score(*parts) for parts in zip(classes, surprise, counts, strict=True)]
    whole = _score(classes.sum(0), surprise.sum(), counts.sum())
    return InceptionScore(float(np.mean(scores)), float(np.std(scores)), whole, tuple(scores), n, splits, seed, size)


def _score(classes: torch.Tensor, surprise: torch.Tensor, count: torch.Tensor) -> float:
    q = classes / count
    return float((surprise / count - torch.special.xlogy(q, q).sum()).exp())


def _inception_score(inputs: MetricInputs) -> list[Score]:
    estimate = inception_score(inputs.gen)
    signature = inputs.signature(splits=estimate.splits, seed=estimate.seed)
    size = estimate.n // estimate.splits
    samples = plural(size, "sample")
    note = f"each split has {samples}: the score cannot exceed that, and is too low; published splits have 5000"
    notes = (note,) if size < MIN_SPLIT_SAMPLES else ()
    interval = estimate.interval()
    return [
        Score("inception_score_mean", estimate.mean, signature, interval=interval, higher_is_better=True, notes=notes),
        Score("inception_score_std", estimate.std, signature),
    ]


METRICS = (
    Metric(
        "inception_score",
        "inception score",
        _inception_score,
        "inception-fid",
        "logits_unbiased",
        sets=("gen",),
        depends_on_groups=lambda key: key != "inception_score_std",
    ),
)
