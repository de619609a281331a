"""`Asked`: classifiers of the past that are asked about each evaluation, and their bets.

A classifier follows from the evaluations before the s-th, and is asked about it and those after it. It tells the past
from the *bag*: the reference and the evaluations from s on. If nothing has changed, the samples of the bag are
exchangeable, and the classifier treats them alike. So the number of samples of an evaluation among the highest scores
of the bag is hypergeometric, as in `finc_eval.monitoring.exchange`, and independent of those of the evaluations before
it. Bets against them are a martingale for each classifier, and the classifiers share the weight 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.monitoring.betting import bet_on_more
from finc_eval.monitoring.exchange import Array, Counts, score_of_shares

MOST_SAMPLES = 128  # samples of an evaluation that are kept, and asked about
PAST, ASKED = 8, 8  # evaluations that a classifier follows from, and about which it is asked
BLOCKS = 1 + PAST + ASKED  # blocks that are kept: the reference, and all evaluations that a classifier needs

TAIL = 0.01
"""Part of the bag whose scores count as high. Of twelve new classes of 8 %, evaluations of 64 photographs, and a
reference of 1 000, ten had an alarm within ten evaluations with .01, and seven with .005."""

LEAST_HIGH = 5  # three high scores of a bag of 264 tell nothing: if all are of an evaluation of 64, p = .014

FAREST = 10_000.0  # largest entry of a scaled sample that is told from larger ones: half precision ends at 65 504

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Asked(ABC):
    """Samples of the reference and of the last evaluations, and the bets of all classifiers.

    Attributes:
        scale: factor of each entry of a sample, shape (k,).
        rows: scaled samples, rounded to half precision, as files keep them, shape (n, k).
        block: number of the evaluation of each sample, from 1 on; 0 of the reference, shape (n,).
        near: what is kept of each sample and each block, shape (n, b); b is 0 if nothing is.
        sums: sum of the scores of each classifier, and their number, shape (t, 2).
        bets: logarithm of the e-value after each evaluation, shape (t,).
        place: place of what is found among the followed things.
    """

    scale: NDArray[np.float32]
    rows: NDArray[np.float32]
    block: Counts
    near: Array
    sums: Array
    bets: Array
    place: int

    name: ClassVar[str]  # of its arrays in a file
    is_near: ClassVar[bool]  # whether anything is kept of samples and blocks

    @abstractmethod
    def _scores(self, bag: Mask, past: Mask) -> Array:
        """Return the scores of the samples of the bag, shape (m,); both mark samples, shape (n,)."""

    @abstractmethod
    def _near_with(self, rows: NDArray[np.float32], new: NDArray[np.float32], block: Counts, near: Array) -> Array:
        """Return what is kept of each sample and each block, with the samples of a new block, shape (n + m, b + 1)."""

    @classmethod
    def begun(cls, reference: NDArray[np.float32], scale: NDArray[np.float32], place: int) -> Self:
        """Begin with samples of the reference, shape (m, k)."""
        none = np.empty((0, len(scale)), np.float32)
        empty = np.empty((0, 0)), np.empty((0, 2)), np.empty(0)
        return cls(scale, none, np.empty(0, np.int64), *empty, place)._with_block(reference, 0)

    @property
    def count(self) -> int:
        """Number of evaluations."""
        return len(self.bets)

    def with_evaluation(self, samples: NDArray[np.float32], rng: np.random.Generator) -> Self:
        """Return the same with the samples of an evaluation, about which all classifiers are asked.

        An evaluation without samples says nothing, and no classifier follows from it.
        """
        number, kept = self.count + 1, samples[:MOST_SAMPLES]
        found = self._with_block(kept, number)
        sums = np.concatenate([self.sums, np.zeros((1, 2))])
        for start in range(max(2, number - ASKED + 1), number + 1) if len(kept) else ():
            score = found._ask(start, rng)
            sums[start - 1] += (score, 1) if np.isfinite(score) else 0
        starts = np.arange(1, number + 1)
        log_e = float(np.max(bet_on_more(*sums.T) - np.log(starts * (starts + 1.0))))
        rest = -np.log(number + 1.0)  # bets that have not begun
        return replace(found, sums=sums, bets=np.append(self.bets, max(log_e, rest)))

    def flag(self, samples: NDArray[np.float32]) -> Mask:
        """Mark samples of a new evaluation whose score by the latest classifier hardly any sample of the reference has.

        At most `count_high` of the reference have such a score. None before there is an evaluation.
        """
        if not len(samples) or not (self.block > max(0, self.count - PAST)).any():
            return np.zeros(len(samples), bool)
        found = self._with_block(samples, self.count + 1)
        return found._flag_block(self.count + 1, *found._bag_and_past(self.count + 1))

    def flag_again(self) -> dict[int, int]:
        """Return how many samples of each evaluation that is kept a classifier of all others flags, by its number.

        The others are the last `PAST`, so evaluations before an alarm are judged by what has come since.
        """
        found = {}
        for number in np.unique(self.block)[1:].tolist():
            bag = (self.block == 0) | (self.block == number)
            past = ~bag & (self.block > self.count - PAST)
            if past.any():
                found[number] = int(self._flag_block(number, bag, past).sum())
        return found

    def _flag_block(self, number: int, bag: Mask, past: Mask) -> Mask:
        """Mark samples of an evaluation in the bag with scores that hardly any sample of the reference has."""
        scores, block = self._scores(bag, past), self.block[bag]
        usual = np.sort(scores[block == 0])
        return np.asarray(scores[block == number] > usual[-count_high(len(usual))])

    def _bag_and_past(self, start: int) -> tuple[Mask, Mask]:
        bag = (self.block == 0) | (self.block >= start)
        return bag, ~bag & (self.block >= start - PAST)

    def _ask(self, start: int, rng: np.random.Generator) -> float:
        """Return the score of the last evaluation by the classifier of those before another; NaN if there are none."""
        bag, past = self._bag_and_past(start)
        if not past.any():
            return float("nan")
        scores, is_last = self._scores(bag, past), self.block[bag] == self.block.max()
        order = np.lexsort((rng.random(len(scores)), -scores))
        high, own = is_last[order[: count_high(len(scores))]], int(is_last.sum())
        counts = np.array([[high.sum(), own]]), np.array([[(~high).sum(), len(scores) - own]])
        return float(score_of_shares(*counts, rng)[0])

    def _with_block(self, samples: NDArray[np.float32], number: int) -> Self:
        """Return the same with the samples of a block, without the oldest of more than `BLOCKS` blocks."""
        blocks = np.unique(self.block)
        dropped = blocks[1 : len(blocks) - BLOCKS + 2] if len(blocks) >= BLOCKS else blocks[:0]
        kept = ~np.isin(self.block, dropped)
        near = self.near[kept][:, ~np.isin(blocks, dropped)] if self.is_near else self.near[kept]
        rows, block = self.rows[kept], self.block[kept]
        if not len(samples):
            return replace(self, rows=rows, block=block, near=near)
        new = np.clip(samples * self.scale, -FAREST, FAREST).astype(np.float16).astype(np.float32)
        near = self._near_with(rows, new, block, near)
        rows, block = np.concatenate([rows, new]), np.append(block, np.full(len(new), number))
        return replace(self, rows=rows, block=block, near=near)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        file.header[self.name] = {"place": self.place}
        file.array(f"{self.name}/rows", self.rows.astype(np.float16))
        for name in ("scale", "block", "near", "sums", "bets"):
            file.array(f"{self.name}/{name}", getattr(self, name))

    @classmethod
    def read(cls, file: StoredFile, evaluations: int, shares: int) -> Self:
        """Read what `write` wrote of so many evaluations and followed shares; call it in `content_of`."""
        place = int(file.header[cls.name]["place"])
        scale = file.array(f"{cls.name}/scale", None)
        rows = file.array(f"{cls.name}/rows", None, len(scale), dtype="<f2").astype(np.float32)
        block = file.array(f"{cls.name}/block", len(rows), dtype="<i8")
        near = file.array(f"{cls.name}/near", len(rows), len(np.unique(block)) if cls.is_near else 0, dtype="<f8")
        sums = file.array(f"{cls.name}/sums", evaluations, 2, dtype="<f8")
        bets = file.array(f"{cls.name}/bets", evaluations, dtype="<f8")
        is_finite = all(np.isfinite(array).all() for array in (scale, rows, near, sums, bets))
        is_ordered = bool((np.diff(block) >= 0).all()) and not block[:1].any() and bool((block <= evaluations).all())
        is_ordered = is_ordered and 0 <= place < shares
        if not (is_finite and is_ordered and (scale >= 0).all() and (near >= 0).all() and (sums[:, 1] >= 0).all()):
            raise ValueError("the samples that it asks about are not of evaluations")
        return cls(scale, rows, block, near, sums, bets, place)


def count_high(samples: int) -> int:
    """Return how many of some scores are high: `TAIL` of them, and at least `LEAST_HIGH`."""
    return min(max(LEAST_HIGH, round(TAIL * samples)), samples)
