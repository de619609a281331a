"""`SideBySide`: several comparisons of the same two sets that differ in one thing: space, method or value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import model_validator

from finc_eval.comparison.direction import Direction
from finc_eval.comparison.result import IN_SENTENCES, Comparison
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.pictured import Pictured
from finc_eval.numerics.inference import ALPHA, significant


@dataclass(frozen=True, eq=False)
class SideBySide(Pictured):
    """Several comparisons, by what differs between them.

    A type of result says what its `rows` are, and has what it found by all of them: which kinds or directions agree.
    Its sets, directions, warnings and outline follow (`finc_eval/comparison/pages/side_by_side.py`).
    """

    names_in_sentences = IN_SENTENCES

    @model_validator(mode="after")
    def _check_rows(self) -> Self:
        if not self.rows:
            raise ValueError("has no comparison")
        return self

    @property
    def rows(self) -> Mapping[Any, Comparison]:
        """Comparisons, by the name or number in which they differ."""
        raise NotImplementedError

    @property
    def first(self) -> Comparison:
        """The first comparison."""
        return next(iter(self.rows.values()))

    @property
    def directions(self) -> list[tuple[Any, Direction]]:
        """Directions of all comparisons, each after the name or number of its comparison."""
        return [(name, found) for name, comparison in self.rows.items() for found in comparison.directions]

    @property
    def significant(self) -> dict[Any, tuple[Direction, ...]]:
        """Significant directions of each comparison."""
        return {name: significant(comparison.directions, ALPHA) for name, comparison in self.rows.items()}

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """Warnings of all comparisons, each once."""
        return tuple(dict.fromkeys(warning for found in self.rows.values() for warning in found.warnings))

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the sets that were compared."""
        return self.first.pictured_sets()
