"""MMD² of polynomial kernels: KID and JEDi.

KID is the kernel inception distance (Binkowski et al., ICLR 2018, arXiv 1801.01401), JEDi the JEPA embedding distance
(Luo et al., ICLR 2025, arXiv 2410.05203).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError, check_count, check_positive, check_seed
from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.opening import open_pair
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.mmd import (
    OF_GROUPS,
    KernelSums,
    MmdEstimate,
    Visitor,
    biased_score,
    kernel_sums,
    mmd_estimator,
    score_of_all_pairs,
    unbiased_estimate,
    unbiased_floor,
)
from finc_eval.measures.score import Score
from finc_eval.numerics.kernels import PairKernel

SUBSETS = 100
SUBSET_SIZE = 1000
KID_SEED = 2020  # torch-fidelity's defaults

JEDI_DEGREE, JEDI_SCALE = 2, 100.0
"""Exponent of the kernel, whose constant is 0, and factor on MMD², of the published code."""


@dataclass(frozen=True)
class KernelDistance:
    """KID over subsets."""

    mean: float  # mean over subsets of the unbiased MMD²; slightly negative for similar sets
    std: float  # standard deviation over subsets. It says how much one subset varies, not how exact the mean is.
    subsets: int  # number of subsets
    subset_size: int  # number of samples of each set in one subset
    seed: int  # random seed of the subsets


def kid(
    gen: object,
    ref: object,
    *,
    subsets: int = SUBSETS,
    subset_size: int = SUBSET_SIZE,
    seed: int = KID_SEED,
    degree: int = 3,
    gamma: float | None = None,
    coef: float = 1.0,
    run: Run | None = None,
) -> KernelDistance:
    """Compute KID as torch-fidelity defines it, from the same subsets for the same seed.

    Subsets are drawn without replacement by numpy's RandomState, first from gen, then from ref, so that a number does
    not depend on the library's version. Products and sums are in float64. torch-fidelity uses the type of the features:
    its float32 sums differ by about 1e-7 of the kernel's mean, which can be a large part of a small KID.
    """
    kernel = _kernel(degree, gamma, coef)
    check_count("subsets", subsets)
    check_count("subset_size", subset_size, least=2)
    x, y = open_pair(gen, ref, least=2)
    for embeddings in (x, y):
        if embeddings.n < subset_size:
            raise DataError(
                f"{embeddings.name} has {embeddings.n} samples, fewer than KID's subsets of {subset_size}: give more, "
                "or a smaller subset_size; or take kid_interval, KID over all pairs, which needs no subsets"
            )
    if (x.n + y.n) ** 2 < subsets * (2 * subset_size) ** 2:  # all pairs once are fewer than the pairs of all subsets
        return _of_all_pairs((x, y), subsets, subset_size, seed, kernel, run)[1]
    drawn = _drawn((x, y), subsets, subset_size, seed)
    pairs = ((_rows(x, of_x), _rows(y, of_y)) for of_x, of_y in drawn)
    values = np.array([kernel_sums(left, right, kernel, run=run).unbiased() for left, right in pairs])
    return KernelDistance(float(np.mean(values)), float(np.std(values)), subsets, subset_size, seed)


def kid_interval(
    gen: object, ref: object, *, degree: int = 3, gamma: float | None = None, coef: float = 1.0, run: Run | None = None
) -> MmdEstimate:
    """Compute KID over all pairs of samples, the U-statistic, with its standard error: without subsets or a seed.

    Pairs of samples of one group are left out, as these are not independent. The interval covers the sampling of both
    sets. Time grows with (n + m)², memory with n + m. The kernel is as in `kid`.
    """
    kernel = _kernel(degree, gamma, coef)
    x, y = open_pair(gen, ref, least=3)
    return unbiased_estimate(kernel_sums(x, y, kernel, run=run), x, y)


def jedi(gen: object, ref: object, *, run: Run | None = None) -> float:
    """Compute JEDi: 100 times the biased MMD² of the kernel (x·y/d)², as the published code does.

    It equals 100·‖Σxxᵀ/n − Σyyᵀ/m‖²/d², so it compares second moments about zero, and nothing else. JEDi is defined on
    the features of V-JEPA, tuned on Something-Something v2; no weights of it are at hand, so that numbers of the paper
    were not repeated.

    Example:
        >>> import numpy as np
        >>> from finc_eval.measures.kid import jedi
        >>> jedi(np.array([[2.0, 0.0]]), np.array([[0.0, 2.0]]))  # kernels are 4, 4 and 0
        800.0
    """
    x, y = open_pair(gen, ref, least=1)
    return JEDI_SCALE * kernel_sums(x, y, _JEDI_KERNEL, run=run).biased()


def polynomial_kernel(
    x: torch.Tensor, y: torch.Tensor, degree: int = 3, gamma: float | None = None, coef: float = 1.0
) -> torch.Tensor:
    """Compute (γ·x·y + coef)^degree for every pair of rows, by default with γ = 1/d: (n, d), (m, d) → (n, m)."""
    products = x @ y.T
    scaled = products.div_(x.shape[1]) if gamma is None else products.mul_(gamma)
    return scaled.add_(coef).pow_(degree)


def _kernel(degree: int, gamma: float | None, coef: float) -> PairKernel:
    check_count("degree", degree)
    if gamma is not None:
        check_positive("gamma", gamma)
    if not 0 <= coef < inf:
        raise UsageError(f"coef must be a finite number of at least 0, got {coef!r}")
    return partial(polynomial_kernel, degree=degree, gamma=gamma, coef=coef)


def _rows(x: Embeddings, rows: NDArray[np.int64]) -> Embeddings:
    return ArrayEmbeddings(x.rows_at(rows), x.name)


def _drawn(sets: tuple[Embeddings, Embeddings], subsets: int, size: int, seed: int) -> NDArray[np.int64]:
    """Draw the rows of each subset of each set, (subsets, 2, size)."""
    draw = np.random.RandomState(check_seed(seed))
    return np.array(
        [[np.sort(draw.choice(embeddings.n, size, replace=False)) for embeddings in sets] for _ in range(subsets)]
    )


def _of_all_pairs(
    sets: tuple[Embeddings, Embeddings],
    subsets: int,
    size: int,
    seed: int,
    kernel: PairKernel,
    run: Run | None,
    visit: Visitor | None = None,
) -> tuple[KernelSums, KernelDistance]:
    """Return the sums over all pairs of samples and, from the same pass, KID over subsets; `visit` sees all blocks."""
    drawn = _drawn(sets, subsets, size, seed)
    where = Run.of(run).torch_device
    members = [torch.zeros(subsets, embeddings.n, dtype=torch.double, device=where) for embeddings in sets]
    for number, member in enumerate(members):
        member.scatter_(1, torch.from_numpy(drawn[:, number].copy()).to(where), 1.0)
    within, across = (torch.zeros(subsets, dtype=torch.double, device=where) for _ in range(2))

    def add(pair: tuple[int, int], rows: slice, columns: slice, values: torch.Tensor) -> None:
        if visit:
            visit(pair, rows, columns, values)
        first, second = (members[number] for number in pair)
        products = (first[:, rows] @ values).mul_(second[:, columns]).sum(1)
        if pair == (0, 1):
            across.add_(products)
        else:  # a block beside the diagonal stands for its mirror image, too
            within.add_(products, alpha=1 if rows == columns else 2)

    sums = kernel_sums(*sets, kernel, run=run, visit=add)
    values = within / (size * (size - 1)) - 2 * across / size**2
    return sums, KernelDistance(float(values.mean()), float(values.std(correction=0)), subsets, size, seed)


def _kid(
    inputs: MetricInputs,
    *,
    subsets: int = SUBSETS,
    subset_size: int = SUBSET_SIZE,
    degree: int = 3,
    gamma: float | None = None,
    coef: float = 1.0,
) -> list[Score]:
    function = _kernel(degree, gamma, coef)
    gen, ref = open_pair(*inputs.embeddings(), least=3)
    check_count("subsets", subsets)
    check_count("subset_size", subset_size, least=2)
    kernel = {} if (degree, gamma, coef) == (3, None, 1) else {"degree": degree, "gamma": gamma or "1/d", "coef": coef}
    floor = unbiased_floor(gen, ref, inputs.run)
    if min(gen.n, ref.n) < subset_size:
        sums = kernel_sums(gen, ref, function, run=inputs.run, visit=floor)
        exact = unbiased_estimate(sums, gen, ref)
        note = f"of all pairs of samples: papers take subsets of {subset_size}, which the sets are too small for"
        score = score_of_all_pairs("kid_mean", sums, exact, inputs.signature(subsets="all", **kernel), floor)
        return [replace(score, notes=(note, *score.notes))]
    sums, estimate = _of_all_pairs((gen, ref), subsets, subset_size, KID_SEED, function, inputs.run, floor)
    exact = unbiased_estimate(sums, gen, ref)
    interval = (exact.low, exact.high)
    signature = inputs.signature(subsets=f"{estimate.subsets}x{estimate.subset_size}", seed=estimate.seed, **kernel)
    note = f"the unbiased value and its interval are of all pairs of samples, not of {estimate.subsets} subsets"
    notes = (note, OF_GROUPS) if sums.is_grouped else (note,)
    scores = [
        Score(
            "kid_mean",
            estimate.mean,
            signature,
            unbiased=exact.value,
            interval=interval,
            floor=floor.value(sums) if floor else None,
            higher_is_better=False,
            notes=notes,
        )
    ]
    # All subsets of two sets of this size are the same.
    return scores if gen.n == ref.n == subset_size else [*scores, Score("kid_std", estimate.std, signature)]


def _jedi(inputs: MetricInputs) -> list[Score]:
    signature = inputs.signature(degree=JEDI_DEGREE, coef=0, scale=JEDI_SCALE)
    return [biased_score(inputs, _JEDI_KERNEL, JEDI_SCALE, partial(jedi, run=inputs.run), signature)]


_JEDI_KERNEL = _kernel(JEDI_DEGREE, None, 0.0)

METRICS = (
    Metric(
        "kid",
        "kernel inception distance: mean and deviation over subsets; all pairs of small sets",
        _kid,
        estimator=mmd_estimator(polynomial_kernel),
        estimated="kernel distance in the space of the board (KID by Inception's), of all pairs of samples",
    ),
    Metric(
        "jedi",
        "JEPA embedding distance: MMD² of the square kernel, of clips",
        _jedi,
        estimator=mmd_estimator(_JEDI_KERNEL, JEDI_SCALE),
    ),
)
