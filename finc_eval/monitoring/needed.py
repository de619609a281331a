"""Number of evaluations that a change needs until its alarm, from the mean scores that it brings."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np
from scipy.special import ndtri

from finc_eval.core.words import plural
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.exchange import Array
from finc_eval.numerics.families import level_of_each

MOST_EVALUATIONS = 200  # evaluations beyond which a change is called too small for evaluations of this size


# 64: pairs of a change and a size of evaluations that one or several monitors ask for again at every evaluation.
@lru_cache(64)
def evaluations_needed(shift: float, reference: int, samples: int, things: int, alpha: float) -> int | None:
    """Return after how many evaluations a lasting jump of a mean has an alarm, at its mean score; None beyond 200.

    Args:
        shift: jump in standard deviations of single samples, from the first evaluation on.
        reference: number of samples of the reference that are counted.
        samples: number of samples of an evaluation.
        things: number of followed things.
        alpha: probability of any false alarm.
    """
    before = reference + samples * np.arange(MOST_EVALUATIONS, dtype=np.float64)
    # The mean of all samples before: the part of them that is from evaluations has moved already.
    apart = shift * reference / before
    scores: Array = apart / np.sqrt(1 / samples + 1 / before)
    needed = np.log(things / alpha)
    # 10: portions of the numbers of evaluations. In each, a number is a thing whose further evaluations say nothing.
    for counts in np.array_split(np.arange(1, MOST_EVALUATIONS + 1), 10):
        evaluation = np.arange(counts[-1])[:, None]
        known = np.where(evaluation < counts, scores[: len(evaluation), None], np.nan)
        reached = counts[weigh(known) >= needed]
        if len(reached):
            return int(reached[0])
    return None


def samples_alone(shift: float, reference: int, things: int, alpha: float) -> int | None:
    """Return how many samples a test of one evaluation alone needs for the same change; None if no number is enough.

    At this number, its mean score is at the level of Bonferroni, for all followed things of this evaluation.
    """
    variance = (shift / float(ndtri(1 - level_of_each(alpha / 2, things)))) ** 2 - 1 / reference
    return None if variance <= 0 else ceil(1 / variance)


SHIFT, SHARE = 0.5, 0.1  # sizes of changes: of a mean in standard deviations, and of the share of a kind


def say_needed(reference: int, samples: int, things: int, alpha: float) -> str:
    """Return what evaluations of this size can find, on average, in a sentence."""
    gone = SHARE / np.sqrt(SHARE * (1 - SHARE))
    found = [evaluations_needed(shift, reference, samples, things, alpha) for shift in (SHIFT, float(gone))]
    words = [
        "has no alarm" if count is None else f"has an alarm after {plural(count, 'evaluation')}" for count in found
    ]
    alone = [samples_alone(shift, reference, things, alpha) for shift in (SHIFT, float(gone))]
    counts = ["a larger reference" if count is None else plural(count, "sample") for count in alone]
    return (
        f"On average, with {plural(samples, 'sample')} an evaluation and {reference:,} of the reference, a shift of "
        f"all samples by {SHIFT:g} standard deviations {words[0]}, and a kind of {100 * SHARE:.0f} % that vanishes "
        f"{words[1]}. A test of one evaluation alone, which does not hold over several, needs {counts[0]} for the "
        f"shift and {counts[1]} for the kind."
    )
