"""A board with what scores and votes say: standings, parts, plans, and what disagrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from finc_eval.judges.parts import KIND
from finc_eval.judges.strengths import VOTES, Strengths, record_of
from finc_eval.leaderboards.judged import JudgmentResults, Judgments
from finc_eval.leaderboards.ranks import joint_covariance, rank
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.leaderboards.standings import ScoreStanding, VoteStanding

TRAINED = "scores and votes are of each model as a whole: their ranks and intervals cover no noise of training"

KindNames = Callable[[Sequence[str]], Mapping[str, str]]


def with_judged(board: Leaderboard, judged: Judgments, results: JudgmentResults, kind_names: KindNames) -> Leaderboard:
    """Return the board with what scores and votes say besides their columns."""
    trained = [TRAINED] if any(row.runs > 1 for row in board.rows) else []
    names = kind_names([part.part for part in results.parts if part.by == KIND])
    parts = [replace(part, part=names[part.part]) if part.by == KIND else part for part in results.parts]
    return replace(
        board,
        warnings=tuple(dict.fromkeys((*board.warnings, *results.remarks, *trained))),
        scores=tuple(
            standing
            for key in (*judged.judges, *judged.totals, *judged.corrected)
            for standing in _scores(board, key, results)
        ),
        votes=() if judged.votes is None else tuple(_votes(board, judged.votes, results)),
        covariates=() if judged.votes is None or judged.votes.equal is None else judged.votes.equal.effects,
        parts=tuple(parts),
        plan=tuple(results.plans) if board.settings.plan else (),
        upset=None if judged.votes is None else judged.votes.upset(),
    )


def _best_first(board: Leaderboard, key: str) -> list[str]:
    ranked = board.criterion(key).names
    return [*ranked, *(row.name for row in board.rows if row.name not in ranked)]


def _scores(board: Leaderboard, judge: str, results: JudgmentResults) -> list[ScoreStanding]:
    better = board.criterion(judge).higher_is_better
    means = results.means.get(judge)
    prompts = {} if means is None else dict(zip(means.models, means.prompts, strict=True))
    if (corrected := results.corrected.get(judge)) is not None:
        prompts = dict(zip(corrected.models, corrected.labeled, strict=True))
    standings = {name: board[name].scores[judge] for name in _best_first(board, judge)}
    stated = results.stated.get(judge, {})
    return [
        ScoreStanding(
            judge,
            name,
            standing.value,
            standing.interval,
            standing.rank_set,
            better,
            prompts.get(name, 0),
            stated.get(name),
        )
        for name, standing in standings.items()
    ]


def _votes(board: Leaderboard, votes: Strengths, results: JudgmentResults) -> list[VoteStanding]:
    record, equal = record_of(votes.votes), _at_equal(results)
    standings = {name: board[name].scores[VOTES] for name in _best_first(board, VOTES)}
    return [
        VoteStanding(
            name,
            standing.value,
            standing.interval,
            standing.rank_set,
            *record.get(name, (0, 0.0, 0.0, 0.0)),
            *equal.get(name, ()),
        )
        for name, standing in standings.items()
    ]


def _at_equal(results: JudgmentResults) -> dict[str, tuple[float, tuple[float, float], tuple[int, int]]]:
    """Return strengths at equal covariates, with their intervals and rank sets, by model."""
    if not results.equal:
        return {}
    estimates = [estimate for (estimate,) in results.equal.values()]
    ranking = rank(
        np.array([estimate.value for estimate in estimates]), joint_covariance(estimates), higher_is_better=True
    )
    return {
        name: (estimate.value, estimate.interval, ranks)
        for name, estimate, ranks in zip(results.equal, estimates, ranking.rank_sets, strict=True)
    }
