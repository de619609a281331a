"""Mathematics of enrichment: exact tests of counts, rank tests of measurements, log-odds of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    """Compute one-sided p-values of Mann and Whitney's test for each column, and the AUC.

    Args:
        members: measurements of the members, shape (m, t).
        others: measurements of the others, shape (o, t).

    Returns:
        p-values of "members are larger", shape (t,), and P(member > other) + ½ P(equal), shape (t,).
    """
    from scipy.stats import mannwhitneyu

    # The normal approximation, corrected for ties; its tails are heavier than those of the bounded rank sum.
    statistic, p_values = mannwhitneyu(members, others, alternative="greater", axis=0, method="asymptotic")
    # Columns without two different values have a variance of zero.
    return np.nan_to_num(p_values, nan=1.0), statistic / (len(members) * len(others))


def log_odds(members_with: Counts, others_with: Counts, prior_words: float = 500.0) -> Floats:
    """Compute z-scores of log-odds ratios of words with an informative Dirichlet prior.

    Monroe, Colaresi and Quinn 2008, "Fightin' Words", eq. 16 (δ), 20 (variance) and 22 (z). The prior is the
    distribution of words in both parts together, α_w = `prior_words` · f_w.

    Args:
        members_with: number of members with each word, shape (…, w).
        others_with: number of others with each word, shape (…, w).
        prior_words: weight of the prior, α_0, in words.
    """
    together = members_with + others_with + 1e-9
    prior = prior_words * together / together.sum(-1, keepdims=True)
    ours, theirs = members_with + prior, others_with + prior
    odds_ours, odds_theirs = (part / (part.sum(-1, keepdims=True) - part) for part in (ours, theirs))
    return np.asarray(np.log(odds_ours / odds_theirs) / np.sqrt(1 / ours + 1 / theirs), dtype=np.float64)
