"""The forest of shares: where the shares of both sets and their intervals stand on one scale, mode by mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from finc_eval.comparison.modes import Interval, Mode

WIDTH, MARGIN, ROW = 300, 8, 26
"""Size of the drawing of one mode, in pixels, and what is kept free at its ends."""

MOST_TICKS = 5


@dataclass(frozen=True)
class Scale:
    """A scale of shares from zero.

    Attributes:
        ticks: round shares in it.
        largest: share at its right end.
    """

    ticks: tuple[float, ...]
    largest: float

    @classmethod
    def of(cls, modes: Sequence[Mode]) -> Scale:
        """Return the scale that the intervals of the shares of these modes fill."""
        ends = [mode.share_gen_interval[1] for mode in modes] + [mode.share_ref_interval[1] for mode in modes]
        largest = max([0.001, *ends])
        step = _round_step(largest / MOST_TICKS)
        count = floor(largest / step + 1e-9)
        return cls(tuple(step * place for place in range(count + 1)), largest)

    def at(self, share: float) -> str:
        """Return the place of a share, in pixels."""
        return f"{MARGIN + (WIDTH - 2 * MARGIN) * share / self.largest:.1f}"

    def ends(self, interval: Interval) -> tuple[str, str]:
        """Return the places of the ends of an interval."""
        return self.at(interval[0]), self.at(interval[1])


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step >= least / power - 1e-9)


def decimals(scale: Scale) -> int:
    """Return the decimals that the ticks need in percent."""
    step = scale.ticks[1] if len(scale.ticks) > 1 else scale.largest
    return max(0, ceil(-log10(100 * step) - 1e-9))
