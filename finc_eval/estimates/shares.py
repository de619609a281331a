"""Shares of samples with exact or nearly exact bounds, by independent unit.

A share is no `Estimate`: its error is not symmetric near 0 and 1, and where no sample has a property, or all have it,
the influences of the units are 0, though the share is not known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.estimates.error_source import Integers
from finc_eval.numerics.design_effects import GroupedKinds, design_effects
from finc_eval.numerics.inference import DEFAULT_CONFIDENCE, wilson


def share_interval(
    has: NDArray[np.bool_], units: Integers | None = None, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[float, float]:
    """Return Wilson's interval of the share of samples that have something, from a mask, (n,).

    Samples with the same number in `units`, (n,), are one unit. Those of a unit that are alike count as few
    (`design_effect`).

    Example:
        >>> import numpy as np
        >>> has = np.repeat([True, False, True, True, False, False, True, False, True, False], 10)
        >>> [round(end, 2) for end in share_interval(has)]
        [0.4, 0.6]
        >>> [round(end, 2) for end in share_interval(has, np.arange(100) // 10)]
        [0.24, 0.76]
    """
    return wilson(float(has.mean()), len(has) / design_effect(has, units), confidence)


def design_effect(has: NDArray[np.bool_], units: Integers | None = None) -> float:
    """Return how many samples say as much of the share that has something as one sample alone, from a mask, (n,).

    Samples with the same number in `units`, (n,), are one unit: 1 if they are as unlike as any, and the mean size of a
    unit if they are all alike (`GroupedKinds`).
    """
    if units is None:
        return 1.0
    table = csr_matrix(np.bincount(units, has)[:, None])
    return float(design_effects([GroupedKinds.of(table, np.bincount(units).astype(float))])[0][0])
