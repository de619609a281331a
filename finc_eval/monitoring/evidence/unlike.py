"""`Unlike`: samples of kinds that the reference lacks, by a classifier of the past that is asked about each evaluation.

A classifier follows from the evaluations before the s-th, and is asked about it and those after it. Its score of a
sample is the logarithm of the mean kernel with samples of the past, less that with the *bag*: the reference and the
evaluations from s on, without the sample itself. If nothing has changed, the samples of the bag are exchangeable, and
scores treat them alike. So the number of samples of an evaluation among the highest scores of the bag is
hypergeometric, as in `finc_eval.monitoring.exchange`, and independent of those of the evaluations before it. Bets
against them are a martingale for each classifier, and the classifiers share the weight 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.embeddings.base import Embeddings
from finc_eval.monitoring.betting import bet_on_more
from finc_eval.monitoring.exchange import Array, Counts, score_of_shares
from finc_eval.naming.classes import probabilities

MOST_REFERENCE = 1000  # samples of the reference that are kept, and asked about
MOST_SAMPLES = 128  # samples of an evaluation that are kept, and asked about
PAST, ASKED = 8, 8  # evaluations that a classifier follows from, and about which it is asked
BLOCKS = 1 + PAST + ASKED  # blocks that are kept: the reference, and all evaluations that a classifier needs

WIDTH = 0.8
"""σ of the kernel, in parts of the median distance of the reference. Of new classes of 8 % in 256 photographs, 69 % lie
above the 99 % point of others with .7 or .9, and 65 % with .5; without the probabilities of classes, 53 %."""

TAIL = 0.01
"""Part of the bag whose scores count as high. Of ten new classes of 8 %, evaluations of 64 photographs, and a reference
of 650, eight had an alarm within ten evaluations with .01, and seven with .02 or .03."""

FLOOR = 1e-9  # least mean kernel: a sample that is far from everything is like nothing

Rows = NDArray[np.float16]


def no_rows() -> NDArray[np.float32]:
    """Return no samples."""
    return np.empty((0, 0), np.float32)


def represent(embeddings: Embeddings, places: Counts) -> NDArray[np.float32]:
    """Return what samples are compared by, shape (n, d + c): embeddings, and roots of the probabilities of classes.

    The probabilities are of the extractor's last layer; without it, c = 0.
    """
    rows = embeddings.rows_at(places).cpu().float()
    chance = probabilities(embeddings, places) if len(places) else None
    parts = [rows] if chance is None else [rows, chance.float().sqrt()]
    return np.asarray(torch.cat(parts, 1).numpy())


@dataclass(frozen=True, eq=False)
class Unlike:
    """Samples of the reference and of the last evaluations, kernels between them, and the bets of all classifiers.

    Attributes:
        scale: factor of each entry of a sample, by which median distances in the reference are 1, shape (k,).
        rows: scaled samples, shape (n, k).
        block: number of the evaluation of each sample, from 1 on; 0 of the reference, shape (n,).
        near: sum of the kernel of each sample with those of each block, without itself, shape (n, b).
        sums: sum of the scores of each classifier, and their number, shape (t, 2).
        bets: logarithm of the e-value after each evaluation, shape (t,).
        place: place of new kinds among the followed things.
    """

    scale: NDArray[np.float32]
    rows: Rows
    block: Counts
    near: Array
    sums: Array
    bets: Array
    place: int

    @classmethod
    def of(cls, reference: Embeddings, place: int, seed: int) -> Self:
        """Begin with samples of the reference, at random; `place` is that of new kinds among the followed things."""
        drawn = np.random.default_rng([seed, 4]).permutation(reference.n)[:MOST_REFERENCE]
        kept = represent(reference, drawn)
        scale = np.empty(kept.shape[1], np.float32)
        for part in (slice(reference.dim), slice(reference.dim, None)):
            scale[part] = 1 / _median_distance(kept[:, part])
        scale /= np.float32(_median_distance(kept * scale))
        none = cls(scale, np.empty((0, len(scale)), np.float16), np.empty(0, np.int64), np.empty((0, 0)),
                   np.empty((0, 2)), np.empty(0), place)  # fmt: skip
        return none._with_block(kept * scale, 0)

    @property
    def count(self) -> int:
        """Number of evaluations."""
        return len(self.bets)

    def with_evaluation(self, samples: NDArray[np.float32], rng: np.random.Generator) -> Self:
        """Return the same with the samples of an evaluation, about which all classifiers are asked.

        An evaluation without samples says nothing, and no classifier follows from it.
        """
        number, kept = self.count + 1, samples[:MOST_SAMPLES]
        found = self._with_block(kept * self.scale, number)
        sums = np.concatenate([self.sums, np.zeros((1, 2))])
        for start in range(max(2, number - ASKED + 1), number + 1) if len(kept) else ():
            score = found._ask(start, rng)
            sums[start - 1] += (score, 1) if np.isfinite(score) else 0
        starts = np.arange(1, number + 1)
        log_e = float(np.max(bet_on_more(*sums.T) - np.log(starts * (starts + 1.0))))
        rest = -np.log(number + 1.0)  # bets that have not begun
        return replace(found, sums=sums, bets=np.append(self.bets, max(log_e, rest)))

    def _ask(self, start: int, rng: np.random.Generator) -> float:
        """Return the score of the last evaluation by the classifier of those before another; NaN if there are none."""
        blocks, last = np.unique(self.block), self.block.max()
        bag, past = (blocks == 0) | (blocks >= start), (blocks > 0) & (blocks < start) & (blocks >= start - PAST)
        sizes = np.array([np.count_nonzero(self.block == number) for number in blocks])
        if not past.any():
            return float("nan")
        inside = (self.block == 0) | (self.block >= start)
        near = self.near[inside]
        ratio = _log_ratio(near[:, past].sum(1) / sizes[past].sum(), near[:, bag].sum(1) / (sizes[bag].sum() - 1))
        order = np.lexsort((rng.random(len(ratio)), -ratio))
        is_last = self.block[inside] == last
        high, own = is_last[order[: _count_high(len(ratio))]], int(is_last.sum())
        counts = np.array([[high.sum(), own]]), np.array([[(~high).sum(), len(ratio) - own]])
        return float(score_of_shares(*counts, rng)[0])

    def flag(self, samples: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Mark samples of a new evaluation whose score by the latest classifier hardly any sample of the reference has.

        At most `TAIL` of the reference has such a score. None before there is an evaluation.
        """
        is_reference, is_past = self.block == 0, self.block > max(0, self.count - PAST)
        if not is_past.any() or not len(samples):
            return np.zeros(len(samples), bool)
        blocks = np.unique(self.block)
        near, past = self.near[is_reference], blocks > max(0, self.count - PAST)
        sizes = is_past.sum(), is_reference.sum()
        usual = _log_ratio(near[:, past].sum(1) / sizes[0], near[:, 0] / (sizes[1] - 1))
        kernel = _kernel(samples * self.scale, self.rows[is_reference | is_past])
        of_past = np.flatnonzero(is_past[is_reference | is_past])
        mine = kernel[:, of_past].sum(1), kernel.sum(1) - kernel[:, of_past].sum(1)
        ratio = _log_ratio(mine[0] / sizes[0], mine[1] / sizes[1])
        return np.asarray(ratio > np.sort(usual)[-_count_high(len(usual))])

    def _with_block(self, samples: NDArray[np.float32], number: int) -> Self:
        """Return the same with the samples of a block, without the oldest of more than `BLOCKS` blocks."""
        blocks = np.unique(self.block)
        dropped = blocks[1 : len(blocks) - BLOCKS + 2] if len(blocks) >= BLOCKS else blocks[:0]
        kept = ~np.isin(self.block, dropped)
        near = self.near[kept][:, ~np.isin(blocks, dropped)]
        rows, block = self.rows[kept], self.block[kept]
        new = samples.astype(np.float16)
        if not len(new):
            return replace(self, rows=rows, block=block, near=near)
        with_others, among = _kernel(new.astype(np.float32), rows), _kernel(new.astype(np.float32), new)
        np.fill_diagonal(among, 0)
        starts = np.unique(block, return_index=True)[1]
        sums = np.add.reduceat(with_others, starts, 1) if len(block) else np.empty((len(new), 0))
        near = np.block([[near, with_others.sum(0)[:, None]], [sums, among.sum(1)[:, None]]])
        rows, block = np.concatenate([rows, new]), np.append(block, np.full(len(new), number))
        return replace(self, rows=rows, block=block, near=near)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header["unlike"] = {"place": self.place}
        for name in ("scale", "rows", "block", "near", "sums", "bets"):
            file.array(f"unlike/{name}", getattr(self, name))

    @classmethod
    def read(cls, file: StoredFile, evaluations: int, shares: int) -> Self:
        """Read what `write` wrote of so many evaluations and followed shares; call it in `content_of`."""
        place = int(file.header["unlike"]["place"])
        scale = file.array("unlike/scale", None)
        rows = file.array("unlike/rows", None, len(scale), dtype="<f2")
        block = file.array("unlike/block", len(rows), dtype="<i8")
        near = file.array("unlike/near", len(rows), len(np.unique(block)), dtype="<f8")
        sums = file.array("unlike/sums", evaluations, 2, dtype="<f8")
        bets = file.array("unlike/bets", evaluations, dtype="<f8")
        is_finite = all(np.isfinite(one).all() for one in (scale, rows, near, sums, bets))
        is_ordered = bool((np.diff(block) >= 0).all()) and not block[:1].any() and bool((block <= evaluations).all())
        is_ordered = is_ordered and 0 <= place < shares
        if not (is_finite and is_ordered and (scale >= 0).all() and (near >= 0).all() and (sums[:, 1] >= 0).all()):
            raise ValueError("the samples that it asks about are not of evaluations")
        return cls(scale, rows, block, near, sums, bets, place)


def _count_high(samples: int) -> int:
    """Return how many of some scores are high."""
    return max(1, round(TAIL * samples))


def _kernel(rows: NDArray[np.float32], others: NDArray[np.floating]) -> Array:
    """Return exp(−‖x − y‖²/(2σ²)) of rows whose median distance is 1, shape (n, m)."""
    one, other = torch.from_numpy(np.asarray(rows, np.float32)), torch.from_numpy(others.astype(np.float32))
    squares = one.square().sum(1)[:, None] + other.square().sum(1) - 2 * one @ other.T
    return np.asarray(torch.exp(squares.clamp_min(0) / (-2 * WIDTH**2)).double().numpy())


def _log_ratio(past: Array, others: Array) -> Array:
    return np.asarray(np.log(past + FLOOR) - np.log(others + FLOOR))


def _median_distance(rows: NDArray[np.float32]) -> float:
    """Return the median distance of at most 500 rows, 1 if most are equal or there are no entries."""
    distances = torch.pdist(torch.from_numpy(rows[:500]))
    return (float(distances.median()) or 1.0) if len(distances) and rows.shape[1] else 1.0
