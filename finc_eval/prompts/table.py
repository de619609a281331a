"""The prompts and words whose images differ between two sets: how they are measured, and chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.run import Run
from finc_eval.estimates.estimate import Estimate
from finc_eval.naming.measured import MeasuredSets
from finc_eval.numerics.inference import BESIDE_ALPHA, least_variance
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.became import name_change
from finc_eval.prompts.cells import FoundCells, find_cells
from finc_eval.prompts.images import (
    Permuted,
    PromptImages,
    common_distance,
    coordinates,
    distance_of_means,
    images_of,
    unit_of,
    vendi_score,
)
from finc_eval.prompts.prompt_sets import PromptSetGap, divide_prompts, prompt_set_gaps, squared_distances
from finc_eval.prompts.result import Prompt, PromptDifferences, PromptSet, What, Word
from finc_eval.prompts.text import CLIP_SCALE, Fit, ModelFit, difference_interval, scores_by_set
from finc_eval.prompts.words import SIGNS, Chosen, Phrases, choose, whiten

Array = NDArray[np.float64]

PICTURES = 4  # images of a prompt and set that are shown

MAX_KERNEL = 64
"""Images of a prompt up to which its Vendi score and its p-value are computed. With 4 a set, a prompt takes 0.3 ms on a
core, with 64 it takes 21 ms, and with 256 320 ms."""


def prompt_differences(
    pairing: Pairing, kinds: KindTree, seed: int, run: Run, text: str | None = None, measured: MeasuredSets = ((), {})
) -> PromptDifferences:
    """Find the prompts, and the words of prompts, whose images differ between two paired sets.

    Images are compared on the principal axes that the kinds were found on. Their fit to the prompts is measured where
    a text tower is: of the extractor that embedded them, or of the card that `text` names.
    """
    prompts = [str(name) for name in pairing.names]
    images = images_of(pairing, kinds, run)
    scores, unmeasured = _scores(pairing, prompts, text, run)
    table = _Table(prompts, images, scores, unit_of(images.values()), pairing, kinds, Phrases.of(prompts), seed)
    gaps, undivided = table.prompt_sets()
    words, differing, cells = tuple(table.words()), tuple(table.differing_prompts()), table.cells(measured, run)
    return PromptDifferences(
        column=pairing.info.column,
        words=words,
        tested=len(table.phrases.texts),
        prompts=differing,
        fits=table.model_fits(),
        fit=table.fit_of_sets(),
        unmeasured=unmeasured,
        cells=cells.found,
        plans=cells.plans,
        prompt_sets=gaps,
        undivided=undivided,
    )


def clear_prompts(pairing: Pairing, kinds: KindTree, seed: int, run: Run) -> tuple[str, ...]:
    """Return the prompts whose images surely differ between two paired sets, the clearest first."""
    prompts = [str(name) for name in pairing.names]
    images = images_of(pairing, kinds, run)
    table = _Table(prompts, images, {}, unit_of(images.values()), pairing, kinds, Phrases.of(prompts), seed)
    prompts_found = table.differing_prompts()
    return tuple(
        prompt.text for prompt in prompts_found if prompt.p_value is not None and prompt.p_value <= BESIDE_ALPHA
    )


def _scores(pairing: Pairing, prompts: Sequence[str], text: str | None, run: Run) -> tuple[dict[str, Array], str]:
    """Return the CLIPScore of each image of each set, by label, and what is unread; none, and why, if unmeasured."""
    try:
        return scores_by_set(pairing.sets, pairing.block, prompts, text, run)
    except (DataError, IncompatibleError, UsageError) as error:
        return {}, f"the fit of images to their prompts is not measured: {error}"


@dataclass(frozen=True, eq=False)
class _Table:
    """Two sets of images of the same prompts, and how they differ by prompt and by word."""

    prompts: Sequence[str]
    images: Mapping[str, PromptImages]
    scores: Mapping[str, Array]  # CLIPScore of each image, by set; empty if the fit is not measured
    unit: float  # root mean square distance of any two images
    pairing: Pairing
    kinds: KindTree
    phrases: Phrases
    seed: int

    @cached_property
    def mean(self) -> Array:
        """Difference of the mean images of each prompt, shape (B, k), in units."""
        first, second = self.images.values()
        return np.asarray((first.mean - second.mean) / self.unit)

    @cached_property
    def diversity(self) -> Array:
        """Difference of the mean squared distances a and b of the images of each prompt, (a − b) / (a + b), (B,)."""
        a, b = (images.alike / self.unit**2 for images in self.images.values())
        total = a + b
        return np.where(total > 0, (a - b) / np.where(total > 0, total, 1), 0.0)

    @cached_property
    def fits(self) -> list[Array]:
        """Mean CLIPScore of the images of each prompt, shape (B,), in each set."""
        return self._fits([images.n for images in self.images.values()])

    def words(self) -> list[Word]:
        """Return the words whose images differ in content, diversity or fit, each chosen at a part of the level."""
        each, part = np.arange(len(self.prompts)), 1 / (3 if self.scores else 2)
        first, second = self.images.values()
        pairs = whiten(first.pairs - second.pairs)
        words = [
            self._word(chosen, "content", common_distance(self.mean[chosen.rows]))
            for chosen in choose(self.phrases, pairs, each.repeat(first.paired), self.seed, part)
        ]
        content, known = [word.text for word in words], np.isfinite(self.diversity)
        if known.any():
            values = np.where(known, self.diversity, 0.0)
            for chosen in choose(self.phrases, values, each, self.seed, part, content):
                change = self.diversity[chosen.rows]
                estimate = Estimate.of_mean(change, least=least_variance(change, (-1.0, 1.0)))
                words.append(self._word(chosen, "diversity", (estimate.value, estimate.within(-1.0, 1.0))))
        if self.scores:
            least = np.minimum(first.n, second.n)
            of_first, of_second = self._fits([least, least])
            better = self.fits[0] - self.fits[1]
            for chosen in choose(self.phrases, of_first - of_second, each, self.seed, part, content):
                words.append(self._word(chosen, "fit", _mean_fit(better[chosen.rows])))
        return words

    def _word(self, chosen: Chosen, what: What, distance: tuple[float, tuple[float, float]]) -> Word:
        """Describe a word; images of one prompt side by side show its diversity, and images of several its content."""
        rows, became = chosen.rows, ""
        if what == "diversity":
            rows = rows[np.abs(self.diversity[rows]).argsort(kind="stable")[-1:]]
        elif what == "content":
            became = name_change(rows, self.phrases, self.images, self.pairing)
        examples = tuple(self.prompts[row] for row in rows[:PICTURES])
        sets = self._sets(chosen.rows.tolist(), shown=rows[:PICTURES].tolist())
        return Word(
            self.phrases.texts[chosen.phrase], what, len(chosen.rows), *distance, chosen.p_value, sets, examples, became
        )

    def prompt_sets(self) -> tuple[tuple[PromptSetGap, ...], str]:
        """Return on which of two sets of prompts the images differ less, or why that is not known; else nothing."""
        try:
            column, divided = divide_prompts(self.pairing)
        except DataError as error:
            return (), str(error)
        if not divided:
            return (), ""
        better = self.fits[0] - self.fits[1] if self.scores else None
        content = squared_distances(self.images, self.unit)
        return tuple(prompt_set_gaps(column, divided, content, better, self.seed)), ""

    def cells(self, measured: MeasuredSets, run: Run) -> FoundCells:
        """Return what pictures of prompts with a word have more often in one set, and what may be next."""
        paired = next(iter(self.images.values())).paired
        asked = (self.phrases, measured, self.kinds, self.pairing.info.column, self.seed, run)
        return find_cells(self.pairing.sets, self.pairing.block, paired, *asked)

    def differing_prompts(self) -> Iterator[Prompt]:
        """Yield the prompts that differ most, with the largest difference between the means of their images."""
        distance = np.sqrt((self.mean**2).sum(1))
        (p_values, p_fit), vendi = self._within_prompts()
        # 100: prompts that a result keeps, those whose images differ most.
        shown = np.lexsort((-distance, np.where(np.isnan(p_values), 1.0, p_values)))[:100]
        for block in shown.tolist():
            value, ends = distance_of_means(*(self._coordinates(label, block) for label in self.images))
            p_value = None if np.isnan(p_values[block]) else float(p_values[block])
            fit = self._fit_of(block, p_fit[block])
            yield Prompt(self.prompts[block], value, ends, p_value, fit, self._sets([block], vendi))

    def model_fits(self) -> dict[str, ModelFit]:
        """Return how well the images of each set fit their prompts; empty if it is not measured."""
        if not self.scores:
            return {}
        return {
            label: ModelFit(
                float(self.scores[label].mean()), Estimate.of_ratio(fit * images.n, images.n).within(0.0, CLIP_SCALE)
            )
            for (label, images), fit in zip(self.images.items(), self.fits, strict=True)
        }

    def fit_of_sets(self) -> Fit | None:
        """Return how much better the first set's images fit their prompts; None if it is not measured."""
        if not self.scores:
            return None
        better = self.fits[0] - self.fits[1]
        return Fit(*_mean_fit(better), Estimate.of_mean(better).p_value)

    def _sets(
        self, blocks: Sequence[int], vendi: Mapping[str, Array] | None = None, shown: Sequence[int] | None = None
    ) -> dict[str, PromptSet]:
        """Describe the images of prompts in both sets, with ids of images of some of the prompts."""
        pictured = blocks[:PICTURES] if shown is None else shown
        by_set = {}
        for label, images in self.images.items():
            within = images.within[blocks]
            known = within[np.isfinite(within)]
            rows = np.concatenate([images.rows(block)[: PICTURES if len(pictured) == 1 else 1] for block in pictured])
            scores = None if vendi is None else vendi[label][blocks]
            by_set[label] = PromptSet(
                n=int(images.n[blocks].sum()),
                spread=float(np.sqrt(2 * known.mean())) / self.unit if len(known) else None,
                distinct=int(images.distinct[blocks].sum()),
                vendi=None if scores is None or np.isnan(scores).all() else float(scores.mean()),
                fit=None if label not in self.scores else float(self.scores[label][images.rows(*blocks)].mean()),
                ids=self.pairing.sets[label].ids_at(rows),
            )
        return by_set

    def _fits(self, most: Sequence[NDArray[np.int64]]) -> list[Array]:
        """Return the mean CLIPScore of the first images of each prompt, shape (B,), in each set."""
        images = zip(self.images.items(), most, strict=True)
        return [images_of_set.means(self.scores[label], taken) for (label, images_of_set), taken in images]

    def _fit_of(self, block: int, p_value: float) -> Fit | None:
        """Return how much better the first set's images fit a prompt."""
        if not self.scores:
            return None
        a, b = (self.scores[label][images.rows(block)] for label, images in self.images.items())
        interval = difference_interval(a, b, CLIP_SCALE)
        return Fit(*interval, None if np.isnan(p_value) else float(p_value))

    def _coordinates(self, label: str, block: int) -> Array:
        """Return the coordinates of the images of a prompt in a set, shape (n, k), in units."""
        rows = self.pairing.sets[label].rows_at(self.images[label].rows(block))
        return np.asarray(coordinates(rows, self.kinds).numpy() / self.unit)

    def _within_prompts(self) -> tuple[tuple[Array, Array], dict[str, Array]]:
        """Return p-values of content and of fit, adjusted for all prompts, shape (B,), and Vendi scores in each set.

        The statistic of a prompt is the squared distance of its mean images, or of their mean fit, in units of its
        spread under permutations of its images; NaN if it has too many.
        """
        blocks, rng = len(self.prompts), np.random.default_rng(self.seed)
        vendi = {label: np.full(blocks, np.nan) for label in self.images}
        sizes = np.stack([images.n for images in self.images.values()], 1)
        content, fit = Permuted(blocks), Permuted(blocks)
        for block in np.flatnonzero(sizes.max(1) <= MAX_KERNEL).tolist():
            parts = []
            for label in self.images:
                rows = self._coordinates(label, block)
                vendi[label][block] = vendi_score(rows) if len(rows) > 1 else np.nan
                parts.append(rows)
            if sizes[block].sum() < 3:
                continue
            weight = np.repeat([1 / sizes[block, 0], -1 / sizes[block, 1]], sizes[block])
            signs = rng.permuted(np.tile(weight, (SIGNS, 1)), axis=1)
            content.add(block, np.concatenate(parts), weight, signs)
            if self.scores:
                values = [self.scores[label][images.rows(block)] for label, images in self.images.items()]
                fit.add(block, np.concatenate(values)[:, None], weight, signs)
        return (content.p_values(), fit.p_values()), vendi


def _mean_fit(better: Array) -> tuple[float, tuple[float, float]]:
    """Return the mean of differences of CLIPScores, and its 95 % interval."""
    estimate = Estimate.of_mean(better)
    return estimate.value, estimate.within(-CLIP_SCALE, CLIP_SCALE)
