"""`AuditSettings`: everything that changes a number of an audit, or how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

from finc_eval.core.checks import check_count
from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record, about

MAX_STATED_EPSILON = 500
"""Bound of a stated ε: e^ε has to fit in floating point."""


@dataclass(frozen=True)
class AuditSettings(Record):
    """Settings of an audit.

    Raises:
        UsageError: a value is out of range, or a guarantee is stated by half.
    """

    stated_epsilon: Annotated[
        float | None, about("ε of a guarantee that the trainer states for each training sample; default: none stated")
    ] = None
    stated_delta: Annotated[float | None, about("δ of that guarantee; 0 if it is pure")] = None
    pairs: Annotated[int, about("number of the most suspicious pairs to keep")] = 24
    seed: Annotated[int, about("random seed of subsets, planted copies and kernel affine hull machines")] = 0

    def __post_init__(self) -> None:
        check_guarantee(self.stated_epsilon, self.stated_delta)
        check_count("pairs", self.pairs)


class AuditOptions(TypedDict, total=False):
    """Fields of `AuditSettings` as keywords of a function."""

    stated_epsilon: float | None
    stated_delta: float | None
    pairs: int
    seed: int


def check_guarantee(epsilon: float | None, delta: float | None) -> None:
    """Raise UsageError unless both are given and in range, or neither is given."""
    if (epsilon is None) != (delta is None):
        raise UsageError("a stated guarantee is an epsilon with a delta (0 if it is pure): pass both, or neither")
    if epsilon is not None and not 0 <= epsilon < MAX_STATED_EPSILON:
        raise UsageError(f"a stated epsilon must lie between 0 and {MAX_STATED_EPSILON}, got {epsilon}")
    if delta is not None and not 0 <= delta < 1:
        raise UsageError(f"a stated delta must lie in [0, 1), got {delta}")
