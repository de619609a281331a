"""Sentences and tables of scores and votes: who is first, what disagrees, where judges prefer, what decides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import inf

from finc_eval.core.words import figure, join_words, percent, plural, points, quote
from finc_eval.judges.covariates import SIDE, CovariateEffect
from finc_eval.judges.parts import LOOK, WORD, JudgedPart
from finc_eval.judges.strengths import VOTES
from finc_eval.leaderboards.board_table import gap_text, ranks
from finc_eval.leaderboards.result import Leaderboard
from finc_eval.numerics.inference import ALPHA
from finc_eval.report.exports.outline import TextTable
from finc_eval.report.formats import p_value

SAID = 5  # models that are first by one number and last by another, which a summary names


def judges_of(board: Leaderboard) -> list[str]:
    """Return the keys of the numbers that come from votes and scores."""
    return [*[VOTES] * bool(board.votes), *dict.fromkeys(score.judge for score in board.scores)]


def first_by_judges(board: Leaderboard) -> str:
    """Return who is first by votes and by each score; of many, by those that surely distinguish models; "" without any.

    A number that one model alone has makes nobody first.
    """
    sure, alike = list[str](), list[str]()
    for key in judges_of(board):
        criterion = board.criterion(key)
        if len(criterion.names) > 1:
            first, *tied = criterion.groups[0]
            text = f"{first} (not surely before {join_words(tied)})" if tied else first
            (alike if tied else sure).append(f"{text} by {key}")
    if len(sure) + len(alike) <= SAID:
        parts = [*sure, *alike]
        return f"First is {join_words(parts)}." if parts else ""
    more = len(sure) - SAID
    named = [*sure[:SAID], *[f"a model by {plural(more, 'more score')}"] * (more > 0)]
    rest = f"By {plural(len(alike), 'score')}, no model is surely first." if alike else ""
    return " ".join([*[f"First is {join_words(named)}."] * bool(named), *[rest] * bool(rest)])


def contradictions(board: Leaderboard) -> list[str]:
    """Return the models that are first by votes or a score and last by another number, or the reverse.

    Numbers by which no two models can be distinguished contradict nothing.
    """
    keys, found = judges_of(board), {}
    able = [criterion for criterion in board.criteria if criterion.separable_pairs]
    for first, last in permutations(able, 2):
        name = first.names[0]
        if name == last.names[-1] and {first.key, last.key} & {*keys}:
            best, worst = (board[name].scores[criterion.key].rank_set for criterion in (first, last))
            sure = best is not None and worst is not None and best[1] < worst[0]
            text = f"{name} is first by {first.key} and last by {last.key}{', surely apart' * sure}."
            text += _why_last(board, name, last.key)
            found[text] = sure
    said = sorted(found, key=lambda sentence: not found[sentence])
    more = len(said) - SAID
    return said[:SAID] + [f"{plural(more, 'more contradiction')} of first and last."] * (more > 0)


def _why_last(board: Leaderboard, name: str, key: str) -> str:
    """Return why a model is last by a number: its faults, or where a judge or voters like it least; "" if unknown."""
    if key not in judges_of(board):
        return f" Its fault: {board[name].fault}." if board[name].fault else ""
    sign = 1 if board.criterion(key).higher_is_better else -1
    worse = (part for part in board.parts if (part.judge, part.name) == (key, name) and sign * part.value < 0)
    found = next((part for part in worse if sign * (part.value - part.elsewhere) < 0), None)
    return "" if found is None else f" It loses most on {_where(found)}."


def at_equal(board: Leaderboard) -> str:
    """Return who would be first if all models showed the same of the covariates, in a sentence; "" without any."""
    ranked = [vote for vote in board.votes if vote.equal is not None]
    if not board.covariates or not ranked:
        return ""
    best = max(ranked, key=lambda vote: vote.equal or 0)
    low, high = best.equal_rank_set or (1, len(ranked))
    ranks = "rank 1" if (low, high) == (1, 1) else f"ranks {low} to {high}"
    names = join_words([covariate.name for covariate in board.covariates])
    moved = [vote.name for vote in ranked if vote.equal_rank_set != vote.rank_set]
    others = f"the rank sets of {join_words(moved)} change" if moved else "no rank set changes"
    return f"If all models showed the same {names}, {best.name} would be first by votes ({ranks}); {others}."


def _covariate_sentence(covariate: CovariateEffect) -> str:
    """Return what a covariate does to votes, in a sentence."""
    low, high = (figure(end, "+.2f") for end in covariate.interval)
    if covariate.name == SIDE:
        more = "The left side"
    else:
        more = f"One standard deviation more {covariate.name} ({figure(covariate.unit, '.3g')})"
    sure = "" if covariate.p_value <= ALPHA else ", which may be nothing"
    return f"{more} changes the log odds of winning by {figure(covariate.effect, '+.2f')} [{low}, {high}]{sure}."


def judge_details(board: Leaderboard) -> list[str]:
    """Return what to know of votes and scores: how few votes decide, what disagrees, and where a judge prefers."""
    found = []
    if board.upset is not None:
        upset = board.upset
        found.append(
            f"Without {plural(upset.votes, 'vote')} of {upset.of:,}, {upset.then} would be first by votes instead of "
            f"{upset.first}."
        )
    elif board.votes:
        found.append(f"No number of votes that could be left out would change who is first by {VOTES}.")
    found += [at_equal(board)] * bool(at_equal(board)) + [
        _covariate_sentence(covariate) for covariate in board.covariates
    ]
    return [*found, *contradictions(board), *(part_sentence(board, part) for part in board.parts)]


def plan_sentences(board: Leaderboard) -> list[str]:
    """Return what decides the order of neighbors, the fewest prompts, votes or labels first."""
    return [plan.sentence for plan in sorted(board.plan, key=lambda plan: inf if plan.more is None else plan.more)]


def part_sentence(board: Leaderboard, part: JudgedPart) -> str:
    """Return a part where a judge or voters prefer otherwise than elsewhere, in a sentence."""
    where = _where(part)
    if not part.name:
        return (
            f"{part.judge} gives {where} {_amount(part.value)} {'more' if part.value > 0 else 'less'} than other "
            "samples of the same model, over all models."
        )
    if part.judge == VOTES:
        here, elsewhere = (
            f"{points(abs(value)).removeprefix('+')} points {'more' if value > 0 else 'less'}"
            for value in (part.value, part.elsewhere)
        )
        return f"By votes, {part.name} wins {here} than its strength says on {where}, and {elsewhere} elsewhere."
    sign = 1 if board.criterion(part.judge).higher_is_better else -1
    here, elsewhere = (
        f"{_amount(value)} {'better' if sign * value > 0 else 'worse'}" for value in (part.value, part.elsewhere)
    )
    others = [score.name for score in board.scores if score.judge == part.judge and score.name != part.name]
    against = others[0] if len(others) == 1 else "the others"
    return f"By {part.judge}, {part.name} is {here} than {against} on {where}, and {elsewhere} elsewhere."


def _where(part: JudgedPart) -> str:
    if part.by == WORD:
        return f"prompts with {quote(part.part)}"
    if part.by == LOOK:
        return f"samples that look {quote(part.part)}"
    return f"{part.by} {quote(part.part)}"


def _amount(value: float) -> str:
    return figure(abs(value), ".3g")


def judge_tables(board: Leaderboard) -> Iterator[TextTable]:
    """Yield the tables of stated scores, of votes, of parts and of plans, those that have rows."""
    if any(score.reported is not None for score in board.scores):
        yield _reported_table(board)
    if board.votes:
        rows = [
            [vote.name, f"{vote.votes:,}", percent(vote.won), percent(vote.tied), percent(vote.lost)]
            for vote in board.votes
            if vote.votes
        ]
        yield TextTable("Votes", ["Model", "Votes", "Won", "Tied", "Lost"], rows)
    if board.covariates:
        yield _equal_table(board)
    if board.parts:
        yield _parts_table(board)
    if board.plan:
        yield _plan_table(board)


def _reported_table(board: Leaderboard) -> TextTable:
    """Return scores beside what the files of benchmarks state for whole models."""
    rows = [
        [score.judge, score.name, figure(score.value), figure(score.reported)]
        for score in board.scores
        if score.reported is not None
    ]
    legend = (
        "“Stated” is the number that a benchmark's own file has for the model, or that its own rule gives, such as "
        "GenEval's mean of its tasks. “Here” is the number that has an interval and ranks. They are equal, or "
        "a warning says why not."
    )
    return TextTable("Scores as benchmarks state them", ["Score", "Model", "Here", "Stated"], rows, legend=legend)


def _equal_table(board: Leaderboard) -> TextTable:
    """Return strengths as people voted, and at equal covariates."""
    names = join_words([covariate.name for covariate in board.covariates])
    columns = ["Model", "Strength", "Rank", f"At equal {names}", "Rank then"]
    rows = [
        [
            vote.name,
            *_strength(vote.value, vote.interval, vote.rank_set),
            *_strength(vote.equal, vote.equal_interval, vote.equal_rank_set),
        ]
        for vote in board.votes
        if vote.equal is not None
    ]
    return TextTable(f"Votes at equal {names}", columns, rows)


def _parts_table(board: Leaderboard) -> TextTable:
    """Return where judges and voters prefer a model more, or less, than elsewhere."""
    columns = ["By", "Model", "Where", "There", "Elsewhere", "Prompts", "p"]
    legend = (
        "Where a judge or voters prefer a model more, or less, than elsewhere, against the others on the same "
        "prompts. A look is of the fifth of all samples with the most, or the least, of a trait. Votes: points of "
        "a vote beyond what strengths say. Without a model: the score of such samples beyond the mean of their "
        "model."
    )
    return TextTable("Where judges prefer", columns, [_cells(part) for part in board.parts], legend=legend)


def _plan_table(board: Leaderboard) -> TextTable:
    """Return what decides the margins of neighbors."""
    columns = ["By", "First", "Next", "Margin", "Detectable", "At hand", "Needed", "More", "Seeds"]
    rows = [
        [
            margin.judge,
            margin.first,
            margin.second,
            gap_text(board.criterion(margin.judge), margin.margin),
            gap_text(board.criterion(margin.judge), margin.detectable),
            f"{plural(margin.have, margin.unit[:-1])}",
            "–" if margin.needed is None else plural(margin.needed, margin.unit[:-1]),
            "–" if margin.more is None else f"{margin.more:,}",
            "–" if margin.seeds is None else f"{margin.seeds:,}",
        ]
        for margin in board.plan
    ]
    legend = (
        "What decides each margin in 80 % of repetitions, among all pairs of the board: prompts or votes of "
        "the same mix, labels of so many prompts of each model, or samples of each prompt at hand. “Detectable” is the "
        "margin that the data at hand decides in 80 %."
    )
    return TextTable("What decides the margins", columns, rows, legend=legend)


def _strength(value: float | None, interval: tuple[float, float] | None, rank_set: tuple[int, int] | None) -> list[str]:
    ends = ", ".join(figure(end, "+.2f") for end in interval or ())
    return [f"{figure(value, '+.2f')} [{ends}]", ranks(rank_set)]


def _cells(part: JudgedPart) -> list[str]:
    ends = ", ".join(figure(end, ".3g") for end in part.interval)
    there = f"{figure(part.value, '+.3g')} [{ends}]"
    where = [part.judge, part.name or "all models", _where(part)]
    return [*where, there, figure(part.elsewhere, "+.3g"), f"{part.prompts:,}", p_value(part.p_value)]
