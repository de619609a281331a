"""`figure_of` and `latex`: the numbers of a result as a matplotlib figure and as LaTeX tables, for a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from finc_eval.core.errors import DataError
from finc_eval.core.words import SET_NAMES
from finc_eval.report.colors import COLORS
from finc_eval.report.exports.outline import Outline, TextTable
from finc_eval.report.formats import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PAPER_WIDTH, ROW, PANEL_AROUND = 6.5, 0.2, 1.1
"""Inches: of a text column, from one number to the next, and above and below all numbers of a panel together."""

PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Names are text, whatever they hold: where matplotlib is set to start TeX, it would run the commands in them."""

SPREAD = 0.6  # part of the height of a row that its numbers take

STYLES: dict[str, dict[str, Any]] = {
    SET_NAMES["gen"]: {"color": COLORS["gen"]},
    SET_NAMES["ref"]: {"fmt": "s", "color": COLORS["ref"]},
}
"""Marks of the two sets of a comparison, as on its page; other sets have the colors of matplotlib."""

LOWER_END = ".interval.low"  # end of the name of a column of lower ends, such as "shares.gen.interval.low"

OF_SET = "Share of the set"

Number = tuple[float, float, float]  # a number, and the ends of its interval

VALUES = ("unbiased", "value", "statistics.auc", "attack.auc", "moved")
"""Columns of values; the first that a table has is drawn."""

MARKS = ("floor", "margin", "control")  # columns of numbers that stand next to a value

SPELLED = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "−": "$-$",
    "±": "$\\pm$",
    "×": "$\\times$",
    "·": "$\\cdot$",
    "≤": "$\\leq$",
    "≥": "$\\geq$",
    "∞": "$\\infty$",
    "²": "$^2$",
    "³": "$^3$",
    "⁻": "$^{-}$",
    "→": "$\\to$",
    "–": "--",
    "…": "\\dots{}",
    "ρ": "$\\rho$",
    "σ": "$\\sigma$",
    "ε": "$\\varepsilon$",
    "δ": "$\\delta$",
    "α": "$\\alpha$",
    "φ": "$\\varphi$",
    "λ": "$\\lambda$",
}
"""Characters that LaTeX takes for commands, or that its usual fonts lack."""


@dataclass
class FigurePanel:
    """Numbers that share an axis: rows by name, each with a number for each label of the legend."""

    axis: str
    rows: list[str] = field(default_factory=list)
    numbers: dict[str, dict[int, Number]] = field(default_factory=dict)

    @property
    def height(self) -> float:
        """Height in inches."""
        return PANEL_AROUND + ROW * len(self.numbers) / SPREAD * len(self.rows)


def figure_of(rows: Iterable[Mapping[str, Any]], alpha: float) -> Figure:
    """Draw the numbers of a table that have intervals: a panel for all shares, and one for each other quantity.

    Rows are as `to_frame` has them; rows with a share that is not significant at α are left out, unless none
    is: a clean result shows all.
    """
    from matplotlib.figure import Figure

    table = [*rows]
    panels = [*_panels(table, alpha)] or [*_panels(table, 1)]
    if not panels:
        raise DataError("the table of this result is empty, so there is nothing to draw")
    heights = [panel.height for panel in panels]
    figure = Figure(figsize=(PAPER_WIDTH, sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw(axes, panel)
    known: dict[str, Any] = {}
    for axes in grid.flat:
        known |= {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(known) > 1:
        # 4: names that stand next to each other in a legend.
        columns = min(len(known), 4)
        legend = figure.legend(known.values(), known, loc="outside upper right", ncols=columns, frameon=False)
        for text in legend.get_texts():
            text.set(**PLAIN)
    return figure


def _panels(rows: Sequence[Mapping[str, Any]], alpha: float) -> Iterator[FigurePanel]:
    """Yield the panels of a table, in the order of its rows."""
    panels: dict[str, FigurePanel] = {}
    names = Counter(_name(row) for row in rows)
    for row in rows:
        numbers = _shares(row)
        if numbers and row.get("p_value", 0) > alpha:
            continue
        shares = bool(numbers)
        numbers = numbers or _values(row)
        if not numbers:
            continue
        name = _name(row)
        name_of_row = row.get("id", row.get("kind.id"))
        title = (
            f"{name}, {name_of_row}" if names[name] > 1 and name_of_row is not None and name_of_row != name else name
        )
        # Limits of one rule, "kinds.lose k128" and "kinds.lose k130", share an axis.
        value = row.get("by") or row.get("key") or (name.partition(" ")[0] if "margin" in row else name)
        if shares:  # of several methods or values of a parameter, an axis for each
            parts = [f"{key} {row[key]}" for key in ("space", "method", "rho", "sigma") if key in row]
            value = f"{OF_SET} ({', '.join(parts)}), %" if parts else f"{OF_SET}, %"
        quantity = str(value)
        panel = panels.setdefault(quantity, FigurePanel(quantity))
        for label, number in numbers.items():
            panel.numbers.setdefault(label, {})[len(panel.rows)] = number
        panel.rows.append(title)
    yield from panels.values()


def _name(row: Mapping[str, Any]) -> str:
    """Return the name of a row: of a kind without a name, its id."""
    known = ("name", "kind.name", "of", "key", "id", "kind.id")
    return next((str(row[column]) for column in known if row.get(column) is not None), next(iter(row)))


def _shares(row: Mapping[str, Any]) -> dict[str, Number]:
    """Return the shares of a row in percent, by the name of the set."""
    named = {column: f".{column}".partition(".shares.")[2] for column in row if column.endswith(LOWER_END)}
    columns = {label.removesuffix(LOWER_END): column for column, label in named.items() if label}
    titles: Mapping[Any, str] = SET_NAMES if columns.keys() == SET_NAMES.keys() else {}
    ends = {label: column.removesuffix("interval.low") for label, column in columns.items()}
    return {
        titles.get(label, label): (
            100 * row[f"{stem}share"],
            100 * row[f"{stem}interval.low"],
            100 * row[f"{stem}interval.high"],
        )
        for label, stem in ends.items()
    }


def _values(row: Mapping[str, Any]) -> dict[str, Number]:
    """Return the value of a row, with its interval if it has one, and the numbers that stand next to it."""
    column = next((name for name in VALUES if row.get(name) is not None), None)
    if column is None:
        return {}
    values = {"value": _with_ends(row, column, "interval")}
    marks = {name: _with_ends(row, name, f"{name}_interval") for name in MARKS if row.get(name) is not None}
    return values | marks


def _with_ends(row: Mapping[str, Any], column: str, interval: str) -> Number:
    value = row[column]
    ends = [(row.get(f"{name}.low"), row.get(f"{name}.high")) for name in (f"{column}_interval", interval)]
    low, high = next(((low, high) for low, high in ends if low is not None and high is not None), (value, value))
    return value, low, high


def _draw(axes: Axes, panel: FigurePanel) -> None:
    step = SPREAD / len(panel.numbers)
    for number, (label, numbers) in enumerate(panel.numbers.items()):
        values, lows, highs = (list(part) for part in zip(*numbers.values(), strict=True))
        # An interval can leave out its number, such as that of the corrected value of a limit.
        around = [
            [max(value - low, 0) for value, low in zip(values, lows, strict=True)],
            [max(high - value, 0) for value, high in zip(values, highs, strict=True)],
        ]
        heights = [row + step * (number - (len(panel.numbers) - 1) / 2) for row in numbers]
        style: dict[str, Any] = {"fmt": "o", "ms": 4, "capsize": 2} | STYLES.get(label, {})
        axes.errorbar(values, heights, xerr=around, label=str(printable(label)), **style)
    axes.set_yticks(range(len(panel.rows)), [str(printable(name)) for name in panel.rows], **PLAIN)
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    if panel.axis.startswith(OF_SET):
        axes.set_xlim(left=0)
    axes.set_xlabel(str(printable(panel.axis)), **PLAIN)
    axes.spines[["top", "right"]].set_visible(False)


def latex(outline: Outline) -> str:
    """Return the tables of an outline that have rows, each as a table environment; needs the package booktabs."""
    tables = [_table(table) for table in outline.tables if table.rows]
    return "\n".join([f"% {_text(outline.title)}: finc-eval, {_text(str(outline.kind))}", *tables])


def _table(table: TextTable) -> str:
    left = {*table.headers, *table.words}
    columns = "".join("l" if heading in left else "r" for heading in table.columns)
    first, *rows = map(_row, [table.columns, *table.texts(small=True)])
    head = ["\\begin{table}", "\\centering", f"\\caption{{{_text(table.title)}}}", f"\\begin{{tabular}}{{{columns}}}"]
    tail = ["\\bottomrule", "\\end{tabular}", "\\end{table}", ""]
    return "\n".join([*head, "\\toprule", first, "\\midrule", *rows, *tail])


def _row(texts: Iterable[str]) -> str:
    return " & ".join(map(_text, texts)) + " \\\\"


def _text(text: str) -> str:
    """Spell a text for LaTeX; a bracket after the end of a row would be an argument of it."""
    return "".join(SPELLED.get(mark, mark) for mark in str(printable(text))).replace("[", "{[}")
