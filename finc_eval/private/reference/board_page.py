"""Board on a private reference: its page, notebook view and terminal table."""

from __future__ import annotations

from finc_eval.core.words import figure
from finc_eval.leaderboards.board_table import board_table
from finc_eval.leaderboards.page import (
    group_sentences,
    how_sure,
    models_in_call,
    models_in_title,
    order_sentence,
    training_sentences,
)
from finc_eval.private.reference.board import PrivateBoard
from finc_eval.private.reference.page import HOW, distance_tables, promises
from finc_eval.private.reference.result import DISTANCE_KEY
from finc_eval.report import Page
from finc_eval.report.exports.outline import Outline, call, sizes

BLIND = (
    "The board ranks by distance alone: looks, repeats, copies, kinds and cells need samples of the reference, and "
    "none of them is claimed."
)

HOW_RANKED = (
    f"{HOW} All models share the noise of the reference. Ranks compare models by the differences of their distances, "
    "in which most of the noise cancels, so that models can differ surely while their intervals overlap."
)


def says(board: PrivateBoard) -> dict[str, str]:
    """Return which model is first, how far it is from the private records, the guarantee, and what is not known."""
    first = board.rows[0]
    standing, hidden = first.scores[DISTANCE_KEY], figure(board.distances[0].smallest_detected, ".2g")
    low, high = standing.interval or (None, None)
    value, *ends = (figure(number, ".3g") for number in (standing.value, low, high))
    promised = "; ".join(f"({each.epsilon:g}, {each.delta:g})-DP" for each in board.guarantees)
    return {
        "order": order_sentence(board),
        "distance": f"{first.name} is at an MMD² of {value} [{', '.join(ends)}] from the private records.",
        "noise": f"Whatever the model, the noise hides distances below {hidden}.",
        "guarantee": f"The guarantee to each private record is {promised}.",
        "blind": BLIND,
    }


def outline(board: PrivateBoard) -> Outline:
    """Return what the board says in all outputs."""
    return Outline(
        kind="leaderboard on a private reference",
        title=f"{models_in_title(board)} against a private reference",
        says=says(board),
        sets=sizes(board.sets),
        signatures=[board.signature, board.criterion().signature],
        call=call("leaderboard", models_in_call(board), '"ref.h5"'),
        tables=[board_table(board), *distance_tables(board.distances), promises(board.guarantees)],
        details=[
            how_sure(board),
            *group_sentences(board),
            *training_sentences(board),
            *(f"Guarantee: {guarantee}." for guarantee in board.guarantees),
        ],
        warnings=board.warnings,
        how=HOW_RANKED,
    )


PAGE = Page(says, outline)
