"""The exact KEN score of two sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import log
from typing import get_args

import torch

from finc_eval.baselines.ken import Factorization, ken_score, ken_spectrum
from finc_eval.core.checks import check_choice, check_positive
from finc_eval.core.errors import DataError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import open_pair
from finc_eval.numerics.kernels import gaussian_kernel, median_bandwidth

MAX_EXACT_KEN_SAMPLES = 20_000
"""Samples of both sets together up to which the kernel matrix is made."""

KEN_BYTES = 20
"""Memory at the peak per pair of samples, in float64: 7.9 GB were measured at 20 000 samples."""

COLLAPSED_SCORE = 0.95
"""Share of log n above which a KEN score only says that every sample is alone under the kernel."""


@dataclass(frozen=True, eq=False)
class Novelty:
    """The KEN score of a generated set."""

    score: float  # Σ λ₊ log(Σλ₊ / λ₊) over the positive eigenvalues λ₊ of C_X − ρ·C_Y, in nats
    eigenvalues: torch.Tensor  # λ₊, descending
    form: Factorization  # factorization of the kernel matrix
    warning: str | None  # reason to distrust the score, or None
    signature: Signature  # everything that changes the score, except the generated set


def check_few_enough(count: int, instead: str) -> None:
    """Raise DataError for more samples than exact KEN takes."""
    if count > MAX_EXACT_KEN_SAMPLES:
        gigabytes = KEN_BYTES * count**2 / 1e9
        raise DataError(
            f"exact KEN needs the kernel matrix of all {count:,} samples, at its peak {gigabytes:,.0f} GB: {instead}, "
            f"or pass subsets of at most {MAX_EXACT_KEN_SAMPLES:,} in all"
        )


def novelty(
    gen: object, ref: object, *, sigma: float | None = None, rho: float = 1.0, form: Factorization = "cholesky"
) -> Novelty:
    """Compute KEN (arXiv 2402.17287, eq. 8), the amount of novelty in the generated set times its diversity.

    Sets are embeddings (n, d) or their file; σ is by default half the reference's median distance, and ρ is the
    paper's η. The factorization "eigen" of the kernel matrix is slower and allows a singular matrix.
    """
    check_positive("rho", rho)
    check_choice("form", form, get_args(Factorization))
    x, y = open_pair(gen, ref, ("gen", "ref"))
    check_few_enough(x.n + y.n, "compare by FINC")
    rows, others = _whole(x), _whole(y)
    width = median_bandwidth(others) if sigma is None else sigma
    check_positive("sigma", width)
    values = ken_spectrum(rows, others, partial(gaussian_kernel, sigma=width), rho=rho, form=form)
    score = ken_score(values) if len(values) else 0.0
    alone = score > COLLAPSED_SCORE * log(x.n)
    warning = (
        f"the score is near log n = {log(x.n):.2f}, its largest possible value: under this bandwidth every sample "
        "is alone, which looks like novelty; take a larger sigma"
        if alone
        else None
    )
    fields = (("kernel", "gaussian"), ("sigma", f"{width:g}"), ("rho", f"{rho:g}"), ("form", form))
    return Novelty(score, values, form, warning, Signature.of("ken", (x.n, y.n), x.space, *fields))


def _whole(embeddings: Embeddings) -> torch.Tensor:
    return torch.cat([batch.rows for batch in embeddings.batches()]).double()
