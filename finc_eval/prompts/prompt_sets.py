"""Test of whether two sets differ less on some prompts than on others, as where a model is fitted to published prompts.

Each prompt has a number: how far its images of one set are from those of the other, or how much better they fit it. The
numbers of two sets of prompts are compared by Welch's t, under permutations of the prompts between these sets. The test
is exact if the prompts of both are of one law, and nearly so if only the means are equal (Janssen 1997).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record
from finc_eval.core.serialize import Shown
from finc_eval.core.words import figure, join_first, quote
from finc_eval.estimates.estimate import Estimate, difference
from finc_eval.numerics.blocks import MIN_BLOCKS
from finc_eval.numerics.families import TIE, bonferroni, share_as_large
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.blocks import Pairing
from finc_eval.prompts.images import PromptImages
from finc_eval.prompts.words import SIGNS

Array = NDArray[np.float64]

COLUMNS = ("prompt_set", "fresh")  # columns that say which set of prompts a prompt is of


@dataclass(frozen=True)
class PromptSetGap(Record, Shown):
    """Difference between two sets of prompts in how unlike two sets of images are.

    Attributes:
        what: "content", or "fit" of images to their prompts.
        column: the column that names the set of prompts.
        prompts: number of prompts of both sets of prompts, by name.
        values: the mean of a number over the prompts of each, by name. Of content, the squared distance of the mean
            images of a prompt, without the part that chance makes; two images of any prompts are 1 apart. Where a set
            has a single image of a prompt, the spread of its images counts as distance, for all prompts. Of fit, how
            much better the first set's images fit the prompt.
        difference: the second value minus the first.
        interval: 95 % interval of it, which holds by itself.
        p_value: p-value of "this does not depend on the set of prompts", adjusted for content and fit.
    """

    what: Literal["content", "fit"]
    column: str
    prompts: dict[str, int]
    values: dict[str, float]
    difference: float
    interval: tuple[float, float]
    p_value: float

    def sentence(self, titles: Mapping[str, str]) -> str:
        """Say on which prompts the sets differ less, with the titles of the sets by label."""
        first, second = (f"{self.column} {quote(name)}" for name in self.prompts)
        if self.p_value > ALPHA:
            asked = "differ more" if self.what == "content" else "fit their prompts better"
            return f"Whether images {asked} with {first} or with {second} is open (p = {self.p_value:.2g})."
        low, high = (first, second) if self.difference > 0 else (second, first)
        if self.what == "content":
            numbers = ", ".join(figure(value, ".2g") for value in sorted(self.values.values()))
            where = f"less on prompts with {low} than with {high} ({numbers}; p = {self.p_value:.2g})"
            return f"Images of {' and '.join(titles.values())} differ {where}."
        own, other = titles.values()
        by = f"by {abs(self.difference):.3f}; p = {self.p_value:.2g}"
        return f"Beside {other}, images of {own} fit prompts with {high} better than with {low} ({by})."

    def _summary(self) -> str:
        low, high = self.interval
        return f"{self.what}: {self.difference:.2f} [{low:.2f}, {high:.2f}], p={self.p_value:.2g}"


def divide_prompts(pairing: Pairing) -> tuple[str, dict[str, NDArray[np.int64]]]:
    """Return the column that divides the prompts of two paired sets, and the numbers of the prompts by its two values.

    Without such a column, both are empty. A prompt without a value is of neither set.

    Raises:
        DataError: the column does not divide the prompts into two sets of at least `MIN_BLOCKS`.
    """
    column = next((name for name in COLUMNS if any(name in each.columns for each in pairing.sets.values())), "")
    if not column:
        return "", {}
    inside: dict[str, set[int]] = {}
    for label, samples in pairing.sets.items():
        if column in samples.columns:
            for block, value in zip(pairing.block[label].tolist(), samples.column(column), strict=True):
                inside.setdefault(value, set()).add(block)
    inside.pop("", None)
    if len(inside) != 2:
        values = join_first([quote(value) for value in sorted(inside)], 3) or "no value"
        raise DataError(f"{column} must name two sets of prompts, and has {values}")
    first, second = (inside[name] for name in sorted(inside))
    if both := sorted(first & second):
        text = quote(str(pairing.names[both[0]]))
        raise DataError(f"{column} has both values for {text}: give each prompt one of them")
    if (fewest := min(len(first), len(second))) < MIN_BLOCKS:
        raise DataError(f"{column} has a set of prompts of {fewest}, and at least {MIN_BLOCKS} are needed")
    return column, {name: np.array(sorted(inside[name])) for name in sorted(inside)}


def prompt_set_gaps(
    column: str, divided: Mapping[str, NDArray[np.int64]], content: Array, fit: Array | None, seed: int
) -> Iterator[PromptSetGap]:
    """Compare the content, and the fit if it is measured, of two sets of prompts.

    Args:
        column: the column that divides the prompts.
        divided: numbers of the prompts of each set, by name.
        content: squared distance of the images of each prompt, shape (B,).
        fit: how much better the first set's images fit each prompt, shape (B,); None if it is not measured.
        seed: random seed of the permutations.
    """
    tested: list[tuple[Literal["content", "fit"], Array]] = [("content", content)]
    if fit is not None:
        tested.append(("fit", fit))
    for what, values in tested:
        parts = [values[rows] for rows in divided.values()]
        first, second = (Estimate.of_mean(part) for part in parts)
        found = difference(second, first, is_paired=False)
        p_value = float(bonferroni(permuted_p(parts[0], parts[1], seed), len(tested)))
        sizes = {name: len(rows) for name, rows in divided.items()}
        means = dict(zip(divided, (first.value, second.value), strict=True))
        yield PromptSetGap(what, column, sizes, means, found.value, found.interval, p_value)


def permuted_p(first: Array, second: Array, seed: int) -> float:
    """Return the two-sided p-value of equal means of two samples, (n,) and (m,), by permutations of Welch's t.

    Example:
        >>> import numpy as np
        >>> from finc_eval.prompts.prompt_sets import permuted_p
        >>> permuted_p(np.arange(8.0), np.arange(8.0) + 20, 0)
        0.001
    """
    values, n = np.concatenate([first, second]), len(first)
    rng = np.random.default_rng(seed)
    drawn = np.array([_welch_t(values[order[:n]], values[order[n:]]) for order in _orders(rng, len(values))])
    return float(share_as_large(np.array([_welch_t(first, second)]), drawn[:, None])[0])


def _orders(rng: np.random.Generator, n: int) -> Iterator[NDArray[np.int64]]:
    return (rng.permutation(n) for _ in range(SIGNS))


def _welch_t(first: Array, second: Array) -> float:
    """Return |t| of Welch of two samples."""
    error = np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return float(abs(second.mean() - first.mean()) / max(error, TIE))


def squared_distances(images: Mapping[str, PromptImages], unit: float) -> Array:
    """Return the squared distance of the images of each prompt between two sets, shape (B,), in units.

    The mean of ‖x − y‖² over all pairs of an image of each set is ‖x̄ − ȳ‖² + Σ (n − 1)/n·s², for n images with
    variance s² in each set: it does not grow with few images. s² is taken off for sets with two images of each prompt.
    """
    first, second = images.values()
    squares = ((first.mean - second.mean) ** 2).sum(1)
    for of_set in images.values():
        is_known = np.isfinite(of_set.within)
        spread = np.where(is_known, of_set.within, 0.0)
        squares += (of_set.n - 1) / of_set.n * spread - (spread if is_known.all() else 0.0)
    return np.asarray(squares / unit**2)
