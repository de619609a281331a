"""`KindSettings`: how sets are divided into kinds, and the groups of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict

from finc_eval.core.errors import check_seed
from finc_eval.core.record import Configured, about
from finc_eval.sketches.settings import ByColumn, GroupArrays, Groups, PairColumn

REFERENCE = "ref"  # label of the reference among several sets

MAIN_LEVEL = 50
"""Kinds that give the difference of sets. On six draws of digits each, true differences of .18 and .07 are estimated by
.155 and .058 with 25 kinds, .174 and .070 with 50, .180 and .085 with 100."""


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
    pairs: PairColumn = None
    by: ByColumn = None
    seed: Annotated[int, about("random seed of the division into kinds")] = 0

    def __post_init__(self) -> None:
        self._store(seed=check_seed(self.seed))

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of a signature."""
        columns = ("groups", self.groups), ("pairs", self.pairs), ("by", self.by)
        return (*((name, value) for name, value in columns if value), ("seed", str(self.seed)))


class KindOptions(TypedDict, total=False):
    """The fields of `KindSettings` as keywords of a function."""

    groups: str | GroupArrays | None
    pairs: str | None
    by: str | None
    seed: int
