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


def score_cells(found: DensityDifference) -> list[str]:
    """Return the cells of a score, in the order of `SCORE_COLUMNS`; "–" for the null of a score without one."""
    below = f"{found.threshold() / found.deviation:.3g}" if found.null and found.deviation else "–"
    p = "–" if found.p_value is None else p_value(found.p_value)
    return [f"{found.value:.3g}", p, below, f"{found.standardized:.3g}"]


def score_sentence(found: DensityDifference, of: str = "") -> str:
    """Return a score in its unit with its null, in a sentence."""
    value, p, below, _ = score_cells(found)
    null = f", p = {p}; 95 % of equal densities stay below {below}" if found.null else ""
    return f"{SCORE}{of}: {value} in 1/distance{null}."
