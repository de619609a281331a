"""`Evidence`: an estimate that a limit is held against, with one-sided bounds at any level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10, sqrt
from typing import ClassVar, Literal

from scipy.special import ndtri, stdtrit

from finc_eval.numerics.inference import POWER

Side = Literal["low", "high"]


@dataclass(frozen=True, kw_only=True)
class Evidence(ABC):
    """An estimate, its limit, and how sure it is."""

    certain: ClassVar[bool] = False
    """True for plain facts about these files, which have no error and spend no α."""

    name: str
    value: float
    margin: float  # end of what is allowed
    harm: Side = "high"  # whether values above or below the margin are a regression
    unchanged: float | None = None  # value of a release that is like its baseline; None if the limit knows no baseline
    n: int = 0  # number of samples of the new release that the estimate is from
    note: str = ""  # what to know about this limit; "" for nothing

    @abstractmethod
    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the one-sided bound that the true value lies beyond with probability `level` at most.

        `factor` multiplies the number of generated samples, at the same shares.
        """

    def without_change(self) -> Evidence | None:
        """Return the evidence on a release without any change, of as many samples; None if it is not known."""
        return None

    def detectable(self, level: float) -> float | None:
        """Return the value that is called a regression with probability 0.8; None if no value would be."""
        return None


@dataclass(frozen=True, kw_only=True)
class Fact(Evidence):
    """A plain fact about the files, such as the number of unreadable samples."""

    certain: ClassVar[bool] = True

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the value itself."""
        return self.value

    def detectable(self, level: float) -> float | None:
        """Return the margin: everything beyond it is seen."""
        return self.margin


@dataclass(frozen=True, kw_only=True)
class Normal(Evidence):
    """An estimate with normal errors, or with Student's where the error itself is an estimate."""

    error: float  # standard error
    # the part of the error that stays with more samples of the generators, such as the reference's, or of training once
    # more
    fixed: float = 0.0
    degrees: float = float("inf")  # degrees of freedom of the standard error; infinite if it is known
    growth: float = 1.0  # factor by which the error may be larger at a value that is a regression

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the value minus or plus its quantile times the standard error."""
        shrinking = max(self.error**2 - self.fixed**2, 0.0) / factor
        half = upper_quantile(level, self.degrees) * sqrt(shrinking + self.fixed**2)
        return self.value - half if side == "low" else self.value + half

    def without_change(self) -> Evidence | None:
        """Return the same error at no change; None for a limit that knows no baseline."""
        return None if self.unchanged is None else replace(self, value=self.unchanged)

    def detectable(self, level: float) -> float | None:
        """Return the margin, and beyond it the quantiles of the level and of the power, in standard errors."""
        beyond = (
            (upper_quantile(level, self.degrees) + upper_quantile(1 - POWER, self.degrees)) * self.error * self.growth
        )
        found = self.margin + beyond if self.harm == "high" else self.margin - beyond
        return found if isfinite(found) else None


@dataclass(frozen=True, kw_only=True)
class Missing(Evidence):
    """A limit without an estimate; `note` says why there is none."""

    value: float = float("nan")

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return NaN."""
        return float("nan")


def upper_quantile(level: float, degrees: float = float("inf")) -> float:
    """Return the quantile that Student's t with these degrees exceeds with probability `level`."""
    return -float(ndtri(level)) if not isfinite(degrees) else -float(stdtrit(degrees, level))


def round_up(margin: float) -> float:
    """Return a margin, rounded up to two digits."""
    unit = 10.0 ** (floor(log10(max(margin, 1e-9))) - 1)
    return round(ceil(margin / unit) * unit, 12)
