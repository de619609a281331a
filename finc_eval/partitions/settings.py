"""`KindSettings`: the levels of a partition into kinds, and the groups of samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict

from finc_eval.core.checks import check_count
from finc_eval.core.config import Configured
from finc_eval.core.errors import UsageError
from finc_eval.core.record import about
from finc_eval.sketches.settings import Groups

LEVELS = (20, 35, 50, 70, 100, 140, 200)
"""Numbers of kinds of the levels. Together they find more than any one of them. Of 144 small changes of photographs
and digits, on draws that had no part in choosing the levels, comparisons find 63, with 20, 50, 100 and 200 alone 60."""

MAIN_LEVEL = 50
"""Kinds of the main level, whose shares are shown and give the difference of sets."""


def checked_levels(levels: Iterable[int]) -> tuple[int, ...]:
    """Return numbers of kinds, each once, smallest first.

    Raises:
        UsageError: one is not a whole number of at least 2, or there is none.
    """
    found = tuple(sorted({check_count("levels", level, least=2) for level in levels}))
    if not found:
        raise UsageError("levels must be numbers of kinds, got none: pass for example levels=(20, 50)")
    return found


@dataclass(frozen=True)
class KindSettings(Configured):
    """Settings of `kinds`.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.KindSettings(groups="prompt").groups
        'prompt'
    """

    table: ClassVar[str] = "kinds"

    groups: Groups = None
    seed: Annotated[int, about("random seed of the division into kinds")] = 0

    def __post_init__(self) -> None:
        self._store(seed=check_count("seed", self.seed, least=0))

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of a signature."""
        return (("groups", self.groups or "videos"), ("seed", str(self.seed)))


class KindOptions(TypedDict, total=False):
    """The fields of `KindSettings` as keywords of a function."""

    groups: str | None
    seed: int
