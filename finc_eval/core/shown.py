"""`Shown`: how public results appear in Python: a short text, a table in notebooks, plain types and a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from finc_eval.core.errors import UsageError
from finc_eval.core.record import plain
from finc_eval.core.terminal import visible

if TYPE_CHECKING:
    import pandas as pd

SHOWN_ROWS = 8
"""Rows of a table that a short text has: with its first and its last line it has ten lines at most."""

SIGNIFICANT = 0.05
"""Adjusted p-value up to which a row of a table is significant."""

MAX_LINE = 120
"""Characters of a row in a short text."""


class Shown:
    """Base of public results. A class says what is short about it (`_summary`), and its rows (`_frame_rows`)."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]  # before @dataclass writes a long one

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        return dict(plain(self))

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the result as a pandas data frame.

        It has a column for each number and text. Dots join nested names, as "shares.a.share", and an interval
        is two columns, as "interval.low" and "interval.high". Where rows have an adjusted p-value, the column
        "significant" says whether it is at most 0.05. Lists are in `to_dict` alone.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError("to_frame needs pandas: pip install pandas, or use to_dict()") from error
        return pd.DataFrame([*self._cell_rows()])

    def _cell_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the numbers and texts of each row of the table, by column."""
        for one in self._frame_rows():
            cells = dict(_cells(one if isinstance(one, Mapping) else plain(one)))
            for name, p in [*cells.items()]:
                if name.rpartition(".")[2] == "p_value":
                    cells[name.removesuffix("p_value") + "significant"] = p is not None and p <= SIGNIFICANT
            yield cells

    def _summary(self) -> str:
        """Return what stands between the brackets of the short text."""
        return ", ".join(f"{name}={value!r}" for name, value in self._shown().items())

    def _frame_rows(self) -> Iterable[object]:
        """Return the rows of the table: records, or plain types by name."""
        return (self.to_dict(),)

    def _shown(self) -> dict[str, object]:
        """Return what a notebook shows, by name."""
        return dict(_cells(self.to_dict()))

    def _lines(self) -> Iterable[str]:
        """Return the rows of the short text; default: none."""
        return ()

    def __repr__(self) -> str:
        lines = [visible(line).replace("\n", " ") for line in islice(self._lines(), SHOWN_ROWS + 1)]
        rows = [line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…" for line in lines[:SHOWN_ROWS]]
        more = ["…"] * (len(lines) > SHOWN_ROWS)
        first = visible(self._summary()).replace("\n", " ")
        return "\n  ".join([f"{type(self).__name__}({first})", *rows, *more])

    def _repr_html_(self) -> str:
        cells = (
            f"<tr><th>{escape(name)}</th><td>{escape(_text(one))}</td></tr>" for name, one in self._shown().items()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{''.join(cells)}</table>"


def _cells(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers and texts of a row with their names."""
    for key, value in row.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _cells(value, f"{name}.")
        elif name.endswith("interval") and (value is None or len(value) == 2):
            yield from zip((f"{name}.low", f"{name}.high"), value or (None, None), strict=True)
        elif not isinstance(value, list | tuple):
            yield name, value


def _text(value: object) -> str:
    return "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
