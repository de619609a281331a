"""`AuditSettings`: everything that changes a number of an audit, or how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict, get_args

from finc_eval.core.errors import UsageError, check_choice, check_count, check_fraction, check_positive, check_seed
from finc_eval.core.record import Configured, about
from finc_eval.numerics.names import INDEXES, SearchIndex

AUDIT_CONFIDENCE = 0.95  # confidence level of each measure's interval, and of all intervals of the attacks together

AUDIT_ALPHA = 0.05
"""Adjusted p-value up to which copying counts as found. An audit of a generator that copies nothing finds anything,
copying or an attack that succeeds, with this probability at most."""

MEASURES_PART, STRATA_PART = 0.5, 0.1
"""Parts of the audit's α that the measures of copying, and the strata, may spend. Up to nine measures
share the half by Holm's rule: perceptual hashes and views are two of them. Attacks spend at most 3/8: of the four
statements about each, the bound of ε and the lower end of the AUC's interval raise an alarm."""


@dataclass(frozen=True)
class AuditSettings(Configured):
    """Settings of `audit`: everything that changes a number, or how much of it is kept.

    Raises:
        UsageError: a value is out of range, or a guarantee is stated by half.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.AuditSettings(stated_epsilon=8, stated_delta=1e-5)
        >>> settings.pairs
        24
        >>> fe.AuditSettings(seed=-1)
        Traceback (most recent call last):
        finc_eval.core.errors.UsageError: seed must be a whole number of at least 0, got -1
    """

    table: ClassVar[str] = "audit"

    stated_epsilon: Annotated[
        float | None, about("ε of a guarantee that the trainer states for each training sample; default: none stated")
    ] = None
    stated_delta: Annotated[float | None, about("δ of that guarantee; 0 if it is pure")] = None
    pairs: Annotated[int, about("number of the most suspicious pairs to keep")] = 24
    index: Annotated[SearchIndex, about(f"how neighbors are found: {INDEXES}")] = "exact"
    seed: Annotated[int, about("random seed of subsets, planted copies and kernel affine hull machines")] = 0

    def __post_init__(self) -> None:
        epsilon, delta = self.stated_epsilon, self.stated_delta
        if (epsilon is None) != (delta is None):
            raise UsageError("a stated guarantee is an epsilon with a delta (0 if it is pure): pass both, or neither")
        if epsilon is not None and delta is not None:
            epsilon, delta = check_guarantee(epsilon, delta)
        pairs, seed = check_count("pairs", self.pairs), check_seed(self.seed)
        check_choice("index", self.index, get_args(SearchIndex))
        self._store(stated_epsilon=epsilon, stated_delta=delta, pairs=pairs, seed=seed)


class AuditOptions(TypedDict, total=False):
    """Fields of `AuditSettings` as keywords of a function."""

    stated_epsilon: float | None
    stated_delta: float | None
    pairs: int
    index: SearchIndex
    seed: int


def check_guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the numbers of a stated guarantee, or raise UsageError if one is out of range."""
    # 500: bound of a stated ε: e^ε has to fit in floating point.
    checked = 0.0 if epsilon == 0 else check_positive("the stated epsilon", epsilon, 500)
    return checked, check_fraction("the stated delta", delta, zero=True)
