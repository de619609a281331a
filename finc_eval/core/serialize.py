"""`Document`: a result that is JSON with a published schema, a page, Markdown and CSV.

`Shown`, its base, is how public results appear in Python: a short text, a table in notebooks, a data frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from finc_eval.core.errors import DataError, UsageError, check_fraction
from finc_eval.core.files.csv_text import csv_text
from finc_eval.core.files.file_types import check_layout
from finc_eval.core.marks import CHECKSUM, checksum_of, mark, read_sealed, seal
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, plain, schema, structure
from finc_eval.core.storage import PROGRAM, write_text
from finc_eval.core.terminal import visible
from finc_eval.core.words import shorten

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN_ROWS = 8  # rows of a table that a short text has: with its first and its last line it has ten lines at most
SIGNIFICANT = 0.05  # adjusted p-value up to which a row of a table is significant
MAX_SHOWN_LINE = 120  # characters of a row in a short text


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
        for row in self._frame_rows():
            cells = dict(_cells(row if isinstance(row, Mapping) else plain(row)))
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
        rows = [
            line if len(line) <= MAX_SHOWN_LINE else f"{line[: MAX_SHOWN_LINE - 1]}…" for line in lines[:SHOWN_ROWS]
        ]
        more = ["…"] * (len(lines) > SHOWN_ROWS)
        first = shorten(visible(self._summary()).replace("\n", " "))
        return "\n  ".join([f"{type(self).__name__}({first})", *rows, *more])

    def _repr_html_(self) -> str:
        texts = {
            name: "–" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
            for name, value in self._shown().items()
        }
        cells = (
            f"<tr><th>{escape(visible(name))}</th><td>{escape(visible(text))}</td></tr>" for name, text in texts.items()
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


LAYOUT = 3  # Layout of all results. It is raised whenever what is stored of one changes, and others are not read.


def read_document(path: str | Path, types: Collection[str]) -> dict[str, Any]:
    """Read a result of one of these types in JSON, and check that it is what was written."""
    return read_sealed(path, "a result", types, LAYOUT)


class _Drawn(Protocol):
    """The outputs that the `PAGE` of a result makes."""

    @property
    def says(self) -> Callable[[Any], Mapping[str, str]]: ...
    def with_gallery(self, result: Any, path: Path, samples: Mapping[str, Any]) -> Path: ...
    def html(self, result: Document, samples: Mapping[str, Any], /) -> str: ...
    def markdown(self, result: Document, /) -> str: ...
    def latex(self, result: Document, /) -> str: ...
    def figure(self, result: Document, alpha: float, /) -> Figure: ...
    def fragment(self, result: Document, samples: Mapping[str, Any], /) -> str: ...


@dataclass(frozen=True, eq=False)
class Document(Record, Shown):
    """A result: a frozen dataclass that is written as JSON, read back, and drawn as a page.

    Attributes:
        provenance: what made it: versions, device, git state, command line.
    """

    type_name: ClassVar[str]
    """Name of the kind of result in files, such as "comparison"."""

    page: ClassVar[str]
    """Module whose `PAGE` draws the result, such as "finc_eval.comparison.pages.comparison"; it loads on first use."""

    provenance: Provenance = field(kw_only=True)

    @property
    def _drawn(self) -> _Drawn:
        return cast(_Drawn, import_module(self.page).PAGE)

    @property
    def says(self) -> Mapping[str, str]:
        """Findings by key, a sentence or two each; all outputs begin with them, in this order."""
        return self._drawn.says(self)

    @property
    def headline(self) -> str:
        """Findings in a few plain sentences."""
        return " ".join(self.says.values())

    @property
    def mark(self) -> str:
        """Mark of the files of the result: its type, and the job that made it or, made in Python, its content."""
        return mark(self.type_name, self.provenance.job or checksum_of(_as_read(self.to_dict())))

    def marked(self, job: str | None) -> Self:
        """Return the result with the digest of the job that made it, by which the same job knows its files."""
        return replace(self, provenance=replace(self.provenance, job=job))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON types."""
        return seal(self.type_name, LAYOUT, {"headline": self.headline} | plain(self))

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON text.

        Args:
            path: file to write the text to as well.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        _also_written(path, text + "\n")
        return text

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "the result") -> Self:
        """Build the result from what `to_dict` returned, and the fields that JSON leaves out.

        Args:
            data: plain JSON types.
            where: what to call the data in a message.

        Raises:
            DataError: the data are damaged, or have another type or layout.
        """
        if data.get("program") != PROGRAM or data.get("type") != cls.type_name:
            raise DataError(f"{where} is not a {PROGRAM} {cls.type_name}: pass one, or make it again")
        check_layout(where, cls.type_name, data.get("layout"), LAYOUT)
        return structure(cls, data, where)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of `to_dict`."""
        body = schema(cls)
        head = {
            "program": {"const": PROGRAM, "type": "string"},
            "type": {"const": cls.type_name, "type": "string"},
            "layout": {"const": LAYOUT, "type": "integer"},
            "headline": {"type": "string", "description": "Findings in a few plain sentences."},
        }
        last = {CHECKSUM: {"type": "string", "description": "digest of everything else, by which damage is found"}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **body,
            "properties": head | body["properties"] | last,
            "required": [*dict.fromkeys([*head, *body.get("required", ()), *last])],
        }

    def to_html(self, path: str | Path, *, samples: Mapping[str, Any] | None = None, gallery: bool = False) -> Path:
        """Write the page of the result: one self-contained HTML file.

        Args:
            path: file to write.
            samples: where the samples of a set are now, by the set's label, if not where they were embedded from:
                a folder, zip, npz or array.
            gallery: whether to write the folder beside the page, too, with all members of each kind.

        Raises:
            DataError: samples that were passed cannot be opened, the file cannot be written, or the result has no map
                for a gallery.
            UsageError: a gallery of a type of result that has no kinds with a map.
        """
        if gallery:
            return self._drawn.with_gallery(self, Path(path), samples or {})
        return write_text(path, self._drawn.html(self, samples or {}))

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the result as Markdown of at most 900 KiB, which the page of a CI job takes.

        Args:
            path: file to write the text to as well.
        """
        return _also_written(path, self._drawn.markdown(self))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the table of the result as CSV: the rows and columns of `to_frame`, without pandas.

        The first column, "result", names the type of the result and the job that made it; of a table without rows it is
        all there is. A text that a spreadsheet would take for a formula begins with an apostrophe.

        Args:
            path: file to write the text to as well.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> fe.metrics(*example_sets(300), "vendi").to_csv().splitlines()[0]
            'result,name,key,value,signature,of,unbiased,interval.low,interval.high,floor,higher_is_better'
        """
        first = {"result": self.mark}
        return _also_written(path, csv_text([first | row for row in self._cell_rows()] or [first]))

    def to_latex(self, path: str | Path | None = None) -> str:
        r"""Return the tables of the result as LaTeX, for a paper that uses the package booktabs.

        Args:
            path: file to write the text to as well.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> print(fe.metrics(*example_sets(300), "rke").to_latex().splitlines()[6])
            Metric & Value & Unbiased & Interval, 95 \% & Floor & Better \\
        """
        return _also_written(path, self._drawn.latex(self))

    def figure(self, alpha: float = SIGNIFICANT) -> Figure:
        """Draw the numbers of `to_frame` with their intervals: shares of significant kinds, values, limits.

        Args:
            alpha: adjusted p-value up to which a kind is significant.

        Returns:
            The figure. Its `savefig("shares.pdf")` writes it, and a notebook shows it.

        Raises:
            DataError: nothing is significant, or the table has no numbers.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> figure = fe.compare(*example_sets(1000), features=500).figure()
            >>> figure.axes[0].get_xlabel()
            'Share of the set, %'
        """
        return self._drawn.figure(self, check_fraction("alpha", alpha))

    def _lines(self) -> Iterable[str]:
        return (row._summary() for row in self._frame_rows() if isinstance(row, Shown))

    def _repr_html_(self) -> str:
        return self._drawn.fragment(self, {})


def _as_read(value: Any) -> Any:
    """Return plain JSON types with whole numbers as decimals: reading a file may turn 1 into 1.0."""
    if isinstance(value, Mapping):
        return {key: _as_read(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_read(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _also_written(path: str | Path | None, text: str) -> str:
    if path is not None:
        write_text(path, text)
    return text
