"""Name, unit and null of the membership-inference score, for all pages.

The score of Kumar, Moser and Fischer (JAIR 79, 2024, eq. 69) is ∫ (p − q)² of the densities of two sets of distances.
It has the unit 1/distance, and is what the tables of the paper print. Times the deviation of the distances, it is the
standardized score, another number.
"""

from __future__ import annotations

from finc_eval.numerics.density_difference import DensityDifference
from finc_eval.report.formats import p_value

SCORE = "Membership-inference score (KAHM, eq. 69)"

SCORE_COLUMNS = (
    "Score (eq. 69), in 1/distance",
    "p",
    "95 % of equal densities stay below",
    "Standardized, without unit",
)
"""Columns of a table of scores: the score, its null in the same unit, and the score without a unit."""


def score_cells(difference: DensityDifference) -> list[str]:
    """Return the cells of a score, in the order of `SCORE_COLUMNS`; "–" for the null of a score without one."""
    below = f"{difference.threshold() / difference.deviation:.3g}" if difference.null and difference.deviation else "–"
    p = "–" if difference.p_value is None else p_value(difference.p_value)
    return [f"{difference.value:.3g}", p, below, f"{difference.standardized:.3g}"]


def score_sentence(difference: DensityDifference, of: str = "") -> str:
    """Return a score in its unit with its null, in a sentence."""
    value, p, below, _ = score_cells(difference)
    null = f", p = {p}; 95 % of equal densities stay below {below}" if difference.null else ""
    return f"{SCORE}{of}: {value} in 1/distance{null}."
