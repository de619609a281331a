"""Measures of images and their prompts: diversity that the prompts do not explain, and the fit of image and prompt.

Conditional Vendi and RKE (arXiv 2411.02817): exp(H_q(K_X ∘ K_T / n) − H_q(K_T / n)), with the kernels K_X of the images
and K_T of their prompts, both Gaussian, so that K_X ∘ K_T is that of pairs of prompt and image. Scendi (2412.18645):
exp of −Σ λ·log(λ / Σ λ), with λ the eigenvalues of the Schur complement C_XX − C_XT·C_TT⁺·C_TX of rows of length one.
CLIPScore (2104.08718): 2.5·max(cos, 0) of image and prompt in one space; see `prompts.text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.errors import DataError, check_positive
from finc_eval.core.run import Run
from finc_eval.embeddings.needs import Check, Known
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.estimates.estimate import Estimate
from finc_eval.measures.gaussians.gaussian import MAX_COVARIANCE_SIZE, row_blocks
from finc_eval.measures.inputs import Metric, MetricInputs, reference_bandwidth
from finc_eval.measures.mmd import unit_length
from finc_eval.measures.score import Score
from finc_eval.measures.vendi import MAX_KERNEL_SAMPLES, squared_kernel_sums
from finc_eval.numerics.kernels import gaussian_kernel
from finc_eval.numerics.moments import Moments, weighted_sum
from finc_eval.prompts.text import CLIP_SCALE, WORDS, Joint, join_text, scores_by_set, text_column

Array = NDArray[np.float64]
Interval = tuple[float, float]

ERROR_BLOCKS = 10
"""Blocks of prompts that the jackknife leaves out, as in `vendi_interval`; each costs one more decomposition.

In simulations (40 prompts of 4 images and 100 of 2, of eight kinds and unlike diversity; 150 repetitions each)
intervals of 95 % held the mean score of as many other prompts in 95 to 99 %, of conditional RKE without each prompt in
95 and 99 %. Influence functions held the conditional Vendi score of 100 prompts in 88 %.
"""


@dataclass(frozen=True)
class Unexplained:
    """Effective number of kinds of images that differ although their prompts do not."""

    value: float  # score, from 1 on
    interval: Interval | None  # 95 % interval of the score of as many images of other prompts; None of one prompt


def conditional_vendi(
    source: object, sigma: float, *, text: str = WORDS, order: float = 1.0, run: Run | None = None
) -> Unexplained:
    """Compute the conditional Vendi score of images given their prompts; of order 2 it is conditional RKE.

    The source has a column prompt, caption or text. `text` names the vectors of prompts: "words", "wordllama", a card
    with a text tower, or the path of a file with an embedding for each prompt. The bandwidth of prompts is half the
    median distance of different prompts. Order 2 takes any n; other orders take at most 10 000.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo.prompts import prompted_sets
        >>> from finc_eval.measures.prompted import conditional_vendi
        >>> faulty, sound = (fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts}) for one in prompted_sets(50))
        >>> conditional_vendi(faulty, 5.0).value < conditional_vendi(sound, 5.0).value
        True
    """
    check_positive("sigma", sigma)
    joint = join_text({"gen": as_embeddings(source)}, ["gen"], text, None, sigma)[0]["gen"]
    places = np.bincount(joint.place, minlength=len(joint.vectors))
    if len(places) > MAX_KERNEL_SAMPLES:
        raise DataError(f"{joint.name} has {len(places):,} prompts, and {MAX_KERNEL_SAMPLES:,} are taken: take fewer")
    entropy, interval = (_of_order_two if order == 2 else _of_order)(joint, sigma, order, places, Run.of(run))
    return Unexplained(exp(entropy), interval)


def scendi(source: object, *, text: str = WORDS, run: Run | None = None) -> Unexplained:
    """Compute the Scendi score of images given their prompts, with cosine kernels, in memory of 10·(d + k)².

    `text` is as in `conditional_vendi`.
    """
    joint, run = join_text({"gen": as_embeddings(source)}, ["gen"], text, None, 1.0)[0]["gen"], Run.of(run)
    if joint.dim > MAX_COVARIANCE_SIZE:
        raise DataError(
            f"images and prompts have {joint.dim:,} entries together, and {MAX_COVARIANCE_SIZE:,} are taken: take a "
            "smaller extractor"
        )
    d, block = joint.source.dim, _blocks(len(joint.vectors))
    parts = [Moments(joint.dim, "float64", run.torch_device) for _ in range(int(block.max()) + 1)]
    for here, rows in row_blocks(joint, run.torch_device, run.portion):
        rows, of_rows = torch.cat([unit_length(rows[:, :d]), unit_length(rows[:, d:])], 1), block[joint.place[here]]
        for number, part in enumerate(parts):
            part.update(rows[send(torch.from_numpy(np.flatnonzero(of_rows == number)), rows.device)])
    whole, *without = (
        _unexplained([part for number, part in enumerate(parts) if number != left_out], d)
        for left_out in range(-1, len(parts) if len(parts) > 1 else 0)
    )
    return Unexplained(exp(whole), _interval(whole, without))


def _unexplained(parts: Sequence[Moments], d: int) -> float:
    """Return −Σ λ·log(λ / Σ λ) of the Schur complement of the prompts in the second moments of images and prompts."""
    n = sum(part.n for part in parts)
    second = weighted_sum([(1 / n, part) for part in parts])
    cross = second[d:, :d]
    explained = cross.T @ torch.linalg.pinv(second[d:, d:], hermitian=True) @ cross
    values = torch.linalg.eigvalsh(second[:d, :d] - explained).clip(min=0)
    return float(-torch.special.xlogy(values, values / values.sum()).sum())


@dataclass(frozen=True)
class ClipScore:
    """Mean fit of images and prompts."""

    value: float  # mean of 2.5·max(cos, 0)
    interval: Interval | None  # 95 % interval of it, for other prompts: images of one prompt are not independent
    by_prompt: dict[str, float]  # mean of each prompt
    unread: str  # a sentence on the ends of prompts that the text tower does not read; "" if it reads all


def clip_score(source: object, text: str | None = None, *, run: Run | None = None) -> ClipScore:
    """Compute CLIPScore (Hessel et al. 2021) of images and their prompts, as they are: no words are put before them.

    `text` is a card or a file of embeddings by the text tower of the same model; default: the card behind the images.
    """
    embeddings = as_embeddings(source)
    column = text_column({embeddings.name: embeddings}, f"{embeddings.name} needs")
    prompts, of_sample = np.unique(embeddings.column(column), return_inverse=True)
    by_set, unread = scores_by_set({"": embeddings}, {"": of_sample}, prompts.tolist(), text, Run.of(run))
    scores = by_set[""]
    sums, sizes = np.bincount(of_sample, scores).astype(float), np.bincount(of_sample)
    interval = Estimate.of_ratio(sums, sizes).within(0.0, CLIP_SCALE) if len(sums) > 1 else None
    by_prompt = dict(zip(prompts.tolist(), (sums / sizes).tolist(), strict=True))
    return ClipScore(float(scores.mean()), interval, by_prompt, unread)


def _of_order(
    joint: Joint, sigma: float, order: float, places: NDArray[np.int64], run: Run
) -> tuple[float, Interval | None]:
    """Return the entropy of pairs of prompt and image without that of prompts, and the interval of the score."""
    if joint.n > MAX_KERNEL_SAMPLES:
        raise DataError(
            f"{joint.name} has {joint.n:,} samples, and {MAX_KERNEL_SAMPLES:,} are taken: take fewer, or order 2"
        )
    ((_, rows),) = row_blocks(joint, run.torch_device, joint.n)
    vectors = joint.vectors.double()
    of_pairs, of_prompts = gaussian_kernel(rows, rows, sigma), gaussian_kernel(vectors, vectors, sigma)
    block = _blocks(len(places))
    entropies = []
    for left_out in range(-1, int(block.max()) + 1):
        kept = torch.from_numpy(block != left_out)
        inside = kept[torch.from_numpy(joint.place)].to(of_pairs.device)
        # The kernel of the prompts of all images has the eigenvalues of that of the different prompts, weighted.
        root = torch.from_numpy(np.sqrt(places))[kept] / inside.sum().cpu().sqrt()
        both = _entropy(of_pairs[inside][:, inside] / inside.sum(), order)
        entropies.append(both - _entropy(of_prompts[kept][:, kept] * root * root[:, None], order))
    whole, *without = entropies
    return whole, _interval(whole, without)


def _entropy(kernel: torch.Tensor, order: float) -> float:
    """Return the Rényi entropy of a kernel matrix of trace 1."""
    p = torch.linalg.eigvalsh(kernel).clip(min=0)
    if order == 1:
        return float(-torch.special.xlogy(p, p).sum())
    return float((p**order).sum().log() / (1 - order))


def _blocks(prompts: int) -> NDArray[np.int64]:
    """Return the block of each prompt that the jackknife leaves out, shape (p,)."""
    return np.random.default_rng(0).permutation(prompts) % ERROR_BLOCKS


def _of_order_two(
    joint: Joint, sigma: float, order: float, places: NDArray[np.int64], run: Run
) -> tuple[float, Interval | None]:
    """Return what `_of_order` does, of order 2: −log of sums of k² over pairs, and the jackknife over prompts.

    Both entropies are of as many pairs, so that sums do for means.
    """
    count, vectors = len(places), joint.vectors.double()
    squares = gaussian_kernel(vectors, vectors, sigma).square().numpy() * places * places[:, None]
    of_rows = squared_kernel_sums(joint, sigma, run.torch_device).cpu().numpy()
    order_of, start = joint.place.argsort(kind="stable"), np.append(0, places.cumsum())
    within = np.empty(count)
    for prompt in range(count):
        rows = joint.rows_at(order_of[start[prompt] : start[prompt + 1]]).double()
        within[prompt] = float(gaussian_kernel(rows, rows, sigma).square().sum())
    sums = [(squares.sum(1), places.astype(float) ** 2), (np.bincount(joint.place, of_rows, count), within)]
    of_text, of_both = (log(rows.sum()) for rows, _ in sums)
    if count < 2:
        return of_text - of_both, None
    text, both = (np.log(rows.sum() - 2 * rows + diagonal) for rows, diagonal in sums)
    return of_text - of_both, _interval(of_text - of_both, text - both)


def _interval(value: float, without: Sequence[float] | Array) -> Interval | None:
    """Return the 95 % interval of the score of an entropy, from its values without some prompts each, for others."""
    if len(without) < 2:
        return None
    half = Estimate.of_blocks(value, without).half
    return max(exp(value - half), 1.0), exp(value + half)


def _conditional(order: float) -> Callable[..., list[Score]]:
    def compute(inputs: MetricInputs, *, text: str = WORDS) -> list[Score]:
        gen, ref = inputs.embeddings()
        sigma = reference_bandwidth(ref)
        estimate = conditional_vendi(gen, sigma, text=text, order=order, run=inputs.run)
        signature = inputs.signature(kernel="gaussian", sigma=f"{sigma:.6g}", order=f"{order:g}", text=text)
        notes = ("compare at equal prompts and n only",)
        return [Score(inputs.name, estimate.value, signature, interval=estimate.interval, notes=notes)]

    return compute


def _scendi(inputs: MetricInputs, *, text: str = WORDS) -> list[Score]:
    estimate = scendi(*inputs.embeddings("gen"), text=text, run=inputs.run)
    signature = inputs.signature(kernel="cosine", text=text)
    return [Score(inputs.name, estimate.value, signature, interval=estimate.interval)]


def _clip_score(inputs: MetricInputs, *, text: str | None = None) -> list[Score]:
    (images,) = inputs.embeddings("gen")
    estimate = clip_score(images, text, run=inputs.run)
    signature = inputs.signature(text=text or extractor_of(images.space))
    notes = (estimate.unread,) if estimate.unread else ()
    return [
        Score(inputs.name, estimate.value, signature, interval=estimate.interval, higher_is_better=True, notes=notes)
    ]


def _needs_prompts(name: str) -> Check:
    """Return the check that the generated set has prompts, which the metric needs."""

    def check(sets: Mapping[str, Known]) -> None:
        if "gen" in sets:
            text_column({"gen": sets["gen"]}, f"{name} needs")

    return check


METRICS = (
    Metric(
        "conditional_vendi",
        "effective number of kinds given the prompt, order 1",
        _conditional(1),
        needs=(_needs_prompts("conditional_vendi"),),
    ),
    Metric(
        "conditional_rke",
        "effective number of kinds given the prompt, order 2",
        _conditional(2),
        needs=(_needs_prompts("conditional_rke"),),
    ),
    Metric(
        "scendi",
        "diversity that prompts do not explain: Schur complement, cosine kernels",
        _scendi,
        sets=("gen",),
        needs=(_needs_prompts("scendi"),),
    ),
    Metric(
        "clip_score",
        "fit of image and prompt: cosine of both vectors by one model, such as CLIP",
        _clip_score,
        sets=("gen",),
        needs=(_needs_prompts("clip_score"),),
    ),
)
