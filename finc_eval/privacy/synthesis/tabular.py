"""Public descriptions of tables: every column has finitely many levels, which are known in advance.

A record is the one-hot vector of its levels, with all columns concatenated. Feature maps see it through public linear
views. `codes` gives similar levels near vectors and serves the relations between columns. `amounts` is the same without
negative entries, for bounded moments. `positions` gives one number per column with its levels far apart, for the
distribution of each column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.parsed import read_json, read_toml
from finc_eval.privacy.dp.public_values import column_array, column_arrays, numbers_of, places_of

MAX_POSITION = 8.0  # levels of a column lie in [−8, 8] in the view `positions`, so up to 17 of them are 1 apart
UNUSUAL_SHARE = 0.1  # assumed share of records without the usual value, for a column with a usual value

COLUMN_KEYS = ("name", "values", "low", "high", "levels", "edges", "integer", "usual")
"""Keys that the description of a column may have."""

DEFAULT_LEVELS = 16  # number of intervals of a column of numbers whose description does not say how many
MAX_LEVELS = 10_000  # levels of a column at most: tables of levels grow with their square


@dataclass(frozen=True)
class Category:
    """A column of names, in no order.

    Attributes:
        name: name of the column.
        values: all values that occur. Any other value in the data counts as the usual value.
        usual: value that most records are known to have, or None; it lies at the origin of the codes.

    Raises:
        UsageError: values repeat or are missing, or do not contain the usual value.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.Category("ward", ("east", "west", "?"), usual="?").levels
        3
    """

    name: str
    values: tuple[str, ...]
    usual: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.values)) < max(len(self.values), 1):
            raise UsageError(f"column {self.name} must have values, each once, got {list(self.values)}")
        if self.usual is not None and self.usual not in self.values:
            raise UsageError(
                f"the usual value of column {self.name} must be one of its values, got {self.usual!r}"
                f"{did_you_mean(self.usual, self.values)}"
            )

    @property
    def levels(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def codes(self) -> torch.Tensor:
        """Codes of the levels, (levels, coordinates): corners of a simplex around 0, or the usual value at 0."""
        corners = torch.eye(self.levels)
        if self.usual is not None:
            place = self.values.index(self.usual)
            return torch.cat([corners[:, :place], corners[:, place + 1 :]], 1)
        # The two corners of a simplex of two values lie on a line.
        return torch.tensor([[-0.5], [0.5]]) * 2**0.5 if self.levels == 2 else corners - 1 / self.levels

    @property
    def amounts(self) -> torch.Tensor:
        """Coordinates of each level, (levels, coordinates): one-hot; the usual value is the zero vector."""
        return self.codes if self.usual is not None else torch.eye(self.levels)

    @property
    def prior(self) -> torch.Tensor:
        """Publicly known shares of the levels: all equal, or nine in ten records usual."""
        return _prior(self.levels, None if self.usual is None else self.values.index(self.usual))

    def encoded(self, values: ArrayLike) -> np.ndarray:
        """Return the level of every value; a value that is not listed gets the usual level, or the first.

        Raises:
            DataError: the values have a form or a type that no listed value has.
        """
        name = f"column {self.name}"
        places = places_of(column_array(values, name), self.values, name)
        other = self.values.index(self.usual) if self.usual is not None else 0
        return np.where(places < 0, other, places)

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the value of every level."""
        chosen: np.ndarray = np.array(self.values, dtype=str)[levels]
        return chosen


@dataclass(frozen=True)
class Number:
    """A column of numbers, cut into intervals.

    Attributes:
        name: name of the column.
        edges: L+1 ascending numbers. Level l is [edges[l], edges[l+1]); numbers outside go to the nearest level.
        integer: whether values are whole numbers.
        usual: number that most records are known to have, or None; its level lies at the origin of the codes.

    Raises:
        UsageError: the edges do not ascend, or are too large for whole numbers.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.Number.between("age", low=18, high=95, levels=4).edges
        (18.0, 37.25, 56.5, 75.75, 95.0)
    """

    name: str
    edges: tuple[float, ...]
    integer: bool = False
    usual: float | None = None

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not bool((np.diff(self.edges) > 0).all()) or not np.isfinite(self.edges).all():
            raise UsageError(f"the edges of column {self.name} must ascend, got {list(self.edges)}")
        if self.integer and max(map(abs, self.edges)) > 2**53:  # beyond it, floats are further apart
            raise UsageError(f"whole numbers of column {self.name} exceed 2^53, got {self.edges}: leave integer out")

    @classmethod
    def between(
        cls,
        name: str,
        low: float,
        high: float,
        levels: int = DEFAULT_LEVELS,
        *,
        integer: bool = False,
        usual: float | None = None,
    ) -> Number:
        """Describe a column from low to high, both included, in intervals of equal width.

        Args:
            name: name of the column.
            low: smallest number.
            high: largest number.
            levels: number of intervals. Fewer whole numbers than that get one interval each.
            integer: whether values are whole numbers.
            usual: number that most records are known to have.

        Raises:
            UsageError: the range is empty, or the number of intervals is not positive.
        """
        if not (low < high and isfinite(high + 1 - low) and 1 <= levels <= MAX_LEVELS):
            raise UsageError(
                f"column {name} must go from a low to a higher number in 1 to {MAX_LEVELS} levels, got {low:g}, "
                f"{high:g} and {levels} levels"
            )
        end = high + 1 if integer else high
        count = min(levels, int(end - low)) if integer else levels
        return cls(name, tuple(float(edge) for edge in np.linspace(low, end, count + 1)), integer, usual)

    @property
    def levels(self) -> int:
        """Number of intervals."""
        return len(self.edges) - 1

    @property
    def codes(self) -> torch.Tensor:
        """Codes of the levels, (levels, 1): evenly spaced over √2, the distance of two categories.

        The usual level is at 0; else the middle is.
        """
        places = torch.linspace(-0.5, 0.5, self.levels) * 2**0.5 if self.levels > 1 else torch.zeros(1)
        origin = 0.0 if self.usual is None else float(places[self.encoded(np.array([self.usual]))[0]])
        return (places - origin)[:, None]

    @property
    def amounts(self) -> torch.Tensor:
        """Coordinates of each level, (levels, 1 or 2): its distance above the level at 0, and its distance below."""
        both = torch.cat([self.codes, -self.codes], 1).clamp_min(0)
        return both[:, both.any(0)]

    @property
    def prior(self) -> torch.Tensor:
        """Publicly known shares of the levels: all equal, or nine in ten records usual."""
        return _prior(self.levels, None if self.usual is None else int(self.encoded(np.array([self.usual]))[0]))

    def encoded(self, values: ArrayLike) -> np.ndarray:
        """Return the level of every value; a value that is not a number gets the usual level, or the first.

        Raises:
            DataError: the values have a form that no column has.
        """
        numbers = numbers_of(column_array(values, f"column {self.name}"))
        numbers[np.isnan(numbers)] = self.edges[0] if self.usual is None else self.usual
        levels: np.ndarray = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, self.levels - 1)
        return levels

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a number from the interval of every level, uniformly."""
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
    """The public description of a table: its columns, and the column of classes, if any.

    Attributes:
        columns: all columns but the label.
        label: column of classes, or None.

    Raises:
        UsageError: columns are missing, or two of them have the same name.

    Example:
        >>> import finc_eval as fe
        >>> age = fe.privacy.Number.between("age", 18, 95, levels=7)
        >>> smokes, ill = (fe.privacy.Category(name, ("no", "yes")) for name in ("smokes", "ill"))
        >>> table = fe.privacy.Table((age, smokes), label=ill)
        >>> table.levels, table.classes
        ([7, 2], 2)
    """

    columns: tuple[Column, ...]
    label: Category | None = None

    def __post_init__(self) -> None:
        names = [column.name for column in self._every_column]
        if not self.columns or len(set(names)) < len(names):
            raise UsageError(f"a table needs columns, each with a name of its own, got {names}")

    @property
    def _every_column(self) -> tuple[Column, ...]:
        return (*self.columns, self.label) if self.label else self.columns

    @classmethod
    def load(cls, path: str | Path) -> Table:
        """Read the description of a table from a .toml or .json file; docs/dp_generation.md has an example.

        Raises:
            DataError: the file cannot be read, or does not describe a table.
        """
        described = read_toml(path) if Path(path).suffix == ".toml" else read_json(path)
        entries = described.get("columns") if isinstance(described, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise DataError(f"{path} must have `columns`, a list of tables with a name each")
        try:
            columns = [_column(entry) for entry in entries]
        except (DataError, UsageError) as error:
            raise DataError(f"{path}: {error}") from None
        label = described.get("label")
        chosen = next((column for column in columns if column.name == label), None)
        if label is not None and not isinstance(chosen, Category):
            raise DataError(f"{path}: the label must be a column with values, got {label!r}")
        rest = tuple(column for column in columns if column is not chosen)
        return cls(rest, chosen if isinstance(chosen, Category) else None)

    @property
    def classes(self) -> int:
        """Number of classes, 1 without a label."""
        return self.label.levels if self.label else 1

    @property
    def levels(self) -> list[int]:
        """Number of levels of each column."""
        return [column.levels for column in self.columns]

    @cached_property
    def codes(self) -> torch.Tensor:
        """View of a record as the codes of its levels, (k, d)."""
        return _block_diagonal([column.codes for column in self.columns])

    @cached_property
    def amounts(self) -> torch.Tensor:
        """View of a record as the amounts of its levels, (k, d)."""
        return _block_diagonal([column.amounts for column in self.columns])

    def mean_square(self, view: torch.Tensor) -> float:
        """Return the publicly known mean of ‖view of a record‖², for a view that keeps columns apart."""
        return float(torch.cat([column.prior for column in self.columns]) @ view.square().sum(1))

    @cached_property
    def positions(self) -> torch.Tensor:
        """View of a record with the levels of each column far apart on one axis, (k, columns)."""
        places = []
        for column in self.columns:
            half = min((column.levels - 1) / 2, MAX_POSITION)
            places.append(torch.linspace(-half, half, column.levels)[:, None] if half else torch.zeros(1, 1))
        return _block_diagonal(places)

    def encoded(self, values: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the levels of every record as one-hot vectors (n, k), and classes (n,) if the table has a label.

        Raises:
            DataError: a column is missing, has another length than the others, or values of a wrong type.
        """
        for column in self._every_column:
            if column.name not in values:
                raise DataError(
                    f"column {column.name!r} is missing in the data{did_you_mean(column.name, values)}: "
                    f"they have {', '.join(values)}"
                )
        given = column_arrays({column.name: values[column.name] for column in self._every_column})
        encoded = {column.name: column.encoded(given[column.name]) for column in self._every_column}
        levels = np.stack([encoded[column.name] for column in self.columns], 1)
        labels = torch.from_numpy(encoded[self.label.name]) if self.label else None
        return self.one_hot(torch.from_numpy(levels)), labels

    def one_hot(self, levels: torch.Tensor) -> torch.Tensor:
        """Turn levels (n, columns) into one-hot vectors (n, k), float32."""
        blocks = [torch.nn.functional.one_hot(level, count) for level, count in zip(levels.T, self.levels, strict=True)]
        return torch.cat(blocks, 1).float()

    def level_indices(self, records: torch.Tensor) -> torch.Tensor:
        """Turn one-hot vectors (n, k) into levels (n, columns)."""
        return torch.stack([block.argmax(1) for block in torch.split(records, self.levels, 1)], 1)

    def decoded(self, records: torch.Tensor, labels: torch.Tensor | None, seed: int) -> dict[str, np.ndarray]:
        """Return the values of records by column. Numbers are drawn uniformly from the intervals of their levels."""
        rng = np.random.default_rng(seed)
        levels = self.level_indices(records).numpy()
        values = {column.name: column.decoded(level, rng) for column, level in zip(self.columns, levels.T, strict=True)}
        if self.label and labels is not None:
            values[self.label.name] = self.label.decoded(labels.numpy(), rng)
        return values


def _block_diagonal(blocks: list[torch.Tensor]) -> torch.Tensor:
    """Put blocks on the diagonal of a matrix that is 0 elsewhere."""
    matrix: torch.Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return matrix


def _prior(levels: int, usual: int | None) -> torch.Tensor:
    if usual is None or levels == 1:
        return torch.full((levels,), 1 / levels)
    shares = torch.full((levels,), UNUSUAL_SHARE / (levels - 1))
    shares[usual] = 1 - UNUSUAL_SHARE
    return shares


def _column(entry: dict[str, Any]) -> Column:
    name = entry.get("name")
    for key in entry:
        if key not in COLUMN_KEYS:
            raise DataError(
                f"column {name} cannot have {key!r}{did_you_mean(key, COLUMN_KEYS)}: "
                f"the keys are {', '.join(COLUMN_KEYS)}"
            )
    integer, usual = bool(entry.get("integer", False)), entry.get("usual")
    match entry:
        case {"name": str(name), "values": [*values]}:
            return Category(name, tuple(map(str, values)), None if usual is None else str(usual))
        case {"name": str(name), "edges": [*edges]} if all(isinstance(edge, int | float) for edge in edges):
            return Number(name, tuple(map(float, edges)), integer, _usual_number(name, usual))
        case {"name": str(name), "low": int() | float() as low, "high": int() | float() as high}:
            levels = entry.get("levels", DEFAULT_LEVELS)
            if not isinstance(levels, int):
                raise DataError(f"column {name} must have a whole number of levels, got {levels!r}")
            return Number.between(name, low, high, levels, integer=integer, usual=_usual_number(name, usual))
        case _:
            raise DataError(
                f"column {name} must have a name and either values, or low and high, or edges: they are public "
                "knowledge, and not taken from the data"
            )


def _usual_number(name: str, usual: object) -> float | None:
    if usual is None or isinstance(usual, int | float):
        return usual
    raise DataError(f"the usual value of column {name} must be a number, got {usual!r}")
