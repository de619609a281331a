"""`Panel`: ranks of the same models on several boards, such as one per extractor, and where the boards disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.record import Record
from finc_eval.core.shown import Shown
from finc_eval.core.signature import SignatureText
from finc_eval.core.words import join_words, plural
from finc_eval.leaderboards.standings import Criterion, Row


@dataclass(frozen=True)
class Place(Record):
    """A model on one board of a panel.

    Attributes:
        value: the number.
        interval: 95 % interval of it.
        rank_set: lowest and highest rank that the model may have; None if it is not ranked.
    """

    value: float | None
    interval: tuple[float, float] | None
    rank_set: tuple[int, int] | None


@dataclass(frozen=True)
class Side(Record):
    """One board of a panel.

    Attributes:
        label: its label, such as the name of the extractor.
        signature: signature of its number.
        places: the models by name.
    """

    label: str
    signature: SignatureText
    places: dict[str, Place]


@dataclass(frozen=True)
class Reversal(Record):
    """Two models, each surely better than the other on some board.

    Attributes:
        first: a model.
        second: another.
        first_better: boards on which the first is surely better.
        second_better: boards on which the second is.
    """

    first: str
    second: str
    first_better: tuple[str, ...]
    second_better: tuple[str, ...]


@dataclass(frozen=True)
class Panel(Record, Shown):
    """The same models on several boards, by one number.

    Attributes:
        by: key of the number.
        sides: the boards, first the board that has the panel.
        reversals: pairs of models that boards rank in opposite orders, both surely.
        moved: models whose rank sets on two boards have no rank in common.
    """

    by: str
    sides: tuple[Side, ...]
    reversals: tuple[Reversal, ...]
    moved: tuple[str, ...]

    def _summary(self) -> str:
        boards = join_words([side.label for side in self.sides])
        pairs, models = plural(len(self.reversals), "pair"), plural(len(self.moved), "model")
        return f"by {self.by} on {boards}: {pairs} in opposite orders, {models} without a common rank"

    def _frame_rows(self) -> list[dict[str, object]]:
        return [
            {
                "name": name,
                "board": side.label,
                "value": one.value,
                "interval": one.interval,
                **dict(zip(("rank.low", "rank.high"), one.rank_set or (None, None), strict=True)),
            }
            for side in self.sides
            for name, one in side.places.items()
        ]


def panel_of(boards: Mapping[str, tuple[Sequence[Row], Criterion]], alpha: float) -> Panel:
    """Put boards of the same models side by side: their rows and the numbers that order them, by label."""
    if len(boards) < 2:
        raise UsageError(f"at least two boards are needed side by side, got {len(boards)}")
    (first, (own, criterion)), *others = boards.items()
    names, sides = [row.name for row in own], []
    for label, (rows, _) in others:
        if unlike := sorted({*names} ^ {row.name for row in rows}):
            raise IncompatibleError(
                f"the boards {first} and {label} differ in {join_words(unlike)}: rank the same models"
            )
    for label, (rows, by) in boards.items():
        standings = {row.name: row.scores[by.key] for row in rows}
        places = {name: Place(one.value, one.interval, one.rank_set) for name, one in standings.items()}
        sides.append(Side(label, by.signature, places))
    reversals = opposite_orders(names, {label: by for label, (_, by) in boards.items()}, alpha)
    moved = tuple(name for name in names if _has_moved([side.places[name].rank_set for side in sides]))
    return Panel(criterion.key, tuple(sides), tuple(Reversal(*one) for one in reversals), moved)


def opposite_orders(
    names: Sequence[str], criteria: Mapping[str, Criterion], alpha: float
) -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Yield the pairs of models that two criteria rank in opposite orders, both surely, with the labels of each."""
    for first, second in combinations(names, 2):
        better = tuple(label for label, one in criteria.items() if one.better(first, second, alpha))
        worse = tuple(label for label, one in criteria.items() if one.better(second, first, alpha))
        if better and worse:
            yield first, second, better, worse


def _has_moved(rank_sets: list[tuple[int, int] | None]) -> bool:
    known = [one for one in rank_sets if one is not None]
    return bool(known) and max(low for low, _ in known) > min(high for _, high in known)
