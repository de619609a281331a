"""Columns of public descriptions of tables: names, or numbers in intervals, each with finitely many levels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.private.dp.public_values import column_array, count_texts, is_missing, numbers_of, places_of

UNUSUAL_SHARE = 0.1  # assumed share of records without the usual value, for a column with a usual value

COLUMN_KEYS = ("name", "values", "low", "high", "levels", "edges", "integer", "usual", "missing")
"""Keys that the description of a column may have."""

DEFAULT_LEVELS = 16  # number of intervals of a column of numbers whose description does not say how many
MAX_LEVELS = 10_000  # levels of a column at most: tables of levels grow with their square

MISSING_LEVEL = "missing"  # name of the level of numbers that are missing


@dataclass(frozen=True)
class Category:
    """A column of names, in no order.

    Attributes:
        name: name of the column.
        values: all values that occur. Any other value in the data counts as the usual value.
        usual: value that most records are known to have, or None; it lies at the origin of the codes.
        missing: value that an empty cell, NA, nan or null stands for, or None if such cells do not fit.

    Raises:
        UsageError: values repeat or are missing, or do not contain the usual value, or the value for what is missing.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.Category("ward", ("east", "west", "?"), usual="?").levels
        3
    """

    name: str
    values: tuple[str, ...]
    usual: str | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.values)) < max(len(self.values), 1):
            raise UsageError(f"column {self.name} must have values, each once, got {list(self.values)}")
        for what, value in (("usual value", self.usual), ("value for what is missing", self.missing)):
            if value is not None and value not in self.values:
                raise UsageError(
                    f"the {what} of column {self.name} must be one of its values, got {value!r}"
                    f"{did_you_mean(value, self.values)}"
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
            usual = self.values.index(self.usual)
            return torch.cat([corners[:, :usual], corners[:, usual + 1 :]], 1)
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
        places = places_of(column_array(values, name), self.values, name, self.missing)
        other = self.values.index(self.usual) if self.usual is not None else 0
        return np.where(places < 0, other, places)

    def misfits(self, values: ArrayLike) -> Counter[str]:
        """Return the values that are not listed, with the number of records that have each."""
        given = column_array(values, f"column {self.name}")
        return count_texts(given, places_of(given, self.values, f"column {self.name}", self.missing) < 0)

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the value of every level, shape (n,)."""
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
        missing: whether what is missing has a level of its own, the last; such records are drawn as NaN.

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
    missing: bool = False

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
        missing: bool = False,
    ) -> Number:
        """Describe a column from low to high, both included, in intervals of equal width.

        Args:
            name: name of the column.
            low: smallest number.
            high: largest number.
            levels: number of intervals. Fewer whole numbers than that get one interval each.
            integer: whether values are whole numbers.
            usual: number that most records are known to have.
            missing: whether what is missing has a level of its own.

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
        return cls(name, tuple(float(edge) for edge in np.linspace(low, end, count + 1)), integer, usual, missing)

    @property
    def levels(self) -> int:
        """Number of intervals, and one more if what is missing has a level."""
        return len(self.edges) - 1 + self.missing

    @property
    def codes(self) -> torch.Tensor:
        """Codes of the levels, (levels, 1 or 2): evenly spaced over √2, the distance of two categories.

        The usual level is at 0; else the middle is. What is missing lies at 1 on an axis of its own.
        """
        count = len(self.edges) - 1
        places = torch.linspace(-0.5, 0.5, count) * 2**0.5 if count > 1 else torch.zeros(1)
        origin = 0.0 if self.usual is None else float(places[self.encoded(np.array([self.usual]))[0]])
        numbers = (places - origin)[:, None]
        return torch.block_diag(numbers, torch.ones(1, 1)) if self.missing else numbers  # type: ignore[no-untyped-call]

    @property
    def amounts(self) -> torch.Tensor:
        """Coordinates of each level: its distance above the level at 0, its distance below, and what is missing."""
        codes = self.codes
        every = torch.cat([codes[:, :1], -codes[:, :1], codes[:, 1:]], 1).clamp_min(0)
        return every[:, every.any(0)]

    @property
    def prior(self) -> torch.Tensor:
        """Publicly known shares of the levels: all equal, or nine in ten records usual."""
        return _prior(self.levels, None if self.usual is None else int(self.encoded(np.array([self.usual]))[0]))

    def encoded(self, values: ArrayLike) -> np.ndarray:
        """Return the level of every value; a value that is not a number gets the usual level, or the first.

        Raises:
            DataError: the values have a form that no column has.
        """
        given = column_array(values, f"column {self.name}")
        numbers = numbers_of(given)
        numbers[np.isnan(numbers)] = self.edges[0] if self.usual is None else self.usual
        levels: np.ndarray = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, len(self.edges) - 2)
        return np.where(is_missing(given), self.levels - 1, levels) if self.missing else levels

    def misfits(self, values: ArrayLike) -> Counter[str]:
        """Return the values that are not numbers from the first to the last edge, with their numbers of records."""
        given = column_array(values, f"column {self.name}")
        numbers = numbers_of(given)
        fits = (numbers >= self.edges[0]) & (numbers <= self.edges[-1])
        return count_texts(given, ~(fits | is_missing(given) if self.missing else fits))

    def decoded(self, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a number from the interval of every level, uniformly; NaN for the level of what is missing."""
        if self.missing:
            known = levels < self.levels - 1
            drawn = np.full(len(levels), np.nan)
            drawn[known] = replace(self, missing=False).decoded(levels[known], rng)
            return drawn
        edges = np.asarray(self.edges)
        if self.integer:
            first, end = np.ceil(edges[levels]), np.ceil(edges[levels + 1])
            whole: np.ndarray = rng.integers(first.astype(np.int64), np.maximum(end, first + 1).astype(np.int64))
            return whole
        numbers: np.ndarray = edges[levels] + rng.random(len(levels)) * (edges[levels + 1] - edges[levels])
        return numbers


Column = Category | Number


def _prior(levels: int, usual: int | None) -> torch.Tensor:
    if usual is None or levels == 1:
        return torch.full((levels,), 1 / levels)
    shares = torch.full((levels,), UNUSUAL_SHARE / (levels - 1))
    shares[usual] = 1 - UNUSUAL_SHARE
    return shares


def described_column(entry: dict[str, Any]) -> Column:
    """Return the column that an entry of a description describes.

    Raises:
        DataError: the entry does not describe a column.
    """
    name = entry.get("name")
    for key in entry:
        if key not in COLUMN_KEYS:
            raise DataError(
                f"column {name} cannot have {key!r}{did_you_mean(key, COLUMN_KEYS)}: "
                f"the keys are {', '.join(COLUMN_KEYS)}"
            )
    integer, usual, missing = bool(entry.get("integer", False)), entry.get("usual"), entry.get("missing")
    if missing is not None and not isinstance(missing, str if "values" in entry else bool):
        form = "one of its values" if "values" in entry else "true or false"
        raise DataError(f"`missing` of column {name} must be {form}, got {missing!r}")
    match entry:
        case {"name": str(name), "values": [*values]}:
            return Category(
                name,
                tuple(map(str, values)),
                None if usual is None else str(usual),
                None if missing is None else str(missing),
            )
        case {"name": str(name), "edges": [*edges]} if all(isinstance(edge, int | float) for edge in edges):
            return Number(name, tuple(map(float, edges)), integer, _usual_number(name, usual), bool(missing))
        case {"name": str(name), "low": int() | float() as low, "high": int() | float() as high}:
            levels = entry.get("levels", DEFAULT_LEVELS)
            if not isinstance(levels, int):
                raise DataError(f"column {name} must have a whole number of levels, got {levels!r}")
            usual = _usual_number(name, usual)
            return Number.between(name, low, high, levels, integer=integer, usual=usual, missing=bool(missing))
        case _:
            raise DataError(
                f"column {name} must have a name and either values, or low and high, or edges: they are public "
                "knowledge, and not taken from the data"
            )


def _usual_number(name: str, usual: object) -> float | None:
    if usual is None or isinstance(usual, int | float):
        return usual
    raise DataError(f"the usual value of column {name} must be a number, got {usual!r}")
