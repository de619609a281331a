"""`KindSettings`: the levels of a partition into kinds, and the groups of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict

from finc_eval.core.checks import check_count
from finc_eval.core.config import Configured
from finc_eval.core.record import about
from finc_eval.sketches.settings import Groups

MAIN_LEVEL = 50
"""Kinds of the main level, whose shares are shown and give the difference of sets."""


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
