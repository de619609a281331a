"""Questions that are asked of a mode: do its members have this property more often than others?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from finc_eval.naming.enrichment import enrichment_p, log_odds
from finc_eval.naming.evidence import Evidence
from finc_eval.naming.panel import Panel
from finc_eval.naming.properties import TEXT_COLUMNS, Properties

MIN_WITH = 3
"""Samples that must have a property before it is tested; rarer ones cannot become significant (Tarone 1990)."""

MORE = 0.2
"""Difference between the shares of members and others from which a property describes a mode."""


FAINT = 1e-4
"""Probability that is added to the probability of others, so that classes that hardly occur do not come first."""


@dataclass(frozen=True)
class Question:
    """A property, asked of a mode.

    Attributes:
        evidence: the property, its shares, and its p-value.
        strength: strength of the property among all of its source, the largest first.
        large: whether the difference is large enough for a name.
    """

    mode: int
    evidence: Evidence
    strength: float
    large: bool


def questions_of(panel: Panel, properties: Properties) -> Iterator[Question]:
    """Yield one question for each mode and property, with the p-value of Fisher's exact test."""
    member = (panel.members & properties.known).astype(np.int64)
    other = (panel.others & properties.known).astype(np.int64)
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
        strength = share_members
    # Which properties are frequent enough depends on the margins alone, which the exact test holds fixed.
    for mode, value in np.argwhere(members_with + others_with >= MIN_WITH):
        ours, theirs = float(share_members[mode, value]), float(share_others[mode, value])
        evidence = Evidence(properties.source, properties.values[value], ours, theirs, float(p_values[mode, value]))
        yield Question(int(mode), evidence, float(strength[mode, value]), ours - theirs >= MORE)
