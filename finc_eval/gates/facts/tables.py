"""`Limits`: a table of a policy whose limits are checked one by one; the table of limits on a private reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from finc_eval.core.errors import MAX_POSITIVE, UsageError, check_finite, check_positive
from finc_eval.core.record import Record, about

Checks = Mapping[str, Callable[[str, Any], Any]]
"""Check of each limit, by its name: it returns the value, or raises UsageError."""


def as_given(_: str, value: Any) -> Any:
    """Return a value that needs no check."""
    return value


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number that is 0 or more, or raise UsageError."""
    number = check_finite(name, value)
    if not 0 <= number <= MAX_POSITIVE:
        raise UsageError(f"{name} must be a number from 0 to {MAX_POSITIVE:g}, got {value!r:.40}")
    return number


class Limits(Record):
    """Limits that are checked one by one.

    Raises:
        UsageError: a value is out of range, or nothing is limited.
    """

    empty: ClassVar[str]  # message of a table without a limit
    checks: ClassVar[Checks]  # check of each limit, by its name

    def __post_init__(self) -> None:
        if not self.given:
            raise UsageError(self.empty)
        self._store(**{name: self.checks[name](name, value) for name, value in self.given.items()})

    @property
    def given(self) -> dict[str, Any]:
        """Limits that are set, by name; 0 is a limit, too."""
        found = {name: getattr(self, name) for name in self.checks}
        return {name: value for name, value in found.items() if value is not None and value is not False}


@dataclass(frozen=True)
class PrivateLimits(Limits):
    """Limits on the distance from private records (DP-HP, MMD²), which need a private sketch as the reference."""

    empty: ClassVar[str] = "[private] limits nothing: add for example farther = 0.01"
    checks: ClassVar[Checks] = dict.fromkeys(("distance", "farther"), check_positive)

    distance: Annotated[float | None, about("largest MMD² from the private records")] = None
    farther: Annotated[
        float | None, about("MMD² by which it may be farther from the private records than the baseline")
    ] = None
