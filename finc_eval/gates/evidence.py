"""`LimitEvidence`: an estimate that a limit is held against, with one-sided bounds at any level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from math import ceil, floor, inf, isfinite, log10, sqrt
from typing import ClassVar, Literal

from finc_eval.core.record import Record
from finc_eval.core.words import in_percent
from finc_eval.estimates.error_source import REF, TRAINING
from finc_eval.estimates.estimate import Estimate
from finc_eval.gates.sets import ANCHOR
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.numerics.inference import POWER, upper_quantile
from finc_eval.partitions.difference import HALVES_VARIANCE, largest_variation, paired_variation, total_variation
from finc_eval.partitions.tests import EffectiveCounts

Side = Literal["low", "high"]
OTHER_SIDE: dict[Side, Side] = {"low": "high", "high": "low"}


@dataclass(frozen=True, kw_only=True)
class LimitEvidence(ABC):
    """An estimate, its limit, and how sure it is."""

    most: ClassVar[float] = inf  # largest value that there can be
    certain: ClassVar[bool] = False
    """True for plain facts about these files, which have no error and spend no α."""
    spends_own: ClassVar[bool] = False
    """True if a release that came to the reference is protected by an α of this limit's own, beside that of all."""

    name: str
    value: float
    margin: float  # end of what is allowed
    harm: Side = "high"  # whether values above or below the margin are a regression
    unchanged: float | None = None  # value of a release that is like its baseline; None if the limit knows no baseline
    n: int = 0  # number of samples of the new release that the estimate is from
    note: str = ""  # what to know about this limit; "" for nothing
    # what a regression must surely be beyond, if its estimate is beyond the margin; None for the margin itself
    surely: float | None = None
    # whether it is a regression if it is found, and else holds, though the samples may be too few to show that
    is_search: bool = False
    part: float = 1.0  # part of a new kind that is counted here; less than 1 if other kinds take the rest

    def is_regression(self, level: float, factor: float = 1.0) -> bool:
        """Return whether the estimate is beyond the margin, and the bound at this level beyond `surely`."""
        start, side = self.margin if self.surely is None else self.surely, OTHER_SIDE[self.harm]
        sign = 1 if self.harm == "high" else -1
        return sign * self.value > sign * self.margin and sign * self.bound(side, level, factor) > sign * start

    @abstractmethod
    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the one-sided bound that the true value lies beyond with probability `level` at most.

        `factor` multiplies the number of generated samples, at the same shares.
        """

    def without_change(self) -> LimitEvidence | None:
        """Return the evidence on a release without any change, of as many samples; None if it is not known."""
        return None

    def detectable(self, level: float) -> float | None:
        """Return the value that is surely beyond the margin with probability 0.8; None if no value would be."""
        return None

    def seen(self, level: float) -> float | None:
        """Return the value that is called a regression with probability 0.8 at least; None if no value would be.

        Where a regression is surely beyond `surely` alone, its estimate must be beyond the margin as well.
        """
        if self.surely is None:
            return self.detectable(level)
        found, power = replace(self, margin=self.surely, surely=None).detectable(level), upper_quantile(1 - POWER)
        if found is None:
            return None
        error = (found - self.surely) / (upper_quantile(level) + power)
        value = max(found, self.margin / self.part + power * error)
        return value if value <= self.most else None


@dataclass(frozen=True, kw_only=True)
class PlainFact(LimitEvidence):
    """A plain fact about the files, such as the number of unreadable samples."""

    certain: ClassVar[bool] = True

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the value itself."""
        return self.value

    def detectable(self, level: float) -> float | None:
        """Return the margin: everything beyond it is seen."""
        return self.margin


@dataclass(frozen=True, kw_only=True)
class Normal(LimitEvidence):
    """An `Estimate` held against a limit, with normal errors, or with Student's where the error itself is an estimate.

    What an estimate does not know: the margin, and the error that a release like its baseline, or a worse one, has.
    """

    error: float  # standard error
    error_unchanged: float | None = None  # standard error of a release like its baseline; None if it is the same
    # the part of the error that stays with more samples of the generators, such as the reference's, or of training once
    # more
    fixed: float = 0.0
    degrees: float = float("inf")  # degrees of freedom of the standard error; infinite if it is known
    growth: float = 1.0  # factor by which the error may be larger at a value that is a regression

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        *,
        name: str,
        margin: float,
        n: int = 0,
        harm: Side = "high",
        unchanged: float | None = None,
        error_unchanged: float | None = None,
        growth: float = 1.0,
        note: str = "",
    ) -> Normal:
        """Return the evidence of an estimate; more generated samples leave its error from REF and TRAINING."""
        return cls(
            name=name,
            value=estimate.value,
            margin=margin,
            n=n,
            harm=harm,
            unchanged=unchanged,
            error_unchanged=error_unchanged,
            growth=growth,
            note=note,
            error=estimate.standard_error,
            fixed=sqrt(estimate.variance_of(REF, TRAINING)),
            degrees=estimate.degrees,
        )

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the value minus or plus its quantile times the standard error."""
        half = self.half(level, factor)
        return self.value - half if side == "low" else self.value + half

    def half(self, level: float, factor: float = 1.0) -> float:
        """Return how far the one-sided bound is from the value."""
        shrinking = max(self.error**2 - self.fixed**2, 0.0) / factor
        return upper_quantile(level, self.degrees) * sqrt(shrinking + self.fixed**2)

    def without_change(self) -> LimitEvidence | None:
        """Return the evidence on a release like its baseline, whose error is its own; None without a baseline."""
        if self.unchanged is None:
            return None
        error = self.error if self.error_unchanged is None else self.error_unchanged
        return replace(self, value=self.unchanged, error=error, fixed=min(self.fixed, error))

    def detectable(self, level: float) -> float | None:
        """Return the margin, and beyond it the quantiles of the level and of the power, in standard errors."""
        beyond = (
            (upper_quantile(level, self.degrees) + upper_quantile(1 - POWER, self.degrees)) * self.error * self.growth
        )
        found = self.margin + beyond if self.harm == "high" else self.margin - beyond
        return found if isfinite(found) else None


@dataclass(frozen=True, kw_only=True)
class Missing(LimitEvidence):
    """A limit without an estimate; `note` says why there is none."""

    value: float = float("nan")

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return NaN."""
        return float("nan")


def round_up(margin: float) -> float:
    """Return a margin, rounded up to two digits."""
    unit = 10.0 ** (floor(log10(max(margin, 1e-9))) - 1)
    return round(ceil(margin / unit) * unit, 12)


@dataclass(frozen=True)
class Distance(Record):
    """Distance of a release from an older one.

    Attributes:
        to: label of the older one.
        kinds: number of kinds that both were divided into.
        moved: total variation between their shares of kinds: the share of samples that would have to be of other kinds
            to make both alike, without the part that chance makes.
        interval: 95 % interval of it.
    """

    to: str
    kinds: int
    moved: float
    interval: tuple[float, float]

    def say(self, limited: Collection[str]) -> str:
        """Say the distance in one sentence, without its interval if a limited rule is on it."""
        low, high = (in_percent(end, 2) for end in self.interval)
        is_limited = (f"kinds.moved-{ANCHOR}" if self.to == ANCHOR else "kinds.moved") in limited
        interval = "" if is_limited else f" [{low} to {high}]"
        moved = f"{in_percent(self.moved, 2)}{interval} of the samples"
        return f"{moved} have moved between {self.kinds} kinds since the {self.to}."


@dataclass(frozen=True, kw_only=True)
class PairedMoved(LimitEvidence):
    """Share of samples that have moved to other kinds within blocks such as prompts (`partitions.difference`).

    Samples of the baseline whose block the release lacks have moved as well: they are a part `lacked` of it.
    """

    within: WithinBlocks  # differences of the kinds; the first contrast belongs to the release
    lacked: float  # share of the baseline that is of blocks that the release lacks

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the end of the interval."""
        found = paired_variation(self.within.times(factor), 1 - 2 * level)[0].interval
        return self.lacked + (1 - self.lacked) * found[1 if side == "high" else 0]

    def detectable(self, level: float) -> float | None:
        """Return the total variation that is called a regression with probability 0.8."""
        return _detectable(self.margin, float(self.within.null[0].sum()), level)


@dataclass(frozen=True, kw_only=True)
class Moved(LimitEvidence):
    """Share of samples that have moved to other kinds (`partitions.difference`).

    Attributes:
        new, old: effective numbers of samples of each kind.
    """

    new: EffectiveCounts
    old: EffectiveCounts
    is_design: bool = False  # see `total_variation`

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the end of the interval."""
        if side == "high":
            new, old = self.new * factor, self.old * factor
            return max(largest_variation(new, old, 1 - 2 * level, is_design=self.is_design), self.value)
        return total_variation(self.new * factor, self.old * factor, confidence=1 - 2 * level).interval[0]

    def without_change(self) -> Moved:
        """Return the evidence on a release with the shares of the older one."""
        return replace(self, new=self.old * (self.new.n / self.old.n), value=0.0)

    def detectable(self, level: float) -> float | None:
        """Return the total variation that is called a regression with probability 0.8."""
        shares = self.old.members / self.old.n
        variance = float(shares @ (1 - shares)) * (1 / self.new.n + 1 / self.old.n)
        return _detectable(self.margin, variance, level)


def _detectable(margin: float, variance: float, level: float) -> float | None:
    """Return the margin, and beyond it the quantiles of the level and of the power, in standard errors at most."""
    error = sqrt(HALVES_VARIANCE * variance) / 2
    found = margin + (upper_quantile(level) + upper_quantile(1 - POWER)) * error
    return found if found <= 1 else None
