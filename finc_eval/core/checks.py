"""Checks of arguments, each with one message: what must hold, the value, and the nearest valid choice."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from numbers import Real
from typing import Any

from finc_eval.core.errors import UsageError, did_you_mean


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise UsageError unless the value is one of the choices."""
    if value not in choices:
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}{hint}")


def check_positive(name: str, value: Any, most: float = inf) -> None:
    """Raise UsageError unless the value is a finite number above 0 and at most `most`."""
    if not _is_number(value) or not 0 < value < inf:
        raise UsageError(f"{name} must be a positive number, got {_shown(value)}")
    if value > most:
        raise UsageError(f"{name} must be at most {most:g}, got {value:g}")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise UsageError unless the value is a whole number of at least `least`."""
    if not _is_number(value) or value != value // 1 or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {_shown(value)}")


def check_fraction(name: str, value: Any, *, closed: bool = False) -> None:
    """Raise UsageError unless the value lies between 0 and 1; `closed` allows 1 itself."""
    if not _is_number(value) or not (0 < value < 1 or (closed and value == 1)):
        raise UsageError(f"{name} must lie between 0 and 1, got {_shown(value)}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
