"""Tables of the words and prompts whose images differ between two sets, for the page, the terminal and texts."""

from __future__ import annotations

from collections.abc import Mapping

from finc_eval.prompts.table import PROMPTS_SHOWN, Prompt, PromptDifferences, PromptSet, Word
from finc_eval.report.exports.outline import Cell, Table
from finc_eval.report.formats import p_value

LEGEND = (
    "Difference, of content: distance of the mean images of both sets, where two images of any prompts are 1 apart. Of "
    "diversity: −1 where only the first set repeats one image of a prompt, 1 where only the second does not vary less. "
    "Spread: distance of two images of one prompt, in the same unit."
)


def prompt_tables(found: PromptDifferences | None, titles: Mapping[str, str]) -> list[Table]:
    """Return the words that differ, and the prompts that differ most."""
    if found is None:
        return []
    sets = [f"{what}, {name}" for what in ("Spread", "Distinct") for name in titles.values()]
    words: list[list[Cell | str]] = [
        [Cell(one.title, samples=_samples(one)), one.what, f"{one.prompts:,}", *_numbers(one, titles)]
        for one in found.words
    ]
    prompts: list[list[Cell | str]] = [
        [Cell(one.text, samples=_samples(one)), *_numbers(one, titles)] for one in found.prompts[:PROMPTS_SHOWN]
    ]
    ends = ["Difference", "Interval", "Adj. p", *sets]
    return [
        Table(
            f"Words and phrases of {found.column}s whose images differ, of {found.tested:,}",
            ["Word", "What", "Prompts", *ends],
            words,
            words=["What"],
            legend=LEGEND,
            nothing="No word differs significantly.",
        ),
        Table(f"The {found.column}s whose images differ most", ["Prompt", *ends], prompts),
    ]


def _samples(one: Word | Prompt) -> list[tuple[str, tuple[str, ...]]]:
    return [(label, part.ids) for label, part in one.sets.items()]


def _numbers(one: Word | Prompt, titles: Mapping[str, str]) -> list[str]:
    low, high = one.interval
    parts = [one.sets[label] for label in titles]
    return [
        f"{one.difference:.2f}",
        f"{low:.2f} to {high:.2f}",
        "–" if one.p_value is None else p_value(one.p_value),
        *(_spread(part) for part in parts),
        *(f"{part.distinct:,} of {part.n:,}" for part in parts),
    ]


def _spread(one: PromptSet) -> str:
    return "–" if one.spread is None else f"{one.spread:.2f}"
