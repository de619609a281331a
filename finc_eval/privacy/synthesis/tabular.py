"""Tables as generators see them: every column has finitely many levels, named in advance by public knowledge.

A record is the one-hot vector of its levels, all columns side by side. Public linear views of it go into feature maps:
`codes`, near vectors for levels that are alike, for what columns have to do with each other; `amounts`, the same
without negative entries, for bounded moments; `positions`, one number for each column with its levels far apart, for
how each column is distributed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError, did_you_mean

POSITIONS = 8.0
"""Levels of a column lie in [−8, 8] in the view `positions`, so up to 17 of them are 1 apart."""

USUALLY_NOT = 0.1
"""Share of records taken not to have the usual value of a column that has one."""

KEYS = ("name", "values", "low", "high", "levels", "edges", "integer", "usual")
"""What a description may say of a column."""

LEVELS = 16
"""Intervals of a column of numbers whose description does not say how many."""


@dataclass(frozen=True)
class Category:
    """A column of names, in no order.

    Attributes:
        name: of the column.
        values: all that occur; anything else in the data counts as the usual one.
        usual: the value that most records are known to have, if one is; it lies at the origin of the codes.
    """

    name: str
    values: tuple[str, ...]
    usual: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.values)) < max(len(self.values), 1):
            raise FincEvalError(f"column {self.name} must have values, each once, got {list(self.values)}")
        if self.usual is not None and self.usual not in self.values:
            raise FincEvalError(
                f"the usual value of column {self.name} must be one of its values, got {self.usual!r}"
                f"{did_you_mean(self.usual, self.values)}"
            )

    @property
    def levels(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def codes(self) -> torch.Tensor:
        """(levels, coordinates): the corners of a simplex around the origin, or from the usual one at the origin."""
        corners = torch.eye(self.levels)
        if self.usual is not None:
            place = self.values.index(self.usual)
            return torch.cat([corners[:, :place], corners[:, place + 1 :]], 1)
        # Two corners of a simplex lie on a line.
        return torch.tensor([[-0.5], [0.5]]) * 2**0.5 if self.levels == 2 else corners - 1 / self.levels

    @property
    def amounts(self) -> torch.Tensor:
        """(levels, coordinates): one-hot vectors, with the usual value at the origin if there is one."""
        return self.codes if self.usual is not None else torch.eye(self.levels)

    @property
    def prior(self) -> torch.Tensor:
        """What is publicly known of the levels' shares: nothing, or that nine in ten records are usual."""
        return _prior(self.levels, None if self.usual is None else self.values.index(self.usual))

    def encoded(self, values: np.ndarray) -> np.ndarray:
        """The level of every value."""
        places = {value: place for place, value in enumerate(self.values)}
        other = places[self.usual] if self.usual is not None else 0
        levels: np.ndarray = np.array([places.get(str(value).strip(), other) for value in values], np.int64)
        return levels

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The value of every level."""
        chosen: np.ndarray = np.array(self.values, dtype=str)[levels]
        return chosen


@dataclass(frozen=True)
class Number:
    """A column of numbers, cut into intervals.

    Attributes:
        name: of the column.
        edges: L+1 ascending numbers: level l is [edges[l], edges[l+1]); what lies outside goes to the nearest.
        integer: whether values are whole numbers.
        usual: the number that most records are known to have, if one is; its level lies at the origin of the codes.
    """

    name: str
    edges: tuple[float, ...]
    integer: bool = False
    usual: float | None = None

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not bool((np.diff(self.edges) > 0).all()) or not np.isfinite(self.edges).all():
            raise FincEvalError(f"the edges of column {self.name} must ascend, got {list(self.edges)}")

    @classmethod
    def between(
        cls,
        name: str,
        low: float,
        high: float,
        levels: int = LEVELS,
        *,
        integer: bool = False,
        usual: float | None = None,
    ) -> Number:
        """A column from low to high, both included, in intervals of equal width; whole numbers one each if few."""
        if not low < high or levels < 1:
            raise FincEvalError(f"column {name} must go from a low to a higher number in levels, got {low}, {high}")
        end = high + 1 if integer else high
        count = min(levels, int(end - low)) if integer else levels
        return cls(name, tuple(float(edge) for edge in np.linspace(low, end, count + 1)), integer, usual)

    @property
    def levels(self) -> int:
        """How many intervals there are."""
        return len(self.edges) - 1

    @property
    def codes(self) -> torch.Tensor:
        """(levels, 1): evenly spaced over √2, as far as categories are apart; the usual level, or the middle, at 0."""
        places = torch.linspace(-0.5, 0.5, self.levels) * 2**0.5 if self.levels > 1 else torch.zeros(1)
        origin = 0.0 if self.usual is None else float(places[self.encoded(np.array([self.usual]))[0]])
        return (places - origin)[:, None]

    @property
    def amounts(self) -> torch.Tensor:
        """(levels, 1 or 2): by how much a level lies above the one at 0, and by how much below, where any does."""
        both = torch.cat([self.codes, -self.codes], 1).clamp_min(0)
        return both[:, both.any(0)]

    @property
    def prior(self) -> torch.Tensor:
        """As of a category."""
        return _prior(self.levels, None if self.usual is None else int(self.encoded(np.array([self.usual]))[0]))

    def encoded(self, values: np.ndarray) -> np.ndarray:
        """The level of every value; what is no number has that of the usual one, or the first."""
        numbers = np.array([_number(value) for value in values], float)
        numbers[np.isnan(numbers)] = self.edges[0] if self.usual is None else self.usual
        levels: np.ndarray = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, self.levels - 1)
        return levels

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A number from the interval of every level, uniformly."""
        edges = np.asarray(self.edges)
        if self.integer:
            first, end = np.ceil(edges[levels]), np.ceil(edges[levels + 1])
            whole: np.ndarray = rng.integers(first.astype(np.int64), np.maximum(end, first + 1).astype(np.int64))
            return whole
        numbers: np.ndarray = edges[levels] + rng.random(len(levels)) * (edges[levels + 1] - edges[levels])
        return numbers


Column = Category | Number


@dataclass(frozen=True)
class Table:
    """The public description of a table: its columns, and which of them, if any, is the class of a record.

    Attributes:
        columns: all but the label.
        label: the column of classes.
    """

    columns: tuple[Column, ...]
    label: Category | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in (*self.columns, *([self.label] if self.label else []))]
        if not self.columns or len(set(names)) < len(names):
            raise FincEvalError(f"a table needs columns, each with a name of its own, got {names}")

    @classmethod
    def load(cls, path: str | Path) -> Table:
        """The table that a .toml or .json file describes; docs/dp_generation.md has an example.

        Raises:
            FincEvalError: there is no such file, or it does not describe a table.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
            described = tomllib.loads(text) if Path(path).suffix == ".toml" else json.loads(text)
        except (OSError, ValueError) as error:
            raise FincEvalError(f"{path} cannot be read as the description of a table ({error})") from None
        entries = described.get("columns") if isinstance(described, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise FincEvalError(f"{path} must have `columns`, a list of tables with a name each")
        try:
            columns = [_column(entry) for entry in entries]
        except FincEvalError as error:
            raise FincEvalError(f"{path}: {error}") from None
        label = described.get("label")
        chosen = next((column for column in columns if column.name == label), None)
        if label is not None and not isinstance(chosen, Category):
            raise FincEvalError(f"{path}: the label must be a column with values, got {label!r}")
        rest = tuple(column for column in columns if column is not chosen)
        return cls(rest, chosen if isinstance(chosen, Category) else None)

    @property
    def classes(self) -> int:
        """The number of classes, 1 without a label."""
        return self.label.levels if self.label else 1

    @property
    def levels(self) -> list[int]:
        """The number of levels of each column."""
        return [column.levels for column in self.columns]

    @cached_property
    def codes(self) -> torch.Tensor:
        """(k, d), the view of a record that `Category.codes` and `Number.codes` describe."""
        return _side_by_side([column.codes for column in self.columns])

    @cached_property
    def amounts(self) -> torch.Tensor:
        """(k, d), the view of a record that `Category.amounts` and `Number.amounts` describe."""
        return _side_by_side([column.amounts for column in self.columns])

    def mean_square(self, view: torch.Tensor) -> float:
        """What ‖view of a record‖² is on average, as far as it is publicly known; columns apart in the view."""
        return float(torch.cat([column.prior for column in self.columns]) @ view.square().sum(1))

    @cached_property
    def positions(self) -> torch.Tensor:
        """(k, columns), the view of a record with the levels of each column far apart on one axis."""
        places = []
        for column in self.columns:
            half = min((column.levels - 1) / 2, POSITIONS)
            places.append(torch.linspace(-half, half, column.levels)[:, None] if half else torch.zeros(1, 1))
        return _side_by_side(places)

    def encoded(self, values: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The levels of every record as one-hot vectors (n, k), and classes (n,) if the table has a label.

        Raises:
            FincEvalError: a column is missing.
        """
        wanted = [*self.columns, *([self.label] if self.label else [])]
        for column in wanted:
            if column.name not in values:
                raise FincEvalError(
                    f"there is no column {column.name!r} in the data{did_you_mean(column.name, values)}: "
                    f"they have {', '.join(values)}"
                )
        levels = np.stack([column.encoded(np.asarray(values[column.name])) for column in self.columns], 1)
        labels = torch.from_numpy(self.label.encoded(np.asarray(values[self.label.name]))) if self.label else None
        return self.one_hot(torch.from_numpy(levels)), labels

    def one_hot(self, levels: torch.Tensor) -> torch.Tensor:
        """(n, columns) levels → (n, k) float32."""
        blocks = [torch.nn.functional.one_hot(level, count) for level, count in zip(levels.T, self.levels, strict=True)]
        return torch.cat(blocks, 1).float()

    def level_indices(self, records: torch.Tensor) -> torch.Tensor:
        """(n, k) one-hot vectors → (n, columns) levels."""
        return torch.stack([block.argmax(1) for block in torch.split(records, self.levels, 1)], 1)

    def decoded(self, records: torch.Tensor, labels: torch.Tensor | None, seed: int) -> dict[str, np.ndarray]:
        """The values of records, by column: numbers are drawn uniformly from the intervals of their levels."""
        rng = np.random.default_rng(seed)
        levels = self.level_indices(records).numpy()
        values = {column.name: column.decoded(level, rng) for column, level in zip(self.columns, levels.T, strict=True)}
        if self.label and labels is not None:
            values[self.label.name] = self.label.decoded(labels.numpy(), rng)
        return values


def discrete_table(levels: Sequence[int]) -> Table:
    """A table of whole numbers 0, …, L−1 with no label, as in benchmarks of marginals; every column a category."""
    return Table(
        tuple(Category(f"column {place}", tuple(map(str, range(count)))) for place, count in enumerate(levels))
    )


def _side_by_side(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Blocks on the diagonal of a matrix that is 0 elsewhere."""
    matrix: torch.Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return matrix


def _prior(levels: int, usual: int | None) -> torch.Tensor:
    if usual is None or levels == 1:
        return torch.full((levels,), 1 / levels)
    shares = torch.full((levels,), USUALLY_NOT / (levels - 1))
    shares[usual] = 1 - USUALLY_NOT
    return shares


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _column(entry: dict[str, Any]) -> Column:
    name = entry.get("name")
    for key in entry:
        if key not in KEYS:
            raise FincEvalError(
                f"column {name} cannot have {key!r}{did_you_mean(key, KEYS)}: known are {', '.join(KEYS)}"
            )
    match entry:
        case {"name": str(name), "values": [*values]}:
            usual = entry.get("usual")
            return Category(name, tuple(map(str, values)), None if usual is None else str(usual))
        case {"name": str(name), "edges": [*edges]} if all(isinstance(edge, int | float) for edge in edges):
            return Number(name, tuple(map(float, edges)), _integer(entry), _usual(entry))
        case {"name": str(name), "low": int() | float() as low, "high": int() | float() as high}:
            levels = entry.get("levels", LEVELS)
            if not isinstance(levels, int):
                raise FincEvalError(f"column {name} must have a whole number of levels, got {levels!r}")
            return Number.between(name, low, high, levels, integer=_integer(entry), usual=_usual(entry))
        case _:
            raise FincEvalError(
                f"column {name} must have a name and either values, or low and high, or edges: they are public "
                "knowledge, and not read off the data"
            )


def _integer(entry: dict[str, Any]) -> bool:
    return bool(entry.get("integer", False))


def _usual(entry: dict[str, Any]) -> float | None:
    usual = entry.get("usual")
    if usual is not None and not isinstance(usual, int | float):
        raise FincEvalError(f"the usual value of column {entry['name']} must be a number, got {usual!r}")
    return usual
