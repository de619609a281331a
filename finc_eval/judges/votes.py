"""`Votes`: which of two models people prefer, prompt by prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.words import join_words, plural
from finc_eval.judges.bradley_terry import LEFT, RIGHT, TIE
from finc_eval.judges.rows import RowTable, find_column, read_table, text_of

TIED = "tie"  # winner of a vote for neither model
COLUMNS = ("prompt", "left", "right", "winner", "voter")

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes between models of a board."""

    models: tuple[str, ...]  # the models that have votes
    left: Integers  # number of the left model of each vote, shape (v,)
    right: Integers  # number of the right model, shape (v,)
    outcome: Integers  # `LEFT`, `RIGHT` or `TIE`, shape (v,)
    prompt: Integers  # number of the prompt, shape (v,)
    voter: Integers  # number of the voter, shape (v,)
    prompts: tuple[str, ...]  # texts of the prompts
    voters: tuple[str, ...]
    notes: tuple[str, ...] = ()  # what to know of the table
    # columns of what is shown on the left and on the right, by the name of a covariate
    shown: Mapping[str, tuple[Sequence[str], Sequence[str]]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of votes."""
        return len(self.left)

    def points(self, model: int) -> tuple[Integers, NDArray[np.float64]]:
        """Return the votes that a model is in, and its points in them: 1 won, ½ a tie, 0 lost."""
        rows = np.flatnonzero((self.left == model) | (self.right == model))
        won = np.where(self.left[rows] == model, LEFT, RIGHT)
        points = np.where(self.outcome[rows] == TIE, 0.5, (self.outcome[rows] == won).astype(float))
        return rows, points


def read_votes(source: object, models: Sequence[str], covariates: Sequence[str] = ()) -> Votes:
    """Read votes between models of these names.

    The columns are prompt, left, right, winner and voter. A winner is the name of a model, or "tie". Several files are
    one table. Covariates may have two columns each, left_NAME and right_NAME, or NAME_left and NAME_right.

    Raises:
        UsageError: a model is called "tie".
        DataError: a column is missing, a row cannot be read, or a model is not on the board.
    """
    if named := [one for one in models if one.lower() == TIED]:
        raise UsageError(f"a model is called {named[0]!r}, as a vote for neither is: rename it")
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | Path) for one in source):
        table = RowTable.joined([read_table(one, "votes") for one in source])
    else:
        table = read_table(source, "votes")
    columns = {name: find_column(table.rows, name) for name in COLUMNS}
    lacking = [name for name in COLUMNS[:4] if columns[name] is None]
    if lacking or not table.rows:
        found = list(table.rows[0]) if table.rows else []
        raise DataError(
            f"{table.name} lacks {plural(len(lacking) or 4, 'column')} of votes ({', '.join(lacking or COLUMNS)}): "
            f"expected columns are {', '.join(COLUMNS)}, got {', '.join(map(str, found)) or 'none'}"
        )
    texts = {name: [text_of(row.get(key)) if key else "" for row in table.rows] for name, key in columns.items()}
    for number, row in enumerate(zip(*(texts[name] for name in COLUMNS[:4]), strict=True)):
        _check(table, number, *row)
    named = sorted({*texts["left"], *texts["right"]})
    if strange := [one for one in named if one not in models]:
        sides = [*zip(texts["left"], texts["right"], strict=True)]
        places = {one: table.place(next(row for row, both in enumerate(sides) if one in both)) for one in strange}
        raise DataError(
            f"{join_words([f'{one!r} ({places[one]})' for one in strange[:5]])} of the votes "
            f"{'is' if len(strange) == 1 else 'are'} not on the board{did_you_mean(strange[0], models)}: the board has "
            f"{join_words(list(models))}"
        )
    votes = _votes(texts, [one for one in models if one in named], columns["voter"] is not None)
    return replace(votes, shown=_shown(table, covariates))


def _shown(table: RowTable, covariates: Sequence[str]) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Return the columns of covariates on both sides, for those that the table has."""
    found: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for name in covariates:
        own = name.lower().replace(" ", "_")
        keys = [find_column(table.rows, f"{side}_{own}", f"{own}_{side}") for side in ("left", "right")]
        left, right = ([text_of(row.get(key)) if key else "" for row in table.rows] for key in keys)
        if None not in keys:
            found[name] = (left, right)
    return found


def _votes(texts: dict[str, list[str]], models: list[str], has_voters: bool) -> Votes:
    number = {name: place for place, name in enumerate(models)}
    left, right = (np.array([number[one] for one in texts[side]], np.int64) for side in ("left", "right"))
    winner = texts["winner"]
    outcome = [
        LEFT if one == first else RIGHT if one == second else TIE
        for one, first, second in zip(winner, texts["left"], texts["right"], strict=True)
    ]
    prompts, prompt = np.unique(texts["prompt"], return_inverse=True)
    voters, voter = np.unique(texts["voter"], return_inverse=True)
    notes = []
    if not has_voters or len(voters) == 1:
        who = "name no voter" if not has_voters or not voters[0] else f"are all of {voters[0]}"
        notes.append(f"votes {who}: intervals and ranks do not cover what other voters would prefer")
    if len(prompts) == 1:
        notes.append("votes are of one prompt: intervals and ranks do not cover other prompts")
    return Votes(
        models=tuple(models),
        left=left,
        right=right,
        outcome=np.array(outcome, np.int64),
        prompt=prompt.astype(np.int64),
        voter=voter.astype(np.int64),
        prompts=tuple(prompts.tolist()),
        voters=tuple(voters.tolist()),
        notes=tuple(notes),
    )


def _check(table: RowTable, number: int, prompt: str, left: str, right: str, winner: str) -> None:
    """Raise DataError for a row that is not a vote."""
    where = table.place(number)
    for name, value in (("prompt", prompt), ("left", left), ("right", right)):
        if not value:
            raise DataError(f"{where} has an empty {name}: fill it in, or take the row out")
    if left == right:
        raise DataError(f"{where} compares {left!r} with itself: take it out")
    if winner not in (left, right) and winner.lower() != TIED:
        raise DataError(f"{where} has the winner {winner!r}: write {left!r}, {right!r} or 'tie'")
