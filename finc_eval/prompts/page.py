"""Prompts on the page of a comparison: words that differ, prompts that differ, and how well images fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finc_eval.core.words import figure, percent
from finc_eval.prompts.prompt_sets import PromptSetGap
from finc_eval.prompts.result import PROMPTS_SHOWN, Prompt, PromptDifferences, Word
from finc_eval.prompts.text import Fit
from finc_eval.report.exports.outline import Cell, TextTable
from finc_eval.report.formats import p_value

LEGEND = (
    "Difference of content: distance of the mean images of both sets; two images of any prompts are 1 apart. "
    "Difference of diversity: −1 if only the first set repeats one image of a prompt, 1 if only the second does not "
    "vary less. "
    "Spread: distance of two images of one prompt, in the same unit."
)

OF_FIT = (
    "CLIPScore: 2.5 times the cosine of image and prompt in the space of the model, or 0. Difference, of fit: mean "
    "difference of both sets' CLIPScores."
)

OF_SETS = (
    "Content: mean squared distance of both sets' mean images of a prompt, without the part of chance; two images of "
    "any prompts are 1 apart. Fit: how much better the first set's images fit. Difference: second value minus first."
)

OF_PLANS = (
    "Not significant among all cells. With so many more prompts, 80 % of repetitions decide the cell if its shares are "
    "true; chance brings such cells, too."
)

OF_CELLS = "Shares are of the pictures of these prompts. A look is had by pictures beyond 95 % of the reference."


def prompt_tables(result: PromptDifferences | None, titles: Mapping[str, str]) -> list[TextTable]:
    """Return the words that differ, the prompts that differ most, and how well images fit their prompts."""
    if result is None:
        return []
    measures = ("Spread", "Distinct", *(("CLIPScore",) if result.fits else ()))
    sets = [f"{what}, {name}" for what in measures for name in titles.values()]
    words: list[list[Cell | str]] = [
        [Cell(word.title, samples=_samples(word)), word.what, f"{word.prompts:,}", *_numbers(word, titles)]
        for word in result.words
    ]
    prompts: list[list[Cell | str]] = [
        [Cell(prompt.text, samples=_samples(prompt)), *_numbers(prompt, titles)]
        for prompt in result.prompts[:PROMPTS_SHOWN]
    ]
    ends = ["Difference", "Interval", "Adj. p"]
    about = result.unmeasured[:1].upper() + result.unmeasured[1:]
    tables = [
        TextTable(
            f"Words and phrases of {result.column}s whose images differ, of {result.tested:,}",
            ["Word", "What", "Prompts", *ends, *sets],
            words,
            words=["What"],
            legend=" ".join([LEGEND, *([f"{about}."] if about else []), *([OF_FIT] if result.fits else [])]),
            nothing="No word differs significantly.",
        ),
        TextTable(
            f"The {result.column}s whose images differ most",
            ["Prompt", *ends, *([f"Fit: {end.lower()}" for end in ends] if result.fits else []), *sets],
            [[*row[:4], *_fit(prompt.fit), *row[4:]] for row, prompt in zip(prompts, result.prompts, strict=False)],
        ),
    ]
    if result.cells:
        tables.insert(1, _cell_table(result, titles))
    if result.plans:
        tables.insert(-1, _plan_table(result, titles))
    if result.prompt_sets:
        tables.append(_set_table(result.prompt_sets))
    if result.fit is not None:
        tables.append(_fit_table(result, result.fit, titles))
    return tables


def _fit_table(result: PromptDifferences, fit: Fit, titles: Mapping[str, str]) -> TextTable:
    """Return how well the images of each set fit their prompts."""
    fits = [
        [name, f"{result.fits[label].value:.3f}", _ends(result.fits[label].interval), ""]
        for label, name in titles.items()
    ]
    fits.append([f"{' − '.join(titles.values())}, {result.column} by {result.column}", *_fit(fit)])
    return TextTable(f"Fit of images to their {result.column}s", ["Set", "CLIPScore", "Interval", "p"], fits)


def _plan_table(result: PromptDifferences, titles: Mapping[str, str]) -> TextTable:
    """Return how many more prompts with a word decide what its pictures may have more often."""
    rows: list[list[Cell | str]] = [
        [
            Cell(plan.cell.title, samples=[*plan.cell.sets.items()]),
            plan.cell.name,
            *(percent(share, 0) for share in (plan.cell.share_gen, plan.cell.share_ref)),
            f"{plan.cell.prompts:,}",
            f"{plan.more:,}",
        ]
        for plan in result.plans
    ]
    shares = [f"Share, {name}" for name in titles.values()]
    columns = ["Word", "Pictures may be or have", *shares, f"{result.column.capitalize()}s", "More to add"]
    title = f"Which {result.column}s to add next"
    return TextTable(title, columns, rows, words=columns[1:2], legend=OF_PLANS)


def _set_table(gaps: Sequence[PromptSetGap]) -> TextTable:
    """Return how unlike the images are on two sets of prompts."""
    names = [f"{name}: {number}" for name in gaps[0].prompts for number in ("prompts", "value")]
    rows: list[list[Cell | str]] = [
        [
            gap.what,
            *(text for name, n in gap.prompts.items() for text in (f"{n:,}", figure(gap.values[name], ".3f"))),
            figure(gap.difference, ".3f"),
            _ends(gap.interval),
            p_value(gap.p_value),
        ]
        for gap in gaps
    ]
    columns = ["What", *names, "Difference", "Interval", "Adj. p"]
    return TextTable(f"How unlike the images are by {gaps[0].column}", columns, rows, words=["What"], legend=OF_SETS)


def _cell_table(result: PromptDifferences, titles: Mapping[str, str]) -> TextTable:
    """Return what pictures of prompts with a word have more often in one set."""
    rows: list[list[Cell | str]] = [
        [
            Cell(cell.title, samples=[*cell.sets.items()]),
            cell.name,
            cell.what,
            f"{cell.prompts:,}",
            *(percent(share, 0) for share in (cell.share_gen, cell.share_ref)),
            p_value(cell.p_value),
        ]
        for cell in result.cells
    ]
    shares = [f"Share, {name}" for name in titles.values()]
    columns = ["Word", "Pictures are or have", "By", f"{result.column.capitalize()}s", *shares, "Adj. p"]
    return TextTable(
        f"What pictures of {result.column}s with a word have more often",
        columns,
        rows,
        words=columns[1:3],
        legend=OF_CELLS,
    )


def _fit(fit: Fit | None) -> list[str]:
    """Return a difference of fit, its interval and its p-value; nothing where it is not measured."""
    if fit is None:
        return []
    return [figure(fit.difference, ".3f"), _ends(fit.interval), "–" if fit.p_value is None else p_value(fit.p_value)]


def _ends(interval: tuple[float, float], form: str = ".3f") -> str:
    return " to ".join(figure(end, form) for end in interval)


def _samples(row: Word | Prompt) -> list[tuple[str, tuple[str, ...]]]:
    return [(label, part.ids) for label, part in row.sets.items()]


def _numbers(row: Word | Prompt, titles: Mapping[str, str]) -> list[str]:
    parts = [row.sets[label] for label in titles]
    return [
        figure(row.difference, ".2f"),
        _ends(row.interval, ".2f"),
        "–" if row.p_value is None else p_value(row.p_value),
        *("–" if part.spread is None else f"{part.spread:.2f}" for part in parts),
        *(f"{part.distinct:,} of {part.n:,}" for part in parts),
        *(figure(part.fit, ".3f") for part in parts if part.fit is not None),
    ]
