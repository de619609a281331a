"""`CellTests`: which cells of a table, words of prompts × attributes of their images, differ between two sets.

The images of prompt b are n_b of the first set and m_b of the second, N_b in all. K_bc of them have attribute c, and
x_bc of these are of the first set. A cell differs if one set has more over the prompts that have the word w (h_bw = 1):

    z_wc = Σ_b h_bw·(x_bc − n_b·K_bc/N_b) / √(Σ_b h_bw·n_b·m_b·K_bc·(N_b − K_bc) / (N_b²·(N_b − 1))),

which is the statistic of Cochran, Mantel and Haenszel, under permutations of the images of each prompt between the
sets. |z| is compared with the largest of all cells under the same permutations (Westfall and Young 1993). With an image
of each set, these are the signs of pairs. One cause is one cell: the cell with the largest |z| is chosen that no
clearer word explains (`words`), its images that have the attribute are left out, and the rest is tested again. Which
images these are does not depend on their sets, so that the others are still exchangeable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.numerics.families import bonferroni, share_as_large
from finc_eval.numerics.inference import ALPHA, OF_POWER, units_for
from finc_eval.prompts.words import FEWEST_PROMPTS, SIGNS, Phrases, clearest

Array = NDArray[np.float64]

LEAST_REACH = 2.8
"""|z| that a cell must be able to reach. Eight images with the attribute reach it, of eight prompts with an image of
each set. Seven have all one set in 1 of 64 draws, so that no cell of a table of more than one can be significant."""


@dataclass(frozen=True, eq=False)
class _TestedAttribute:
    """The cells of an attribute."""

    z: Array  # shape (w,); 0 for phrases that are not tested
    alone: NDArray[np.int64]  # phrases that differ by themselves
    largest: Array  # the largest |z| under each permutation, shape (r,)


@dataclass(frozen=True, eq=False)
class _Surplus:
    """Surplus of an attribute among the images of the first set, by prompt: with its variance, shapes (B,)."""

    surplus: Array
    variance: Array
    most: Array  # largest |surplus| that permutations reach
    size: Array  # n_b·m_b/N_b
    part: Array  # n_b/N_b

    @classmethod
    def of(cls, prompt: NDArray[np.int64], is_first: Array, has: NDArray[np.bool_], prompts: int) -> _Surplus:
        """Count images, from the prompt of each, shape (n,), whether it is of the first set, and has the attribute."""
        total, n, k, x = (np.bincount(prompt, each, prompts) for each in (None, is_first, has, is_first * has))
        safe = np.maximum(total, 1)
        expected, m = n * k / safe, total - n
        variance = n * m * k * (total - k) / (safe**2 * np.maximum(total - 1, 1))
        most = np.maximum(np.minimum(n, k) - expected, expected - np.maximum(k - m, 0))
        return cls(x - expected, variance, most, n * m / safe, n / safe)

    def observe(self, has: csr_matrix) -> tuple[Array, Array]:
        """Return z and the root of its variance, shape (w,), for words that prompts have, (B, w)."""
        scale = np.sqrt(has.T @ self.variance)
        scale = np.where(scale > 0, scale, np.inf)
        return has.T @ self.surplus / scale, scale

    def terms(self, has: Array) -> Array:
        """Return by what the surplus of words is divided for the difference of their shares, shape (w,)."""
        return np.maximum(has.T @ self.size, 1e-9)


class CellTests:
    """Images of prompts of two sets, in equal numbers, and tests of the attributes that they have.

    Args:
        phrases: words and phrases of B prompts.
        prompt: prompt of each image, shape (n,).
        is_first: whether it is of the first set, shape (n,).
        attributes: whether it has each attribute, shape (n, a).
        families: whether each attribute is of each family, shape (f, a); families are asked in order.
        parts: part of the error of each family.
        seed: random seed of the permutations.
    """

    def __init__(
        self,
        phrases: Phrases,
        prompt: NDArray[np.int64],
        is_first: NDArray[np.bool_],
        attributes: NDArray[np.bool_],
        families: NDArray[np.bool_],
        parts: tuple[float, ...],
        seed: int,
    ) -> None:
        order = prompt.argsort(kind="stable")
        self.phrases, self.prompt, self.is_first = phrases, prompt[order], is_first[order]
        self.attributes, self.families, self.parts = attributes[order], families, parts
        self.is_word = np.asarray(phrases.has.sum(0)).ravel() >= FEWEST_PROMPTS
        self.left = np.ones(len(prompt), bool)
        self.decided: set[int] = set()  # phrases that have a cell
        self.rng = np.random.default_rng(seed)
        self.permuted = np.empty((SIGNS, len(prompt)), bool)
        self._permute(self.left)
        self.count = attributes.sum(0)
        self.tests = [self._test(place) for place in range(attributes.shape[1])]

    def choose(self) -> Iterator[tuple[int, int, float]]:
        """Yield the attribute, the phrase and the p-value of each cell that differs, the clearest of a family first."""
        for _ in range(100):  # cells that a result keeps
            asked = (self._clearest(*family) for family in zip(self.families, self.parts, strict=True))
            chosen = next((cell for cell in asked if cell is not None), None)
            if chosen is None:
                return
            place, word, _, p_value = chosen
            self.decided.add(word)
            yield place, word, p_value
            self._leave_out(place, word)

    def undecided(self) -> list[tuple[int, int, float, int]]:
        """Return attributes, phrases, p-values and needed prompts of cells that may differ, the fewest needed first.

        These cells differ by themselves, and not among all. |z| grows with the root of the number of prompts with the
        phrase, until 80 % of repetitions exceed the limit of the family. A phrase has no cell here if it holds, or is a
        part of, one before it or one that has a cell that differs.
        """
        size = np.asarray(self.phrases.has.sum(0)).ravel()
        cells: list[tuple[int, int, float, int]] = []
        for family, part in zip(self.families, self.parts, strict=True):
            places = np.flatnonzero(family).tolist()
            largest = np.max([np.zeros(SIGNS), *(self.tests[place].largest for place in places)], axis=0)
            limit = float(np.quantile(largest, 1 - ALPHA * part, method="higher"))
            for place in places:
                alone = [word for word in self.tests[place].alone.tolist() if self.phrases.texts[word]]
                z = np.abs(self.tests[place].z[alone])
                p_values = bonferroni(share_as_large(z, largest[:, None]), part=part)
                needed = [units_for(size[w], 1.0, own, limit + OF_POWER) for w, own in zip(alone, z, strict=True)]
                rows = zip(alone, p_values.tolist(), map(ceil, needed), strict=True)
                cells += [(place, word, p, most) for word, p, most in rows if p > ALPHA]
        return self._one_of_each(sorted(cells, key=lambda cell: cell[3]))

    def _one_of_each(self, cells: Sequence[tuple[int, int, float, int]]) -> list[tuple[int, int, float, int]]:
        """Return the first cells whose phrases hold none of the others, or of the decided ones, at most five."""
        chosen: list[tuple[int, int, float, int]] = []
        for cell in cells:
            name = f" {self.phrases.texts[cell[1]]} "
            known = [*self.decided, *(other[1] for other in chosen)]
            others = [f" {self.phrases.texts[word]} " for word in known if self.phrases.texts[word]]
            # 5: cells that are planned.
            if len(chosen) < 5 and not any(name in other or other in name for other in others):
                chosen.append(cell)
        return chosen

    def _clearest(self, family: NDArray[np.bool_], part: float) -> tuple[int, int, float, float] | None:
        """Return the attribute, the phrase, |z| and the p-value of the clearest cell of a family; None if none differs.

        Of attributes with equal |z|, such as a value and all other values, the rarest is taken.
        """
        places = np.flatnonzero(family)
        largest = np.max([np.zeros(SIGNS), *(self.tests[place].largest for place in places)], axis=0)[:, None]
        tops = np.array([np.abs(self.tests[place].z).max(initial=0.0) for place in places])
        best: tuple[int, int, float, float] | None = None
        for which in np.lexsort((self.count[places], -tops.round(6))).tolist():
            place, least = int(places[which]), best[2] if best else 0.0
            if tops[which] <= least or bonferroni(share_as_large(tops[which : which + 1], largest), part=part) > ALPHA:
                break
            test = self.tests[place]
            word = clearest(self.phrases, self.phrases.has, test.alone, test.z, self._surplus(place), largest, part, {})
            if word is not None and abs(test.z[word]) > least:
                p_value = bonferroni(share_as_large(np.abs(test.z[word : word + 1]), largest), part=part)
                best = place, word, float(abs(test.z[word])), float(p_value[0])
        return best

    def _leave_out(self, place: int, word: int) -> None:
        """Leave the images of a cell out of all attributes, so that what comes with it is not another cell."""
        has_word = np.asarray(self.phrases.has[:, [word]].todense()).ravel() > 0
        inside = has_word[self.prompt]
        gone = self.left & inside & self.attributes[:, place]
        self.left &= ~gone
        self._permute(self.left & np.isin(self.prompt, self.prompt[gone]))
        for attribute in np.flatnonzero(self.attributes[inside].any(0)).tolist():
            self.tests[attribute] = self._test(attribute)

    def _permute(self, images: NDArray[np.bool_]) -> None:
        """Draw the sets of some images anew under each permutation: in a prompt, each set keeps its number of them."""
        rows = np.flatnonzero(images)
        _, start, sizes = np.unique(self.prompt[rows], return_index=True, return_counts=True)
        for size in np.unique(sizes).tolist():
            of_size = rows[start[sizes == size][:, None] + np.arange(size)]
            for labels in self.permuted:
                labels[of_size] = self.rng.permuted(self.is_first[of_size], axis=1)

    def _surplus(self, place: int) -> _Surplus:
        left = self.left
        has = self.attributes[left, place]
        return _Surplus.of(self.prompt[left], self.is_first[left].astype(float), has, self.phrases.has.shape[0])

    def _test(self, place: int) -> _TestedAttribute:
        measured, has = self._surplus(place), self.phrases.has
        z, scale = measured.observe(has)
        words = np.flatnonzero(self.is_word & (has.T @ measured.most >= LEAST_REACH * scale))
        rows = np.flatnonzero(self.left & self.attributes[:, place] & (measured.variance > 0)[self.prompt])
        prompts = self.prompt[rows]
        columns = np.asarray(has[prompts][:, words].todense(), np.float32)
        expected = measured.part[prompts].astype(np.float32)
        drawn = np.abs((self.permuted[:, rows] - expected) @ columns) / scale[words]
        alone = words[share_as_large(np.abs(z[words]), drawn) <= ALPHA]
        tested = np.zeros_like(z)
        tested[words] = z[words]
        return _TestedAttribute(tested, alone, drawn.max(1, initial=0.0).astype(float))
