"""`Scored`: what a layout reads in a table, and how its values are checked.

What a layout lacks is named by its place: a cut or joined file of a real tool is one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from finc_eval.core.errors import DataError
from finc_eval.core.files.columns_in import Columns
from finc_eval.judges.tables import number_of, shown
from finc_eval.judges.weighting import Weighting

MAX_SCORE = 1e50  # size of a score that is read: sums of squares of larger ones would have no end

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scored:
    """Columns id, prompt, seed, labels and judges.

    Attributes:
        columns: columns of equal lengths.
        judges: columns that the layout knows as judges; None for a table that is nobody's layout.
        stated: number that the file states for the whole model, by judge.
        has_names: whether ids are names of samples; False if the layout has none, and ids are made from prompts.
        is_numbered: whether ids are the last numbers of the names of samples.
        versions: version of a judge, as the file says, by judge.
        weighted: how the benchmark makes its number of a judge, by judge; higher is better by each of these.
    """

    columns: Columns
    judges: tuple[str, ...] | None = None
    stated: dict[str, float] = field(default_factory=dict)
    has_names: bool = True
    is_numbered: bool = False
    versions: dict[str, str] = field(default_factory=dict)
    weighted: dict[str, Weighting] = field(default_factory=dict)


def score_in(value: object, where: str, what: str) -> float:
    """Return a value as a score, NaN if it is missing; DataError for a text, and for what no score can be."""
    found = number_of(value)
    if found is None:
        raise DataError(f"{where} has {what} {shown(value):.60}, not a number: correct it")
    if abs(found) > MAX_SCORE:
        raise DataError(
            f"{where} has {what} {shown(value):.40}, beyond {MAX_SCORE:g}: correct it, or leave its cell empty"
        )
    return found


def needed(value: Any, where: str, key: str) -> Any:
    """Return a value that a layout needs; DataError if it is missing."""
    if value is None or value == "":
        raise DataError(f"{where} lacks {key}: the file is cut or mixed with another; make it again")
    return value
