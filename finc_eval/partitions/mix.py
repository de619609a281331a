"""`Mixes`: a difference between two sets, divided into the model's part and the part of their unlike mixes of prompts.

With π_sv the part of set s that is of value v, x_sv the share of a kind there, and W_v the weights of the comparison
within values (0 for a value that a set lacks), the plain difference of the shares is (Kitagawa 1955)

    Σ_v π_1v·x_1v − Σ_v π_2v·x_2v = Σ_v W_v·(x_1v − x_2v)  +  Σ_v (π_1v − W_v)·x_1v − Σ_v (π_2v − W_v)·x_2v,

the difference within values, which is due to the models, and the part that is due to the mixes of values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.numerics.inference import normal_quantile

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NO_MIX = 1e-9
"""Sum of all |π_sv − W_v| up to which the mixes of two sets are equal, up to rounding."""


@dataclass(frozen=True)
class Mix(Record):
    """The part of a difference between sets that their mixes of prompts, or other paired values, make.

    Attributes:
        plain: difference of the shares of all samples, with prompts that another set lacks.
        value: part that is due to the mixes of prompts; the difference within prompts is the rest of `plain`.
        interval: interval of it, for other images of the same prompts.
    """

    plain: float
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Mixes:
    """Parts of the mixes in the differences of t kinds, of each set from all others together."""

    plain: Array  # plain difference, shape (s, t)
    value: Array  # part of the mixes, shape (s, t)
    variance: Array  # variance of it, over other images of the same values, shape (s, t)
    # part of the mixes that a kind without a sample can make at most, given its share in both, shape (s,)
    unseen: Array
    n: Array  # samples of each set, shape (s,)

    @classmethod
    def of(cls, counts: Array, weights: Array, *, is_whole: bool = False) -> Mixes | None:
        """Divide the differences of sets; None if all have one mix.

        `counts` are samples of each set, value and kind, (s, v, t), which need not add up; `weights` the samples of
        each set and value (s, v) and W (v,), as rows. With `is_whole`, samples of a value and set are not independent.
        """
        sizes, within = weights[:-1], weights[-1]
        plain, value, variance, unseen = [], [], [], []
        for one in range(len(sizes)):
            rest = [other for other in range(len(sizes)) if other != one]
            sides = [(sizes[one], counts[one]), (sizes[rest].sum(0), counts[rest].sum(0))]
            parts = [_side(n, k, within, is_whole=is_whole) for n, k in sides]
            plain.append(parts[0][0] - parts[1][0])
            value.append(parts[0][1] - parts[1][1])
            variance.append(parts[0][2] + parts[1][2])
            unseen.append((parts[0][3] + parts[1][3]) / 2)
        if max(unseen) <= NO_MIX:
            return None
        return cls(np.array(plain), np.array(value), np.array(variance), np.array(unseen), sizes.sum(1))

    def intervals(self, confidence: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each part, shape (s, t)."""
        rare = (1 - ((1 - confidence) / 2) ** (1 / self.n.min())) * self.unseen
        half = np.sqrt(normal_quantile(confidence) ** 2 * self.variance + rare[:, None] ** 2)
        return np.maximum(self.value - half, -1), np.minimum(self.value + half, 1)


def _side(n: Array, k: Array, within: Array, *, is_whole: bool) -> tuple[Array, Array, Array, float]:
    """Return the shares of kinds in a set, Σ_v (π_v − W_v)·x_v, the variance of it, and Σ_v |π_v − W_v|."""
    share = k.sum(0) / n.sum()
    inside = k / np.maximum(n, 1)[:, None]
    weight = np.where(n > 0, n / n.sum() - within, 0.0)
    # Where a value has one independent sample, its variance is unknown, on average below the whole set's.
    is_one = (n < 2) | is_whole
    known = inside * (1 - inside) / np.maximum(n - 1, 1)[:, None]
    alone = share * (1 - share)
    variance = (weight**2)[:, None] * np.where(is_one[:, None], alone, known)
    return share, weight @ inside, variance.sum(0), float(np.abs(weight).sum())
