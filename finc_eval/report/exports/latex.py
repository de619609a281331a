"""LaTeX of a result: its tables for a paper, with the rules of the package booktabs."""

from __future__ import annotations

from collections.abc import Iterable

from finc_eval.report.exports.outline import Outline, Table
from finc_eval.report.formats import printable

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


def latex(outline: Outline) -> str:
    """Return the tables of an outline that have rows, each as a table environment; needs the package booktabs."""
    tables = [_table(one) for one in outline.tables if one.rows]
    return "\n".join([f"% {_text(outline.title)}: finc-eval, {_text(str(outline.kind))}", *tables])


def _table(table: Table) -> str:
    left = {*table.headers, *table.words}
    columns = "".join("l" if heading in left else "r" for heading in table.columns)
    lines = [_row(table.columns), "\\midrule", *map(_row, table.texts(small=True))]
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{_text(table.title)}}}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def _row(texts: Iterable[str]) -> str:
    return " & ".join(map(_text, texts)) + " \\\\"


def _text(text: str) -> str:
    """Spell a text for LaTeX; a bracket after the end of a row would be an argument of it."""
    return "".join(SPELLED.get(mark, mark) for mark in str(printable(text))).replace("[", "{[}")
