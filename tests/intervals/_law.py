"""One law for every printed interval, p-value and standard error, as designs draw them.

A *promise* says what a number of a result claims: an interval that holds the truth, a p-value that is rarely small by
chance, a standard error that is the standard deviation over repetitions. A *design* is a way to draw data of a known
law, and what the numbers of one repetition are (the files `_draws_of_*.py`). The law holds each number of each design
against its promise, within what the number of repetitions allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import binom, chi2, norm

Regime = Literal["large", "small", "clustered", "paired", "rare"]
REGIMES = ("large", "small", "clustered", "paired", "rare")

LEVELS = (0.05, 0.2, 0.5)
"""Levels at which p-values are held against the law."""

RARE = 1e-3
"""Probability with which the law may refuse a number that keeps its promise."""


@dataclass(frozen=True)
class Drawn:
    """A number of one repetition.

    Attributes:
        number: what is printed, such as "Score.interval".
        estimate: the number that the interval or error belongs to. Of a p-value, the p-value.
        ends: ends of an interval, and of a bound the bound and infinity.
        truth: what the interval should hold; None for the mean of the estimates over all repetitions.
        error: a standard error.
        is_null: of a p-value, whether there is nothing to find.
        of: which of several numbers of this name, such as "fd"; each is held against the promise by itself.
    """

    number: str
    estimate: float
    ends: tuple[float, float] | None = None
    truth: float | None = None
    error: float | None = None
    is_null: bool = True
    of: str = ""


Runs = list[list[Drawn]]  # the numbers of each repetition
Measured = dict[str, float]


@dataclass(frozen=True)
class Design:
    """Data of a known law, and what is printed of one draw.

    Attributes:
        name: what is drawn, such as "30 v 40 digits".
        regime: what is hard about it.
        numbers: the printed numbers that `draw` yields.
        draw: from a generator of random numbers: the numbers of one repetition.
        runs: repetitions in `make long`.
        quick: repetitions in `make test`; 0 for none.
    """

    name: str
    regime: Regime
    numbers: tuple[str, ...]
    draw: Callable[[np.random.Generator], Iterable[Drawn]]
    runs: int = 200
    quick: int = 20


@dataclass(frozen=True)
class Holds:
    """An interval, or a bound, holds the truth with a probability.

    Attributes:
        level: the probability.
        together: whether all intervals of a repetition hold together with it. All repetitions have equally many, in one
            order.
        width: least and largest half-width that is right, in those of the normal interval that knows the standard
            deviation; None where the width has no such measure, with the reason in `why`.
        why: why the interval is wider than it has to be, or has no width.
    """

    level: float = 0.95
    together: bool = False
    width: tuple[float, float] | None = (0.8, 1.35)
    why: str = ""

    @property
    def words(self) -> str:
        share = f"{100 * self.level:g} %"
        held = f"all of a result hold with probability {share}" if self.together else f"holds with probability {share}"
        return _with_reason(held, self.why)

    def measure(self, drawn: Runs) -> Measured:
        """Return the rate of misses, and the half-width in those of the normal interval.

        Several intervals of a repetition may fail together: the repetitions are counted, each with its part of misses.
        """
        both = [one for run in drawn for one in run]
        middle = np.mean([one.estimate for one in both])
        missed = [
            [not one.ends[0] <= (middle if one.truth is None else one.truth) <= one.ends[1] for one in run]
            for run in drawn
        ]
        rate = np.mean([any(run) for run in missed] if self.together else [np.mean(run) for run in missed])
        if self.width is None:
            return {"missed": rate}
        # Of intervals that hold together, each place has a law of its own, and its part of the error.
        places = [*zip(*drawn, strict=True)] if self.together else [both]
        half = sum(float(np.median([(one.ends[1] - one.ends[0]) / 2 for one in each])) for each in places)
        quantile = norm.isf((1 - self.level) / 2 / len(places))
        return {"missed": rate, "width": half / (quantile * sum(map(_spread, places)))}

    def faults(self, measured: Measured, count: int) -> Iterable[str]:
        """Yield what breaks the promise, of what was measured in so many repetitions."""
        if _is_too_often(measured["missed"], count, 1 - self.level):
            yield f"misses in {measured['missed']:.1%} of {count} repetitions"
        if "width" in measured and not _is_within(measured["width"], self.width, count):
            yield f"half-width is {measured['width']:.2f} of the normal one (right: {self.width[0]} to {self.width[1]})"


@dataclass(frozen=True)
class PValue:
    """A p-value is at most α with probability α at most, where there is nothing to find, and small where there is.

    Attributes:
        exact: whether it is uniform, so that it must not be too large either.
        together: whether the smallest of a repetition is adjusted for all others.
        power: least share of the repetitions with an effect in which it is at most .05.
    """

    exact: bool = False
    together: bool = False
    power: float = 0.6

    @property
    def words(self) -> str:
        return "uniform if nothing differs" if self.exact else "at most α with probability α, if nothing differs"

    def measure(self, drawn: Runs) -> Measured:
        """Return the rates of small p-values without an effect and with an effect."""
        null = [run for run in ([one.estimate for one in run if one.is_null] for run in drawn) if run]
        null = [[min(run)] for run in null] if self.together else null
        effect = [one.estimate for run in drawn for one in run if not one.is_null]
        rates = (
            {f"p ≤ {alpha}": np.mean([np.mean(np.array(run) <= alpha) for run in null]) for alpha in LEVELS}
            if null
            else {}
        )
        return rates | ({"found": np.mean(np.array(effect) <= LEVELS[0])} if effect else {})

    def faults(self, measured: Measured, count: int) -> Iterable[str]:
        """Yield what breaks the promise, of what was measured in so many repetitions."""
        for alpha in LEVELS:
            rate = measured.get(f"p ≤ {alpha}")
            if rate is not None and _is_too_often(rate, count, alpha):
                yield f"p ≤ {alpha} in {rate:.1%} of {count} repetitions without an effect"
            if rate is not None and self.exact and _is_too_often(1 - rate, count, 1 - alpha):
                yield f"p ≤ {alpha} in only {rate:.1%} of {count} repetitions without an effect"
        if measured.get("found", 1) < self.power:
            yield f"p ≤ {LEVELS[0]} in only {measured['found']:.0%} of those with an effect"


@dataclass(frozen=True)
class StandardError:
    """A standard error is the standard deviation of the number over repetitions.

    Attributes:
        right: least and largest right ratio of the root mean square of the errors to that standard deviation.
        why: why it is not 1.
    """

    right: tuple[float, float] = (0.85, 1.2)
    why: str = ""

    @property
    def words(self) -> str:
        return _with_reason("is the standard deviation over repetitions", self.why)

    def measure(self, drawn: Runs) -> Measured:
        """Return the root mean square of the errors in standard deviations of the number."""
        both = [one for run in drawn for one in run]
        return {"ratio": np.sqrt(np.mean([one.error**2 for one in both])) / _spread(both)}

    def faults(self, measured: Measured, count: int) -> Iterable[str]:
        """Yield what breaks the promise, of what was measured in so many repetitions."""
        if not _is_within(measured["ratio"], self.right, count):
            yield f"is {measured['ratio']:.2f} of the standard deviation (right: {self.right[0]} to {self.right[1]})"


@dataclass(frozen=True)
class NoClaim:
    """A number that is no interval, p-value or error, or one that is checked elsewhere.

    Attributes:
        why: the reason.
    """

    why: str

    @property
    def words(self) -> str:
        return self.why


Promise = Holds | PValue | StandardError | NoClaim


def _with_reason(promise: str, why: str) -> str:
    return f"{promise} ({why})" if why else promise


def _spread(drawn: Sequence[Drawn]) -> float:
    return float(np.std([one.estimate - (one.truth or 0.0) for one in drawn], ddof=1))


def _is_too_often(rate: float, count: int, probability: float) -> bool:
    return bool(binom.sf(np.ceil(rate * count) - 1, count, probability) < RARE)


def _is_within(ratio: float, right: tuple[float, float], count: int) -> bool:
    """Return whether a ratio to a standard deviation of so many draws is right, up to what chance does to that."""
    least, most = np.sqrt(chi2.ppf([RARE, 1 - RARE], count - 1) / (count - 1))
    return bool(right[0] / most <= ratio <= right[1] / least)


def measure(design: Design, promises: Mapping[str, Promise], repetitions: int) -> dict[tuple[str, str], Measured]:
    """Draw a design, and return what was measured of each number, by its name and `Drawn.of`."""
    drawn: dict[tuple[str, str], Runs] = defaultdict(list)
    for run in range(repetitions):
        of_run = defaultdict(list)
        for one in design.draw(np.random.default_rng(run)):
            of_run[one.number, one.of].append(one)
        for key, numbers in of_run.items():
            drawn[key].append(numbers)
    if wrong := {number for number, _ in drawn} ^ {*design.numbers}:
        raise ValueError(f"{design.name} says that it draws {design.numbers}; more or fewer: {sorted(wrong)}")
    return {key: promises[key[0]].measure(runs) | {"runs": len(runs)} for key, runs in sorted(drawn.items())}


def faults_of(design: Design, promises: Mapping[str, Promise], repetitions: int) -> list[str]:
    """Draw a design, and return what breaks the promises, a line each; empty if all hold."""
    return [
        f"{number}{of and f' of {of}'}: {fault}"
        for (number, of), measured in measure(design, promises, repetitions).items()
        for fault in promises[number].faults(measured, int(measured["runs"]))
    ]
