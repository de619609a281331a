"""`LeaderboardSettings`: what the models of a leaderboard are ranked by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict

from finc_eval.core.errors import check_seed
from finc_eval.core.record import Configured, about
from finc_eval.sketches.settings import ByColumn, Groups, PairColumn


@dataclass(frozen=True)
class LeaderboardSettings(Configured):
    """Settings of a leaderboard.

    Raises:
        UsageError: a value is out of range, or a metric is unknown.

    Example:
        >>> import finc_eval as fe
        >>> fe.LeaderboardSettings(metrics=("fd", "kid")).rank_by
        'unmatched'
    """

    table: ClassVar[str] = "leaderboard"

    metrics: Annotated[
        tuple[str, ...],
        about(
            "metrics to rank by, besides the shares; default: fd, the Fréchet distance by the extractor, and kid if a "
            "set has fewer samples than an embedding has entries; fid embeds by inception-fid"
        ),
    ] = ()
    rank_by: Annotated[
        str, about("number that orders the rows: unmatched, missing, novel, one of the metrics, votes, or a score")
    ] = "unmatched"
    groups: Groups = None
    pairs: PairColumn = None
    by: ByColumn = None
    lower: Annotated[
        tuple[str, ...], about("scores of --scores whose lower values are better; of all others, higher ones are")
    ] = ()
    judges: Annotated[
        tuple[str, ...],
        about(
            "columns of --scores that are scores; default: all columns of numbers but ids, counters, settings, "
            "constants, and columns that are the same for all models"
        ),
    ] = ()
    covariates: Annotated[
        tuple[str, ...],
        about(
            "what votes are made equal in, besides the votes as they are: columns left_NAME and right_NAME of the "
            "votes, columns of the sets such as texts, whose length counts, looks such as brightness, or side"
        ),
    ] = ()
    plan: Annotated[
        bool, about("say how many prompts, seeds, votes or labels decide the margins of scores and votes")
    ] = False
    seed: Annotated[int, about("random seed of the division into kinds")] = 0

    def __post_init__(self) -> None:
        from finc_eval.measures.registry import get_metric  # loads torch, which help does not need

        self._store(
            metrics=tuple(get_metric(name).name for name in dict.fromkeys(self.metrics)), seed=check_seed(self.seed)
        )

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of a signature; those of scores and votes have their own."""
        columns = ("groups", self.groups), ("pairs", self.pairs), ("by", self.by)
        return (*((name, value) for name, value in columns if value), ("seed", str(self.seed)))


class LeaderboardOptions(TypedDict, total=False):
    """The fields of `LeaderboardSettings` as keywords of a function."""

    metrics: tuple[str, ...]
    rank_by: str
    groups: str | None
    pairs: str | None
    by: str | None
    lower: tuple[str, ...]
    judges: tuple[str, ...]
    covariates: tuple[str, ...]
    plan: bool
    seed: int
