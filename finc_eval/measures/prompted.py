"""Measures of images and their prompts: diversity that the prompts do not explain, and the fit of image and prompt.

Conditional Vendi and RKE (arXiv 2411.02817): exp(H_q(K_X ∘ K_T / n) − H_q(K_T / n)), with the kernels K_X of the images
and K_T of their prompts, both Gaussian, so that K_X ∘ K_T is that of pairs of prompt and image. Scendi (2412.18645):
exp of −Σ λ·log(λ / Σ λ), with λ the eigenvalues of the Schur complement C_XX − C_XT·C_TT⁺·C_TX of rows of length one.
CLIPScore (2104.08718): 2.5·max(cos, 0) of image and prompt in one space; see `prompts.fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

import numpy as np
import torch

from finc_eval.core.checks import check_positive
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.space import extractor_of
from finc_eval.measures.gaussian import MAX_COVARIANCE_SIZE, row_blocks
from finc_eval.measures.inputs import Metric, MetricInputs, reference_bandwidth
from finc_eval.measures.mmd import unit_length
from finc_eval.measures.score import Score
from finc_eval.measures.vendi import MAX_KERNEL_SAMPLES, gaussian_vendi
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.moments import Moments, weighted_sum
from finc_eval.prompts.fit import ratio_interval, scores_by_set
from finc_eval.prompts.text import WORDS, Joint, join_text, text_column


@dataclass(frozen=True)
class ConditionalVendi:
    """Effective number of kinds of images that differ although their prompts do not.

    Attributes:
        value: score, from 1 on.
        information: effective number of kinds of images that the prompts explain, exp of the mutual information.
        order: order q of the entropy.
        n: number of images.
        sigma: bandwidth of the images.
    """

    value: float
    information: float
    order: float
    n: int
    sigma: float


def conditional_vendi(
    source: object, sigma: float, *, text: str = WORDS, order: float = 1.0, run: Run | None = None
) -> ConditionalVendi:
    """Compute the conditional Vendi score of images given their prompts; of order 2 it is conditional RKE.

    Args:
        source: embeddings with a column prompt, caption or text.
        sigma: bandwidth of the Gaussian kernel of images. That of prompts is half the median distance of different
            ones.
        text: vectors of the prompts: "words", "wordllama", a card with a text tower, or the path of a file with an
            embedding for each prompt.
        order: order q > 0 of the entropy. Order 2 takes any n; other orders take at most 10 000.
        run: device to compute on; default: CUDA if available.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo.prompts import prompted_sets
        >>> from finc_eval.measures.prompted import conditional_vendi
        >>> faulty, sound = (fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts}) for one in prompted_sets(50))
        >>> conditional_vendi(faulty, 5.0).value < conditional_vendi(sound, 5.0).value
        True
    """
    check_positive("sigma", sigma)
    joint = _joint(as_embeddings(source), text, sigma)
    places = np.bincount(joint.place, minlength=len(joint.vectors))
    if len(places) > MAX_KERNEL_SAMPLES:
        raise DataError(f"{joint.name} has {len(places):,} prompts, and {MAX_KERNEL_SAMPLES:,} are taken: take fewer")
    # The kernel of the prompts of all images has the eigenvalues of that of the different prompts, weighted.
    root = torch.from_numpy(np.sqrt(places / joint.n))
    vectors = joint.vectors.double()
    of_text = _entropy(torch.linalg.eigvalsh(gaussian_kernel(vectors, vectors, sigma) * root * root[:, None]), order)
    of_both = log(gaussian_vendi(joint, sigma, order=order, run=run).value)
    of_images = log(gaussian_vendi(joint.source, sigma, order=order, run=run).value)
    return ConditionalVendi(exp(of_both - of_text), exp(of_images + of_text - of_both), order, joint.n, sigma)


def scendi(source: object, *, text: str = WORDS, run: Run | None = None) -> float:
    """Compute the Scendi score of images given their prompts, with cosine kernels, in memory of (d + k)².

    Args:
        source: embeddings of dimension d with a column prompt, caption or text.
        text: vectors of the prompts, of dimension k; see `conditional_vendi`.
        run: device to compute on; default: CUDA if available.
    """
    joint, run = _joint(as_embeddings(source), text, 1.0), Run.of(run)
    if joint.dim > MAX_COVARIANCE_SIZE:
        raise DataError(
            f"images and prompts have {joint.dim:,} entries together, and {MAX_COVARIANCE_SIZE:,} are taken: take a "
            "smaller extractor"
        )
    d, moments = joint.source.dim, Moments(joint.dim, "float64", run.torch_device)
    for _, rows in row_blocks(joint, run.torch_device, run.portion):
        moments.update(torch.cat([unit_length(rows[:, :d]), unit_length(rows[:, d:])], 1))
    second = weighted_sum([(1 / joint.n, moments)])
    cross = second[d:, :d]
    explained = cross.T @ torch.linalg.pinv(second[d:, d:], hermitian=True) @ cross
    values = torch.linalg.eigvalsh(second[:d, :d] - explained).clip(min=0)
    return float(torch.exp(-torch.special.xlogy(values, values / values.sum()).sum()))


@dataclass(frozen=True)
class ClipScore:
    """Mean fit of images and prompts.

    Attributes:
        value: mean of 2.5·max(cos, 0).
        interval: 95 % interval of it, for other prompts: images of one prompt are not independent.
        by_prompt: mean of each prompt.
    """

    value: float
    interval: tuple[float, float] | None
    by_prompt: dict[str, float]


def clip_score(source: object, text: str | None = None, *, run: Run | None = None) -> ClipScore:
    """Compute CLIPScore (Hessel et al. 2021) of images and their prompts, as they are: no words are put before them.

    Args:
        source: embeddings by an image tower, with a column prompt, caption or text.
        text: name or path of the card of the same model, or path of a file of embeddings by its text tower, one for
            each prompt; default: the card of the extractor that embedded the images.
        run: device of the text tower; default: CUDA if available.

    Raises:
        UsageError: the extractor has no text tower.
        DataError: the images have no prompts; images and prompts have unlike dimensions; a prompt has no vector; or the
            weights of the text tower are missing.
        IncompatibleError: the images were embedded by another model.
    """
    one = as_embeddings(source)
    column = text_column({one.name: one}, f"{one.name} needs")
    prompts, place = np.unique(one.column(column), return_inverse=True)
    scores = scores_by_set({"": one}, {"": place}, prompts.tolist(), text, Run.of(run))[""]
    sums, sizes = np.bincount(place, scores).astype(float), np.bincount(place)
    interval = ratio_interval(sums, sizes) if len(sums) > 1 else None
    return ClipScore(float(scores.mean()), interval, dict(zip(prompts.tolist(), (sums / sizes).tolist(), strict=True)))


def _joint(one: Embeddings, text: str, sigma: float) -> Joint:
    """Return pairs of prompt and image, the prompts scaled to the bandwidth of the images."""
    return join_text({"gen": one}, ["gen"], text, None, sigma)[0]["gen"]


def _entropy(eigenvalues: torch.Tensor, order: float) -> float:
    """Return the Rényi entropy of eigenvalues that add to 1."""
    p = eigenvalues.clip(min=0)
    if order == 1:
        return float(-torch.special.xlogy(p, p).sum())
    return float((p**order).sum().log() / (1 - order))


def _conditional(order: float) -> Callable[..., list[Score]]:
    def compute(inputs: MetricInputs, *, text: str = WORDS) -> list[Score]:
        gen, ref = inputs.embeddings()
        sigma = reference_bandwidth(ref)
        found = conditional_vendi(gen, sigma, text=text, order=order, run=inputs.run)
        signature = inputs.signature(kernel="gaussian", sigma=f"{sigma:.6g}", order=f"{order:g}", text=text)
        return [Score(inputs.name, found.value, signature, notes=("compare at equal prompts and n only",))]

    return compute


def _images(inputs: MetricInputs) -> Embeddings:
    """Return the generated set as embeddings."""
    if isinstance(inputs.gen, Embeddings):
        return inputs.gen
    raise IncompatibleError(f"{inputs.name} needs embeddings and their prompts: moments are not enough")


def _scendi(inputs: MetricInputs, *, text: str = WORDS) -> list[Score]:
    value = scendi(_images(inputs), text=text, run=inputs.run)
    return [Score(inputs.name, value, inputs.signature(kernel="cosine", text=text))]


def _clip_score(inputs: MetricInputs, *, text: str | None = None) -> list[Score]:
    images = _images(inputs)
    found = clip_score(images, text, run=inputs.run)
    signature = inputs.signature(text=text or extractor_of(images.space))
    return [Score(inputs.name, found.value, signature, interval=found.interval, higher_is_better=True)]


METRICS = (
    Metric("conditional_vendi", "effective number of kinds given the prompt, order 1", _conditional(1)),
    Metric("conditional_rke", "effective number of kinds given the prompt, order 2", _conditional(2)),
    Metric("scendi", "diversity that prompts do not explain: Schur complement, cosine kernels", _scendi, sets=("gen",)),
    Metric(
        "clip_score",
        "fit of image and prompt: cosine of both vectors by one model, such as CLIP",
        _clip_score,
        sets=("gen",),
    ),
)
