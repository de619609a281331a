"""The KEN score of two sets, exact or from random features, with what pins it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from math import log
from typing import Literal, get_args

import torch

from finc_eval.baselines.ken import KenModes, ken, ken_score, ken_spectrum
from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings, as_embeddings, check_same_space
from finc_eval.numerics.bandwidth import median_bandwidth
from finc_eval.numerics.eigen import all_eigenpairs
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.sketches.sketch import Sketch

Form = Literal["cholesky", "eigen", "random features"]

LARGEST = 20_000
"""Samples of both sets together up to which the kernel matrix is made: 3.2 GB in float64, and as much again."""

COLLAPSED = 0.95
"""Share of log n above which KEN says only that every sample is alone under the kernel."""


@dataclass(frozen=True, eq=False)
class Novelty:
    """The KEN score of a generated set.

    Attributes:
        score: Σ λ₊ log(Σλ₊ / λ₊) over the positive eigenvalues λ₊ of C_X − ρ·C_Y, in nats.
        eigenvalues: λ₊, descending.
        form: how they were found. Random features bias the score low, the more the fewer they are (1.7, 2.5, 3.4, 4.0
            with 250, 500, 1000, 2000 frequencies where the exact score was 4.6): such scores rank only among
            themselves, as the signature says.
        warning: what to know before trusting it; None if nothing.
        signature: pins everything that changes the score save the generated set.
    """

    score: float
    eigenvalues: torch.Tensor
    form: Form
    warning: str | None
    signature: Signature
    _fit: Callable[[int], KenModes] | None = field(default=None, repr=False)

    def modes(self, count: int = 10) -> KenModes:
        """The `count` leading modes with the scores of all samples in them; its `score` gives those of fresh samples.

        They are computed when asked for, from the embeddings again: as long as the score took, and as much memory.

        Raises:
            FincEvalError: the score is of random features.
        """
        if self._fit is None:
            raise FincEvalError("KEN from random features has no modes of its own: compare() finds those of sketches")
        return self._fit(count)


def novelty(
    gen: object,
    ref: object,
    *,
    sigma: float | None = None,
    rho: float = 1.0,
    form: Literal["cholesky", "eigen"] = "cholesky",
) -> Novelty:
    """KEN (arXiv 2402.17287, eq. 8): how much of the generated set is novel, and how diverse that is.

    Args:
        gen: embeddings of the generated set, array or tensor (n, d), `EmbeddingCache` or the path of one; or a
            `Sketch`, then from random features.
        ref: the reference set, likewise; both sketches, or neither.
        sigma: bandwidth of the Gaussian kernel; half the reference's median pairwise distance when left out. Sketches
            bring their own.
        rho: ρ (the paper's η) > 0.
        form: "cholesky", or "eigen", which is slower and stands a singular kernel matrix.

    Raises:
        FincEvalError: sets of unlike extractors or dimensions, more than 20 000 samples in all, one sketch and one
            set of embeddings, or parameters out of range.
    """
    if not rho > 0:
        raise FincEvalError(f"rho must be a positive number, got {rho}")
    if form not in get_args(Form)[:2]:
        raise FincEvalError(f'form must be "cholesky" or "eigen", got {form!r}')
    if isinstance(gen, Sketch) and isinstance(ref, Sketch):
        return _of_sketches(gen, ref, rho)
    if isinstance(gen, Sketch) or isinstance(ref, Sketch):
        raise FincEvalError("KEN needs two sketches, or two sets of embeddings: sketch the other set with --like")
    x, y = as_embeddings(gen, "gen"), as_embeddings(ref, "ref")
    check_same_space("gen", x.space, "ref", y.space)
    if x.n + y.n > LARGEST:
        raise FincEvalError(
            f"exact KEN needs the kernel matrix of all {x.n + y.n:,} samples: pass sketches, for KEN from random "
            f"features, or subsets of at most {LARGEST:,} in all"
        )
    rows, others = _whole(x), _whole(y)
    if rows.shape[1] != others.shape[1]:
        raise FincEvalError(f"gen has embeddings of dimension {rows.shape[1]}, ref of {others.shape[1]}")
    width = median_bandwidth(others) if sigma is None else sigma
    if not width > 0:
        raise FincEvalError(f"sigma must be a positive number, got {width}")
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
    alone = score > COLLAPSED * log(sizes[0])
    warning = (
        f"the score is near log n = {log(sizes[0]):.2f}, its largest value: under this bandwidth every sample is "
        "alone, which looks like novelty; take a larger sigma"
        if alone
        else None
    )
    fields = (
        ("n", f"{sizes[0]}/{sizes[1]}"),
        ("fx", space),
        *kernel,
        ("rho", f"{rho:g}"),
        ("form", form),
        ("v", version("finc-eval")),
    )
    return Novelty(score, values, form, warning, Signature("ken", fields))


def _whole(embeddings: Embeddings) -> torch.Tensor:
    return torch.cat([batch.rows for batch in embeddings.batches()]).double()
