"""Questions about a mode: do its members have this property more often than others? With the tests that answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.naming.evidence import Evidence
from finc_eval.naming.properties import TEXT_COLUMNS, Panel, Properties

MIN_WITH = 3
"""Samples that must have a property before it is tested; rarer ones cannot become significant (Tarone 1990)."""

MORE = 0.2
"""Difference between the shares of members and others from which a property describes a mode."""


FAINT = 1e-4
"""Probability that is added to the probability of others, so that classes that hardly occur do not come first."""


@dataclass(frozen=True)
class Question:
    """A property, asked of a mode."""

    mode: int
    evidence: Evidence  # the property, its shares, and its p-value
    strength: float  # strength of the property among all of its source, the largest first
    large: bool  # whether the difference is large enough for a name
    is_range: bool = False  # whether the property is a range of numbers or dates


def questions_of(panel: Panel, properties: Properties) -> Iterator[Question]:
    """Yield one question for each mode and property, with the p-value of Fisher's exact test."""
    member = (panel.members & properties.known).astype(np.int64)
    compared = panel.others & panel.same_sets if properties.are_ranges else panel.others
    other = (compared & properties.known).astype(np.int64)
    members_with, others_with = member @ properties.has, other @ properties.has
    members, others = member.sum(1, keepdims=True), other.sum(1, keepdims=True)
    p_values = enrichment_p(members_with, members, others_with, others)
    share_members, share_others = members_with / np.maximum(members, 1), others_with / np.maximum(others, 1)
    if properties.weights is not None:
        mean_members, mean_others = (
            mask @ properties.weights / np.maximum(count, 1) for mask, count in ((member, members), (other, others))
        )
        strength = mean_members / (mean_others + FAINT)
    elif properties.source in TEXT_COLUMNS:
        strength = log_odds(members_with, others_with)
    else:
        # The strongest of ranges that lie in each other is the narrowest that most members and few others are in.
        strength = share_members - share_others if properties.are_ranges else share_members
    # Which properties are frequent enough depends on the margins alone, which the exact test holds fixed.
    for mode, value in np.argwhere(members_with + others_with >= MIN_WITH):
        ours, theirs = float(share_members[mode, value]), float(share_others[mode, value])
        evidence = Evidence(properties.source, properties.values[value], ours, theirs, float(p_values[mode, value]))
        yield Question(int(mode), evidence, float(strength[mode, value]), ours - theirs >= MORE, properties.are_ranges)


Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def enrichment_p(members_with: Counts, members: Counts, others_with: Counts, others: Counts) -> Floats:
    """Compute one-sided p-values of Fisher's exact test: members have a property more often than others.

    The number of members with the property is hypergeometric given the margins. All arrays broadcast.
    """
    from scipy.stats import hypergeom  # slow to import, and few comparisons need it

    return np.asarray(
        hypergeom.sf(members_with - 1, members + others, members_with + others_with, members), dtype=np.float64
    )


def larger_p(members: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Compute one-sided p-values of "members are larger", shape (t,), by Mann and Whitney's test, and the AUCs.

    Measurements have the shapes (m, t) of members and (o, t) of others. The AUC is P(member > other) + ½ P(equal).
    """
    from scipy.stats import mannwhitneyu

    # The normal approximation, corrected for ties; its tails are heavier than the tails of the bounded rank sum.
    statistic, p_values = mannwhitneyu(members, others, alternative="greater", axis=0, method="asymptotic")
    # Columns without two different values have a variance of zero.
    return np.nan_to_num(p_values, nan=1.0), statistic / (len(members) * len(others))


def log_odds(members_with: Counts, others_with: Counts) -> Floats:
    """Compute z-scores of log-odds ratios of words, from the numbers of members and of others with each, shape (…, w).

    Monroe, Colaresi and Quinn 2008, "Fightin' Words", eq. 16 (δ), 20 (variance) and 22 (z). The informative Dirichlet
    prior is the distribution of words in both parts together, α_w = 500 · f_w.
    """
    together = members_with + others_with + 1e-9
    prior = 500 * together / together.sum(-1, keepdims=True)
    ours, theirs = members_with + prior, others_with + prior
    odds_ours, odds_theirs = (part / (part.sum(-1, keepdims=True) - part) for part in (ours, theirs))
    return np.asarray(np.log(odds_ours / odds_theirs) / np.sqrt(1 / ours + 1 / theirs), dtype=np.float64)
