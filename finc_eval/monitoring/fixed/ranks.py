"""Scores of pictures of fixed prompts: where a picture is among the earlier pictures of its prompt.

If nothing has changed, a value of a prompt at evaluation t has each rank among the t + 1 values of this prompt so far
with the same probability, and independently of all earlier ranks (Vovk, Gammerman and Shafer 2005, theorem 8.2).
Prompts are independent, so the sum of their ranks has a known law. Its score is standard normal, and independent of
all scores before, as `betting.weigh` needs them. What differs between prompts is in no rank.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from finc_eval.monitoring.exchange import Array


def score_of_pairs(values: Array, before: Array, rng: np.random.Generator) -> float:
    """Return how the values of this evaluation rank among those before, as a normal score; NaN if nothing was before.

    Args:
        values: value of each prompt, shape (n,), NaN where it is not known.
        before: the values of all earlier evaluations, shape (t, n).
        rng: breaks ties.

    Example:
        >>> import numpy as np
        >>> before = np.random.default_rng(0).normal(size=(3, 16))
        >>> score_of_pairs(before[0] + 5, before, np.random.default_rng(1)) > 3
        True
    """
    known = np.isfinite(values) & np.isfinite(before).all(0)
    t, n = len(before), int(known.sum())
    if not t or not n:
        return float("nan")
    own, earlier = values[known], before[:, known]
    ranks = (earlier < own).sum(0) + rng.integers(0, (earlier == own).sum(0) + 1)
    law = _law_of_sum(t + 1, n)
    total = int(ranks.sum())
    p = law[total + 1 :].sum() + rng.random() * law[total]
    return float(-ndtri(np.clip(p, 1e-12, 1 - 1e-12)))


def _law_of_sum(levels: int, n: int) -> Array:
    """Return the probability of each sum of n independent ranks 0 to `levels` − 1, by squares of their law."""
    law, power, left = np.ones(1), np.full(levels, 1 / levels), n
    while left:
        law = np.convolve(law, power) if left % 2 else law
        power, left = (np.convolve(power, power) if left > 1 else power), left // 2
    return law
