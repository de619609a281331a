"""A number that somebody printed, and how many numbers near it the tried conventions would explain by chance."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite

from finc_eval.core.errors import UsageError

NEAR = 2.0
"""Factor within which chance is judged. Numbers of one model by two codes were 13.7 and 53.7, 167 and 95, 28 and 25,
5.2 and 4.9: another number lies between half and twice the first."""

ROUNDING = 2e-5
"""Relative difference of equal conventions on two machines: embeddings differ by 4.5e-6 between sizes of batches."""

MAX_EXACT, MAX_OTHER_SAMPLES = 0.03, 0.02
"""Largest parts of the numbers near the quoted number that may be explained: by all digits, and by other samples.
Together, 5 % of the numbers that follow no convention are explained at most."""

Window = tuple[float, float]


@dataclass(frozen=True)
class Quoted:
    """A number as it was printed: it stands for all numbers that round to it."""

    text: str
    value: float
    half: float  # half of the unit of its last digit

    @classmethod
    def of(cls, value: object) -> Quoted:
        """Read a number: "28.10" keeps its last digit, and a float has the digits that Python prints.

        Raises:
            UsageError: it is not a finite number other than 0, or too large or small for a float.

        Example:
            >>> from finc_eval.conventions.quoted import Quoted
            >>> Quoted.of("28.10").half, Quoted.of(28.1).half
            (0.005, 0.05)
        """
        text = str(value).strip()
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("nan")
        is_finite = number.is_finite() and isfinite(NEAR * float(number))
        if isinstance(value, bool) or not is_finite or not float(number):
            raise UsageError(
                f"the number to explain must be finite and not 0, got {text!r}: write a number such as 28.09, "
                "without a unit"
            )
        exponent = number.as_tuple().exponent
        return cls(text, float(number), float(Decimal((0, (5,), int(exponent) - 1))))

    @property
    def near(self) -> Window:
        """Numbers among which chance is judged."""
        low, high = sorted((self.value / NEAR, self.value * NEAR))
        return low, high

    def exact(self, value: float) -> Window:
        """Return the numbers that a printed value of the same samples can stand for, with as many decimals."""
        reach = self.half + ROUNDING * abs(value)
        return value - reach, value + reach

    def lies_in(self, window: Window) -> bool:
        """Return whether the number lies in a window."""
        return window[0] <= self.value <= window[1]

    def part_covered(self, windows: list[Window]) -> float:
        """Return the part of the numbers near this number that lie in at least one window.

        Example:
            >>> from finc_eval.conventions.quoted import Quoted
            >>> round(Quoted.of(30.0).part_covered([(28, 29), (28.5, 30), (100, 200)]), 9)
            0.1
        """
        low, high = self.near
        covered, reached = 0.0, low
        for start, stop in sorted(windows):
            start, stop = max(start, reached), min(stop, high)
            if stop > start:
                covered, reached = covered + stop - start, stop
        return covered / (high - low)
