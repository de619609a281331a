"""`Votes`: which of two models people prefer, prompt by prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.memory import check_list
from finc_eval.core.words import join_words, plural
from finc_eval.judges.bradley_terry import LEFT, RIGHT, TIE
from finc_eval.judges.repeated import once
from finc_eval.judges.tables import NamedColumns, exact_text, find_column, read_table

TIED = "tie"  # winner of a vote for neither model
COLUMNS = ("prompt", "left", "right", "winner", "voter")
PAIR = "pair"  # column that tells apart pairs of one prompt and the same models

BYTES_PER_VOTE = 1400  # bytes that a vote takes on a board: measured for votes that each have a prompt and a voter

SURROGATES = re.compile("[\ud800-\udfff]")  # codes that are not characters, which UTF-8 does not have

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


def well_formed(text: str) -> str:
    """Return a text as a browser writes it to a file: codes that are not characters become U+FFFD."""
    return SURROGATES.sub("\ufffd", text)


def read_votes(source: object, models: Sequence[str], covariates: Sequence[str] = ()) -> Votes:
    """Read votes between models of these names; each vote counts once.

    The columns are prompt, left, right, winner and voter, and perhaps pair, which tells apart pairs of one prompt. A
    winner is the name of a model, or "tie". Several files are one table. Covariates may have two columns each,
    left_NAME and right_NAME, or NAME_left and NAME_right.

    Raises:
        UsageError: a model is called "tie".
        DataError: a column is missing, a row cannot be read, or a model is not on the board.
    """
    if named := [model for model in models if model.lower() == TIED]:
        raise UsageError(f"a model is called {named[0]!r}, as a vote for neither is: rename it")
    if isinstance(source, list | tuple) and source and all(isinstance(part, str | Path) for part in source):
        tables = [read_table(part, "votes") for part in source]
    else:
        tables = [read_table(source, "votes")]
    for part in tables:
        _check_columns(part)
    table = NamedColumns.joined([_usual(part) for part in tables])
    check_list(table.n, table.name, "votes", BYTES_PER_VOTE)
    texts = {name: [exact_text(cell) for cell in table.columns.get(name, [None] * table.n)] for name in COLUMNS}
    for name in ("left", "right", "winner"):
        texts[name] = [text if text in models else text.strip() for text in texts[name]]
    for number, row in enumerate(zip(*(texts[name] for name in COLUMNS[:4]), strict=True)):
        _check(table, number, *row)
    shown = dict.fromkeys((*texts["left"], *texts["right"]))
    if strange := sorted(model for model in shown if model not in models):
        raise _not_on_the_board(table, texts, strange, models)
    pairs = {PAIR: table.texts(PAIR)} if PAIR in table.columns else {}
    rows, notes = once(texts | pairs, table.columns)
    texts = {name: [column[row] for row in rows] for name, column in texts.items()}
    votes = _votes(texts, [model for model in models if model in shown], any(texts["voter"]))
    return replace(votes, notes=(*votes.notes, *notes), shown=_shown(table, covariates, rows))


def _check_columns(table: NamedColumns) -> None:
    columns = {name: find_column(table.columns, name) for name in COLUMNS}
    lacking = [name for name in COLUMNS[:4] if columns[name] is None]
    if lacking or not table.n:
        found = [*table.columns]
        more = [plural(len(found) - 10, "more column")] if len(found) > 11 else found[10:]
        raise DataError(
            f"{table.name} lacks {plural(len(lacking) or 4, 'column')} of votes ({', '.join(lacking or COLUMNS)}): "
            f"expected columns are {', '.join(COLUMNS)}, got {', '.join([*found[:10], *more]) or 'none'}"
        )


def _usual(table: NamedColumns) -> NamedColumns:
    """Return a table whose columns of votes have their usual names, without capitals and spaces."""
    names = {find_column(table.columns, name): name for name in (*COLUMNS, PAIR)}
    return replace(table, columns={names.get(column, column): values for column, values in table.columns.items()})


def _not_on_the_board(
    table: NamedColumns, texts: Mapping[str, Sequence[str]], strange: Sequence[str], models: Sequence[str]
) -> DataError:
    shown = {*strange[:5]}
    places: dict[str, str] = {}
    for row, both in enumerate(zip(texts["left"], texts["right"], strict=True)):
        for model in shown.intersection(both):
            places.setdefault(model, table.place(row))
        if len(places) == len(shown):
            break
    more = [f"{len(strange) - 5:,} more"] * (len(strange) > 5)
    return DataError(
        f"{join_words([*(f'{model!r:.100} ({places[model]})' for model in strange[:5]), *more])} of the votes "
        f"{'is' if len(strange) == 1 else 'are'} not on the board{did_you_mean(strange[0], models)}: the board has "
        f"{join_words(list(models))}"
    )


def _shown(
    table: NamedColumns, covariates: Sequence[str], rows: Sequence[int]
) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Return the columns of covariates on both sides, for those that the table has."""
    found: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for name in covariates:
        plain = name.lower().replace(" ", "_")
        keys = [find_column(table.columns, f"{side}_{plain}", f"{plain}_{side}") for side in ("left", "right")]
        if None not in keys:
            left, right = (table.texts(key) for key in keys)
            found[name] = [left[row] for row in rows], [right[row] for row in rows]
    return found


def _numbered(texts: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    """Return unlike texts in order, and the place of each text among them."""
    names = tuple(sorted({*texts}))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[text] for text in texts], np.int64)


def _votes(texts: dict[str, list[str]], models: list[str], has_voters: bool) -> Votes:
    number = {name: place for place, name in enumerate(models)}
    left, right = (np.array([number[text] for text in texts[side]], np.int64) for side in ("left", "right"))
    winner = texts["winner"]
    outcome = [
        LEFT if name == first else RIGHT if name == second else TIE
        for name, first, second in zip(winner, texts["left"], texts["right"], strict=True)
    ]
    # Not by np.unique: its texts are all as long as the longest, and lose NUL at their ends.
    (prompts, prompt), (voters, voter) = (_numbered(texts[name]) for name in ("prompt", "voter"))
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
        prompt=prompt,
        voter=voter,
        prompts=prompts,
        voters=voters,
        notes=tuple(notes),
    )


def _check(table: NamedColumns, number: int, prompt: str, left: str, right: str, winner: str) -> None:
    """Raise DataError for a row that is not a vote."""
    where = table.place(number)
    for name, value in (("prompt", prompt), ("left", left), ("right", right)):
        if not value:
            raise DataError(f"{where} has an empty {name}: fill it in, or take the row out")
    if left == right:
        raise DataError(f"{where} compares {left!r:.100} with itself: take it out")
    if winner not in (left, right) and winner.lower() != TIED:
        raise DataError(f"{where} has the winner {winner!r:.100}: write {left!r:.100}, {right!r:.100} or 'tie'")
