"""Numbers and untrusted text as they are written in a report."""

from __future__ import annotations

from math import inf

from markupsafe import Markup

from finc_eval.core.words import figure, one_line, percent, points

TINY_P = 1e-16  # below this a p-value says nothing more


def number(value: float) -> str:
    """Write a mass or an excess with four decimals."""
    return "< 0.0001" if 0 < value < 5e-5 else figure(value, "z.4f")


def ratio(value: float) -> str:
    """Write the ratio of two masses with about three digits."""
    if value in (0, inf):
        return "∞" if value else "0"
    if value >= 10_000:
        return "> 10,000"
    if value >= 1:
        return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def p_value(value: float) -> str:
    """Write an adjusted p-value with two digits."""
    return f"< {TINY_P:g}" if value < TINY_P else f"{value:.2g}"


def interval(ends: tuple[float, float]) -> str:
    """Write the interval of a mass or an excess."""
    return f"[{number(ends[0])}, {number(ends[1])}]"


def bare_percent(value: float) -> str:
    """Write a share in percent with one decimal, where a heading or a bracket has the sign."""
    return percent(value, 1).removesuffix(" %")


def share_interval(ends: tuple[float, float]) -> str:
    """Write the interval of a share in percent."""
    return f"[{bare_percent(ends[0])}, {bare_percent(ends[1])}]"


def points_interval(ends: tuple[float, float]) -> str:
    """Write the interval of a difference of shares in percentage points."""
    return f"[{points_range(ends, ', ')}]"


def points_range(ends: tuple[float, float], between: str = " to ") -> str:
    """Write an interval of a difference as a sentence has it, "+3.8 to +8.1"; an end that rounds to 0 is "> 0"."""
    zero = points(0)
    signs = ("< 0" if end < 0 else "> 0" if end > 0 else zero for end in ends)
    texts = (points(end) for end in ends)
    return between.join(sign if text == zero else text for text, sign in zip(texts, signs, strict=True))


def optional_percent(value: float | None, decimals: int = 0) -> str:
    """Write a share in percent; "–" where there is none."""
    return "–" if value is None else percent(value, decimals)


def printable(value: object) -> object:
    """Return a value as text of one line without control characters; numbers and elements are returned as they are.

    Ids are file names, which may hold control and bidirectional characters, and bytes that are not text.
    """
    return value if isinstance(value, Markup | int | float | None) else one_line(str(value))
