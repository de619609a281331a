"""Checks of arguments, each with one message: what must hold, the value, and the nearest valid choice.

Checks of numbers return Python's own numbers, so that numbers of numpy and torch become JSON.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf, nan
from numbers import Real
from typing import Any

from finc_eval.core.errors import UsageError, did_you_mean


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise UsageError unless the value is one of the choices."""
    if value not in tuple(choices):
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}{hint}")


def check_positive(name: str, value: Any, most: float = inf) -> float:
    """Return a finite number above 0 and at most `most`, or raise UsageError."""
    number = _number(value)
    if not 0 < number < inf:
        raise UsageError(f"{name} must be a positive number, got {_show(value)}")
    if number > most:
        raise UsageError(f"{name} must be at most {most:g}, got {number:g}")
    return number


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise UsageError."""
    number = _number(value)
    if number != number // 1 or number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {_show(value)}")
    return int(number)


def check_fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """Return a number between 0 and 1, or raise UsageError; `zero` and `one` allow the ends themselves."""
    number = _number(value)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        raise UsageError(f"{name} must lie between 0 and 1, got {_show(value)}")
    return number


def _number(value: Any) -> float:
    """Return a number of any library as Python's own; NaN for anything else, which no check lets pass."""
    if isinstance(value, bool) or not (isinstance(value, Real) or hasattr(value, "item")):
        return nan
    try:
        number = value.item() if hasattr(value, "item") else value
        return number if type(number) in (int, float) else float(number)
    except (TypeError, ValueError, RuntimeError):  # arrays of several numbers
        return nan


def _show(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
