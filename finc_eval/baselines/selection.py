"""Selection of the most novel samples of a set, by a threshold or by their share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.checks import check_fraction
from finc_eval.core.errors import UsageError


def select_novel(order: NDArray[np.int64], passed: NDArray[np.bool_] | None, share: float | None) -> NDArray[np.int64]:
    """Return the samples that passed a threshold, or a share of all samples, most novel first.

    Args:
        order: all samples, most novel first, shape (n,).
        passed: whether each sample passed the threshold, shape (n,); None where no threshold was given.
        share: share of the samples to select, in (0, 1]; None where none was given. At least one is selected.
    """
    if passed is not None and share is None:
        return order[passed[order]]
    if passed is None and share is not None:
        check_fraction("share", share, one=True)
        return order[: max(round(share * len(order)), 1)]
    raise UsageError("the selection of novel samples needs a threshold or a share: pass exactly one of them")
