"""p-values of scores over steps: a difference may begin at any step, at once or slowly.

Where two trainings have one law at each step, their scores are independent and standard normal
(`finc_eval.monitoring.exchange`). The statistic is the evidence of a monitor (`betting.weigh`): a mixture over all
starts, of jumps and drifts. Its law without a difference is known, so draws of it give an exact p-value for all steps
together. Holm's correction makes all followed things one family.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.exchange import Array
from finc_eval.numerics.families import holm

NULL_DRAWS = 9_999
"""Draws of the law without a difference: of 60 things, the smallest adjusted p-value is .006."""

SCORES_AT_ONCE = 200_000  # scores that are drawn at once: 2 MB, of which `weigh` makes about ten copies


def scan_p_values(scores: Array) -> tuple[Array, list[int]]:
    """Test things whose scores may change at any step.

    Args:
        scores: scores of each thing at each step, shape (t, k), NaN where a step says nothing.

    Returns:
        The p-values, shape (k,), adjusted over all things; and for each thing the number of the step from which its
        evidence is as large as p = .05 / k needs in the end, or of the last step.

    Example:
        >>> import numpy as np
        >>> scores = np.random.default_rng(0).normal(size=(12, 5))
        >>> scores[6:, 2] += 3
        >>> p, seen = scan_p_values(scores)
        >>> np.flatnonzero(p < 0.05), 6 <= seen[2] < 12
        (array([2]), True)
    """
    t, k = scores.shape
    p, needed = np.ones(k), np.full(k, np.inf)
    masks, kind = np.unique(np.isfinite(scores), axis=1, return_inverse=True)
    own = weigh(scores)
    for number in range(masks.shape[1]):
        same = np.flatnonzero(kind.ravel() == number)
        drawn = np.sort(_draw_null(masks[:, number]))
        p[same] = (1 + len(drawn) - np.searchsorted(drawn, own[same])) / (1 + len(drawn))
        needed[same] = np.quantile(drawn, 1 - 0.05 / k)
    grown = np.array([weigh(scores[: step + 1]) for step in range(t)]).reshape(t, k) >= needed
    seen = np.where(grown.any(0), grown.argmax(0), t - 1)
    p[~np.isfinite(scores).any(0)] = 1.0
    return holm(p), seen.tolist()


def _draw_null(is_seen: NDArray[np.bool_]) -> Array:
    """Return draws of the evidence where nothing differs, shape (`NULL_DRAWS`,), from which steps say something."""
    rng, t = np.random.default_rng(0), len(is_seen)
    at_once = max(SCORES_AT_ONCE // t, 1)
    found = []
    for start in range(0, NULL_DRAWS, at_once):
        drawn = rng.normal(size=(t, min(at_once, NULL_DRAWS - start)))
        drawn[~is_seen] = np.nan
        found.append(weigh(drawn))
    return np.concatenate(found)
