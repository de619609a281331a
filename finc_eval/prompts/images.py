"""`PromptImages`: sums over the images of each prompt in a set, from which prompts and words are compared."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import sample_hashes
from finc_eval.estimates.estimate import Estimate
from finc_eval.numerics.families import step_down
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.kind_tree import KindTree, directions
from finc_eval.prompts.text import difference_interval

Array = NDArray[np.float64]

MAX_PAIRS = 20_000
"""Pairs of images whose means are held, 10 MB a set; with more, the images of a prompt are put in fewer pairs, and
their means vary less."""


MOST_APART = 2.0  # distance of mean images that is assumed at most: twice that of any two images


@dataclass(frozen=True, eq=False)
class PromptImages:
    """Sums over the images of each prompt in one set."""

    n: NDArray[np.int64]  # shape (B,)
    # mean coordinates of the images of each pair, shape (pairs, k): image r of a prompt is of its pair r modulo their
    # number. Of a prompt, as many images are taken, the first, as the other set has too; one where a set repeats some.
    pairs: Array
    paired: NDArray[np.int64]  # number of pairs of each prompt, shape (B,)
    mean: Array  # mean coordinates, shape (B, k)
    within: Array  # variance of one image around its prompt, summed over coordinates, shape (B,); NaN for one image
    alike: Array  # the same of as many images, the first, as the other set has too
    total: Array
    distinct: NDArray[np.int64]  # distinct images, shape (B,)
    order: NDArray[np.int64]  # images in the order of their prompts
    start: NDArray[np.int64]  # where the images of each prompt begin

    @classmethod
    def of(
        cls,
        embeddings: Embeddings,
        block: NDArray[np.int64],
        pairs: NDArray[np.int64],
        alone: NDArray[np.int64],
        least: NDArray[np.int64],
        distinct: NDArray[np.int64],
        kinds: KindTree,
        run: Run,
    ) -> PromptImages:
        """Sum the images of a set, in one pass, on the axes of the kinds, from the prompt of each image, (n,).

        All else is of each prompt, (B,): its pairs, its images that are put in pairs (`alone`), those that both sets
        have (`least`), and the distinct images of this set.
        """
        n, blocks = np.bincount(block), len(pairs)
        order = block.argsort(kind="stable")
        start = np.concatenate([[0], n.cumsum()])
        first = np.concatenate([[0], pairs.cumsum()])
        rank = np.empty(len(block), np.int64)
        rank[order] = np.arange(len(block)) - start[block[order]]
        pair, is_paired, is_kept = first[block] + rank % pairs[block], rank < alone[block], rank < least[block]
        k = kinds.prototypes.shape[1]
        sums, kept, total = (torch.zeros(size, k, dtype=torch.double) for size in (int(first[-1]), blocks, blocks))
        squares = np.zeros((2, blocks))
        for batch in embeddings.batches(run.portion):
            rows = coordinates(batch.rows, kinds)
            part = slice(batch.start, batch.start + len(rows))
            where = torch.from_numpy(block[part])
            for into, row, taken in ((sums, torch.from_numpy(pair[part]), is_paired), (kept, where, is_kept)):
                chosen = torch.from_numpy(taken[part])
                into.index_add_(0, row[chosen], rows[chosen])
            total.index_add_(0, where, rows)
            length = rows.square().sum(1).numpy()
            squares += [np.bincount(block[part], length * each, blocks) for each in (1, is_kept[part])]
        mean, of_pairs = total.numpy() / n[:, None], sums.numpy() / np.bincount(pair[is_paired])[:, None]
        within, alike = _variance(squares[0], mean, n), _variance(squares[1], kept.numpy() / least[:, None], least)
        return cls(n, of_pairs, pairs, mean, within, alike, squares[0], distinct, order, start)

    def rows(self, *blocks: int) -> NDArray[np.int64]:
        """Return the row numbers of the images of these prompts."""
        return np.concatenate([self.order[self.start[block] : self.start[block + 1]] for block in blocks])

    def means(self, values: Array, most: NDArray[np.int64]) -> Array:
        """Return the mean of a value of each image, shape (n,), over the first images of each prompt, shape (B,)."""
        rank = np.arange(len(values)) - np.repeat(self.start[:-1], self.n)
        return np.asarray(
            np.add.reduceat(values[self.order] * (rank < np.repeat(most, self.n)), self.start[:-1]) / most
        )


def images_of(pairing: Pairing, kinds: KindTree, run: Run) -> dict[str, PromptImages]:
    """Return the sums over the images of each prompt, by set."""
    blocks = len(pairing.names)
    sizes = np.stack([np.bincount(block, minlength=blocks) for block in pairing.block.values()])
    least = sizes.min(0)
    distinct = [
        count_distinct(embeddings, pairing.block[label], blocks, run.prefixed(f"images of {label}"))
        for label, embeddings in pairing.sets.items()
    ]
    # Copies of one image are not independent: one of each set is then tested.
    alone = np.where((np.array(distinct) == sizes).all(0), least, 1)
    pairs = np.ones_like(least) if pairing.is_whole else alone.clip(max=max(MAX_PAIRS // blocks, 1))
    return {
        label: PromptImages.of(embeddings, pairing.block[label], pairs, alone, least, count, kinds, run)
        for (label, embeddings), count in zip(pairing.sets.items(), distinct, strict=True)
    }


def unit_of(images: Collection[PromptImages]) -> float:
    """Return the root mean square distance of any two images of all sets."""
    count = sum(images_of_set.n.sum() for images_of_set in images)
    middle = sum((images_of_set.mean * images_of_set.n[:, None]).sum(0) for images_of_set in images) / count
    return float(
        np.sqrt(max(2 * (sum(images_of_set.total.sum() for images_of_set in images) / count - middle @ middle), 1e-30))
    )


def count_distinct(embeddings: Embeddings, block: NDArray[np.int64], blocks: int, run: Run) -> NDArray[np.int64]:
    """Return the number of distinct images of each prompt, shape (B,)."""
    unlike = np.unique(np.stack([block.astype(np.uint64), sample_hashes({"": embeddings}, run)[""]]), axis=1)[0]
    return np.bincount(unlike.astype(np.int64), minlength=blocks)


def _variance(squares: Array, mean: Array, n: NDArray[np.int64]) -> Array:
    """Return the variance of one image around the mean of its prompt, shape (B,)."""
    rest = np.maximum(squares - n * (mean**2).sum(1), 0)
    return np.where(n > 1, rest / np.maximum(n - 1, 1), np.nan)


def coordinates(rows: torch.Tensor, kinds: KindTree) -> torch.Tensor:
    """Return the coordinates of rows on the axes of the kinds, in units that embeddings have, float64, on the CPU."""
    return (kinds.axes(directions(rows.cpu().float())) * kinds.axes.unit).double()


def common_distance(mean: Array) -> tuple[float, tuple[float, float]]:
    """Return √U with an interval, where U is the mean of M_b·M_c over pairs of prompts, by the jackknife.

    Three prompts or more: U without prompt b is (m·U − 2·O_b) / (m − 2), where O_b is the mean of M_b·M_c over others.
    """
    m = len(mean)
    others = (mean @ mean.sum(0) - (mean**2).sum(1)) / (m - 1)
    square = float(others.mean())
    estimate = Estimate.of_blocks(square, (m * square - 2 * others) / (m - 2))
    low, value, high = (float(np.sqrt(max(end, 0))) for end in (estimate.interval[0], square, estimate.interval[1]))
    return value, (low, high)


def distance_of_means(first: Array, second: Array) -> tuple[float, tuple[float, float]]:
    """Return the distance of two means without the part of its square that chance makes, and its 95 % interval.

    The images vary along the axis from mean to mean as numbers do, whatever the number of axes. The part of chance is
    taken off the squares of the distance on this axis and of both ends. Of one image no variance is known.
    """
    difference = first.mean(0) - second.mean(0)
    distance = float(np.linalg.norm(difference))
    if min(len(first), len(second)) < 2:
        return distance, (0.0, MOST_APART)
    chance = sum(float(means.var(0, ddof=1).sum()) / len(means) for means in (first, second))
    axis = difference / (distance or 1.0)
    _, ends = difference_interval(first @ axis, second @ axis, np.inf)
    low, value, high = (float(np.sqrt(max(max(end, 0.0) ** 2 - chance, 0.0))) for end in (ends[0], distance, ends[1]))
    return value, (low, min(high, max(value, MOST_APART)))


class Permuted:
    """Squared distances of the mean images of prompts, as observed and under permutations of a prompt's images."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.tested: list[int] = []
        self.z: list[float] = []
        self.drawn: list[Array] = []

    def add(self, block: int, rows: Array, weight: Array, signs: Array) -> None:
        """Add a prompt with its images, shape (n, k), their weights in the difference, and permutations of these."""
        x = rows - rows.mean(0)
        gram = x @ x.T
        draws = np.einsum("rn,nm,rm->r", signs, gram, signs)
        spread = draws.std()
        if spread > 0:
            self.tested.append(block)
            self.z.append(float((weight @ gram @ weight - draws.mean()) / spread))
            self.drawn.append((draws - draws.mean()) / spread)

    def p_values(self) -> Array:
        """Return p-values adjusted for all prompts, shape (B,); NaN if a prompt was not added."""
        p_values = np.full(self.blocks, np.nan)
        if self.tested:
            # The means of one law are not expected to be near: only larger distances count.
            drawn = np.maximum(np.stack(self.drawn, 1), 0).astype(np.float32)
            p_values[self.tested] = step_down(np.maximum(self.z, 0), drawn)
        return p_values


def vendi_score(rows: Array) -> float:
    """Return the Vendi score of a few rows with a Gaussian kernel of bandwidth ½, in units of their set's spread."""
    squared = ((rows[:, None] - rows[None]) ** 2).sum(2)
    values = np.linalg.eigvalsh(np.exp(-2 * squared) / len(rows)).clip(1e-12)
    return float(np.exp(-(values * np.log(values)).sum()))
