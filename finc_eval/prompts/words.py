"""Words and phrases of prompts whose images differ, each chosen without the words before it.

The images of a prompt are put in pairs, one of each set. Where one set has more, the others are left out: the mean of
four images and a single one have unlike laws, and with these, words of equal models were found in 8 % of runs in place
of 2.5 % (skewed noise, 4 images against 1). D_i is the difference of pair i, and h_iw says whether its prompt has the
word w. The images of a word differ in one way if the differences of its pairs point together:

    T_w = Σ_{i≠j} h_iw·h_jw·D_i·D_j = ‖Σ_i h_iw·D_i‖² − Σ_i h_iw·‖D_i‖²,   Var T_w = 2·Σ_{i≠j} h_iw·h_jw·(D_i·D_j)²

under random signs of the D_i, which exchange the images of a pair. The diversity g_b of a prompt, a number between −1
and 1, is tested in the same way, with T_w = Σ_b h_bw·g_b and Var T_w = Σ_b h_bw·g_b².

Words are significant by |T_w| / √Var among all words (Westfall and Young 1993). The word with the largest is
chosen that still differs where others, in whose prompts the difference is larger, are left out: a word is not found for
what its neighbors do, be they significant or not. Then its prompts are left out, and the rest is tested again.
Diversity must differ without the prompts of words that differ in content: what stands in for a thing varies otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.naming.properties import split_words
from finc_eval.numerics.families import TIE, bonferroni, share_as_large
from finc_eval.numerics.inference import ALPHA

Array = NDArray[np.float64]

SIGNS = 999  # random signs behind a p-value

LONGEST = 3
"""Words of a phrase. In 40 draws of the toy of 50 prompts, 2 images each, 40 of 80 planted words are found with 1 and 2
words, and 38 with 3 and 5; no others with any. Of phrases in the same prompts, the shortest stands for all."""

FEWEST_PROMPTS = 3
"""Prompts that a word must be in. In the draws of `LONGEST`, 38 of 80 words are found with 2 and 3, and 36 with 5."""

MOST_WORDS = 5000
"""Words and phrases that are tested, the most frequent first, which bounds memory. Of 10 000 captions of twelve words,
5 000 phrases take 26 s and 210 MB, and all 9 224 take 34 s and 277 MB; both find a word planted in 60 captions.
Of 2 000 captions, 2 145 phrases are in three or more."""

AXES = 32  # axes of the differences of pairs that words are tested on; see `RIDGE`

RIDGE = 0.1
"""Part of the mean variance that is added to the variance of an axis, so that axes of mere noise count less.

Two words moved along an axis each, 60 prompts, 2 pairs, 25 runs: the parts found on even axes, on the 15th and 21st,
and on the first two axes of variance 1/k², and with noise of heavy tails, are .92, .32, .98, .84. With .01 they are
.88, .58, .76, .78; with 1, .98, 0, 1, .98. With 8 axes instead of 32 they are .96, 0, 1, .88; with 48, .76, .36, .96,
.82.
"""

CLEARER = 2.0
"""Factor by which the mean product of differences of a word must be larger for it to explain another word. With 1.3 or
4, the parts at `RIDGE` are the same; with 1, what all prompts have in common is not found."""

BATCH = 16  # signs that are multiplied together
SIGNS_AT_ONCE = 1 << 21  # signs of all prompts that are drawn at once: they take 16 MB


@dataclass(frozen=True, eq=False)
class Phrases:
    """Words and phrases of prompts."""

    texts: tuple[str, ...]  # the phrases, w of them; "" is every prompt
    has: csr_matrix  # which prompt has which, shape (B, w), entries 0 and 1

    @classmethod
    def of(cls, prompts: Sequence[str]) -> Phrases:
        """Find the phrases of prompts; of phrases in the same prompts, the shortest stands for all."""
        rows_with: dict[str, list[int]] = {"": list(range(len(prompts)))}
        for row, prompt in enumerate(prompts):
            words = split_words(prompt)
            for text in {" ".join(words[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1)}:
                rows_with.setdefault(text, []).append(row)
        kept: dict[tuple[int, ...], str] = {}
        for text in sorted(rows_with, key=lambda text: (text.count(" ") + bool(text), text)):
            if len(rows_with[text]) >= FEWEST_PROMPTS:
                kept.setdefault(tuple(rows_with[text]), text)
        chosen = sorted(kept, key=lambda rows: (-len(rows), kept[rows]))[:MOST_WORDS]
        columns = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
        rows = np.array([row for rows in chosen for row in rows], np.int64)
        has = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(prompts), len(chosen)))
        return cls(tuple(kept[number] for number in chosen), has)


@dataclass(frozen=True)
class Chosen:
    """A phrase that was chosen."""

    phrase: int  # its place among the phrases
    z: float  # T_w / √Var
    p_value: float  # p-value adjusted for all phrases
    rows: NDArray[np.int64]  # its prompts that no earlier phrase has


def whiten(differences: Array) -> Array:
    """Return differences of pairs on their leading axes, divided by their spread there, shape (pairs, at most 32).

    Signs do not change DᵀD, so that a test on its axes stays exact. A fault in the color of a few words is small next
    to the shapes that all pairs vary in, and large in units of what pairs vary by in its own direction.
    """
    squares, axes = np.linalg.eigh(differences.T @ differences)
    squares, axes = squares[::-1][:AXES].clip(0), axes[:, ::-1][:, :AXES]
    return np.asarray(differences @ axes / np.sqrt(squares + RIDGE * squares.mean() + TIE))


def choose(
    phrases: Phrases,
    differences: Array,
    prompt: NDArray[np.int64],
    seed: int,
    part: float = 0.5,
    before: Sequence[str] = (),
) -> Iterator[Chosen]:
    """Yield the phrases whose prompts differ, one after the other.

    Differences are D, (pairs, k), or g, (pairs,) with one pair a prompt; `prompt` is of each pair, in order. This
    family may spend `part` of the error. Others must differ without the phrases `before`, which differ in another way.
    """
    known = {f" {text} ": phrases.has[:, [phrases.texts.index(text)]].toarray().ravel() > 0 for text in before if text}
    left = np.ones(phrases.has.shape[0])
    wanted = np.ones(len(phrases.texts))
    rng = np.random.default_rng(seed)
    data = differences
    while True:
        has = phrases.has.multiply(left[:, None]).tocsr()
        size = np.asarray(has.sum(0)).ravel()
        z, drawn = (
            statistic * (wanted * (size >= FEWEST_PROMPTS)) for statistic in _statistics(has, data, prompt, rng)
        )
        largest = np.abs(drawn).max(1)[:, None]
        p_values = bonferroni(share_as_large(np.abs(z), largest), part=part)
        alone = np.flatnonzero((share_as_large(np.abs(z), np.abs(drawn)) <= ALPHA) & (z != 0))
        word = clearest(phrases, has, alone, z, _Differences(data, prompt), largest, part, known)
        if word is None:
            return
        rows = np.flatnonzero(np.asarray(has[:, [word]].todense()).ravel())
        yield Chosen(word, float(z[word]), float(p_values[word]), rows)
        if phrases.texts[word]:
            left[rows] = 0
        else:  # what most prompts have in common is taken off, and their words are looked at
            wanted[word] = 0
            data = data - np.median(data, axis=0)


class Observed(Protocol):
    """Values of prompts that are summed over the prompts of words."""

    def observe(self, has: csr_matrix) -> tuple[Array, Array]:
        """Return T_w / √Var and √Var, each of shape (w,), of words that prompts have, (B, w)."""
        ...

    def terms(self, has: Array) -> Array:
        """Return the number of terms of T_w, shape (w,)."""
        ...


@dataclass(frozen=True, eq=False)
class _Differences:
    """Differences D of pairs, (pairs, k), or g of prompts, (pairs,), with the prompt of each."""

    data: Array
    prompt: NDArray[np.int64]

    def observe(self, has: csr_matrix) -> tuple[Array, Array]:
        z, _, scale = _observe(has, self.data, self.prompt)
        return z, scale

    def terms(self, has: Array) -> Array:
        pairs = has.T @ np.bincount(self.prompt, minlength=len(has))
        return np.asarray(pairs * np.maximum(pairs - 1, 1) if self.data.ndim > 1 else pairs)


def clearest(
    phrases: Phrases,
    has: csr_matrix,
    words: NDArray[np.int64],
    z: Array,
    observed: Observed,
    drawn: Array,
    part: float,
    known: Mapping[str, NDArray[np.bool_]],
) -> int | None:
    """Return the significant word with the largest statistic that others do not explain; of equal words the rarest.

    Others are all words that differ by themselves: a rare word that is not significant among all can be what a frequent
    one, which has it, is significant for. None if each significant word is explained.
    """
    columns = np.asarray(has[:, words].todense())
    mean = np.abs(z[words]) * observed.observe(has[:, words])[1] / observed.terms(columns)
    names = [f" {phrases.texts[word]} " for word in words]
    alone = columns.copy()
    for row, name in enumerate(names):
        clearer = [
            other
            for other, text in enumerate(names)
            if mean[other] > CLEARER * mean[row] and (name == "  " or name not in text)
        ]
        alone[columns[:, clearer].any(1), row] = 0
        for text, rows in known.items():
            if name not in text and text not in name:
                alone[rows, row] = 0
    rest = np.abs(observed.observe(csr_matrix(alone))[0])
    p_values = share_as_large(np.minimum(np.abs(z[words]), rest), drawn)
    among = np.flatnonzero(bonferroni(p_values, part=part) <= ALPHA)
    if not len(among):
        return None
    largest = np.abs(z[words[among]])
    best = among[largest >= largest.max() * (1 - 1e-6)]
    return int(words[best[columns[:, best].sum(0).argmin()]])


def _scales(turned: csr_matrix, data: Array, prompt: NDArray[np.int64]) -> Array:
    """Return √Var T_w, shape (w,); infinite if no sign changes T_w."""
    start = np.flatnonzero(np.diff(prompt, prepend=-1))
    if data.ndim == 1:
        scale = np.sqrt(turned @ data**2)
        return np.where(scale > TIE, scale, np.inf)
    ends, squares = np.append(start, len(data)), (data**2).sum(1)
    variance = np.zeros(turned.shape[0])
    for word in range(len(variance)):
        blocks = turned.indices[turned.indptr[word] : turned.indptr[word + 1]]
        if len(blocks):
            inside = data[np.concatenate([np.arange(ends[b], ends[b + 1]) for b in blocks])]
            variance[word] = ((inside.T @ inside) ** 2).sum()
    scale = np.sqrt(np.maximum(2 * (variance - turned @ np.add.reduceat(squares**2, start)), 0))
    return np.where(scale > TIE * max(float(squares.max()), TIE), scale, np.inf)


def _observe(has: csr_matrix, data: Array, prompt: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Return T_w / √Var, Σ_i h_iw·‖D_i‖², and √Var, each of shape (w,)."""
    turned = has.T.tocsr()
    turned.eliminate_zeros()
    scale = _scales(turned, data, prompt)
    if data.ndim == 1:
        return turned @ data / scale, turned @ data**2, scale
    start = np.flatnonzero(np.diff(prompt, prepend=-1))
    diagonal = turned @ np.add.reduceat((data**2).sum(1), start)
    return (((turned @ np.add.reduceat(data, start)) ** 2).sum(1) - diagonal) / scale, diagonal, scale


def _statistics(
    has: csr_matrix, data: Array, prompt: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return T_w / √Var as observed, shape (w,), and under random signs, shape (r, w)."""
    observed, diagonal, scale = _observe(has, data, prompt)
    if data.ndim == 1:
        step = max(1, SIGNS_AT_ONCE // len(data))
        counts = [min(step, SIGNS - first) for first in range(0, SIGNS, step)]
        parts = (rng.integers(0, 2, (count, len(data))) * 2.0 - 1 for count in counts)
        return observed, np.concatenate([((part * data) @ has) / scale for part in parts])
    turned, k, start = has.T.tocsr(), data.shape[1], np.flatnonzero(np.diff(prompt, prepend=-1))
    drawn = []
    for first in range(0, SIGNS, BATCH):
        count = min(BATCH, SIGNS - first)
        signs = rng.integers(0, 2, (len(data), count)) * 2.0 - 1
        signed = np.add.reduceat((signs[:, :, None] * data[:, None, :]).reshape(len(data), count * k), start)
        drawn.append((((turned @ signed).reshape(-1, count, k) ** 2).sum(2).T - diagonal) / scale)
    return observed, np.concatenate(drawn)
