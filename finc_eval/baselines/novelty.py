"""The KEN score of two sets, exact or from random features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import log
from typing import Literal, get_args

import torch

from finc_eval.baselines.ken import Factorization, KenModes, ken, ken_score, ken_spectrum
from finc_eval.core.checks import check_choice, check_positive
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import open_pair
from finc_eval.numerics.eigen import all_eigenpairs
from finc_eval.numerics.kernels import gaussian_kernel, median_bandwidth
from finc_eval.sketches.sketch import Sketch

Form = Literal["cholesky", "eigen", "random features"]

MAX_EXACT_KEN_SAMPLES = 20_000
"""Samples of both sets together up to which the kernel matrix is made."""

KEN_BYTES = 20
"""Memory at the peak per pair of samples, in float64: 7.9 GB were measured at 20 000 samples."""

COLLAPSED_SCORE = 0.95
"""Share of log n above which a KEN score only says that every sample is alone under the kernel."""


@dataclass(frozen=True, eq=False)
class Novelty:
    """The KEN score of a generated set.

    Attributes:
        score: Σ λ₊ log(Σλ₊ / λ₊) over the positive eigenvalues λ₊ of C_X − ρ·C_Y, in nats.
        eigenvalues: λ₊, descending.
        form: factorization of the kernel matrix, or "random features". These bias the score low, and the fewer they
            are the lower (1.7, 2.5, 3.4, 4.0 with 250, 500, 1000, 2000 frequencies where the exact score was 4.6).
            Such scores rank only among themselves, as the signature says.
        warning: reason to distrust the score, or None.
        signature: everything that changes the score, except the generated set.
    """

    score: float
    eigenvalues: torch.Tensor
    form: Form
    warning: str | None
    signature: Signature
    _fit: Callable[[int], KenModes] | None = field(default=None, repr=False)

    def modes(self, count: int = 10) -> KenModes:
        """Find the `count` leading modes, with the scores of all samples; its `score` evaluates fresh samples.

        They are computed from the embeddings again, which takes as long and as much memory as the score did.
        """
        if self._fit is None:
            raise UsageError("KEN from random features has no modes of its own: compare() finds the modes of sketches")
        return self._fit(count)


def check_few_enough(count: int, instead: str) -> None:
    """Raise DataError for more samples than exact KEN takes."""
    if count > MAX_EXACT_KEN_SAMPLES:
        gigabytes = KEN_BYTES * count**2 / 1e9
        raise DataError(
            f"exact KEN needs the kernel matrix of all {count:,} samples, at its peak {gigabytes:,.0f} GB: {instead}, "
            f"or pass subsets of at most {MAX_EXACT_KEN_SAMPLES:,} in all"
        )


def novelty(
    gen: object,
    ref: object,
    *,
    sigma: float | None = None,
    rho: float = 1.0,
    form: Factorization = "cholesky",
) -> Novelty:
    """Compute KEN (arXiv 2402.17287, eq. 8), the amount of novelty in the generated set times its diversity.

    Args:
        gen: embeddings of the generated set: array or tensor (n, d), `EmbeddingCache` or the path of one; or a
            `Sketch`, whose score is from random features.
        ref: reference set in one of the same forms; a sketch if and only if `gen` is one.
        sigma: bandwidth of the Gaussian kernel; default: half the reference's median pairwise distance, or the
            sketches' bandwidth.
        rho: ρ (the paper's η) > 0.
        form: factorization of the kernel matrix; "eigen" is slower and allows a singular matrix.
    """
    check_positive("rho", rho)
    check_choice("form", form, get_args(Factorization))
    if isinstance(gen, Sketch) and isinstance(ref, Sketch):
        return _of_sketches(gen, ref, rho)
    if isinstance(gen, Sketch) or isinstance(ref, Sketch):
        raise UsageError("KEN needs two sketches or two sets of embeddings: sketch the other set with --feature-map-of")
    x, y = open_pair(gen, ref, ("gen", "ref"))
    check_few_enough(x.n + y.n, "pass sketches, for KEN from random features")
    rows, others = _whole(x), _whole(y)
    width = median_bandwidth(others) if sigma is None else sigma
    check_positive("sigma", width)
    kernel = partial(gaussian_kernel, sigma=width)
    values = ken_spectrum(rows, others, kernel, rho=rho, form=form)
    fields = [("kernel", "gaussian"), ("sigma", f"{width:g}")]
    found = _novelty(values, form, (x.n, y.n), x.space, fields, rho)
    return replace(found, _fit=lambda count: ken(_whole(x), _whole(y), kernel, rho=rho, count=count))


def _of_sketches(gen: Sketch, ref: Sketch, rho: float) -> Novelty:
    gen.check_comparable(ref)
    values, _ = all_eigenpairs(gen.covariance - rho * ref.covariance)
    phi = gen.feature_map
    positive = values[values > torch.finfo(values.dtype).eps * len(values)]
    return _novelty(positive, "random features", (gen.n, ref.n), gen.space, list(phi.signature()), rho)


def _novelty(
    values: torch.Tensor, form: Form, sizes: tuple[int, int], space: str, kernel: list[tuple[str, str]], rho: float
) -> Novelty:
    score = ken_score(values) if len(values) else 0.0
    alone = score > COLLAPSED_SCORE * log(sizes[0])
    warning = (
        f"the score is near log n = {log(sizes[0]):.2f}, its largest possible value: under this bandwidth every sample "
        "is alone, which looks like novelty; take a larger sigma"
        if alone
        else None
    )
    signature = Signature.of("ken", sizes, space, *kernel, ("rho", f"{rho:g}"), ("form", form))
    return Novelty(score, values, form, warning, signature)


def _whole(embeddings: Embeddings) -> torch.Tensor:
    return torch.cat([batch.rows for batch in embeddings.batches()]).double()
