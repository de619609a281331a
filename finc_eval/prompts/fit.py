"""The fit of images to their prompts: CLIPScore (arXiv 2104.08718), 2.5·max(cos, 0) of both vectors by one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE, extractor_of, spaces_of
from finc_eval.extractors.catalog import card_again
from finc_eval.extractors.weights import check_weights
from finc_eval.numerics.inference import student_quantile
from finc_eval.prompts.text import WORDS, card_of_text, embed_prompts

Array = NDArray[np.float64]

CLIP_SCALE = 2.5
"""Factor of CLIPScore."""


@dataclass(frozen=True)
class Fit(Record):
    """Difference of how well the images of two sets fit their prompts.

    Attributes:
        difference: mean over prompts of the difference of their CLIPScores, the first set's minus the second's.
        interval: 95 % interval of it, which holds by itself.
        p_value: p-value of "they fit alike", adjusted for all prompts if it is of a prompt; None if there are too
            many images to permute.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float | None


@dataclass(frozen=True)
class ModelFit(Record):
    """The fit of the images of a set to their prompts.

    Attributes:
        value: mean CLIPScore of its images.
        interval: 95 % interval of it, for other prompts, which holds by itself.
    """

    value: float
    interval: tuple[float, float]


def tower_of(text: str | None, one: Embeddings) -> str:
    """Return the card whose text tower embeds prompts in the space of a set, or the path of their vectors."""
    is_array = one.space.startswith(ARRAY_SPACE)
    if text is None and is_array:
        raise DataError(
            "the embeddings do not say which model made them: name its card, such as clip-vitb32, or a file of vectors "
            "of the prompts, as text"
        )
    name = text or card_again(extractor_of(one.space))
    card = card_of_text(name)
    if card is None or is_array:
        return name
    if card.text is None:
        raise UsageError(
            f"{card.name} has no text tower, which embeds prompts as its images: embed images by clip-vitb32 or "
            "clip-vitl14-336"
        )
    made_by = extractor_of(one.space)
    if made_by == card.name:
        check_weights(card)
    if one.space not in spaces_of(card):
        also = "" if made_by != card.name else " of other weights or settings"
        raise IncompatibleError(
            f"{one.name} was embedded with {made_by}, and its prompts would be with {card.name}{also}: embed both by "
            "one model"
        )
    return name


def ratio_interval(sums: Array, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the 95 % interval of Σ sums / Σ sizes of CLIPScores over two prompts or more, for other prompts."""
    count, value = len(sums), float(sums.sum() / sizes.sum())
    error = float(np.sqrt(((sums - sizes * value) ** 2).sum() * count / (count - 1))) / sizes.sum()
    half = student_quantile(count - 1) * error
    return max(value - half, 0.0), min(value + half, CLIP_SCALE)


def mean_interval(values: Array, most: float) -> tuple[float, tuple[float, float]]:
    """Return the mean of values, which lie within ± most, and its 95 % interval by Student's t."""
    half = student_quantile(len(values) - 1) * float(values.std(ddof=1)) / np.sqrt(len(values))
    mean = float(values.mean())
    return mean, (max(mean - half, -most), min(mean + half, most))


def mean_p_value(values: Array) -> float:
    """Return the p-value of a mean of zero, by Student's t: below .05 where the interval does not hold zero."""
    return float(ttest_1samp(values, 0).pvalue) if values.std() > 0 else float(not values.any())


def scores_by_set(
    sets: Mapping[str, Embeddings],
    block: Mapping[str, NDArray[np.int64]],
    prompts: Sequence[str],
    text: str | None,
    run: Run,
) -> tuple[dict[str, Array], str]:
    """Return the CLIPScore of each image of each set, by label, and what is not read; see `tower_of` for errors.

    `block` has the prompt of each image of a set, shape (n,).
    """
    (name, *_) = [tower_of(text, one) for one in sets.values()]
    if name == WORDS:
        raise DataError(
            "the fit of images and prompts needs text, a card or a file of vectors of the prompts by one model"
        )
    vectors, unread = embed_prompts(prompts, name, run)
    dim = next(iter(sets.values())).dim
    if vectors.shape[1] != dim:
        raise DataError(f"images have {dim} entries and prompts {vectors.shape[1]}: embed both by one model")
    vectors, scores = _unit(vectors), {}
    for label, one in sets.items():
        found = scores[label] = np.empty(one.n)
        for batch in one.batches(run.portion):
            part = slice(batch.start, batch.start + len(batch.rows))
            cosines = (_unit(batch.rows.cpu()) * vectors[torch.from_numpy(block[label][part])]).sum(1)
            found[part] = CLIP_SCALE * cosines.clip(min=0).numpy()
    return scores, unread


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows.double(), dim=1)
